"""Captures a block device for a time, or while a command runs, and writes its trace."""

from __future__ import annotations

import errno
import itertools
import os
import re
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from writecliff import _native
from writecliff.capture.block.device import TracedDevice, traced_device
from writecliff.capture.run import Captured, execute, program_of
from writecliff.capture.trace import BLOCK, BLOCK_COLUMNS
from writecliff.capture.trace_file import TraceFile, fields, texts
from writecliff.engines.blockdev.topology import System, device_by_number, whole_disk
from writecliff.errors import EngineError, TargetError
from writecliff.native_errors import as_user_errors
from writecliff.signals import TERMINATIONS, handling

_PERIOD_S = 0.25
_SETTLED_NS = 50_000_000  # events of all processors are in their buffers by then
NS_PER_S = 1_000_000_000


OPS = ("read", "write", "punch", "fsync")  # by the numbers of `KernelTrace.drain`


@dataclass(frozen=True)
class OtherEvent:
    """An event that is captured beside requests: its name, what the kernel lets through, and the
    fields that are wanted.
    """

    name: str  # such as "jbd2/jbd2_run_stats"
    filter: str
    fields: tuple[str, ...]


@dataclass
class Counts:
    """What was captured: requests and bytes by operation."""

    requests: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OPS, 0))
    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OPS, 0))

    def add(self, operation: NDArray[Any], length_bytes: NDArray[Any]) -> None:
        """Count requests by the numbers of their operations."""
        requests = np.bincount(operation, minlength=len(OPS))
        moved = np.bincount(operation, length_bytes, len(OPS))
        for number, op in enumerate(OPS):
            self.requests[op] += int(requests[number])
            self.bytes[op] += int(moved[number])

    @property
    def total(self) -> int:
        return sum(self.requests.values())


