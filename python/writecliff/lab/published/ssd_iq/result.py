"""Comparison of SSD-iq's figures with simulated values: rows, curves, and errors by kind."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np

from writecliff.csv_cells import cell
from writecliff.engines.state_cache import build_id
from writecliff.errors import ConfigError
from writecliff.lab.published.ssd_iq.play import SECONDS, Measured, Played, SmallDrive, play_all
from writecliff.published.figures import SSD_IQ_NAME, VALUE_MAX, VALUE_MIN
from writecliff.published.ssd_iq.conditions import (
    Load,
    OpenLoop,
    RandomWrites,
    Spread,
    ZoneWrites,
    drive_text,
    load_of,
    uniform_of,
)
from writecliff.published.ssd_iq.drives import (
    SHEETS,
    Sheet,
    device_text,
    read_sheets,
    read_table,
    sheet_of,
)

FIGURES = Path(__file__).parent / "figures.csv"
SSD_IQ_ABOUT = "current drives under skewed, static and open-loop loads (SSD-iq, PVLDB 2025)"
SCHEMA = "writecliff/reproduce-ssd-iq/1"
_NEEDED, _OPTIONAL = ("condition", "metric", "value"), ("unit",)
_RATES = {"iops": 1.0, "kiops": 1e3, "": 1.0}
_BYTES = {"mib/s": 2**20, "mb/s": 1e6, "gib/s": 2**30, "gb/s": 1e9, "kib/s": 2**10}
TIMES = {"us": 1e3, "µs": 1e3, "ms": 1e6, "ns": 1.0, "s": 1e9, "": 1e3}  # Time units in ns.
_LATENCY = re.compile(r"(read|write) latency (p[\d.]+|mean|avg|average|median|max)\b")
_SATURATING_IOPS = 1e6  # Arrival rate that exceeds the random writes of current drives.
_KNEE_SHARE = 0.8  # Fraction of a drive's maximum rate below which tails are compared.
FACTOR = 1.5  # Maximum tail factor that counts as `Score.within`.


Cells = Mapping[str, str | None]  # Cells in a table row by column.


@dataclass(frozen=True)
class Row:
    """A published figure and its simulated value.

    `value` and `simulated` are in the table's `unit`. `reason` explains a missing simulated value.
    `note` states a difference between the methods.
    """

    condition: str
    metric: str
    value: float | None
    unit: str
    simulated: float | None
    reason: str
    note: str = ""
    drive: str = ""  # Drive name and capacity on the data sheet.
    load: Load | None = None

    @property
    def error_pct(self) -> float | None:
        """Ratio of simulated to published value, minus 1, in percent."""
        if self.simulated is None or not self.value:
            return None
        return 100 * (self.simulated / self.value - 1)


@dataclass(frozen=True)
class Point:
    """A curve point, which is the rate under a load relative to uniform writes on the drive."""

    drive: str
    spread: Spread
    published: float
    simulated: float

    @property
    def error_pct(self) -> float:
        """Simulated over published, minus 1, in percent."""
        return 100 * (self.simulated / self.published - 1)


@dataclass(frozen=True)
class Score:
    """Absolute errors of a kind of figure.

    Rate errors are in percent. Latency errors are factors, the larger value over the smaller.
    `within` is the percentage of factors up to `FACTOR`.
    """

    kind: str
    figures: int
    unit: Literal["%", "x"]
    median: float
    p90: float
    within: float | None = None


@dataclass(frozen=True)
class PlayedDrive:
    """A simulated drive."""

    drive: str  # Drive name and capacity on the data sheet.
    name: str  # Device name.
    device_hash: str
    scale: float
    loads: int  # Number of simulated loads.


@dataclass(frozen=True)
class Comparison:
    """Table rows, curve points, and drives."""

    rows: tuple[Row, ...]
    points: tuple[Point, ...]
    drives: tuple[PlayedDrive, ...]
    wall_s: float
    time_share: float = 1.0  # Length factor for the timed windows.
    # Largest simulated open-loop write rate for drives whose published rate is unknown.
    simulated_knees: Mapping[str, float] = field(default_factory=dict)

    @property
    def scores(self) -> list[Score]:
        """Errors by kind of figure, with curves relative to uniform writes first."""
        return _scores(self.rows, self.points, self.simulated_knees)


@dataclass(frozen=True)
class _Wanted:
    """Drive and load of a row."""

    sheet: Sheet
    load: Load


def compare(
    figures: Path | None = None,
    sheets: Path | None = None,
    *,
    workers: int | None = None,
    time_share: float = 1.0,
    log: Callable[[str], None] = lambda text: None,
) -> Comparison:
    """Simulate the conditions of a table and compare the figures.

    Args:
        figures: Figure table (default: the shipped table).
        sheets: Data sheet table (default: the shipped table).
        workers: Maximum number of parallel tasks; None allows as many as cores and memory permit.
        time_share: Factor for the length of the timed parts.
        log: Function that receives lines of progress.

    Raises:
        ConfigError: If a file cannot be read or lacks columns.
    """
    started_s = time.monotonic()
    data_sheets = read_sheets(sheets or SHEETS)
    cells = read_rows(figures or FIGURES)
    wanted = [_wanted(row, data_sheets) for row in cells]
    devices: dict[Sheet, SmallDrive | str] = {}
    loads: dict[SmallDrive, dict[Load, None]] = {}
    for parsed in wanted:
        if isinstance(parsed, str):
            continue
        if parsed.sheet not in devices:
            devices[parsed.sheet] = _drive(parsed.sheet)
        drive = devices[parsed.sheet]
        if isinstance(drive, SmallDrive):
            drive_loads = loads.setdefault(drive, {})
            drive_loads[parsed.load] = None
            if isinstance(parsed.load, RandomWrites):
                drive_loads[uniform_of(parsed.load)] = None
    saturating = _saturating(cells, wanted)
    for sheet, load in saturating.items():
        if isinstance(drive := devices[sheet], SmallDrive):
            loads[drive][load] = None
    measured = play_all(loads, workers=workers, time_share=time_share, log=log)
    rows = tuple(
        _row(row, parsed, devices, measured) for row, parsed in zip(cells, wanted, strict=True)
    )
    by_sheet = {
        sheet: measured[drive] for sheet, drive in devices.items() if isinstance(drive, SmallDrive)
    }
    played = tuple(
        PlayedDrive(
            sheet.label,
            drive.name,
            drive.device_hash,
            drive.scale,
            sum(isinstance(figures, Measured) for figures in measured[drive].values()),
        )
        for sheet, drive in devices.items()
        if isinstance(drive, SmallDrive)
    )
    points = tuple(_points(rows, {sheet.label: played for sheet, played in by_sheet.items()}))
    return Comparison(
        rows,
        points,
        played,
        time.monotonic() - started_s,
        time_share,
        {
            sheet.label: saturated.write_iops
            for sheet, load in saturating.items()
            if isinstance(saturated := by_sheet.get(sheet, {}).get(load), Measured)
        },
    )


def _saturating(cells: Iterable[Cells], wanted: Iterable[_Wanted | str]) -> dict[Sheet, OpenLoop]:
    """Return a saturating open loop for each drive whose published largest rate is unknown."""
    loops: dict[Sheet, OpenLoop] = {}
    complete: set[Sheet] = set()
    for row, parsed in zip(cells, wanted, strict=True):
        if isinstance(parsed, str) or not isinstance(parsed.load, OpenLoop):
            continue
        loops.setdefault(parsed.sheet, replace(parsed.load, rate_iops=_SATURATING_IOPS))
        if _is_rate_reached(row["metric"] or "") and row["value"]:
            complete.add(parsed.sheet)
    return {sheet: load for sheet, load in loops.items() if sheet not in complete}


def _is_rate_reached(metric: str) -> bool:
    return "rate reached" in metric.lower()


def read_rows(path: Path) -> Sequence[Cells]:
    """Read the rows of a table that has the columns of `figures.csv`.

    Raises:
        ConfigError: If the file cannot be read or lacks a column.
    """
    return read_table(path, _NEEDED, _OPTIONAL)


def _wanted(row: Cells, sheets: Iterable[Sheet]) -> _Wanted | str:
    """Return a row's drive and load, or the error that prevents the simulation."""
    condition = row["condition"] or ""
    try:
        load = load_of(condition)
        _value(row)
        return _Wanted(sheet_of(drive_text(condition), sheets), load)
    except ConfigError as error:
        return str(error)


