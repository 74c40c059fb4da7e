"""Reproduction of a campaign, which measures, derives and compares figures.

A `Reproduction` holds all data for reports, `--json` and tests. Nothing in a reproduction is
adjusted after the simulation.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import numpy as np

from writecliff import units
from writecliff.devices import describe_device, preset_names, read_device_file
from writecliff.engines.sim import SimEngine
from writecliff.engines.state_cache import StateCache
from writecliff.errors import ConfigError, did_you_mean
from writecliff.lab.experiments import fms_fio
from writecliff.lab.experiments.lifetimes import READINGS
from writecliff.parallel import SLOT_BYTES, drive_memory_bytes, map_side_by_side
from writecliff.published.conditions import (
    FILL,
    IMPROVEMENT,
    MEASURED,
    Condition,
    Load,
    baseline_condition,
    condition,
    measured_metric,
    parts_of,
    preset_of,
    refusal,
)
from writecliff.published.figures import (
    CAMPAIGNS,
    OTHERS,
    OTHERS_ABOUT,
    OTHERS_NAME,
    SHIPPED,
    PublishedFigure,
    SkippedRow,
    campaign,
    read_figures,
    read_table,
)
from writecliff.published.kinds import METRICS, WORDS, is_of
from writecliff.published.measure import (
    ComparedDrive,
    Log,
    MeasurementObserver,
    idle_watts,
    measure_all,
    rated_bytes,
)
from writecliff.published.modern import (
    MEASURED_ABOUT,
    MEASURED_NAME,
    MODERN_ABOUT,
    MODERN_NAME,
    family_of,
    is_stated,
    measured_figures,
    modern_figures,
)
from writecliff.published.predictions import predicted_rows
from writecliff.published.scores import (
    PairwiseComparison,
    Results,
    Row,
    Score,
    comparisons_of,
    row_of,
    scores_of,
    value_of,
)
from writecliff.published.sheet_check import SMALL_BYTES, fitting_scale
from writecliff.workload.model import BlockSize, Job, Workload


@dataclass(frozen=True)
class DriveRun:
    """A measured drive, with its description, load count and simulation time.

    The drive was scaled down by `scale`, to a user capacity of `simulated_bytes`. `device_hash` is
    the hash of the scaled drive.
    """

    name: str
    description: str
    device_hash: str
    loads: int
    wall_s: float
    scale: float
    simulated_bytes: int


@dataclass(frozen=True)
class LoadResult:
    """All metrics of a load on a drive (see `measure.py`)."""

    drive: str
    load: Load
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Reproduction:
    """All figures in a campaign, with their simulated values, in table order.

    The reproduction also holds the figures' loads, and the table rows that could not be read.
    """

    name: str
    about: str
    rows: tuple[Row, ...]
    drives: tuple[DriveRun, ...]
    loads: tuple[LoadResult, ...]
    skipped: tuple[SkippedRow, ...]
    wall_s: float

    @property
    def scores(self) -> list[Score]:
        """Errors by kind of figure, and winners."""
        return scores_of(self.rows)

    @property
    def predicted(self) -> dict[str, Score]:
        """Scores, by kind, of predictions by fits that did not use the predicted figures."""
        return {score.kind: score for score in scores_of(predicted_rows(self.rows))}

    @property
    def comparisons(self) -> list[PairwiseComparison]:
        """Comparisons of two drives that are both simulated."""
        return comparisons_of(self.rows)

    @property
    def smaller(self) -> str:
        """A note about scaled-down drives, or "" if all drives have full size."""
        scaled = [drive for drive in self.drives if drive.scale > 1]
        if not scaled:
            return ""
        most = max(scaled, key=lambda drive: drive.scale)
        size = units.size(most.simulated_bytes)
        return (
            f"{len(scaled)} of {len(self.drives)} drives were simulated scaled down, to as little "
            f"as 1/{most.scale:g} of their capacity ({most.name}: {size}). Rates are close to "
            "those of the whole drive. High percentiles can be slower or faster."
        )

    @property
    def missing(self) -> list[Row]:
        """Rows that have no simulated value."""
        return [row for row in self.rows if row.simulated is None]

    def hash_of(self, figure: PublishedFigure) -> str | None:
        """Return the hash of a figure's simulated drive, or None if it was not simulated."""
        preset = preset_of(figure.device)
        return next((drive.device_hash for drive in self.drives if drive.name == preset), None)