class BlockCapture:
    """A capture that runs in a thread of its own from `start` to `stop`."""

    def __init__(
        self,
        device: TracedDevice,
        output: Path,
        *,
        others: Sequence[OtherEvent] = (),
        on_events: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        """Prepare the capture of `device` to the trace `output`. `others` go to `on_events` as
        `KernelTrace.drain` gives them; those that the kernel has not are left out.

        Raises TargetError (not root, no tracefs), EngineError, StoreError.
        """
        self.device, self.output = device, output
        self.counts = Counts()
        self.losses = Losses()
        self._on_events = on_events
        self._stack = ExitStack()
        self._stop = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="block capture")
        self._cpu_ns = 0
        self._processes = Processes()
        with self._stack:
            self._instance = self._stack.enter_context(instance())
            self._kernel = self._open(others)
            self._stack.callback(self._kernel.close)
            output.parent.mkdir(parents=True, exist_ok=True)
            self._file = TraceFile(output, FIELDS)
            self._undo = self._stack.pop_all()
        self.others = [one for one in others if self._instance.format(one.name) is not None]

    def _open(self, others: Sequence[OtherEvent]) -> _native.KernelTrace:
        formats = [_format(self._instance, f"block/{name}") for name in self.device.events]
        wanted = [
            (text, list(one.fields))
            for one in others
            if (text := self._instance.format(one.name)) is not None
        ]
        page = (self._instance.events / "header_page").read_text()
        sectors = (self.device.first_sector, self.device.end_sector)
        with as_user_errors():
            kernel = _native.KernelTrace(str(self._instance.folder), page, formats, wanted, sectors)
        for name in self.device.events:
            self._instance.enable(f"block/{name}", self.device.filter)
        for one in others:
            if self._instance.format(one.name) is not None:
                self._instance.enable(one.name, one.filter)
        return kernel

    def start(self) -> None:
        """Begin."""
        self.started = datetime.now(UTC)
        self.began_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self._instance.record(on=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether the capture ended by itself; `stop` raises why."""
        return self._failed is not None

    def stop(self) -> None:
        """End recording and take what is left in the buffers. Raises StoreError, EngineError."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            while not self._stop.wait(_PERIOD_S):
                self._drain(last=False)
            self._instance.record(on=False)
            self.ended_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            self.losses = self._instance.losses()
            self._drain(last=True)
        except Exception as error:
            self._failed = error
        self._cpu_ns = time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID)

    def _drain(self, *, last: bool) -> None:
        until_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - _SETTLED_NS
        with as_user_errors():
            drained = self._kernel.drain(self.began_ns, until_ns, last)
        device = self.device.device.name
        self._file.add(batch(drained, self._kernel.names, self._processes, device=device))
        self.counts.add(drained["operation"], drained["length_bytes"])
        if self._on_events is not None:
            self._on_events(drained)

    def finish(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """Write the trace with `more` in its metadata; all of them. Raises StoreError."""
        counts = self._kernel.counts()
        seconds = max(self.ended_ns - self.began_ns, 1) / NS_PER_S
        metadata = {
            "level": BLOCK,
            "created": self.started.isoformat(timespec="microseconds"),
            "duration_ns": self.ended_ns - self.began_ns,
            "device": self.device.describe(),
            "requests": self.counts.requests,
            "bytes": self.counts.bytes,
            "lost_events": self.losses.total,
            "losses": asdict(self.losses),
            "open_at_start": counts["unknown_completions"],
            "open_at_end": counts["open"] + counts["unissued"],
            "requeued": counts["requeued"],
            "merged": counts["merged"],
            "other_commands": counts["other"],
            "events": counts["events"],
            "overhead": {
                "cpu_s": self._cpu_ns / NS_PER_S,
                "cpu_pct": (pct := 100 * self._cpu_ns / NS_PER_S / seconds),
                "machine_cpu_pct": pct / (os.cpu_count() or 1),
                "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
                "processors": os.cpu_count(),
            },
            **more,
        }
        metadata["notes"] = [*self._notes(metadata), *more.get("notes", [])]
        self._file.finish(metadata)
        return metadata

    def close(self) -> None:
        """Remove the instance, and what there is of a trace that was not finished."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._undo.close()
        self._file.abandon()

    def _notes(self, metadata: Mapping[str, Any]) -> list[str]:
        notes = []
        if _disk_of(self.output) == self.device.disk.number:
            notes.append(f"the trace itself was written to {self.device.path}")
        if not self.counts.total:
            notes.append(f"no request reached {self.device.path}")
        if lost := metadata["lost_events"]:
            notes.append(
                f"the kernel lost {lost:,} events: requests are missing, or lack their times"
            )
        if count := metadata["open_at_start"]:
            notes.append(f"{count:,} requests had been issued before the capture began")
        if count := metadata["open_at_end"]:
            notes.append(f"{count:,} requests were open when the capture ended")
        return notes


def _disk_of(path: Path) -> tuple[int, int] | None:
    """The whole disk that a file is on; None where there is none."""
    number = path.absolute().parent.stat().st_dev
    system = System()
    try:
        device = device_by_number(system, (os.major(number), os.minor(number)))
        return whole_disk(system, device).number
    except TargetError:
        return None


def _format(made: Instance, event: str) -> str:
    text = made.format(event)
    if text is None:
        raise EngineError(
            f"this kernel has no event {event}", hint="it needs CONFIG_BLK_DEV_IO_TRACE"
        )
    return text


def capture_device(
    path: Path,
    output: Path,
    *,
    command: Sequence[str] = (),
    seconds: float | None = None,
    stdout: int | None = None,
    on_tick: Callable[[BlockCapture], None] | None = None,
) -> Captured:
    """Capture the device at `path` to the trace `output`: while `command` runs, else until
    `seconds` have passed, or until Ctrl-C or SIGTERM.

    `on_tick` is called every second while no command runs. Raises TargetError (no such device, not
    root, no tracefs, a command that cannot be run), EngineError, StoreError.
    """
    device = traced_device(path)
    program = program_of(command) if command else None
    capture = BlockCapture(device, output)
    try:
        code = 0
        if program is not None:
            capture.start()
            code, _ = execute(command, dict(os.environ), stdout, None, executable=program)
        else:
            _run_for(capture, seconds, on_tick)
        capture.stop()
        more = {
            "command": list(command),
            "program": Path(command[0]).name if command else None,
            "exit_code": code,
        }
        return Captured(output, code, capture.finish(more))
    finally:
        capture.close()


def _run_for(
    capture: BlockCapture, seconds: float | None, on_tick: Callable[[BlockCapture], None] | None
) -> None:
    """Start the capture and wait until the time is over, or a signal ends it."""
    ended = threading.Event()
    with handling((signal.SIGINT, *TERMINATIONS), lambda *_: ended.set()):
        capture.start()
        until = None if seconds is None else time.monotonic() + seconds
        while not ended.is_set() and not capture.failed:
            left = 1.0 if until is None else min(1.0, until - time.monotonic())
            if left <= 0:
                return
            ended.wait(left)
            if on_tick is not None:
                on_tick(capture)


# -- requests as rows of a trace -------------------------------------------------------------------

FIELDS = fields(BLOCK_COLUMNS)
FLAGS = ("sync", "fua", "preflush", "readahead", "metadata", "zeroes", "erase", "atomic")
"""What a request may say of itself, by the bits of `KernelTrace.drain`."""
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
        None. Numbers of threads are used again: the name tells them apart.
        """
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


# -- tracefs ---------------------------------------------------------------------------------------

# Tracing instance of the kernel (tracefs), with its own events, filters and buffers.
#
# Instances do not disturb each other or the machine's global trace. The kernel keeps an instance
# until it is removed. So each instance has the name of its process, and the next capture removes
# the instances of killed processes. The kernel does not remove an instance with open buffers.

STANDARD = Path("/sys/kernel/tracing")
MOUNTS = Path("/proc/mounts")
_OURS = re.compile(r"writecliff-(\d+)-(\d+)-\d+")
_numbers = itertools.count()
_BUFFER_MAX_BYTES = 16 << 20  # of one processor: more than a second of 50,000 requests per second
_BUFFERS_MAX_BYTES = 512 << 20  # of all
_STARTED_AT = 19  # of /proc/PID/stat, behind the name


@dataclass(frozen=True)
class Losses:
    """Events that the kernel could not keep, by the reason that it gives."""

    overrun: int = 0
    commit_overrun: int = 0
    dropped: int = 0

    @property
    def total(self) -> int:
        return self.overrun + self.commit_overrun + self.dropped


class Instance:
    """An instance that exists."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def events(self) -> Path:
        return self.folder / "events"

    def format(self, event: str) -> str | None:
        """The kernel's description of an event such as "block/block_rq_issue"; None if this kernel
        has no such event.
        """
        try:
            return (self.events / event / "format").read_text()
        except OSError:
            return None

    def enable(self, event: str, filter: str) -> None:
        """Record the events that `filter` lets through. Raises EngineError."""
        self._write(f"events/{event}/filter", filter)
        self._write(f"events/{event}/enable", "1")

    def record(self, *, on: bool) -> None:
        """Begin or end recording; what is in the buffers stays. Raises EngineError."""
        self._write("tracing_on", "1" if on else "0")

    def losses(self) -> Losses:
        """What all processors have lost so far."""
        counts = dict.fromkeys(("overrun", "commit overrun", "dropped events"), 0)
        for path in self.folder.glob("per_cpu/cpu*/stats"):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(":")
                if name in counts:
                    counts[name] += int(value)
        return Losses(*counts.values())

    def _write(self, name: str, text: str) -> None:
        try:
            (self.folder / name).write_text(text)
        except OSError as error:
            raise EngineError(
                f"{self.folder / name}: the kernel refuses {text!r}: {_reason(error)}"
            ) from None


@contextmanager
def instance() -> Iterator[Instance]:
    """An instance that records nothing yet, on the monotonic clock; removed at the end.

    Raises TargetError: not root, or a kernel without tracefs; EngineError.
    """
    root = find_tracefs()
    remove_stale(root)
    name = f"writecliff-{os.getpid()}-{_started(os.getpid())}-{next(_numbers)}"
    folder = root / "instances" / name
    try:
        folder.mkdir()
    except OSError as error:
        raise EngineError(f"cannot make a tracing instance: {_reason(error)}") from None
    made = Instance(folder)
    try:
        made.record(on=False)
        made._write("trace_clock", "mono")
        # Keep the oldest events when a buffer is full: what is lost then is one piece.
        made._write("options/overwrite", "0")
        processors = len(list((folder / "per_cpu").iterdir()))
        size = min(_BUFFER_MAX_BYTES, _BUFFERS_MAX_BYTES // max(1, processors))
        made._write("buffer_size_kb", str(size >> 10))
        yield made
    finally:
        with suppress(OSError):
            folder.rmdir()


def find_tracefs() -> Path:
    """Where tracefs is; it is mounted in its usual place if it is not, and stays so.

    Raises TargetError.
    """
    if os.geteuid() != 0:
        raise TargetError("tracing a block device needs root", hint="run it with sudo")
    for line in MOUNTS.read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "tracefs":
            return Path(place)
    if not STANDARD.is_dir():
        raise TargetError(
            "this kernel has no tracefs", hint="it needs CONFIG_FTRACE and CONFIG_BLK_DEV_IO_TRACE"
        )
    words = ["mount", "-t", "tracefs", "nodev", str(STANDARD)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TargetError(f"tracefs cannot be mounted: {done.stderr.strip()}")
    return STANDARD


def remove_stale(root: Path) -> list[str]:
    """Remove the instances of processes that have ended; their names."""
    removed = []
    for folder in sorted((root / "instances").iterdir()):
        match = _OURS.fullmatch(folder.name)
        if match is None or _started(int(match[1])) == match[2]:
            continue
        with suppress(OSError):  # its buffers are open: not stale, but of another PID namespace
            folder.rmdir()
            removed.append(folder.name)
    return removed


def _started(pid: int) -> str | None:
    """When a process was started, in clock ticks since boot: its identifier may be used again."""
    try:
        behind = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return None
    return behind.split()[_STARTED_AT]


def _reason(error: OSError) -> str:
    if error.errno == errno.EROFS:
        return "tracefs is mounted read-only"
    return (error.strerror or str(error)).lower()
