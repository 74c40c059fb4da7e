"""Several drives side by side: the figures of the SNIA primer's comparison table (2013, figure 3).

Reads run directories of any tests and puts together what belongs to one drive. A figure that no run
measured stays unknown; one that was taken without steady state, or in a test that departs from what
the standard requires, is marked as such wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from writecliff.errors import ConfigError
from writecliff.procedures.model import StageHistory, StepRow
from writecliff.procedures.registry import PROCEDURES
from writecliff.report import data as wsat_data
from writecliff.report import summarise
from writecliff.report.campaigns.common import Result
from writecliff.report.testdata import TestData, load
from writecliff.store.manifest import MANIFEST_NAME
from writecliff.store.rundir import RunDirectory
from writecliff.workload.model import KIB

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity

# What the columns stand for: key, title, unit.
FIGURES = (
    ("fob_iops", "FOB RND 4KiB 100% W", "IOPS"),
    ("iops_4k_0_100", "RND 4KiB 100% W", "IOPS"),
    ("iops_8k_65_35", "RND 8KiB 65:35", "IOPS"),
    ("iops_4k_65_35", "RND 4KiB 65:35", "IOPS"),
    ("iops_4k_100_0", "RND 4KiB 100% R", "IOPS"),
    ("tp_1024k_0_100", "SEQ 1024KiB 100% W", "MB/s"),
    ("tp_1024k_100_0", "SEQ 1024KiB 100% R", "MB/s"),
    ("latency_4k_0_100_mean", "RND 4KiB 100% W average", "ms"),
    ("latency_4k_0_100_max", "RND 4KiB 100% W maximum", "ms"),
)
_IOPS_CELLS = {
    "iops_4k_0_100": (4 * KIB, 0.0),
    "iops_8k_65_35": (8 * KIB, 65.0),
    "iops_4k_65_35": (4 * KIB, 65.0),
    "iops_4k_100_0": (4 * KIB, 100.0),
}


@dataclass(frozen=True)
class Value:
    """A figure and what it rests on."""

    value: float
    run: Path
    steady: bool = True
    conformant: bool = True


@dataclass(frozen=True)
class Curve:
    """IOPS of a write saturation test, a point a step."""

    drive_fills: Sequence[float]
    time_ns: Sequence[float]
    written_bytes: Sequence[float]
    iops: Sequence[float]


@dataclass
class Drive:
    """One drive with everything that is known of it."""

    identity: DeviceIdentity
    values: dict[str, Value] = field(default_factory=dict)  # by key of `FIGURES`
    curve: Curve | None = None
    runs: list[Path] = field(default_factory=list)
    results: dict[str, list[Result]] = field(default_factory=dict)  # by campaign
    departing: list[str] = field(default_factory=list)  # runs that are not as the campaign's
    write_cache: bool | None = None

    @property
    def kind(self) -> str | None:
        """SSD or HDD; None for what is neither known to be."""
        return {True: "HDD", False: "SSD", None: None}[self.identity.rotational]

    @property
    def label(self) -> str:
        """Vendors' models carry their capacity or they do not; a simulated one is its file."""
        name = " ".join(filter(None, (self.identity.vendor, self.identity.model)))
        return name or self.identity.target


def run_directories(paths: Iterable[Path]) -> list[Path]:
    """The runs in `paths`: run directories, suites, or folders of either.

    Raises ConfigError for a path without any.
    """
    found: list[Path] = []
    for path in paths:
        here = [path] if (path / MANIFEST_NAME).is_file() else []
        if not here and path.is_dir():
            here = sorted(item.parent for item in path.glob(f"**/{MANIFEST_NAME}"))
        if not here:
            raise ConfigError(
                f"there is no run in {path}", hint="give run directories, or a folder of them"
            )
        found += [item for item in here if item not in found]
    return found