def _drive(sheet: Sheet) -> SmallDrive | str:
    """Return a data sheet's drive, or the error that prevents its derivation."""
    try:
        return SmallDrive.of(sheet.sheet.name, device_text(sheet))
    except ConfigError as error:
        return f"cannot derive a drive from the data sheet: {error}"


def _row(
    cells: Cells,
    wanted: _Wanted | str,
    devices: Mapping[Sheet, SmallDrive | str],
    measured: Mapping[SmallDrive, Played],
) -> Row:
    condition, metric = cells["condition"] or "", (cells["metric"] or "").strip()
    unit = (cells.get("unit") or "").strip()
    if isinstance(wanted, str):
        return Row(condition, metric, _number(cells["value"] or ""), unit, None, wanted)
    value, name, load = _value(cells), wanted.sheet.label, wanted.load
    drive = devices[wanted.sheet]
    if isinstance(drive, str):
        return Row(condition, metric, value, unit, None, drive, "", name, load)
    simulated, reason, note = None, "", ""
    try:
        simulated, note = _simulated(metric, unit, load, measured[drive])
    except ConfigError as error:
        reason = str(error)
    return Row(condition, metric, value, unit, simulated, reason, note, name, load)


def _value(row: Cells) -> float | None:
    """Return a row's published value, or None for an empty cell. Raises ConfigError."""
    text = (row["value"] or "").strip()
    if not text:
        return None
    value = _number(text)
    if value is None:
        raise ConfigError(f"value is '{text}', not a number")
    if not VALUE_MIN <= value <= VALUE_MAX:
        raise ConfigError(f"value is {value:g}, not from {VALUE_MIN:g} to {VALUE_MAX:g}")
    return value


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _simulated(metric: str, unit: str, load: Load, measured: Played) -> tuple[float, str]:
    """Return a metric's value in the table's unit, and a note. Raises ConfigError."""
    name, figures = metric.lower(), _figures(measured, load)
    if "relative to uniform" in name:
        if not isinstance(load, RandomWrites):
            raise ConfigError("only random writes have a rate relative to uniform writes")
        return figures.write_iops / _figures(measured, uniform_of(load)).write_iops, ""
    if "write rate" in name or "write throughput" in name or name in ("iops", "write iops"):
        return _rate(unit, figures), ""
    if name in ("waf", "wa") or "write amplification" in name:
        if figures.waf is None:
            raise ConfigError("the load wrote nothing")
        return figures.waf, ""
    if match := _LATENCY.match(name):
        return _latency(match[1], match[2], unit, figures)
    raise ConfigError(f"unknown metric '{metric}'")


