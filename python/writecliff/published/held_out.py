"""Held-out published figures and their stored predictions, by kind of load.

The predictions come from three stored tables (`predictions.py`): the cross-validation of the fits,
current drives, and SSD-iq's loads on current drives. `choose` and the validation page both take
their errors from this module. The module ignores predictions for drives that have changed since the
predictions were made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from statistics import median
from typing import Literal

import numpy as np

from writecliff.devices import capacities, show_device
from writecliff.devices.derive import needed_cycles
from writecliff.devices.sheet import DataSheet
from writecliff.published.conditions import condition, measured_metric, preset_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.kinds import ENDURANCE as RATINGS
from writecliff.published.kinds import MEAN, MIXED, POWER, PURE, TAILS, VOLUME
from writecliff.published.left_out import left_out_rows
from writecliff.published.modern import split
from writecliff.published.predictions import (
    MEASURED_PREDICTIONS,
    MODERN_PREDICTIONS,
    SSD_IQ_PREDICTIONS,
    SsdIqPrediction,
    predicted_rows,
    read_predictions,
    read_ssd_iq_predictions,
)
from writecliff.published.scores import Row, is_clear
from writecliff.published.ssd_iq.conditions import OpenLoop, RandomWrites, ZoneWrites
from writecliff.published.ssd_iq.drives import listed_drives

Source = Literal["cross-validation", "current drives", "SSD-iq"]
ErrorUnit = Literal["%", "x"]
MIXES, SKEWED, STATIC = "mixes", "skewed writes", "partly static data"
BURSTS, FILLS = "writes into the SLC cache", "writes to a new drive, end to end"
CACHE_SIZE, PART = "size of the SLC cache", "part of the drive used"
ZONES = "zones written in order"
UNIFORM, KNEE = "uniform writes", "largest rate of an open loop"
FRESH, RATED = "writes before garbage collection", "rated writes (TBW), simulated"
WRITE_AMPLIFICATION, ENDURANCE, POWER_DRAW = "write amplification", "endurance", "power"
RELATIVE = ", relative to uniform"
REPEATED, CONSTANT = "repeats a figure of its family", "constant of the rule"
SEEN = "seen before a rule was changed"
FULL_RATE, LIGHT = "at full rate", "below full rate"
# Fraction of a drive's maximum open-loop rate above which a load is "full rate".
FULL_RATE_SHARE = 0.8
# Maximum relative difference between predictions that count as a constant.
_CONSTANT_TOLERANCE = 0.005
_LATENCY = re.compile(r"(read|write) latency (p[\d.]+)")
_TAIL = re.compile(r"latency_(p[\d.]+|max)(?:_(read|write))?")


@dataclass(frozen=True)
class HeldOut:
    """A held-out published figure and its prediction, both in the figure's unit.

    `in_view` means that the model's author set a constant with knowledge of the figure. The
    figure's error is therefore a lower bound for the error on other drives.
    """

    source: Source
    kind: str
    family: str
    label: str  # Load description, independent of the drive.
    drive: str
    published: float
    simulated: float
    unit: ErrorUnit = "%"  # Error unit: percent, or a factor.
    exclusion: str = ""  # Reason why the figure tests nothing; "" if the figure counts.
    in_view: bool = False

    @property
    def error(self) -> float:
        """Absolute error in `unit`, a percentage or a factor of at least 1."""
        ratio = self.simulated / self.published
        if self.unit == "%":
            return 100 * abs(ratio - 1)
        return max(ratio, 1 / ratio) if ratio > 0 else float("inf")

    @property
    def error_pct(self) -> float:
        """Absolute error in percent; a factor of 1.2 is an error of 20 %."""
        return self.error if self.unit == "%" else 100 * (self.error - 1)


def tail_kind(statistic: str, operations: str, *, full_rate: bool) -> str:
    """Return the kind of a percentile, such as "p99.9 of reads beside writes, at full rate"."""
    return f"{statistic} of {operations}, {FULL_RATE if full_rate else LIGHT}"


def mean_kind(load: str) -> str:
    """Return the kind of a mean latency under a kind of load."""
    return f"mean latency of {load}"


def family_of(drive: str) -> str:
    """Return a drive's catalogue family, or the drive's name if it has no family."""
    return capacities.family_of(drive) or drive


@lru_cache(maxsize=1)
def cross_validated() -> tuple[HeldOut, ...]:
    """Return the figures that the shipped fits predict in their cross-validation.

    Tail latencies are in view, because the stall and buffer constants were set with all figures
    known.
    """
    rows = predicted_rows([Row(figure, None) for figure in read_predictions()])
    return tuple(_of_rows(rows, "cross-validation", in_view=lambda row: row.kind is TAILS))


@lru_cache(maxsize=1)
def current_drives() -> tuple[HeldOut, ...]:
    """Return the held-out figures of current drives from data sheets and reviews.

    Mixes are in view, because the constants that they depend on were set with all published mixes
    known.
    """
    return _counted(_aside_rows(), in_view=lambda row: row.kind is MIXED)


@lru_cache(maxsize=1)
def measured() -> tuple[HeldOut, ...]:
    """Return the figures of current drives that were collected after the split, and rated power.

    Mixes, tails, power and read-ahead are in view, because their class defaults were set with
    knowledge of some of these figures.
    """
    predictions = read_predictions(MEASURED_PREDICTIONS)
    rows = predicted_rows([Row(figure, None) for figure in predictions], predictions)
    return _counted(rows, in_view=_is_measured_in_view)


def _is_measured_in_view(row: Row) -> bool:
    read_ahead = row.figure.access == "sequential" and row.figure.read_pct == 100
    return row.kind in (MIXED, TAILS, POWER) or (read_ahead and row.figure.outstanding == 1)


def _aside_rows() -> list[Row]:
    parts = split()
    return [row for row in modern_rows() if parts.get(row.figure) == "aside"]


def _counted(rows: Sequence[Row], in_view: Callable[[Row], bool]) -> tuple[HeldOut, ...]:
    """Return the current drives' figures in `rows`, with the reasons for exclusions."""
    constants = _constants(rows)
    held_out = []
    figures = _of_rows(rows, "current drives", in_view=in_view)
    for row, figure in zip((row for row in rows if _kind(row)), figures, strict=True):
        key = (row.figure.source, row.figure.device, row.figure.metric)
        exclusion = REPEATED if _repeats(row.figure) else CONSTANT if row in constants else ""
        held_out.append(replace(figure, exclusion=_EXCLUSIONS.get(key, exclusion)))
    return tuple(held_out)