@dataclass(frozen=True)
class Chosen:
    """Figures to reproduce, with the name of the selection and unreadable rows."""

    name: str
    about: str
    figures: tuple[PublishedFigure, ...]
    skipped: tuple[SkippedRow, ...] = ()
    small_bytes: float = 0.0  # Minimum capacity of scaled-down drives; 0 for full size.


def choose(name: str, path: Path | None = None, kind: str | None = None) -> Chosen:
    """Select the figures of a campaign, a drive, or a source in the user's table `path`.

    "all" selects all figures. `kind` restricts the selection to a word from `kinds.WORDS`.

    Raises:
        ConfigError: If the name or kind is unknown, a table is malformed, or nothing is selected.
    """
    chosen = _chosen(name, path)
    if kind is None:
        return chosen
    if kind not in WORDS:
        raise ConfigError.unknown("kind", kind, WORDS)
    figures = tuple(figure for figure in chosen.figures if is_of(figure, kind))
    if not figures:
        raise ConfigError(f"{name} has no figures of the kind '{kind}'")
    return replace(chosen, about=f"{chosen.about}: {kind}", figures=figures)


def _chosen(name: str, path: Path | None) -> Chosen:
    if name == OTHERS_NAME and path is None:
        return Chosen(name, OTHERS_ABOUT, read_figures(OTHERS))
    if path is None and (modern := _modern(name)):
        return modern
    table = read_table(path or SHIPPED)
    figures, skipped = table.figures, table.skipped
    if not figures:
        raise ConfigError(str(skipped[0]) if skipped else f"{path} contains no figures")
    if name == "all":
        about = "all published figures" if path is None else str(path)
        return Chosen(name, about, figures, skipped)
    if path is None and any(c.name == name for c in CAMPAIGNS):
        listed = campaign(name)
        return Chosen(name, listed.about, tuple(f for f in figures if f.source == listed.source))
    selected = tuple(f for f in figures if f.source == name)
    if path is not None and selected:
        return Chosen(name, f"{name}, from {path}", selected, skipped)
    selected = tuple(f for f in figures if name in (f.device, f.baseline, preset_of(f.device)))
    if selected:
        return Chosen(name, f"{name}, its figures and those relative to it", selected, skipped)
    if path is None:
        campaign(name)  # This call raises an error that suggests a name.
    sources = dict.fromkeys(figure.source for figure in figures)
    raise ConfigError.unknown("source", name, list(sources), where=path)


def _modern(name: str) -> Chosen | None:
    """Return the figures of all current drives, or of a drive or family."""
    measured = [figure for figure in modern_figures() if not is_stated(figure)]
    if name == MODERN_NAME:
        return Chosen(name, MODERN_ABOUT, tuple(measured), small_bytes=SMALL_BYTES)
    if name == MEASURED_NAME:
        return Chosen(name, MEASURED_ABOUT, measured_figures(), small_bytes=SMALL_BYTES)
    selected = tuple(f for f in measured if name in (f.device, family_of(f.device)))
    return (
        Chosen(name, f"{name}, its figures", selected, small_bytes=SMALL_BYTES)
        if selected
        else None
    )


def conditions_of(figures: Iterable[PublishedFigure]) -> list[Condition]:
    """Return the conditions of the figures and their baselines, without duplicates."""
    parts = (part for figure in figures for part in parts_of(figure) if condition(figure))
    conditions = (c for part in parts for c in (condition(part), baseline_condition(part)))
    return list(dict.fromkeys(c for c in conditions if c is not None))


