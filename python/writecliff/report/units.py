"""Numbers for people: always with a unit, decimal for sizes, and one unit for a whole plot."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

UNKNOWN = "-"
NOT_ENOUGH = "not enough samples"


@dataclass(frozen=True)
class Unit:
    """A value in base units divided by `size` is in this unit."""

    name: str
    size: float


LATENCY_UNITS = (Unit("ns", 1), Unit("µs", 1e3), Unit("ms", 1e6), Unit("s", 1e9))
BYTE_UNITS = (Unit("MB", 1e6), Unit("GB", 1e9), Unit("TB", 1e12))
TIME_UNITS = (Unit("s", 1e9), Unit("min", 60e9), Unit("h", 3600e9))
_MINUTES_FROM, _HOURS_FROM = 2 * 60e9, 3 * 3600e9


def common_unit(values: Iterable[float], units: tuple[Unit, ...]) -> Unit:
    """The unit in which the typical one of `values` (the median) reads best."""
    known = sorted(v for v in values if math.isfinite(v) and v > 0)
    if not known:
        return units[0]
    return _largest(known[len(known) // 2], units)


def _largest(value: float, units: tuple[Unit, ...]) -> Unit:
    fitting = [unit for unit in units if value >= unit.size]
    return fitting[-1] if fitting else units[0]


def time_unit(duration_ns: float) -> Unit:
    """Seconds for short runs, minutes, and hours from three hours on."""
    if duration_ns < _MINUTES_FROM:
        return TIME_UNITS[0]
    return TIME_UNITS[2] if duration_ns >= _HOURS_FROM else TIME_UNITS[1]


def number(value: float | None, digits: int = 0) -> str:
    """Thousands separated, a fixed number of digits after the point."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.{digits}f}"


def significant(value: float | None, digits: int = 3) -> str:
    """At least `digits` significant digits, never fewer than the integer part has."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def latency(value_ns: float | None, unit: Unit | None = None) -> str:
    if value_ns is None or not math.isfinite(value_ns):
        return UNKNOWN
    unit = unit or _largest(value_ns, LATENCY_UNITS)
    return f"{significant(value_ns / unit.size, 4)} {unit.name}"


def size(value_bytes: float | None) -> str:
    if value_bytes is None:
        return UNKNOWN
    unit = _largest(value_bytes, BYTE_UNITS)
    return f"{significant(value_bytes / unit.size, 4)} {unit.name}"


def capacity(value_bytes: int) -> str:
    """As vendors print it: "120 GB", "1.92 TB"."""
    unit = _largest(value_bytes, BYTE_UNITS)
    text = significant(value_bytes / unit.size, 3)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit.name}"


def duration(value_ns: float) -> str:
    unit = time_unit(value_ns)
    return f"{significant(value_ns / unit.size, 3)} {unit.name}"


def percent(share: float | None, digits: int = 1) -> str:
    return pct(None if share is None else 100 * share, digits)


def pct(value_pct: float | None, digits: int = 2) -> str:
    """Of what is in percent already."""
    return UNKNOWN if value_pct is None else f"{value_pct:.{digits}f} %"


def nines(q: float) -> str:
    """0.9999 as "99.99 %"."""
    return f"{100 * q:.6f}".rstrip("0").rstrip(".") + " %"


def date_time(iso: str) -> str:
    """The standard's "mm/dd/yyyy hh:mm AM", with the zone that the standard leaves out."""
    moment = datetime.fromisoformat(iso)
    zone = moment.strftime("%z")
    zone = "UTC" if zone in ("+0000", "") else f"UTC{zone[:3]}:{zone[3:]}"
    return moment.strftime("%m/%d/%Y %I:%M %p ") + zone
