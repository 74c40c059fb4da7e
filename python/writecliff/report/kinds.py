"""Value kinds, which define the format in tables and the unit in files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from writecliff import units

# Alignment; "whole" means left-aligned text that never wraps.
Align = Literal["left", "right", "whole"]


class Span(NamedTuple):
    """A range of values, where None is an open end."""

    low: float | None
    high: float | None


def _text(value: Any) -> str:
    return units.UNKNOWN if value is None else str(value)


@dataclass(frozen=True)
class Kind:
    """A value format for tables, and the unit in files."""

    text: Callable[[Any], str] = _text
    unit: str = ""
    align: Align = "right"
    number: bool = True  # `False` for text.
    ends: bool = False  # `True` if values are `Span`s, which have two columns in files.
    scale: float = 1.0  # Factor from displayed values to values in files.


TEXT = Kind(align="left", number=False)
WHOLE = Kind(align="whole", number=False)
RIGHT = Kind(number=False)
LATENCY = Kind(units.latency, "ns")
SIZE = Kind(units.size, "bytes")
DURATION = Kind(units.duration, "ns")
THROUGHPUT = Kind(units.throughput, "bytes/s")
BLOCK = Kind(units.block, "bytes", "left")


@cache
def decimals(places: int = 0, unit: str = "") -> Kind:
    """Return a kind of number with `places` decimals, followed by `unit`."""
    return Kind(lambda value: _behind(units.number(value, places), unit), unit)


@cache
def digits(places: int = 3, unit: str = "") -> Kind:
    """Return a kind of number with `places` significant digits, followed by `unit`."""
    return Kind(lambda value: _behind(units.significant(value, places), unit), unit)


@cache
def signed(places: int = 1, unit: str = "%") -> Kind:
    """Return a kind of difference, formatted with its sign."""
    return Kind(lambda v: units.UNKNOWN if v is None else _behind(f"{v:+.{places}f}", unit), unit)


@cache
def plain(unit: str = "") -> Kind:
    """Return a kind of number that omits trailing zeros (0.5, 16), followed by `unit`."""
    return Kind(lambda v: units.UNKNOWN if v is None else _behind(_short(v), unit), unit)


@cache
def percents(places: int = 2) -> Kind:
    """Return a kind of value in percent."""
    return Kind(lambda value: units.pct(value, places), "%")


@cache
def shares(places: int = 1) -> Kind:
    """Return a kind of fraction of 1, shown in percent."""
    return Kind(lambda value: units.percent(value, places), "%", scale=100.0)


@cache
def latency_in(unit: units.Unit) -> Kind:
    """Return a kind of latency shown in `unit`."""
    return Kind(lambda value_ns: units.latency(value_ns, unit), "ns")


@cache
def ranges(kind: Kind) -> Kind:
    """Return a kind of range of `kind`, such as "3.1 ms to 3.4 ms" or "up to 3 s"."""

    def text(value: Span | None) -> str:
        if value is None or value == (None, None):
            return units.UNKNOWN
        if value.low is None:
            return f"up to {kind.text(value.high)}"
        if value.high is None:
            return f"{kind.text(value.low)} or more"
        return f"{kind.text(value.low)} to {kind.text(value.high)}"

    return Kind(text, kind.unit, ends=True)


NUMBER = decimals()
IN_MS = Kind(lambda v: units.significant(None if v is None else v / 1e6, 4), "ns")
TIMES = Kind(lambda ratio: units.UNKNOWN if ratio is None else f"{ratio:.3g}x", "x")


def _short(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _behind(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit and text != units.UNKNOWN else text