def without_preset(figures: Iterable[PublishedFigure]) -> Mapping[str, str]:
    """Return the reason for each drive that is neither a preset nor a device file."""
    names = {
        preset_of(name) for f in figures for name in (f.device, f.baseline) if name
    }  # fmt: skip
    return {name: why for name in sorted(names) if (why := _no_preset(name))}


def _no_preset(name: str) -> str:
    """Return the reason why the drive does not exist, or "" if it exists.

    Raises ConfigError if the device file is malformed.
    """
    try:
        text, file_name = read_device_file(name)
    except ConfigError:
        hint = did_you_mean(name, preset_names(), "see `writecliff device list`")
        return f"unknown preset '{name}': {hint}"
    describe_device(text, file_name)
    return ""


def reproduce(
    chosen: Chosen,
    *,
    cache: StateCache | None = None,
    workers: int | None = None,
    time_share: float = 1.0,
    log: Log = lambda text: None,
    observer: MeasurementObserver | None = None,
) -> Reproduction:
    """Measure the simulated drives under the figures' conditions, and compare.

    All measurement times are multiplied by `time_share`.

    Raises:
        ConfigError: If a device file is malformed, or a drive needs more memory than is available.
        EngineError: If a simulation failed.
    """
    began_s = time.monotonic()
    missing = without_preset(chosen.figures)
    wanted = [c for c in conditions_of(chosen.figures) if c.device not in missing]
    # Read the device file once, because a user may edit it during the minutes of a measurement.
    drives = {c.device: _drive(c.device, chosen.small_bytes) for c in wanted}
    observer = observer or MeasurementObserver()
    results = measure_all(
        drives,
        wanted,
        cache=cache,
        workers=workers,
        time_share=time_share,
        log=log,
        observer=observer,
    )
    derived = derive(drives, wanted, results, log=log)
    rows = tuple(
        _explained(row_of(figure, results, derived.values), missing, derived.why)
        for figure in chosen.figures
    )
    runs = tuple(
        _drive_run(drives[name], len(loads), observer.wall_s.get(name, 0.0))
        for name, loads in sorted(results.items())
    )
    loads = tuple(
        LoadResult(name, load, results[name][load])
        for name in sorted(results)
        for load in sorted(results[name], key=lambda load: load.order)
    )
    wall_s = time.monotonic() - began_s
    return Reproduction(chosen.name, chosen.about, rows, runs, loads, chosen.skipped, wall_s)


def _drive(name: str, small_bytes: float) -> ComparedDrive:
    drive = ComparedDrive.preset(name)
    scale = fitting_scale(drive.text, drive.file_name, small_bytes) if small_bytes else 1.0
    scale = max(scale, drive.describe().least_scale)
    return drive.scaled(scale) if scale > 1 else drive


def _explained(row: Row, missing: Mapping[str, str], why: Mapping[str, str]) -> Row:
    """Row with the most specific reason for a missing simulated figure."""
    if row.simulated is not None:
        return row
    for name in (row.figure.device, row.figure.baseline):
        if preset_of(name) in missing:
            return replace(row, why=missing[preset_of(name)])
    if condition(row.figure) is None:
        return replace(row, why=_no_condition(row))
    key = f"{preset_of(row.figure.device)} {row.figure.metric}"
    return replace(row, why=why.get(key, row.why))


def _no_condition(row: Row) -> str:
    """Reason, such as an unknown metric or a load not simulated for single figures."""
    metric = row.figure.metric
    if measured_metric(metric) not in MEASURED and not metric.startswith("power_"):
        if metric in METRICS:
            return "single figures of this metric are not simulated"
        metrics = [*METRICS, *(name + IMPROVEMENT for name in MEASURED)]
        return f"unknown metric '{metric}': {did_you_mean(metric, metrics, 'see the guide')}"
    return refusal(row.figure)


