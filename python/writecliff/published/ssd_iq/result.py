"""Figures of SSD-iq beside their simulation: rows, curves relative to uniform, errors by kind."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np

from writecliff.csv_cells import cell
from writecliff.engines.state_cache import build_id
from writecliff.errors import ConfigError
from writecliff.input_files import read_text
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
from writecliff.published.ssd_iq.drives import SHEETS, Sheet, device_text, read_sheets, sheet_of
from writecliff.published.ssd_iq.play import Measured, SmallDrive, play_all

FIGURES = Path(__file__).parent / "figures.csv"
SSD_IQ_NAME = "ssd-iq"
SSD_IQ_ABOUT = "current drives under skewed, static and open-loop loads (SSD-iq, PVLDB 2025)"
SCHEMA = "writecliff/reproduce-ssd-iq/1"
_NEEDED = ("condition", "metric", "value")
_RATES = {"iops": 1.0, "kiops": 1e3, "": 1.0}
_BYTES = {"mib/s": 2**20, "mb/s": 1e6, "gib/s": 2**30, "gb/s": 1e9, "kib/s": 2**10}
_TIMES = {"us": 1e3, "µs": 1e3, "ms": 1e6, "ns": 1.0, "s": 1e9, "": 1e3}
_LATENCY = re.compile(r"(read|write) latency (p[\d.]+|mean|avg|average|median|max)")
_KNEE_SHARE = 0.8  # of the largest rate that a drive reaches: tails are compared below it
FACTOR = 1.5  # a tail is met within it


@dataclass(frozen=True)
class Row:
    """A figure beside its simulation. `reason` is empty if there is one; `note` says how the
    simulated figure differs from the published one in its making."""

    condition: str
    metric: str
    value: float | None
    unit: str
    simulated: float | None
    reason: str
    note: str = ""
    drive: str = ""  # of the sheet
    load: Load | None = None

    @property
    def error_pct(self) -> float | None:
        """Simulated over published, minus 1, in percent."""
        if self.simulated is None or not self.value:
            return None
        return 100 * (self.simulated / self.value - 1)


@dataclass(frozen=True)
class Point:
    """A point of a curve: the rate under a load, relative to uniform writes on the same drive."""

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
    """Sizes of the errors of a kind of figures. Rates are in percent; latencies are factors, the
    larger over the smaller, of which `within` is the share up to `FACTOR`, in percent."""

    kind: str
    figures: int
    unit: Literal["%", "x"]
    median: float
    p90: float
    within: float | None = None


@dataclass(frozen=True)
class PlayedDrive:
    """A drive that was simulated."""

    drive: str  # as its sheet names it
    name: str  # of the device
    device_hash: str
    scale: float
    loads: int


@dataclass(frozen=True)
class Comparison:
    """All rows of a table, the curves, and the drives."""

    rows: tuple[Row, ...]
    points: tuple[Point, ...]
    drives: tuple[PlayedDrive, ...]
    wall_s: float

    @property
    def scores(self) -> list[Score]:
        """Errors by kind of load, those relative to uniform first."""
        return _scores(self.rows, self.points)


@dataclass(frozen=True)
class _Wanted:
    """A row that has a drive and a load."""

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
    """Simulate the conditions of a table and compare; the default is the shipped one. All times are
    multiplied by `time_share`.

    Raises ConfigError (a file that cannot be read or lacks columns), EngineError."""
    began_s = time.monotonic()
    known = read_sheets(sheets or SHEETS)
    cells = read_rows(figures or FIGURES)
    wanted: list[_Wanted | str] = [_wanted(row["condition"] or "", known) for row in cells]
    devices: dict[str, SmallDrive | str] = {}
    loads: dict[SmallDrive, dict[Load, None]] = {}
    for one in wanted:
        if isinstance(one, str):
            continue
        drive = devices.setdefault(one.sheet.name, _drive(one.sheet))
        if isinstance(drive, SmallDrive):
            own = loads.setdefault(drive, {})
            own[one.load] = None
            if isinstance(one.load, RandomWrites):
                own[uniform_of(one.load)] = None
    measured = play_all(loads, workers=workers, time_share=time_share, log=log)
    rows = tuple(_row(row, one, devices, measured) for row, one in zip(cells, wanted, strict=True))
    played = tuple(
        PlayedDrive(name, drive.name, drive.device_hash, drive.scale, len(measured[drive]))
        for name, drive in devices.items()
        if isinstance(drive, SmallDrive)
    )
    points = tuple(_points(rows, {d.drive: measured[_small(devices, d.drive)] for d in played}))
    return Comparison(rows, points, played, time.monotonic() - began_s)


def _small(devices: Mapping[str, SmallDrive | str], name: str) -> SmallDrive:
    drive = devices[name]
    assert isinstance(drive, SmallDrive)
    return drive


def read_rows(path: Path) -> list[dict[str, str | None]]:
    """The rows of a table with the columns of `figures.csv`.

    Raises ConfigError: a file that cannot be read, a missing column."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    for name in _NEEDED:
        if name not in (reader.fieldnames or ()):
            hint = "a table has the columns condition, metric, value and unit"
            raise ConfigError(f"{path}: no column '{name}'", hint=hint)
    return list(reader)


