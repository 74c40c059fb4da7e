"""Capture of a block device for a given time or while a command runs."""

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
_SETTLED_NS = 50_000_000  # Delay after which the events from all processors are in their buffers.
NS_PER_S = 1_000_000_000


# Operation names by operation number, as in `KernelTrace.drain`.
OPS = ("read", "write", "punch", "fsync")


@dataclass(frozen=True)
class OtherEvent:
    """An event to capture in addition to requests, with a filter and the fields to record."""

    name: str  # Event name, such as "jbd2/jbd2_run_stats".
    filter: str
    fields: tuple[str, ...]


@dataclass
class Counts:
    """Number and bytes of captured requests, by operation."""

    requests: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OPS, 0))
    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OPS, 0))

    def add(self, operation: NDArray[Any], length_bytes: NDArray[Any]) -> None:
        """Count requests by operation number."""
        requests = np.bincount(operation, minlength=len(OPS))
        moved = np.bincount(operation, length_bytes, len(OPS))
        for number, op in enumerate(OPS):
            self.requests[op] += int(requests[number])
            self.bytes[op] += int(moved[number])

    @property
    def total(self) -> int:
        """Total number of requests."""
        return sum(self.requests.values())


class BlockCapture:
    """A capture that runs in a background thread from `start` until `stop`."""

    def __init__(
        self,
        device: TracedDevice,
        output: Path,
        *,
        others: Sequence[OtherEvent] = (),
        on_events: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        """Prepare to capture `device` and to write the trace to `output`.

        Args:
            device: The device.
            output: Path of the trace.
            others: Additional events, which are skipped if the kernel does not provide them.
            on_events: Callback that receives the additional events in the form of
                `KernelTrace.drain`.

        Raises:
            TargetError: If the process is not root, or the kernel has no tracefs.
            EngineError: If the kernel rejects the tracing instance.
            StoreError: If the trace cannot be created.
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
        self.others = [event for event in others if self._instance.format(event.name) is not None]

    def _open(self, others: Sequence[OtherEvent]) -> _native.KernelTrace:
        formats = [_format(self._instance, f"block/{name}") for name in self.device.events]
        wanted = [
            (text, list(event.fields))
            for event in others
            if (text := self._instance.format(event.name)) is not None
        ]
        page = (self._instance.events / "header_page").read_text()
        sectors = (self.device.first_sector, self.device.end_sector)
        with as_user_errors():
            kernel = _native.KernelTrace(str(self._instance.folder), page, formats, wanted, sectors)
        for name in self.device.events:
            self._instance.enable(f"block/{name}", self.device.filter)
        for event in others:
            if self._instance.format(event.name) is not None:
                self._instance.enable(event.name, event.filter)
        return kernel

    def start(self) -> None:
        """Start the capture."""
        self.started = datetime.now(UTC)
        self.began_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self._instance.record(on=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """`True` if an error stopped the capture; `stop` then raises the error."""
        return self._failed is not None

    def stop(self) -> None:
        """Stop recording and read the remaining events.

        Raises:
            StoreError: If the trace cannot be written.
            EngineError: If the events cannot be read.
        """
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
        """Write the trace, add `more` to its metadata, and return the complete metadata.

        Raises:
            StoreError: If the trace cannot be written.
        """
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
        """Remove the tracing instance and any incomplete trace."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._undo.close()
        self._file.abandon()

    def _notes(self, metadata: Mapping[str, Any]) -> list[str]:
        notes = []
        if _disk_of(self.output) == self.device.disk.number:
            notes.append(f"the trace itself was written to the captured device {self.device.path}")
        if not self.counts.total:
            notes.append(f"no requests reached {self.device.path}")
        if lost := metadata["lost_events"]:
            notes.append(
                f"the kernel lost {lost:,} events: some requests are missing or lack times"
            )
        if count := metadata["open_at_start"]:
            notes.append(f"{count:,} requests were issued before the capture started")
        if count := metadata["open_at_end"]:
            notes.append(f"{count:,} requests were outstanding when the capture ended")
        return notes


def _disk_of(path: Path) -> tuple[int, int] | None:
    """Return the disk that contains a file, or `None` if the file is not on a block device."""
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
            f"this kernel does not support the trace event {event}",
            hint="use a kernel built with CONFIG_BLK_DEV_IO_TRACE",
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
    """Capture the device at `path`, and write the trace to `output`.

    The capture runs until `command` exits; without a command, it runs for `seconds` or until Ctrl-C
    or SIGTERM.

    Args:
        path: The device.
        output: Path of the trace.
        command: Command to run, if any.
        seconds: Capture duration in s, or None to capture until a signal arrives.
        stdout: File descriptor for the command's output.
        on_tick: Callback that is called every second if there is no command.

    Raises:
        TargetError: If the device does not exist, the process is not root, the kernel has no
            tracefs, or the command cannot be run.
        EngineError: If the kernel rejects the capture.
        StoreError: If the trace cannot be written.
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
    """Start the capture, and wait for the given time or for a signal."""
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
"""Flags of a request, in the order of the bits of `KernelTrace.drain`."""
_PROCESSES_KEPT = 100_000
_WORDS = pa.array(
    " ".join(name for bit, name in enumerate(FLAGS) if number & 1 << bit) for number in range(256)
)


class Processes:
    """Cache of each thread's process, read from /proc while the thread exists."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """Create an empty cache."""
        self._proc = proc
        self._identities: dict[tuple[int, str], tuple[int, str | None]] = {}

    def of(self, thread_id: int, thread: str) -> tuple[int, str | None]:
        """Return a thread's process and its name.

        For a thread that has exited, return the thread's own number and `None`. The thread name
        distinguishes threads that reuse a thread number.
        """
        key = thread_id, thread
        if key not in self._identities:
            if len(self._identities) >= _PROCESSES_KEPT:
                self._identities.clear()
            self._identities[key] = self._ask(thread_id)
        return self._identities[key]

    def _ask(self, thread_id: int) -> tuple[int, str | None]:
        with suppress(OSError, ValueError, IndexError):
            status = (self._proc / str(thread_id) / "status").read_text(errors="replace")
            pid = int(status.partition("\nTgid:")[2].split()[0])
            return pid, (self._proc / str(pid) / "comm").read_text(errors="replace").strip()
        return thread_id, None


def batch(
    drained: Mapping[str, Any], names: Sequence[str], processes: Processes, *, device: str
) -> pa.RecordBatch:
    """Convert the output of `KernelTrace.drain` to trace columns for the named device."""
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
    """Return process identifiers and names, using thread names for exited processes."""
    threads = pa.array((thread_id.astype(np.int64) << 32) | name).dictionary_encode()
    row = threads.indices.to_numpy(zero_copy_only=False)
    thread_names = [
        (thread_name >> 32, names[thread_name & 0xFFFFFFFF])
        for thread_name in threads.dictionary.to_pylist()
    ]
    owners = [processes.of(number, thread) for number, thread in thread_names]
    words = [
        process_name or thread
        for (_, process_name), (_, thread) in zip(owners, thread_names, strict=True)
    ]
    pids = np.array([pid for pid, _ in owners], np.int32)
    return pids[row], texts(row, words)


# -- tracefs ---------------------------------------------------------------------------------------

# A tracing instance in the kernel (tracefs) has its own events, filters and buffers.
#
# Tracing instances do not interfere with each other or with the machine's global trace. The kernel
# retains an instance until a program removes it. Therefore each instance is named after its
# process, and the next capture removes the instances of killed processes. The kernel refuses to
# remove an instance whose buffers are open.

STANDARD = Path("/sys/kernel/tracing")
MOUNTS = Path("/proc/mounts")
_OURS = re.compile(r"writecliff-(\d+)-(\d+)-\d+")
_numbers = itertools.count()
# Maximum size per processor: over a second at 50,000 requests per second.
_BUFFER_MAX_BYTES = 16 << 20
_BUFFERS_MAX_BYTES = 512 << 20  # Maximum total size for all processors.
_STARTED_AT = 19  # Start time field in /proc/PID/stat, counted after the name.


@dataclass(frozen=True)
class Losses:
    """Number of events that the kernel failed to record, by reason."""

    overrun: int = 0
    commit_overrun: int = 0
    dropped: int = 0

    @property
    def total(self) -> int:
        """Total number of lost events."""
        return self.overrun + self.commit_overrun + self.dropped


class Instance:
    """An existing kernel tracing instance."""

    def __init__(self, folder: Path) -> None:
        """Use the tracing instance in `folder`."""
        self.folder = folder

    @property
    def events(self) -> Path:
        """Folder that contains the instance's events."""
        return self.folder / "events"

    def format(self, event: str) -> str | None:
        """Return the kernel's format description of an event such as "block/block_rq_issue".

        Return `None` if the kernel does not provide the event.
        """
        try:
            return (self.events / event / "format").read_text()
        except OSError:
            return None

    def enable(self, event: str, filter: str) -> None:
        """Enable recording of the events that pass `filter`.

        Raises:
            EngineError: If the kernel rejects the filter.
        """
        self._write(f"events/{event}/filter", filter)
        self._write(f"events/{event}/enable", "1")

    def record(self, *, on: bool) -> None:
        """Start or stop recording, and retain buffered events.

        Raises:
            EngineError: If the kernel rejects the change.
        """
        self._write("tracing_on", "1" if on else "0")

    def losses(self) -> Losses:
        """Return the number of events lost so far on all processors."""
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
                f"{self.folder / name}: the kernel rejects {text!r}: {_reason(error)}"
            ) from None