def _figures(measured: Played, load: Load) -> Measured:
    """Return the figures of a load. Raises ConfigError, with the reason why there are none."""
    figures = measured[load]
    if isinstance(figures, str):
        raise ConfigError(figures)
    return figures


def _rate(unit: str, figures: Measured) -> float:
    if (size := _BYTES.get(unit.lower())) is not None:
        return figures.write_bytes_per_s / size
    if (count := _RATES.get(unit.lower())) is not None:
        return figures.write_iops / count
    raise ConfigError(f"unknown rate unit '{unit}'")


def _latency(operation: str, statistic: str, unit: str, figures: Measured) -> tuple[float, str]:
    if unit.lower() not in TIMES:
        raise ConfigError(f"unknown time unit '{unit}'")
    times, size, note = figures.times.get(operation), TIMES[unit.lower()], ""
    if times is None:
        raise ConfigError(f"this load does not measure {operation} latency")
    if statistic == "max":
        value: float | None = times.max_ns
        note = "maximum over a far shorter time than in the source"
    elif statistic.startswith("p"):
        share = (_number(statistic[1:]) or 0.0) / 100
        if not 0 < share < 1:
            raise ConfigError(
                f"invalid percentile '{statistic}' (it must be above 0 and below 100)"
            )
        value = times.quantile(share).value_ns
    else:
        value = times.quantile(0.5).value_ns if statistic == "median" else times.mean_ns
    if value is None:
        raise ConfigError("too few I/Os for this percentile")
    return value / size, note


# -- curves and scores ----------------------------------------------------------------------------


def _is_whole(load: Load | None) -> bool:
    return isinstance(load, RandomWrites) and load.range_bytes is None


