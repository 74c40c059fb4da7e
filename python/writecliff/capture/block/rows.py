"""Requests as rows of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from writecliff.capture.trace import BLOCK_COLUMNS
from writecliff.capture.trace_file import fields, texts

FIELDS = fields(BLOCK_COLUMNS)
FLAGS = ("sync", "fua", "preflush", "readahead", "metadata", "zeroes", "erase", "atomic")
"""What a request may say of itself, by the bits of `KernelTrace.drain`."""
OPS = ("read", "write", "punch", "fsync")  # by the numbers of `KernelTrace.drain`
_PROCESSES_KEPT = 100_000
_WORDS = pa.array(
    " ".join(name for bit, name in enumerate(FLAGS) if number & 1 << bit) for number in range(256)
)


class Processes:
    """Which process a thread belongs to, asked while it lives."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._known: dict[tuple[int, str], tuple[int, str | None]] = {}

    def of(self, thread_id: int, thread: str) -> tuple[int, str | None]:
        """The process of a thread, and its name; of one that has ended the thread itself, and
        None. Numbers of threads are used again: the name tells them apart."""
        key = thread_id, thread
        if key not in self._known:
            if len(self._known) >= _PROCESSES_KEPT:
                self._known.clear()
            self._known[key] = self._ask(thread_id)
        return self._known[key]

    def _ask(self, thread_id: int) -> tuple[int, str | None]:
        with suppress(OSError, ValueError, IndexError):
            status = (self._proc / str(thread_id) / "status").read_text(errors="replace")
            pid = int(status.partition("\nTgid:")[2].split()[0])
            return pid, (self._proc / str(pid) / "comm").read_text(errors="replace").strip()
        return thread_id, None


def batch(
    drained: Mapping[str, Any], names: Sequence[str], processes: Processes, *, device: str
) -> pa.RecordBatch:
    """The columns of a trace of the device of this name, from what `KernelTrace.drain` gave."""
    of = drained
    rows = len(of["time_ns"])
    pid, process = _processes(of["thread_id"], of["name"], names, processes)
    columns = {
        "time_ns": of["time_ns"],
        "op": texts(of["operation"], OPS),
        "file": np.zeros(rows, np.int32),
        "path": texts(np.zeros(rows, np.int32), (device,)),
        "offset_bytes": of["offset_bytes"],
        "length_bytes": of["length_bytes"],
        "thread": texts(of["name"], names),
        "process": process,
        "hint": pa.nulls(rows, pa.int8()),
        "issue_ns": pa.array(of["issue_ns"], mask=of["issue_ns"] < 0),
        "complete_ns": pa.array(of["complete_ns"], mask=of["complete_ns"] < 0),
        "flags": pa.DictionaryArray.from_arrays(pa.array(of["flags"]), _WORDS),
        "pid": pid,
        "errno": of["errno"],
    }
    return pa.record_batch([pa.array(values) for values in columns.values()], schema=FIELDS)


def _processes(
    thread_id: Any, name: Any, names: Sequence[str], processes: Processes
) -> tuple[Any, pa.DictionaryArray]:
    """Identifiers and names of the processes; a process that has ended has its thread's name."""
    threads = pa.array((thread_id.astype(np.int64) << 32) | name).dictionary_encode()
    row = threads.indices.to_numpy(zero_copy_only=False)
    known = [(one >> 32, names[one & 0xFFFFFFFF]) for one in threads.dictionary.to_pylist()]
    found = [processes.of(number, thread) for number, thread in known]
    words = [said or thread for (_, said), (_, thread) in zip(found, known, strict=True)]
    pids = np.array([pid for pid, _ in found], np.int32)
    return pids[row], texts(row, words)