@contextmanager
def instance() -> Iterator[Instance]:
    """Create an instance that uses the monotonic clock and does not record yet; remove it on exit.

    Raises:
        TargetError: If the process is not root, or the kernel has no tracefs.
        EngineError: If the kernel rejects the instance.
    """
    root = find_tracefs()
    remove_stale(root)
    name = f"writecliff-{os.getpid()}-{_started(os.getpid())}-{next(_numbers)}"
    folder = root / "instances" / name
    try:
        folder.mkdir()
    except OSError as error:
        raise EngineError(f"cannot create a tracing instance: {_reason(error)}") from None
    made = Instance(folder)
    try:
        made.record(on=False)
        made._write("trace_clock", "mono")
        # A full buffer must retain the oldest events so that the lost events are contiguous.
        made._write("options/overwrite", "0")
        processors = len(list((folder / "per_cpu").iterdir()))
        size = min(_BUFFER_MAX_BYTES, _BUFFERS_MAX_BYTES // max(1, processors))
        made._write("buffer_size_kb", str(size >> 10))
        yield made
    finally:
        with suppress(OSError):
            folder.rmdir()


def find_tracefs() -> Path:
    """Return the mount point of tracefs, mounting it permanently if necessary.

    Raises:
        TargetError: If the process is not root, or tracefs cannot be mounted.
    """
    if os.geteuid() != 0:
        raise TargetError(
            "tracing a block device requires root",
            hint="run the command as root, for example with sudo",
        )
    for line in MOUNTS.read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "tracefs":
            return Path(place)
    if not STANDARD.is_dir():
        raise TargetError(
            "this kernel does not support tracefs",
            hint="use a kernel built with CONFIG_FTRACE and CONFIG_BLK_DEV_IO_TRACE",
        )
    words = ["mount", "-t", "tracefs", "nodev", str(STANDARD)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TargetError(f"cannot mount tracefs: {done.stderr.strip()}")
    return STANDARD


def remove_stale(root: Path) -> list[str]:
    """Remove the tracing instances of exited processes, and return the instance names."""
    removed = []
    for folder in sorted((root / "instances").iterdir()):
        match = _OURS.fullmatch(folder.name)
        if match is None or _started(int(match[1])) == match[2]:
            continue
        # The instance's buffers are open, so it belongs to another PID namespace.
        with suppress(OSError):
            folder.rmdir()
            removed.append(folder.name)
    return removed


def _started(pid: int) -> str | None:
    """Return a process's start time in clock ticks since boot, because PIDs are reused."""
    try:
        behind = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return None
    return behind.split()[_STARTED_AT]


def _reason(error: OSError) -> str:
    if error.errno == errno.EROFS:
        return "tracefs is mounted read-only"
    return (error.strerror or str(error)).lower()