def _points(rows: Sequence[Row], measured: Mapping[str, Played]) -> Iterable[Point]:
    """Yield a point per drive and distribution, with the median of its published figures."""
    rates: dict[tuple[str, RandomWrites], list[float]] = {}
    ratios: dict[tuple[str, RandomWrites], list[float]] = {}
    for row in rows:
        if isinstance(row.load, RandomWrites) and _is_whole(row.load) and row.value:
            if "relative to uniform" in row.metric.lower():
                ratios.setdefault((row.drive, row.load), []).append(row.value)
            elif row.metric.lower() == "write rate":
                rate = row.value * _RATES.get(row.unit.lower(), 1.0)
                rates.setdefault((row.drive, row.load), []).append(rate)
    for drive, loads in measured.items():
        uniform = _published_uniform(drive, rates, ratios)
        for load, figures in loads.items():
            if not (isinstance(load, RandomWrites) and _is_whole(load)):
                continue
            if load.spread.kind == "uniform":
                continue
            published = list(ratios.get((drive, load), ()))
            if not published and uniform:
                published = [rate / uniform for rate in rates.get((drive, load), ())]
            of_uniform = loads.get(uniform_of(load))
            if published and isinstance(figures, Measured) and isinstance(of_uniform, Measured):
                simulated = figures.write_iops / of_uniform.write_iops
                yield Point(drive, load.spread, median(published), simulated)


def _published_uniform(
    drive: str,
    rates: Mapping[tuple[str, RandomWrites], Sequence[float]],
    ratios: Mapping[tuple[str, RandomWrites], Sequence[float]],
) -> float | None:
    """Return the published rate of uniform writes.

    The rate is the median of direct figures and of rates divided by their published ratio to
    uniform writes. The result is `None` if neither kind of figure is published.
    """
    uniform: list[float] = []
    for (name, load), values in rates.items():
        if name == drive and load.spread.kind == "uniform":
            uniform += values
        elif name == drive and (load_ratios := ratios.get((name, load))):
            uniform += [value / median(load_ratios) for value in values]
    return median(uniform) if uniform else None


def knees(rows: Iterable[Row], *, simulated: bool = False) -> dict[str, float]:
    """Return each drive's largest open-loop write rate, published or simulated."""
    largest: dict[str, float] = {}
    for row in rows:
        value = row.simulated if simulated else row.value
        if isinstance(row.load, OpenLoop) and _is_rate_reached(row.metric) and value:
            rate = value * _RATES.get(row.unit.lower(), 1.0)
            largest[row.drive] = max(largest.get(row.drive, 0.0), rate)
    return largest


def _scores(
    rows: Sequence[Row], points: Sequence[Point], simulated_knees: Mapping[str, float]
) -> list[Score]:
    sizes: dict[str, list[float]] = {}
    for point in points:
        for kind in ("all curves", f"{point.spread.kind} curve"):
            sizes.setdefault(f"{kind}, relative to uniform", []).append(abs(point.error_pct))
    factors: dict[str, list[float]] = {}
    largest = {**simulated_knees, **knees(rows)}
    limits = {drive: rate * _KNEE_SHARE for drive, rate in largest.items()}
    for row in rows:
        if row.error_pct is None:
            continue
        kind = kind_of(row, limits)
        if "latency" in kind:
            assert row.simulated is not None and row.value is not None
            if (ratio := row.simulated / row.value) > 0:
                factors.setdefault(kind, []).append(max(ratio, 1 / ratio))
        elif "relative" not in kind:
            sizes.setdefault(kind, []).append(abs(row.error_pct))
    published, simulated = knees(rows), knees(rows, simulated=True)
    for drive, rate in published.items():
        if drive in simulated:
            error = abs(100 * (simulated[drive] / rate - 1))
            sizes.setdefault("largest rate in an open loop", []).append(error)
    return [
        *(
            Score(kind, len(errors), "%", median(errors), _p90(errors))
            for kind, errors in sizes.items()
        ),
        *(
            Score(kind, len(errors), "x", median(errors), _p90(errors), _within(errors))
            for kind, errors in sorted(factors.items())
        ),
    ]


def _p90(values: Sequence[float]) -> float:
    return float(np.percentile(np.asarray(values), 90))


def _within(factors: Sequence[float]) -> float:
    return 100 * sum(factor <= FACTOR for factor in factors) / len(factors)


