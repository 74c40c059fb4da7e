"""Issue times of block requests, from the kernel's tracepoint in tracefs."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_EVENT = re.compile(r" (\d+\.\d+): block_rq_issue: ")
_BUFFER_KB = 16 << 10  # Buffer size per CPU.


@dataclass
class IssueTimes:
    """Issue times in seconds of the monotonic clock, ascending; complete once the trace ends."""

    seconds: list[float] = field(default_factory=list)

    def longest_gap_ms(self, begin_s: float, end_s: float) -> float:
        """Return the longest interval between two requests that overlaps the window."""
        inside = [at for at in self.seconds if begin_s <= at <= end_s]
        before = [at for at in self.seconds if at < begin_s][-1:]
        after = [at for at in self.seconds if at > end_s][:1]
        points = [*before, *inside, *after]
        return 1e3 * max(b - a for a, b in itertools.pairwise(points))


@contextmanager
def issue_times(device: str, folder: Path) -> Iterator[IssueTimes]:
    """Trace the requests to `device` inside the `with` block.

    Raises:
        OSError: tracefs is missing or not writable.
    """
    root = Path("/sys/kernel/tracing")
    mounted = not (root / "instances").is_dir()
    if mounted:
        root = folder / "tracefs"
        root.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tracefs", "none", root], capture_output=True, check=False
        )
        if done.returncode:
            raise OSError(done.stderr.decode().strip())
    try:
        yield from _traced(root / "instances" / f"writecliff-{os.getpid()}", device)
    finally:
        if mounted:
            subprocess.run(["umount", root], check=True)


def _traced(instance: Path, device: str) -> Iterator[IssueTimes]:
    instance.mkdir()
    try:
        number = os.stat(device).st_rdev
        event = instance / "events/block/block_rq_issue"
        (instance / "trace_clock").write_text("mono")
        (instance / "buffer_size_kb").write_text(str(_BUFFER_KB))
        # The filter uses the kernel's own representation of a device number.
        (event / "filter").write_text(f"dev == {os.major(number) << 20 | os.minor(number)}")
        (event / "enable").write_text("1")
        times = IssueTimes()
        yield times
        (event / "enable").write_text("0")
        text = (instance / "trace").read_text()
        times.seconds.extend(sorted(map(float, _EVENT.findall(text))))
    finally:
        instance.rmdir()