def _drive_run(drive: ComparedDrive, loads: int, wall_s: float) -> DriveRun:
    described = describe_device(drive.text, drive.file_name)
    return DriveRun(
        drive.name,
        described.description,
        described.device_hash,
        loads,
        wall_s,
        drive.scale,
        described.capacity_bytes,
    )


# -- derived ---------------------------------------------------------------------------------------

# Figures that no single load measures: rated writes, power, the phases of a sequential fill, and
# the lifetime gain from streams.
#
# TBW and DWPD are derived from rated cycles and the write amplification of sustained 4 KiB random
# writes. The lifetime with streams comes from the experiment `experiments.fms_fio`. A figure that
# cannot be derived is listed with its reason.

_TB = 1e12
# JESD218 counts over the warranty period: five years for data-centre drives, and three years for
# the PM853T (according to the figure's note; AnandTech states three years).
_WARRANTY_YEARS = 5.0
_WARRANTY_YEARS_OF = {"pm853t": 3.0}
_LIFETIME = "lifetime_ratio_streams_vs_none"


@dataclass
class Derived:
    """Values by "device metric", as `scores.row_of` expects, and reasons for missing values."""

    values: dict[str, float] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)


def warranty_years(device: str) -> float:
    """Return a drive's warranty period, which the rated writes apply to."""
    family = device.rpartition("-")[0]
    return _WARRANTY_YEARS_OF.get(family, _WARRANTY_YEARS)


def derive(
    drives: Mapping[str, ComparedDrive],
    conditions: Iterable[Condition],
    results: Results,
    *,
    log: Log = lambda text: None,
) -> Derived:
    """Compute all derived figures of the conditions; `drives` maps their device names."""
    derived = Derived()
    filled: dict[str, Mapping[str, float]] = {}
    for required in dict.fromkeys(conditions):
        key, drive = f"{required.device} {required.metric}", drives[required.device]
        if required.metric in ("tbw", "dwpd"):
            value, why = _rated(drive, required, results)
        elif required.metric.startswith("power_"):
            value, why = _power(drive, required, results)
        elif required.metric.startswith(FILL):
            if required.device not in filled:
                log(f"{required.device}: writing the whole drive")
                filled[required.device] = fill_metrics(drive)
            value, why = (
                filled[required.device].get(required.metric),
                "the simulated drive has no such phase",
            )
        elif required.metric == _LIFETIME:
            log(f"{required.device}: write amplification with and without streams")
            value, why = lifetime_ratio(drive), ""
        else:
            continue
        if value is None:
            derived.why[key] = why
        else:
            derived.values[key] = value
    return derived


def _rated(drive: ComparedDrive, required: Condition, results: Results) -> tuple[float | None, str]:
    if what := drive.describe().without_flash:
        return None, f"{what} has no flash that wears"
    waf = _metric(required, results, "waf")
    if waf is None:
        return None, "nothing was written, so there is no write amplification"
    total = rated_bytes(drive, waf)
    if required.metric == "tbw":
        return total * drive.scale / _TB, ""
    capacity = drive.describe().capacity_bytes
    return total / (capacity * 365 * warranty_years(required.device)), ""


def _power(drive: ComparedDrive, required: Condition, results: Results) -> tuple[float | None, str]:
    if not drive.describe().has("power.idle"):
        return None, "the device file has no power model"
    if required.load is None:
        return idle_watts(drive), "idle power was not measured"
    return _metric(required, results, "power"), "power was not measured under this load"


def _metric(required: Condition, results: Results, name: str) -> float | None:
    return value_of(replace(required, metric=name), results)