def _wanted(condition: str, sheets: Iterable[Sheet]) -> _Wanted | str:
    """The drive and the load of a condition, or why it has none."""
    try:
        load = load_of(condition)
        return _Wanted(sheet_of(drive_text(condition), sheets), load)
    except ConfigError as error:
        return str(error)


def _drive(sheet: Sheet) -> SmallDrive | str:
    """The drive of a sheet, or why none can be derived."""
    try:
        return SmallDrive.of(sheet.sheet.name, device_text(sheet))
    except ConfigError as error:
        return f"no drive can be derived from the data sheet: {error}"


def _row(
    cells: Mapping[str, str | None],
    wanted: _Wanted | str,
    devices: Mapping[str, SmallDrive | str],
    measured: Mapping[SmallDrive, Mapping[Load, Measured]],
) -> Row:
    condition, metric = cells["condition"] or "", (cells["metric"] or "").strip()
    unit = (cells.get("unit") or "").strip()
    value = _number(cells["value"] or "")
    if isinstance(wanted, str):
        return Row(condition, metric, value, unit, None, wanted)
    name, load = wanted.sheet.name, wanted.load
    drive = devices[name]
    if isinstance(drive, str):
        return Row(condition, metric, value, unit, None, drive, "", name, load)
    simulated, reason, note = None, "", ""
    try:
        simulated, note = _simulated(metric, unit, load, measured[drive])
    except ConfigError as error:
        reason = str(error)
    return Row(condition, metric, value, unit, simulated, reason, note, name, load)


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _simulated(
    metric: str, unit: str, load: Load, measured: Mapping[Load, Measured]
) -> tuple[float, str]:
    """The value of a metric in the unit of the table, and a note. Raises ConfigError."""
    name, found = metric.lower(), measured[load]
    if "relative to uniform" in name:
        if not isinstance(load, RandomWrites):
            raise ConfigError("only random writes are relative to uniform ones")
        return found.write_iops / measured[uniform_of(load)].write_iops, ""
    if "write rate" in name or "write throughput" in name or name in ("iops", "write iops"):
        return _rate(unit, found), ""
    if name in ("waf", "wa") or "write amplification" in name:
        if found.waf is None:
            raise ConfigError("nothing was written")
        return found.waf, ""
    if match := _LATENCY.match(name):
        return _latency(match[1], match[2], unit, found)
    raise ConfigError(f"no known metric: '{metric}'")


def _rate(unit: str, found: Measured) -> float:
    if (size := _BYTES.get(unit.lower())) is not None:
        return found.write_bytes_per_s / size
    if (count := _RATES.get(unit.lower())) is not None:
        return found.write_iops / count
    raise ConfigError(f"no known unit of a rate: '{unit}'")


def _latency(way: str, statistic: str, unit: str, found: Measured) -> tuple[float, str]:
    if unit.lower() not in _TIMES:
        raise ConfigError(f"no known unit of a time: '{unit}'")
    times, size, note = found.times.get(way), _TIMES[unit.lower()], ""
    if times is None:
        raise ConfigError(f"no {way} latency is measured under this load")
    if statistic == "max":
        value: float | None = times.max_ns
        note = "of the simulated seconds, which are far fewer than the source's"
    elif statistic.startswith("p"):
        share = float(statistic[1:]) / 100
        if not 0 < share < 1:
            raise ConfigError(f"no percentile: '{statistic}'")
        value = times.quantile(share).value_ns
    else:
        value = times.quantile(0.5).value_ns if statistic == "median" else times.mean_ns
    if value is None:
        raise ConfigError("too few I/Os for this percentile")
    return value / size, note


# -- curves and scores ----------------------------------------------------------------------------


def _is_whole(load: Load | None) -> bool:
    return isinstance(load, RandomWrites) and load.range_bytes is None


def _points(
    rows: Sequence[Row], measured: Mapping[str, Mapping[Load, Measured]]
) -> Iterable[Point]:
    """The curves: of each drive and distribution, the median of its published figures."""
    rates: dict[tuple[str, RandomWrites], list[float]] = {}
    ratios: dict[tuple[str, RandomWrites], list[float]] = {}
    for row in rows:
        if isinstance(row.load, RandomWrites) and _is_whole(row.load) and row.value:
            if "relative to uniform" in row.metric.lower():
                ratios.setdefault((row.drive, row.load), []).append(row.value)
            elif row.metric.lower() == "write rate":
                rates.setdefault((row.drive, row.load), []).append(row.value)
    for drive, loads in measured.items():
        uniform = _published_uniform(drive, rates, ratios)
        for load, found in loads.items():
            if not (isinstance(load, RandomWrites) and _is_whole(load)):
                continue
            if load.spread.kind == "uniform":
                continue
            known = list(ratios.get((drive, load), ()))
            if not known and uniform:
                known = [rate / uniform for rate in rates.get((drive, load), ())]
            if known:
                own = found.write_iops / loads[uniform_of(load)].write_iops
                yield Point(drive, load.spread, median(known), own)


