"""Formatting of numbers for readers, with a unit, and with a single unit per plot or table.

Reports, the command line and the catalogue all format their figures with this module. Unknown
values (None, NaN, infinity) are shown as `UNKNOWN`. `parse_size` and `parse_time` parse values
entered by users.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from writecliff.errors import ConfigError

UNKNOWN = "-"
NOT_ENOUGH = "not enough samples"
KIB = 1024


@dataclass(frozen=True)
class Unit:
    """A unit of measurement; a value in base units divided by `size` is in this unit."""

    name: str
    size: float


LATENCY_UNITS = (Unit("ns", 1), Unit("µs", 1e3), Unit("ms", 1e6), Unit("s", 1e9))
BYTE_UNITS = (Unit("MB", 1e6), Unit("GB", 1e9), Unit("TB", 1e12))
SIZE_UNITS = (Unit("B", 1), Unit("kB", 1e3), *BYTE_UNITS, Unit("PB", 1e15))
TIME_UNITS = (Unit("s", 1e9), Unit("min", 60e9), Unit("h", 3600e9))
MB_S = Unit("MB/s", 1e6)  # Unit in the standard, which is decimal at any magnitude.
_MINUTES_FROM, _HOURS_FROM = 2 * 60e9, 3 * 3600e9


def common_unit(values: Iterable[float], units: Sequence[Unit]) -> Unit:
    """Return the most suitable unit for the median of `values`."""
    positive = sorted(v for v in values if math.isfinite(v) and v > 0)
    if not positive:
        return units[0]
    return _largest(positive[len(positive) // 2], units)


def _largest(value: float, units: Sequence[Unit], digits: int | None = None) -> Unit:
    """Return the largest unit that `value` reaches when rounded to `digits` significant digits."""
    rounding = 1.0 if digits is None else 1 - 0.5 * 10.0**-digits
    fitting = [unit for unit in units if abs(value) >= unit.size * rounding]
    return fitting[-1] if fitting else units[0]


def time_unit(duration_ns: float) -> Unit:
    """Return a time axis unit: seconds below 2 min, hours from 3 h, and minutes otherwise."""
    if duration_ns < _MINUTES_FROM:
        return TIME_UNITS[0]
    return TIME_UNITS[2] if duration_ns >= _HOURS_FROM else TIME_UNITS[1]


def number(value: float | None, digits: int = 0) -> str:
    """Format `value` with thousands separators and `digits` decimals, such as "81,250"."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.{digits}f}"


def plural(number: int, word: str) -> str:
    """Return a number followed by a noun in the singular or plural.

    >>> plural(1, "figure"), plural(0, "run"), plural(2_000, "step")
    ('1 figure', '0 runs', '2,000 steps')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def significant(value: float | None, digits: int = 3) -> str:
    """Format `value` with at least `digits` significant digits; integer parts are not rounded."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])  # Rounding turns 9.996 into 10.0.
    places = max(0, digits - 1 - exponent)
    return f"{value:,.{places}f}"


def latency(value_ns: float | None, unit: Unit | None = None, *, digits: int = 4) -> str:
    """Format a latency in `unit`, or in the most suitable unit, such as "10.49 ms"."""
    if value_ns is None or not math.isfinite(value_ns):
        return UNKNOWN
    unit = unit or _largest(value_ns, LATENCY_UNITS, digits)
    return f"{significant(value_ns / unit.size, digits)} {unit.name}"


def size(value_bytes: float | None) -> str:
    """Format bytes in the decimal units of drive capacities, such as "120 GB" or "4.1 kB"."""
    if value_bytes is None or not math.isfinite(value_bytes):
        return UNKNOWN
    unit = _largest(value_bytes, SIZE_UNITS, 3)
    text = significant(value_bytes / unit.size)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit.name}"


def throughput(bytes_per_s: float | None) -> str:
    """Format a throughput in the standard's unit, such as "551.3 MB/s"."""
    return UNKNOWN if bytes_per_s is None else f"{number(bytes_per_s / MB_S.size, 1)} {MB_S.name}"


def duration(value_ns: float | None) -> str:
    """Format a duration in one or two units, such as "45 s", "12 min 5 s" or "3 h 20 min"."""
    if value_ns is None or not math.isfinite(value_ns):
        return UNKNOWN
    seconds = round(value_ns / 1e9)
    if seconds < 60:
        return f"{value_ns / 1e9:.3g} s" if value_ns < 1e10 else f"{seconds} s"
    large, small = ("min", "s") if seconds < 3600 else ("h", "min")
    whole, rest = divmod(seconds if seconds < 3600 else seconds // 60, 60)
    return f"{whole} {large} {rest} {small}" if rest else f"{whole} {large}"


def minutes(value_min: float) -> str:
    """Format a time in minutes like `duration`, such as "30 min" or "2 s"."""
    return duration(value_min * 60e9)


def block(size_bytes: int) -> str:
    """Format a block size in binary units, such as "0.5 KiB" or "1024 KiB"."""
    return f"{size_bytes / KIB:g} KiB"


def percent(share: float | None, digits: int = 1) -> str:
    """Format a fraction of 1 as a percentage."""
    return pct(None if share is None else 100 * share, digits)


def pct(value_pct: float | None, digits: int = 2) -> str:
    """Format a value in percent, with a percent sign."""
    return UNKNOWN if value_pct is None else f"{value_pct:.{digits}f} %"


def nines(q: float) -> str:
    """Format a quantile in percent, such as "99.99 %" for 0.9999."""
    return f"{100 * q:.6f}".rstrip("0").rstrip(".") + " %"


def date_time(iso: str) -> str:
    """Format a time as in the standard, as "mm/dd/yyyy hh:mm AM" and the time zone."""
    moment = datetime.fromisoformat(iso)
    zone = moment.strftime("%z")
    zone = "UTC" if zone in ("+0000", "") else f"UTC{zone[:3]}:{zone[3:]}"
    return moment.strftime("%m/%d/%Y %I:%M %p ") + zone


def parse_time(text: str) -> int:
    """Parse a time, such as "30 s", "1.5 ms" or "2 min", and return it in ns.

    Raises:
        ConfigError: If the text is not a time.
    """
    from writecliff import _native

    try:
        return int(_native.parse_time(text))
    except _native.NativeConfigError as error:
        hint = error.args[1] or "specify a time with its unit, such as 30 s, 1.5 ms or 2 min"
        raise ConfigError(f"invalid time '{text}'", hint=hint) from None


def parse_size(text: str) -> int:
    """Parse a size, such as "500 MB", "8GiB" or "4096", and return it in bytes.

    A bare k, M or G is rejected because it may mean a power of 1000 or 1024.

    Raises:
        ConfigError: If the text is not a size.
    """
    from writecliff import _native

    if text.strip().isdecimal() and len(text) < 20:  # Longer numbers exceed 64 bits.
        return int(text)
    try:
        return int(_native.parse_size(text))
    except _native.NativeConfigError as error:
        hint = (
            error.args[1]
            or "specify a size with its unit, such as 500MB, 10GB (decimal) or 8GiB (binary)"
        )
        raise ConfigError(f"invalid size '{text}'", hint=hint) from None