def kind_of(row: Row, limits: Mapping[str, float]) -> str:
    """Return the kind of a figure.

    `limits` maps drives to the rate below which tails are compared.
    """
    metric, load = row.metric.lower(), row.load
    if "relative to uniform" in metric:
        return "rate relative to uniform"
    if metric in ("waf", "wa") or "write amplification" in metric:
        return "write amplification"
    if match := _LATENCY.match(metric):
        if not isinstance(load, OpenLoop):
            return "latency"
        where, limit = "largest rate unknown", limits.get(row.drive)
        if limit is not None:
            below = load.rate_iops < limit
            where = "below 80 % of the largest rate" if below else "near and above the largest rate"
        return f"{match[1]} latency {match[2]}, {where}"
    if isinstance(load, ZoneWrites):
        return "zones written in order, throughput"
    if isinstance(load, OpenLoop):
        return "write rate reached in an open loop"
    if isinstance(load, RandomWrites) and load.range_bytes is not None:
        return "part of the drive used, rate"
    return f"{load.spread.kind} writes, rate" if isinstance(load, RandomWrites) else "other"


def disclosures(comparison: Comparison) -> list[str]:
    """Return texts that qualify the errors by figures seen, durations, scales and gaps."""
    texts = [
        "Rules derive every drive from its data sheet. The class defaults for tails and fresh "
        "writes were set with figures of PM9A3, PE8110, CM7-R and 7450 MAX in view, and the "
        "averaging window with 7450 MAX, 95 % of writes to 5 % of the pages. Errors on these four "
        "drives are no predictions.",
        f"Simulated percentiles and maxima cover {SECONDS * comparison.time_share:g} s of an open "
        "loop. Published percentiles are medians over minutes, and published maxima cover 48 "
        "minutes.",
    ]
    if scales := sorted({drive.scale for drive in comparison.drives}):
        shown = " to ".join(f"1/{scale:g}" for scale in dict.fromkeys((scales[0], scales[-1])))
        texts.append(
            f"Drives are simulated at {shown} of their capacity, with ranges and zones in "
            "proportion."
        )
    texts += [
        f"{drive}: without a published rate reached in an open loop, the largest simulated rate, "
        f"{rate:,.0f} a second, decides which tails are below 80 % of it."
        for drive, rate in comparison.simulated_knees.items()
    ]
    if missing := sum(row.simulated is None for row in comparison.rows):
        texts.append(
            f"{missing} of {len(comparison.rows)} figures could not be simulated; a table gives "
            "the reasons."
        )
    return texts


# -- output ------------------------------------------------------------------------------------


def mapping(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as plain data for `--json`; missing values are None."""
    return {
        "schema": SCHEMA,
        "campaign": SSD_IQ_NAME,
        "build": build_id(),
        "wall_s": comparison.wall_s,
        "rows": [_row_mapping(row) for row in comparison.rows],
        "curves": [
            {
                "drive": point.drive,
                "load": point.spread.label,
                "kind": point.spread.kind,
                "published": point.published,
                "simulated": point.simulated,
                "error_pct": point.error_pct,
            }
            for point in comparison.points
        ],
        "scores": [asdict(score) for score in comparison.scores],
        "disclosures": disclosures(comparison),
        "drives": [asdict(drive) for drive in comparison.drives],
    }


def _row_mapping(row: Row) -> dict[str, object]:
    return {
        "condition": row.condition,
        "metric": row.metric,
        "value": row.value,
        "unit": row.unit,
        "simulated": row.simulated,
        "error_pct": row.error_pct,
        "reason": row.reason or None,
        "note": row.note or None,
        "drive": row.drive or None,
        "load": None if row.load is None else row.load.label,
    }


def rows_csv(comparison: Comparison) -> str:
    """Return every figure and its simulated value as CSV."""
    out = io.StringIO()
    names = ("condition", "metric", "value", "unit", "simulated", "error_pct", "reason", "note")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in comparison.rows:
        mapped = _row_mapping(row)
        values = ("" if mapped[name] is None else mapped[name] for name in names)
        writer.writerow(cell(value) if isinstance(value, str) else value for value in values)
    return out.getvalue()


def json_text(comparison: Comparison) -> str:
    """Return `mapping` as the text of a file."""
    return json.dumps(mapping(comparison), indent=1, allow_nan=False) + "\n"