def _published_uniform(
    drive: str,
    rates: Mapping[tuple[str, RandomWrites], Sequence[float]],
    ratios: Mapping[tuple[str, RandomWrites], Sequence[float]],
) -> float | None:
    """The published rate of uniform writes, or what follows from rates and their ratios to it."""
    found: list[float] = []
    for (name, load), values in rates.items():
        if name == drive and load.spread.kind == "uniform":
            found += values
        elif name == drive and (known := ratios.get((name, load))):
            found += [value / median(known) for value in values]
    return median(found) if found else None


def knees(rows: Iterable[Row], *, simulated: bool = False) -> dict[str, float]:
    """The largest write rate that each drive reaches in an open loop, in the table or simulated."""
    found: dict[str, float] = {}
    for row in rows:
        value = row.simulated if simulated else row.value
        if isinstance(row.load, OpenLoop) and "rate reached" in row.metric and value:
            found[row.drive] = max(found.get(row.drive, 0.0), value)
    return found


def _scores(rows: Sequence[Row], points: Sequence[Point]) -> list[Score]:
    sizes: dict[str, list[float]] = {}
    for point in points:
        for kind in ("all curves", f"{point.spread.kind} curve"):
            sizes.setdefault(f"{kind}, relative to uniform", []).append(abs(point.error_pct))
    factors: dict[str, list[float]] = {}
    limits = {drive: rate * _KNEE_SHARE for drive, rate in knees(rows).items()}
    for row in rows:
        if row.error_pct is None:
            continue
        kind = kind_of(row, limits)
        if "latency" in kind:
            assert row.simulated is not None and row.value is not None
            ratio = row.simulated / row.value
            factors.setdefault(kind, []).append(max(ratio, 1 / ratio) if ratio > 0 else math.inf)
        elif "relative" not in kind:
            sizes.setdefault(kind, []).append(abs(row.error_pct))
    published, own = knees(rows), knees(rows, simulated=True)
    for drive, rate in published.items():
        if drive in own:
            error = abs(100 * (own[drive] / rate - 1))
            sizes.setdefault("largest rate in an open loop", []).append(error)
    return [
        *(Score(kind, len(own), "%", median(own), _p90(own)) for kind, own in sizes.items()),
        *(
            Score(kind, len(own), "x", median(own), _p90(own), _within(own))
            for kind, own in sorted(factors.items())
        ),
    ]


def _p90(values: Sequence[float]) -> float:
    return float(np.percentile(np.asarray(values), 90))


def _within(factors: Sequence[float]) -> float:
    return 100 * sum(factor <= FACTOR for factor in factors) / len(factors)


def kind_of(row: Row, limits: Mapping[str, float]) -> str:
    """The kind of a figure. `limits`: by drive, the rate below which tails are compared."""
    metric, load = row.metric.lower(), row.load
    if "relative to uniform" in metric:
        return "rate relative to uniform"
    if metric in ("waf", "wa") or "write amplification" in metric:
        return "write amplification"
    if match := _LATENCY.match(metric):
        if not isinstance(load, OpenLoop):
            return "latency"
        below = load.rate_iops < limits.get(row.drive, math.inf)
        where = "below 80 % of the largest rate" if below else "near and above the largest rate"
        return f"{match[1]} latency {match[2]}, {where}"
    if isinstance(load, ZoneWrites):
        return "zones written in order, throughput"
    if isinstance(load, OpenLoop):
        return "write rate reached in an open loop"
    if isinstance(load, RandomWrites) and load.range_bytes is not None:
        return "part of the drive used, rate"
    return f"{load.spread.kind} writes, rate" if isinstance(load, RandomWrites) else "other"


# -- as data -----------------------------------------------------------------------------------


def mapping(found: Comparison) -> dict[str, Any]:
    """The whole comparison as plain data for `--json`; unknown values are None."""
    return {
        "schema": SCHEMA,
        "campaign": SSD_IQ_NAME,
        "build": build_id(),
        "wall_s": found.wall_s,
        "rows": [_row_mapping(row) for row in found.rows],
        "curves": [
            {
                "drive": point.drive,
                "load": point.spread.label,
                "kind": point.spread.kind,
                "published": point.published,
                "simulated": point.simulated,
                "error_pct": point.error_pct,
            }
            for point in found.points
        ],
        "scores": [asdict(score) for score in found.scores],
        "drives": [asdict(drive) for drive in found.drives],
    }


def _row_mapping(row: Row) -> dict[str, Any]:
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


def rows_csv(found: Comparison) -> str:
    """Every figure beside its simulation, as a table."""
    out = io.StringIO()
    names = ("condition", "metric", "value", "unit", "simulated", "error_pct", "reason", "note")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in found.rows:
        values = _row_mapping(row)
        cells = ("" if values[name] is None else values[name] for name in names)
        writer.writerow(cell(one) if isinstance(one, str) else one for one in cells)
    return out.getvalue()


def json_text(found: Comparison) -> str:
    """`mapping` as a file."""
    return json.dumps(mapping(found), indent=1, allow_nan=False) + "\n"
