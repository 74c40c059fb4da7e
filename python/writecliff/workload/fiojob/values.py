"""Parsers for values in fio's notation: sizes, times, lists and ranges.

The rules are those of fio 3.33 (parse.c, options.c; HOWTO "Parameter types"), except that certain
mistakes are errors: fio reads `1.5g` as one byte and `10min` as ten microseconds. Parsers take text
and a `Context`, and raise `FioValueError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeVar

from writecliff.workload.fiojob.arithmetic import ExpressionError, evaluate

DIRECTIONS = ("read", "write", "trim")
T = TypeVar("T")

LARGEST = 2**63 - 1  # Largest signed 64-bit number, as in fio.

_NUMBER = re.compile(r"([+-]?\d+)\s*([A-Za-z%]*)")
_BYTE_SUFFIX = re.compile(r"([kmgtp])(i?b?|bytes)")
_TIMES_US = {
    **dict.fromkeys(("us", "usec"), 1),
    **dict.fromkeys(("ms", "msec"), 1000),
    "s": 1_000_000,
    "m": 60 * 1_000_000,
    "h": 3600 * 1_000_000,
    "d": 24 * 3600 * 1_000_000,
}


class FioValueError(ValueError):
    """Raised for an invalid value; the caller adds the option, file and line."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        """Store the error message and a hint."""
        super().__init__(message)
        self.hint = hint


@dataclass
class Context:
    """Settings that a parser depends on, and notes for the user."""

    kb_base: int = 1024
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Size:
    """A size in bytes, in percent of the drive, or in zones (see `zones.resolve`)."""

    bytes: int = 0
    percent: Fraction | None = None
    zones: int | None = None


@dataclass(frozen=True)
class Triple(Generic[T]):
    """Values for reads, writes and trims, where `None` leaves the value unchanged."""

    read: T
    write: T
    trim: T

    def over(self, earlier: Triple[T]) -> Triple[T]:
        """Return this list with missing values replaced by those of an earlier list."""
        pairs = zip(self.items(), earlier.items(), strict=True)
        return Triple(*(old if new is None else new for new, old in pairs))

    def items(self) -> tuple[T, T, T]:
        """Return the values for reads, writes and trims."""
        return (self.read, self.write, self.trim)

    def of(self, direction: str) -> T:
        """Return the value for "read", "write" or "trim"."""
        return dict(zip(DIRECTIONS, self.items(), strict=True))[direction]


Reader = Callable[[str, Context], Any]


def number(text: str, context: Context) -> int:
    """Parse a whole number, where fio allows byte units (`iodepth=1k` is 1024)."""
    value = _number(text.strip(), context)
    if abs(value) > LARGEST:
        raise FioValueError(f"'{text.strip()}' is too large")
    return value


def _number(text: str, context: Context) -> int:
    if text.startswith("("):
        try:
            return evaluate(text, lambda token: number(token, context))
        except ExpressionError as problem:
            raise FioValueError(str(problem)) from None
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
        return int(text, 16)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise FioValueError(f"'{text}' is not a whole number", _fraction_hint(text))
    if match.group(2) == "%":
        raise FioValueError(f"'{text}': this option does not take a percentage")
    return int(match.group(1)) * _byte_unit(match.group(2), text, context)


def whole_percent(text: str, context: Context) -> int:
    """Parse a whole percentage; a fraction is truncated, with a note, as in fio."""
    match = re.fullmatch(r"(\d+)\.\d*", text.strip())
    if match is None:
        return _at_least(0, number(text, context), 100)
    context.notes.append(f"{text.strip()} % is truncated to {match.group(1)} %, as in fio")
    return _at_least(0, int(match.group(1)), 100)


def _fraction_hint(text: str) -> str | None:
    if re.fullmatch(r"\d+\.\d+\w*", text):
        return "fio cuts a number at its decimal point; use a smaller unit, such as 1536m for 1.5g"
    return None


def _byte_unit(suffix: str, text: str, context: Context) -> int:
    """Return fio's unit, where k and kB are 1024 and KiB is 1000 for kb_base 1024 (the default)."""
    unit = suffix.lower()
    if unit in ("", "b"):
        return 1
    match = _BYTE_SUFFIX.fullmatch(unit)
    if match is None:
        raise FioValueError(f"'{text}' has an unknown size unit", "use the unit k, m, g, t or p")
    base = context.kb_base
    if match.group(2) == "ib":
        base = 1000 if base == 1024 else 1024
        if base == 1000:
            context.notes.append(
                f"{text} counts in powers of 1000, as in fio with kb_base=1024; {unit[0]} is 1024"
            )
    return int(base ** ("kmgtp".index(unit[0]) + 1))


