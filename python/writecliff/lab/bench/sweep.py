"""Benchmark of sweeps on Dask, which runs equal cells with `--jobs 2` and two local workers.

Each sweep is a whole command, timed from the start of Python to the page. The two methods
alternate, so that their ratio is meaningful even if the machine is otherwise busy. Each cell is a
run of a short load and its report, with a separate drive and load. The benchmark measures the
overhead of a sweep, excluding the simulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from writecliff.errors import ConfigError
from writecliff.lab.bench.sim import measured
from writecliff.suite.folder import SuiteFolder

CELLS, CELLS_MAX = 200, 2000
GOAL = 1.1  # Maximum time relative to --jobs.
_TABLES = ("rounds", "intervals", "histograms")
_DEVICE = "sim:sata-tlc-120"
_LOAD = """
name = "bench"
interval = "10 ms"
[[job]]
name = "mix"
read = "70 %"
range = "1 GB"
duration = "100 ms"
"""
_WAYS: Mapping[str, tuple[str, ...]] = {
    "jobs": ("--jobs", "2"),
    "dask": ("--scheduler", "local", "--jobs", "2"),
}


@dataclass(frozen=True)
class Pair:
    """Two sweeps of equal cells. CPU times include all processes."""

    jobs_wall_s: float
    dask_wall_s: float
    jobs_cpu_s: float
    dask_cpu_s: float
    identical: bool  # `True` if every table in every cell is identical.

    @property
    def ratio(self) -> float:
        """Wall time with Dask divided by wall time without it."""
        return self.dask_wall_s / self.jobs_wall_s


def run(folder: Path, *, cells: int = CELLS, pairs: int = 1) -> Iterator[Pair]:
    """Sweep `cells` cells with both methods in `folder`, `pairs` times, in alternating order.

    Raises:
        ConfigError: If a number is out of range, Dask is not installed, or a sweep failed.
    """
    if not 2 <= cells <= CELLS_MAX:
        raise ConfigError(f"--cells must be 2 to {CELLS_MAX:,}, not {cells}")
    if pairs < 1:
        raise ConfigError(f"--pairs must be at least 1, not {pairs}")
    load = folder / "load.toml"
    load.write_text(_LOAD)
    for number in range(pairs):
        took = {
            way: _sweep(folder / f"{way}-{number}", load, cells, _WAYS[way])
            for way in (sorted(_WAYS) if number % 2 else sorted(_WAYS, reverse=True))
        }
        (jobs_wall_s, jobs_cpu_s), (dask_wall_s, dask_cpu_s) = took["jobs"], took["dask"]
        same = _same(*(SuiteFolder.open(folder / f"{way}-{number}") for way in _WAYS))
        yield Pair(jobs_wall_s, dask_wall_s, jobs_cpu_s, dask_cpu_s, same)


def _sweep(folder: Path, load: Path, cells: int, words: tuple[str, ...]) -> tuple[float, float]:
    """Run a sweep, and return its wall and CPU time."""
    factors = ("--vary", "load.queue_depth=1..256", "--vary", "load.read_pct=0.0..100.0")
    ran = measured(
        [
            *("sweep", "--workload", str(load), "--on", _DEVICE, *factors),
            *("--sample", str(cells), "--output", str(folder), "--quiet", "--json", *words),
        ]
    )
    if ran.exit_code:
        raise ConfigError(f"the sweep failed: {ran.stderr.strip()}")
    return ran.wall_s, ran.cpu_s


def _same(first: SuiteFolder, other: SuiteFolder) -> bool:
    if first.complete() != other.complete() or not first.complete():
        return False
    return all(
        pq.read_table(first.run_directory(name) / f"{table}.parquet").equals(
            pq.read_table(other.run_directory(name) / f"{table}.parquet")
        )
        for name in first.members
        for table in _TABLES
    )