# The class of sequential writes on PCIe 5.0 was added after the error of PM1743 was known. The
# program power was derived from the 9550 MAX.
_EXCLUSIONS: Mapping[tuple[str, str, str], str] = {
    ("anandtech-pm1743", "pm1743-15360", "throughput"): SEEN,
    ("mouser-9550", "micron-9550-max-12800", "power_active_write_max"): CONSTANT,
}


@lru_cache(maxsize=1)
def modern_rows() -> tuple[Row, ...]:
    """Return the current drives' predicted figures, and the figures they are derived from."""
    predictions = read_predictions(MODERN_PREDICTIONS)
    return tuple(predicted_rows([Row(figure, None) for figure in predictions], predictions))


@lru_cache(maxsize=1)
def left_out_capacities() -> tuple[HeldOut, ...]:
    """Return the listed drives' rates, each predicted from other capacities of the same model.

    Mixed loads are in view, as in `current_drives`.
    """
    rows = left_out_rows()
    return tuple(_of_rows(rows, "current drives", in_view=lambda row: row.kind is MIXED))


@lru_cache(maxsize=1)
def endurance() -> tuple[HeldOut, ...]:
    """Return the rated writes of TLC data-centre drives, predicted from other families.

    Drives need nearly equal cycles for their rated writes at their own write amplification, in all
    families. The median of the other families predicts each drive's rated writes. The rated writes
    are in view, because the class default of the cycles was set from all of them.
    """
    sheets: dict[str, list[DataSheet]] = {}
    for family, drives in listed_drives().items():
        candidates = [drive.sheet for drive in drives if drive.sheet.enterprise]
        sheets[family] = [sheet for sheet in candidates if sheet.tbw and sheet.cell == "tlc"]
    needs = {
        family: median(needed_cycles(sheet) for sheet in members)
        for family, members in sheets.items()
        if members
    }
    return tuple(
        HeldOut(
            "current drives", ENDURANCE, family, "rated writes", sheet.name, sheet.tbw or 0.0,
            (sheet.tbw or 0.0) * others / needed_cycles(sheet), in_view=True,
        )
        for family, members in sheets.items()
        if len(needs) > 1
        for others in (median(need for name, need in needs.items() if name != family),)
        for sheet in members
    )  # fmt: skip