def size(text: str, context: Context) -> Size:
    """Parse a size in bytes, percent, or zones (`z`)."""
    stripped = text.strip()
    match = re.fullmatch(r"(\d+)(\.\d*)?\s*%", stripped)
    if match:
        percent = Fraction(match.group(1) + (match.group(2) or ""))
        if not 0 <= percent <= 100:
            raise FioValueError(f"'{stripped}': a percentage must be 0% to 100%")
        if match.group(2):
            context.notes.append(
                f"{stripped} is a percentage of the drive here, but fio truncates it at the "
                f"decimal point and uses {match.group(1)} bytes"
            )
        return Size(percent=percent)
    if re.fullmatch(r"\d+z", stripped):
        return Size(zones=int(stripped[:-1]))
    return Size(bytes=_at_least(0, number(stripped, context)))


def _at_least(minimum: int, value: int, maximum: int | None = None) -> int:
    if value < minimum or (maximum is not None and value > maximum):
        upto = f" to {maximum}" if maximum is not None else " or more"
        raise FioValueError(f"{value} is out of range", f"use a value of {minimum}{upto}")
    return value


def integer(minimum: int = 0, maximum: int = 2**31 - 1) -> Reader:
    """Return a parser for numbers within bounds; text after a separator is an error."""

    def read(text: str, context: Context) -> int:
        return _at_least(minimum, number(text, context), maximum)

    return read


def time_us(default_unit: str) -> Reader:
    """Return a parser for times in microseconds; numbers without a unit are in `default_unit`."""

    def read(text: str, context: Context) -> int:
        match = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text.strip())
        if match is None:
            raise FioValueError(
                f"'{text}' is not a time", "specify a time such as 30s, 500ms, 5m or 1h"
            )
        unit = match.group(2).lower() or default_unit
        if unit not in _TIMES_US:
            raise FioValueError(
                f"'{text}' has the unknown unit {unit}, which fio reads as microseconds",
                "use the unit us, ms, s, m, h or d",
            )
        time = int(match.group(1)) * _TIMES_US[unit]
        if time > LARGEST // 1000:  # The value in nanoseconds must also fit.
            raise FioValueError(f"the time '{text.strip()}' is too long")
        return time

    return read


def boolean(text: str, context: Context) -> bool:
    """Parse 0 or 1; fio does not accept yes, no, true or false."""
    if text.strip() not in ("0", "1"):
        raise FioValueError(f"'{text}' is neither 0 nor 1")
    return text.strip() == "1"


def share(text: str, context: Context) -> float:
    """Parse a number from 0 to 1."""
    values = floats(text, context)
    if len(values) != 1 or not 0 <= values[0] <= 1:
        raise FioValueError(f"'{text.strip()}' is not a number from 0 to 1")
    return values[0]


def inverted(text: str, context: Context) -> bool:
    """Parse the inverse of a flag."""
    return not boolean(text, context)


def complement(text: str, context: Context) -> int:
    """Parse rwmixwrite, and return the percentage of reads."""
    return 100 - whole_percent(text, context)


