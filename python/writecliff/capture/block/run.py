"""Captures a block device for a time, or while a command runs, and writes its trace."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from writecliff import _native
from writecliff.capture.block.device import TracedDevice, traced_device
from writecliff.capture.block.rows import FIELDS, OPS, Processes, batch
from writecliff.capture.block.tracefs import Instance, Losses, instance
from writecliff.capture.run import Captured, execute, program_of
from writecliff.capture.trace import BLOCK
from writecliff.capture.trace_file import TraceFile
from writecliff.engines.blockdev.topology import System, device_by_number, whole_disk
from writecliff.errors import EngineError, TargetError
from writecliff.native_errors import as_user_errors
from writecliff.signals import TERMINATIONS, handling

_PERIOD_S = 0.25
_SETTLED_NS = 50_000_000  # events of all processors are in their buffers by then
NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class OtherEvent:
    """An event that is captured beside requests: its name, what the kernel lets through, and the
    fields that are wanted."""

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