def _of_rows(
    rows: Iterable[Row], source: Source, in_view: Callable[[Row], bool]
) -> Iterator[HeldOut]:
    for row in rows:
        kind, figure = _kind(row), row.figure
        if not kind or row.simulated is None or not figure.value:
            continue
        drive = preset_of(figure.device)
        unit: ErrorUnit = "x" if row.kind is TAILS else "%"
        yield HeldOut(source, kind, family_of(drive), figure.label, drive, figure.value,
                      row.simulated, unit, in_view=in_view(row))  # fmt: skip


def _kind(row: Row) -> str:
    """Return a figure's kind, or "" unless it is a rate, mean, tail or cache volume."""
    if row.kind is VOLUME:
        return CACHE_SIZE
    if row.kind in (POWER, RATINGS):
        return POWER_DRAW if row.kind is POWER else RATED
    if row.kind not in (PURE, MIXED, MEAN, TAILS):
        return ""
    load = _load_kind(row.figure)
    if row.kind is MEAN:
        return mean_kind(load)
    match = _TAIL.match(measured_metric(row.figure.metric))
    if row.kind is TAILS and match is not None:
        return tail_kind(match[1], _operations(load, match[2]), full_rate=True)
    if row.figure.metric.startswith("fill_"):
        return FILLS
    if row.figure.metric.endswith("_burst"):
        return BURSTS if show_device(row.figure.device).has("slc_cache.size") else FRESH
    return load


def _load_kind(figure: PublishedFigure) -> str:
    measured = condition(figure)
    load = None if measured is None else measured.load
    if load is None:
        return "sequential writes"  # A sequential fill of a new drive has no condition.
    if load.mixed:
        return MIXES
    return f"{load.pattern} {'reads' if load.read_pct == 100 else 'writes'}"


def _operations(load: str, operation: str | None) -> str:
    """Return a latency's operations: reads alone, reads during writes, writes, or a mix."""
    if load == MIXES:
        return {"read": "reads beside writes", "write": "writes"}.get(operation or "", "mixes")
    return "reads alone" if load.endswith("reads") else "writes"


def _repeats(figure: PublishedFigure) -> bool:
    """Return `True` if the rule uses a figure for the same family, load and metric."""
    parts = split()
    family = family_of(preset_of(figure.device))
    return any(
        part == "fit"
        and other.value == figure.value
        and _load_key(other) == _load_key(figure)
        and family_of(preset_of(other.device)) == family
        for other, part in parts.items()
    )


def _load_key(figure: PublishedFigure) -> tuple[object, ...]:
    f = figure
    return (f.metric, f.access, f.block_bytes, f.read_pct, f.outstanding, f.compressible_pct)


def _constants(rows: Sequence[Row]) -> list[Row]:
    """Return the mean latencies with equal predictions for drives of several families."""

    def is_constant(row: Row) -> bool:
        return any(
            _load_key(other.figure) == _load_key(row.figure)
            and family_of(other.figure.device) != family_of(row.figure.device)
            and row.simulated is not None
            and other.simulated is not None
            and abs(other.simulated - row.simulated) <= _CONSTANT_TOLERANCE * abs(row.simulated)
            for other in rows
        )

    return [row for row in rows if row.kind is MEAN and is_constant(row)]


# -- SSD-iq ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def ssd_iq() -> tuple[HeldOut, ...]:
    """Return SSD-iq's figures and their predictions.

    If a drive has several figures of a kind under the same load, their median counts. Latencies are
    in view, because the class defaults of tails were set with knowledge of these drives' latencies.
    Maxima are omitted because the source's maxima cover 48 minutes.
    """
    predictions = read_ssd_iq_predictions(SSD_IQ_PREDICTIONS)
    limits = knees(predictions, simulated=False)
    groups: dict[tuple[str, str, str], list[SsdIqPrediction]] = {}
    for row in predictions:
        if kind := _ssd_iq_kind(row, FULL_RATE_SHARE * limits.get(row.drive, 0.0)):
            groups.setdefault((row.drive, kind, row.load.label), []).append(row)
    figures = [
        _of_ssd_iq(rows[0], kind, median(row.value for row in rows), rows[0].simulated)
        for (_, kind, _), rows in groups.items()
    ]
    simulated = knees(predictions, simulated=True)
    row_of_drive = {row.drive: row for row in predictions}
    figures += [
        replace(_of_ssd_iq(row_of_drive[drive], KNEE, rate, simulated[drive]), label=KNEE)
        for drive, rate in limits.items()
    ]
    return tuple(figures)