def flag(text: str, context: Context) -> bool:
    """Parse a flag, which is set without a value and cleared by `=0`."""
    if text.strip() == "":
        return True
    if not re.fullmatch(r"\d+", text.strip()):
        raise FioValueError(
            f"'{text}' is not a number", "specify the option without a value, or with 0 to clear it"
        )
    return int(text) != 0


def string(text: str, context: Context) -> str:
    """Parse text that must not be empty."""
    if not text.strip():
        raise FioValueError("the value is missing")
    return text.strip()


def optional_string(text: str, context: Context) -> str:
    """Parse text that may be empty."""
    return text.strip()


def choice(*names: str, **same: str) -> Reader:
    """Return a parser for one of `names`; `same` maps other spellings to these names."""

    def read(text: str, context: Context) -> str:
        chosen = text.strip()
        if chosen in names:
            return chosen
        if chosen in same:
            return same[chosen]
        raise FioValueError(f"the value '{chosen}' is unknown", f"use one of {', '.join(names)}")

    return read


def triple(minimum: int = 0, maximum: int | None = None, value: Reader = number) -> Reader:
    """Return a parser for `read[,write[,trim]]`, which follows fio's rules for missing values.

    `4k` applies to all operations, and `,8k` applies to all operations except reads; fio also
    splits at : and -, and after a trailing comma, the remaining values are unchanged.
    """

    def read(text: str, context: Context) -> Triple[int | None]:
        stripped = text.strip()
        if "-" in stripped[1:] or ":" in stripped:
            context.notes.append(f"{stripped}: fio reads this as a list for read,write,trim")
        parts = re.split(r"[,:]|(?<=.)-", stripped)
        if len(parts) > 3:
            raise FioValueError(
                f"'{stripped}' has more than three comma-separated values",
                "specify at most three values: read,write,trim",
            )
        if not any(part.strip() for part in parts):
            raise FioValueError("the value is missing")
        values: list[int | None] = [
            _at_least(minimum, value(part, context), maximum) if part.strip() else None
            for part in parts
        ]
        while len(values) < 3:
            values.append(values[-1])
        return Triple(*values)

    return read


def ranges(text: str, context: Context) -> Triple[tuple[int, int] | None]:
    """Parse `min-max[,min-max[,min-max]]`, for reads, writes and trims."""
    parts: list[tuple[int, int] | None] = []
    for part in text.split(","):
        if not part.strip():
            parts.append(None)
            continue
        ends = re.split(r"[-:]", part.strip())
        if len(ends) != 2:
            raise FioValueError(f"'{part}' is not a range", "specify a range such as 4k-64k")
        low, high = sorted(_at_least(1, number(end, context)) for end in ends)
        parts.append((low, high))
    if len(parts) > 3:
        raise FioValueError(
            f"'{text}' has more than three ranges", "specify at most three ranges: read,write,trim"
        )
    while len(parts) < 3:
        parts.append(parts[-1])
    return Triple(*parts)


def number_range(text: str, context: Context) -> tuple[int, int]:
    """Parse `n` or `low-high`, where a single number is both bounds."""
    ends = [_at_least(1, number(end, context)) for end in text.strip().split("-")]
    if len(ends) > 2:
        raise FioValueError(f"'{text}' is not a range")
    return (min(ends), max(ends))


def floats(text: str, context: Context) -> tuple[float, ...]:
    """Parse up to 20 numbers separated by colons, such as in percentile_list."""
    values = []
    for part in text.strip().split(":"):
        try:
            values.append(float(part))
        except ValueError:
            raise FioValueError(
                f"'{part}' is not a number", "specify numbers such as 50:99:99.9"
            ) from None
    if len(values) > 20:
        raise FioValueError(f"{len(values)} values exceed fio's limit of 20")
    return tuple(values)


def percentiles(text: str, context: Context) -> tuple[float, ...]:
    """Parse up to 20 percentiles separated by colons."""
    values = floats(text, context)
    for value in values:
        if not 0 < value <= 100:
            raise FioValueError(
                f"{value:g} is not a valid percentile", "use a number above 0 and at most 100"
            )
    return values
