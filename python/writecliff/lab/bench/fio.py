"""Benchmark of the overhead of writecliff over bare fio on a real drive.

writecliff and bare fio run the same job file on the same device in one session. The runs alternate,
in changing order, so that machine or drive drift affects both. Compare the pairs instead of
absolute figures. writecliff adds a report every second, SMART and machine readings before and after
the run, and histograms and time series for procedures.

On a shared machine, IOPS vary far more than the difference of interest. The CPU time per I/O (user
and system time of fio and this process) varies less. If the CPU is the bottleneck, IOPS fall by the
same factor by which the CPU time rises.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.errors import ConfigError, EngineError, TargetError
from writecliff.workload.model import BlockSize, Job, Workload

if TYPE_CHECKING:
    from writecliff.engines.base import Engine
    from writecliff.engines.fio import FioEngine

SECONDS = 60.0
PAIRS = 3
SECONDS_MIN = 1.0
PAIRS_MAX = 100
# The size must exceed all caches, but a drive must fill it within seconds.
_RANGE_BYTES = 4 << 30
# Time for start-up, shutdown and a slow device before bare fio is killed.
_GRACE_S = 60.0


@dataclass(frozen=True)
class Pair:
    """A cell run through bare fio and through writecliff, in direct succession."""

    bare_iops: float
    bare_wall_s: float
    bare_cpu_us: float  # CPU time per I/O.
    writecliff_iops: float
    writecliff_wall_s: float
    writecliff_cpu_us: float
    own_cpu_s: float  # CPU time of this process alone, which other loads hardly affect.

    @property
    def iops_ratio(self) -> float:
        """IOPS through writecliff divided by bare fio's IOPS."""
        return self.writecliff_iops / self.bare_iops

    @property
    def extra_wall_s(self) -> float:
        """Additional wall time of a run through writecliff."""
        return self.writecliff_wall_s - self.bare_wall_s

    @property
    def cpu_ratio(self) -> float:
        """CPU time per I/O through writecliff divided by that of bare fio."""
        return self.writecliff_cpu_us / self.bare_cpu_us


def summary(pairs: list[Pair]) -> dict[str, float]:
    """Return the medians over the pairs, and the relative spread of the bare runs."""
    bare = [pair.bare_iops for pair in pairs]
    names = ("iops_ratio", "extra_wall_s", "cpu_ratio", "own_cpu_s")
    medians = {n: statistics.median(getattr(pair, n) for pair in pairs) for n in names}
    return medians | {"bare_spread": (max(bare) - min(bare)) / statistics.mean(bare)}


def check(seconds: float, pairs: int) -> None:
    """Check the options.

    Raises:
        ConfigError: If an option is out of range.
    """
    if not SECONDS_MIN <= seconds <= 86_400:
        raise ConfigError(f"--seconds is {seconds:g}; it must be {SECONDS_MIN:g} to 86400")
    if not 1 <= pairs <= PAIRS_MAX:
        raise ConfigError(f"--pairs is {pairs}; it must be 1 to {PAIRS_MAX}")


def run(engine: Engine, *, seconds: float = SECONDS, pairs: int = PAIRS) -> Iterator[Pair]:
    """Fill the range, then run the pairs.

    Raises:
        ConfigError: If an option is out of range.
        TargetError: If fio cannot drive the target.
        EngineError: If fio failed.
    """
    from writecliff.engines.fio import FioEngine

    check(seconds, pairs)
    if not isinstance(engine, FioEngine):
        raise TargetError(
            f"fio cannot drive {engine.identify().target}", hint="give --on /dev/NAME"
        )
    size = min(engine.identify().capacity_bytes, _RANGE_BYTES)
    fill = Job(
        name="fill",
        pattern="sequential",
        block_sizes=(BlockSize(128 << 10),),
        queue_depth=32,
        range_bytes=size,
        volume_bytes=size,
    )
    engine.run(Workload("fill", (fill,)))
    cell = Job(name="cell", threads=2, queue_depth=16, range_bytes=size).with_duration_s(seconds)
    workload = Workload("cell", (cell,))
    engine.run(Workload("warm-up", (cell.with_duration_s(min(5.0, seconds)),)))
    for number in range(pairs):
        ours = _through_writecliff(engine, workload) if number % 2 else None
        bare = _bare(engine, workload, seconds)
        yield Pair(*bare, *(ours or _through_writecliff(engine, workload)))


def _cpu_s() -> float:
    """CPU time of this process and its finished children."""
    return sum(os.times()[:4])


def _through_writecliff(engine: FioEngine, workload: Workload) -> tuple[float, float, float, float]:
    """IOPS, wall seconds, CPU microseconds per I/O, and CPU seconds of this process."""
    begin, cpu_s, own_s = time.monotonic(), _cpu_s(), time.process_time()
    result = engine.run(workload)
    wall_s, own_s = time.monotonic() - begin, time.process_time() - own_s
    return result.iops(), wall_s, (_cpu_s() - cpu_s) / result.total()[0] * 1e6, own_s


def _bare(engine: FioEngine, workload: Workload, seconds: float) -> tuple[float, float, float]:
    """IOPS, wall seconds and CPU microseconds per I/O of bare fio running the same job file."""
    with tempfile.TemporaryDirectory(prefix="writecliff-bench-") as directory:
        path = Path(directory) / "cell.fio"
        path.write_text(engine.job_file(workload))
        begin, cpu_s = time.monotonic(), _cpu_s()
        try:
            done = subprocess.run(
                [engine.fio_program, "--output-format=json", "--eta=never", str(path)],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds + _GRACE_S,
                check=False,
                # Start a new session, as FioProcess does, because the kernel distributes CPU time
                # by session.
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"fio did not finish within {error.timeout:g} s") from error
        wall_s, cpu_s = time.monotonic() - begin, _cpu_s() - cpu_s
    if done.returncode:
        raise EngineError(f"fio failed: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    write = job["write"]
    return float(write["iops"]), wall_s, cpu_s / int(write["total_ios"]) * 1e6