def _of_ssd_iq(row: SsdIqPrediction, kind: str, published: float, simulated: float) -> HeldOut:
    is_latency = _LATENCY.match(row.metric) is not None and kind != KNEE
    return HeldOut(
        "SSD-iq", kind, row.family, row.load.label, row.drive, published, simulated,
        "x" if is_latency else "%", in_view=is_latency,
    )  # fmt: skip


def knees(rows: Iterable[SsdIqPrediction], *, simulated: bool) -> dict[str, float]:
    """Return each drive's largest open-loop write rate in IOPS, published or simulated."""
    rates: dict[str, float] = {}
    for row in rows:
        if isinstance(row.load, OpenLoop) and row.metric == "write rate reached":
            value = row.simulated if simulated else row.value
            rates[row.drive] = max(rates.get(row.drive, 0.0), value)
    return rates


def _ssd_iq_kind(row: SsdIqPrediction, light_iops: float) -> str:
    """Return a figure's kind, or "" if the figure is not compared.

    Open loops with rates below `light_iops` count as below full rate.
    """
    load = row.load
    if row.metric == "WAF":
        return WRITE_AMPLIFICATION
    if isinstance(load, ZoneWrites):
        return ZONES
    if isinstance(load, OpenLoop):
        match = _LATENCY.match(row.metric)
        if match is None:
            return ""  # At rates below its maximum, every drive reaches the load's rate.
        operations = "reads beside writes" if match[1] == "read" else "writes"
        return tail_kind(match[2], operations, full_rate=load.rate_iops >= light_iops)
    assert isinstance(load, RandomWrites)
    if load.range_bytes is not None:
        return PART
    kind = {"uniform": UNIFORM, "static": STATIC}.get(load.spread.kind, SKEWED)
    return f"{kind}{RELATIVE}" if "relative to uniform" in row.metric else kind


# -- errors by kind --------------------------------------------------------------------------------

FEWEST = 3  # Minimum number of figures for an error.
FACTOR = 1.5  # Maximum tail factor that counts as `KindScore.within_pct`.
_NEAR_PCT = 10.0


@dataclass(frozen=True)
class KindScore:
    """Absolute errors of held-out figures. `median`, `p90` and `largest` are in `unit`."""

    unit: ErrorUnit
    figures: int
    median: float
    p90: float
    largest: float
    within_pct: float  # Percentage of factors up to `FACTOR`, or of errors up to 10 %.
    in_view: bool


def score_of(figures: Iterable[HeldOut]) -> KindScore | None:
    """Return the score of figures whose errors share a unit, or None without figures."""
    listed = list(figures)
    if not listed:
        return None
    unit, errors = listed[0].unit, np.asarray([figure.error for figure in listed])
    limit = FACTOR if unit == "x" else _NEAR_PCT
    return KindScore(
        unit,
        len(listed),
        float(np.median(errors)),
        float(np.percentile(errors, 90)),
        float(errors.max()),
        100 * float(np.mean(errors <= limit)),
        any(figure.in_view for figure in listed),
    )


def by_kind(figures: Iterable[HeldOut]) -> Mapping[str, list[HeldOut]]:
    """Return the figures by kind, in their original order."""
    groups: dict[str, list[HeldOut]] = {}
    for figure in figures:
        groups.setdefault(figure.kind, []).append(figure)
    return groups


@dataclass(frozen=True)
class Winners:
    """Pairs of drives under the same load with published figures that differ by more than 5 %."""

    pairs: int
    right: int  # Number of pairs where the simulation has the published winner.


def winners(figures: Iterable[HeldOut], *, most: float = float("inf")) -> Winners:
    """Compare all pairs of drives that have a figure of the same kind and load.

    Args:
        figures: Held-out figures.
        most: Largest factor between the two published figures of a pair.
    """
    by_load: dict[tuple[str, str], list[HeldOut]] = {}
    for figure in figures:
        by_load.setdefault((figure.kind, figure.label), []).append(figure)
    agreements = [
        (a.published > b.published) == (a.simulated > b.simulated) and a.simulated != b.simulated
        for same_load in by_load.values()
        for a, b in combinations(same_load, 2)
        if a.drive != b.drive
        and is_clear((a.published, b.published))
        and max(a.published, b.published) <= most * min(a.published, b.published)
    ]
    return Winners(len(agreements), sum(agreements))
