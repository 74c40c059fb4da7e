"""A tracing instance of the kernel (tracefs): events, filters and buffers of its own.

Instances do not disturb each other or the machine's global trace. The kernel keeps an instance
until somebody removes it, so each is named after the process that made it, and what a killed one
left is removed by the next. The kernel does not remove an instance whose buffers are open.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from writecliff.errors import EngineError, TargetError

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
        has no such event."""
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