def lifetime_ratio(drive: ComparedDrive) -> float:
    """Return the ratio of lifetime host writes with one stream per writer to those without.

    The ratio depends only on write amplification, at the drive's over-provisioning. The slide can
    be read in two ways, and the smaller ratio is returned.
    """
    spare = drive.describe().overprovision_pct
    if spare is None:
        what = drive.describe().without_flash
        raise ConfigError(f"{drive.name} is {what}; streams require flash")
    flat_bytes = fms_fio.UNITS * fms_fio.SLOTS_PER_RECLAIM_UNIT * SLOT_BYTES
    cases = [(reading, spare / 100) for reading in READINGS]
    memory_bytes = drive_memory_bytes(flat_bytes, flat_bytes)
    rows = map_side_by_side(fms_fio.amplification, cases, memory_bytes)
    return min(row.lifetime_ratio for row in rows)


# -- filling ---------------------------------------------------------------------------------------

# Sequential fill of a new drive: the volume written at the initial rate, and the rates after that
# volume.
#
# One thread writes 1 MiB blocks sequentially, as reviewers of drives with SLC caches do. The fill
# volume is divided into 200 equal segments. The cache is full at the first segment that takes a
# third longer than the initial segments. The rate after the cache is the median rate of the
# following segments. A late phase starts where three consecutive segments are slower again by the
# same factor.

PARTS = 200
# Number of segments for the initial rate, for the rate after the cache, and for a lasting change.
_FIRST, _NEXT, _ROW = 10, 10, 3
_SLOWER = 0.75  # Relative rate below which a new phase starts.
_FASTEST = 8e9  # Maximum rate that the series resolves, in bytes/s.
_SEED = 3001


def fill_metrics(drive: ComparedDrive) -> dict[str, float]:
    """Fill a drive sequentially and return the metrics of its phases.

    The metrics are `fill_volume`, `fill_volume_after` (GB of the full drive), `fill_throughput`,
    `fill_throughput_after` and `fill_throughput_late` (MB/s). Phases that the drive does not have
    are omitted.
    """
    engine = SimEngine.from_text(drive.text, drive.file_name)
    capacity = engine.identify().capacity_bytes >> 20 << 20
    job = Job(pattern="sequential", block_sizes=(BlockSize(1 << 20),), volume_bytes=capacity)
    interval_ns = max(1_000_000, int(capacity / PARTS / _FASTEST * 1e9 / 4))
    result = engine.run(Workload("fill", (job,), seed=_SEED, interval_ns=interval_ns))
    ends_s = result.intervals["end_ns"] / 1e9
    volumes = np.cumsum(result.intervals["bytes"])
    marks = np.linspace(0, volumes[-1], PARTS + 1)
    times = np.interp(marks, np.concatenate(([0], volumes)), np.concatenate(([0.0], ends_s)))
    rates = (np.diff(marks) / np.diff(times) / 1e6).tolist()
    return phases(rates, capacity * drive.scale / 1e9, result.elapsed_ns / 1e9 * drive.scale)


def phases(rates: Sequence[float], capacity_gb: float, seconds: float) -> dict[str, float]:
    """Return the metrics of a drive of `capacity_gb` that was filled in `seconds`.

    `rates` are in MB/s, over equal parts of the drive.
    """
    metrics = {"fill_throughput": capacity_gb * 1e3 / seconds}
    end = _slower(rates, 0, median(rates[:_FIRST]), 1)
    if end is None:
        return metrics | {"fill_volume": capacity_gb}
    metrics["fill_volume"] = capacity_gb * end / len(rates)
    # Exclude the segment where the cache becomes full.
    after = list(rates[end + 1 : end + 1 + _NEXT])
    if not after:
        return metrics
    metrics["fill_throughput_after"] = median(after)
    late = _slower(rates, end + 1, median(after), _ROW)
    if late is not None:
        metrics["fill_volume_after"] = capacity_gb * late / len(rates)
        metrics["fill_throughput_late"] = median(rates[late:])
    return metrics


def _slower(rates: Sequence[float], begin: int, usual: float, row: int) -> int | None:
    """The first part, starting at `begin`, that begins `row` parts slower than `usual`."""
    slow = [rate < _SLOWER * usual for rate in rates]
    return next((n for n in range(begin, len(slow) - row + 1) if all(slow[n : n + row])), None)
