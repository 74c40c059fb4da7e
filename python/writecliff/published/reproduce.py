"""Reproduces a campaign, from figures to scores: measure, derive, compare.

A `Reproduction` has all that reports, `--json` and tests need; nothing in it is adjusted after the
simulation.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from writecliff.devices import describe_device, preset_names, read_device_file
from writecliff.engines.preconditioned import StateCache
from writecliff.errors import ConfigError, did_you_mean
from writecliff.published.conditions import (
    Condition,
    baseline_condition,
    condition,
    preset_of,
)
from writecliff.published.derived import derive
from writecliff.published.figures import (
    OTHERS,
    OTHERS_ABOUT,
    OTHERS_NAME,
    SHIPPED,
    PublishedFigure,
    campaign,
    read_figures,
)
from writecliff.published.measure import ComparedDrive, Log, MeasurementObserver, measure_all
from writecliff.published.scores import (
    GROUPS,
    PairwiseComparison,
    Row,
    Score,
    comparisons_of,
    row_of,
    scores_of,
)


@dataclass(frozen=True)
class DriveRun:
    """A drive that was measured: its description, the number of loads, and the time it took."""

    name: str
    description: str
    device_hash: str
    loads: int
    wall_s: float


@dataclass(frozen=True)
class Reproduction:
    """Every figure of a campaign beside its simulation, in the order of the table."""

    name: str
    about: str
    rows: tuple[Row, ...]
    drives: tuple[DriveRun, ...]
    wall_s: float

    @property
    def scores(self) -> list[Score]:
        return scores_of(self.rows)

    @property
    def comparisons(self) -> list[PairwiseComparison]:
        return comparisons_of(self.rows)

    @property
    def missing(self) -> list[Row]:
        return [row for row in self.rows if row.simulated is None]

    def hash_of(self, figure: PublishedFigure) -> str | None:
        preset = preset_of(figure.device)
        return next((drive.device_hash for drive in self.drives if drive.name == preset), None)


@dataclass(frozen=True)
class Chosen:
    """The figures to reproduce, and the name of the choice."""

    name: str
    about: str
    figures: tuple[PublishedFigure, ...]


def choose(name: str, path: Path | None = None) -> Chosen:
    """The figures of a campaign, or of a source in the user's table `path`; "all" takes all.

    Raises ConfigError: unknown campaign or source, malformed table."""
    if name == OTHERS_NAME and path is None:
        return Chosen(name, OTHERS_ABOUT, read_figures(OTHERS))
    figures = read_figures(path or SHIPPED)
    if not figures:
        raise ConfigError(f"{path}: no figures in it")
    if name == "all":
        return Chosen(name, "all published figures" if path is None else str(path), figures)
    if path is None:
        known = campaign(name)
        source, about = known.source, known.about
    else:
        sources = list(dict.fromkeys(figure.source for figure in figures))
        if name not in sources:
            raise ConfigError.unknown("source", name, sources, where=path)
        source, about = name, f"{name}, from {path}"
    return Chosen(name, about, tuple(one for one in figures if one.source == source))


def conditions_of(figures: Iterable[PublishedFigure]) -> list[Condition]:
    """The conditions of the figures and of their baselines, each once."""
    found = (one for f in figures for one in (condition(f), baseline_condition(f)))
    return list(dict.fromkeys(one for one in found if one is not None))


def without_preset(figures: Iterable[PublishedFigure]) -> Mapping[str, str]:
    """Why a drive is missing, for each name that is neither a preset nor a device file."""
    names = {
        preset_of(name) for f in figures for name in (f.device, f.baseline) if name
    }  # fmt: skip
    return {name: why for name in sorted(names) if (why := _no_preset(name))}


def _no_preset(name: str) -> str:
    """Empty if there is such a drive. Raises ConfigError for a malformed device file."""
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
    log: Log = lambda text: None,
    observer: MeasurementObserver | None = None,
) -> Reproduction:
    """Measure the simulated drives under the conditions of the figures and compare.

    Raises ConfigError (a malformed device file, a drive larger than the memory), EngineError."""
    began_s = time.monotonic()
    missing = without_preset(chosen.figures)
    wanted = [one for one in conditions_of(chosen.figures) if one.device not in missing]
    # Read once: a device file may be edited while its drive is measured for minutes.
    drives = {one.device: ComparedDrive.preset(one.device) for one in wanted}
    observer = observer or MeasurementObserver()
    results = measure_all(drives, wanted, cache=cache, workers=workers, log=log, observer=observer)
    derived = derive(drives, wanted, results, log=log)
    rows = tuple(
        _explained(row_of(figure, results, derived.values), missing, derived.why)
        for figure in chosen.figures
    )
    runs = tuple(
        _drive_run(drives[name], len(loads), observer.wall_s.get(name, 0.0))
        for name, loads in sorted(results.items())
    )
    return Reproduction(chosen.name, chosen.about, rows, runs, time.monotonic() - began_s)


def _explained(row: Row, missing: Mapping[str, str], why: Mapping[str, str]) -> Row:
    """The row with the most specific reason why there is no simulated figure."""
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
    """The metric is unknown, or its load is not simulated for single figures."""
    metric, access = row.figure.metric, row.figure.access
    if row.group == "other":
        known = [name for names in GROUPS.values() for name in names]
        return f"unknown metric '{metric}': {did_you_mean(metric, known)}"
    return f"no load '{access}': single figures are of random and sequential ones"


def _drive_run(drive: ComparedDrive, loads: int, wall_s: float) -> DriveRun:
    described = describe_device(drive.text, drive.file_name)
    return DriveRun(drive.name, described.description, described.device_hash, loads, wall_s)