def drives_of(directories: Iterable[Path]) -> list[Drive]:
    """The drives of all runs in order of their first run. A later run of the same test on the same
    drive takes the place of an earlier one. Raises StoreError for a damaged run."""
    drives: dict[object, Drive] = {}
    for directory in directories:
        with RunDirectory.open(directory) as run:
            test = load(run)
            identity = test.manifest.device
            key = (identity.model, identity.serial, identity.device_hash, identity.capacity_bytes)
            drive = drives.setdefault(key, Drive(identity))
            drive.runs.append(directory)
            _READERS.get(test.manifest.procedure, _nothing)(drive, test)
    return list(drives.values())


def _nothing(drive: Drive, test: TestData) -> None:
    """Tests that the table has no column for: campaigns have results of their own."""
    name = test.manifest.procedure
    if PROCEDURES[name].campaign:
        drive.results[name] = [Result(**item) for item in summarise(test.run.path)["results"]]
        if not test.conformant:
            drive.departing.append(test.run.name)


def _put(drive: Drive, key: str, value: float | None, test: TestData, steady: bool) -> None:
    if value is not None:
        drive.values[key] = Value(value, test.run.path, steady, test.conformant)


def _iops(drive: Drive, test: TestData) -> None:
    rounds = test.stage("rounds")
    if rounds is None or not rounds.rounds_done:
        return
    drive.write_cache = _cache(test)
    for key, (block_bytes, read_pct) in _IOPS_CELLS.items():
        value = _mean(_cells(rounds, block_bytes, read_pct), lambda row: row.iops)
        _put(drive, key, value, test, _steady(rounds))


def _throughput(drive: Drive, test: TestData) -> None:
    for phase, rounds in test.history.stages.items():
        if not phase.startswith("rounds") or not rounds.rounds_done:
            continue
        for key, read_pct in (("tp_1024k_0_100", 0.0), ("tp_1024k_100_0", 100.0)):
            rows = _cells(rounds, 1024 * KIB, read_pct)
            value = _mean(rows, lambda row: row.bytes_per_s / 1e6)
            _put(drive, key, value, test, _steady(rounds))


def _latency(drive: Drive, test: TestData) -> None:
    rounds = test.stage("rounds")
    if rounds is None or not rounds.rounds_done:
        return
    rows = [row for row in _cells(rounds, 4 * KIB, 0.0) if row.latency_mean_ns is not None]
    mean_ms = _mean(rows, lambda row: (row.latency_mean_ns or 0.0) / 1e6)
    max_ms = max(((row.latency_max_ns or 0) / 1e6 for row in rows), default=None)
    _put(drive, "latency_4k_0_100_mean", mean_ms, test, _steady(rounds))
    _put(drive, "latency_4k_0_100_max", max_ms, test, _steady(rounds))


def _saturation(drive: Drive, test: TestData) -> None:
    saturation = wsat_data.load(test.run)
    series = saturation.series
    # Fresh out of box is the first minute: it needs no steady state.
    _put(drive, "fob_iops", saturation.fob_iops, test, True)
    drive.curve = Curve(
        drive_fills=(series.written_bytes / saturation.capacity_bytes).tolist(),
        time_ns=series.end_ns.tolist(),
        written_bytes=series.written_bytes.tolist(),
        iops=series.iops.tolist(),
    )


_READERS: dict[str, Callable[[Drive, TestData], None]] = {
    "iops": _iops,
    "tp": _throughput,
    "lat": _latency,
    "wsat": _saturation,
}


def _cells(rounds: StageHistory, block_bytes: int, read_pct: float) -> list[StepRow]:
    """The steps of one access in the rounds of the window."""
    return [
        row
        for row in rounds.window_rows()
        if (row.block_bytes, row.read_pct) == (block_bytes, read_pct)
    ]


def _mean(rows: Sequence[StepRow], pick: Callable[[StepRow], float]) -> float | None:
    return fmean(map(pick, rows)) if rows else None


def _steady(rounds: StageHistory) -> bool:
    return rounds.steady_at_round is not None


def _cache(test: TestData) -> bool | None:
    cache = test.manifest.write_cache
    return cache.enabled if cache is not None else None
