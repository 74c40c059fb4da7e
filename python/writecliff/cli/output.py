"""How the commands print: figures with units, tables, JSON on stdout, talk on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

_SI = ("", "k", "M", "G", "T", "P")


def talk(text: str) -> None:
    """Say something to the user; a closed stderr must not end a test that runs for hours."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def emit_json(value: Any) -> None:
    """One JSON object, indented, with a newline, on stdout. NaN and infinities become null."""
    json.dump(_plain(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, str | int | bool):
        return value
    item = getattr(value, "item", None)  # a numpy scalar
    return _plain(item()) if item is not None else str(value)


def size_text(size_bytes: float | None) -> str:
    """Decimal units, as drives are sold: 480 GB."""
    if size_bytes is None:
        return "-"
    power = 0
    value = float(size_bytes)
    while abs(value) >= 999.5 and power < len(_SI) - 1:
        value /= 1000
        power += 1
    return f"{value:.3g} {_SI[power]}B"


def duration_text(duration_ns: float | None) -> str:
    """A wall-clock-like duration: 45 s, 12 min 5 s, 3 h 20 min."""
    if duration_ns is None:
        return "-"
    seconds = round(duration_ns / 1e9)
    if seconds < 60:
        return f"{duration_ns / 1e9:.3g} s" if duration_ns < 1e10 else f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s" if seconds % 60 else f"{seconds // 60} min"
    minutes = seconds // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def latency_text(latency_ns: float | None) -> str:
    """A latency with three digits and the unit that suits it; "-" where it is not known."""
    if latency_ns is None:
        return "-"
    for limit, scale, unit in ((1e3, 1.0, "ns"), (1e6, 1e3, "us"), (1e9, 1e6, "ms")):
        if latency_ns < limit * 0.9995:
            return f"{_three_digits(latency_ns / scale)} {unit}"
    return f"{_three_digits(latency_ns / 1e9)} s"


def _three_digits(value: float) -> str:
    return f"{value:#.3g}".rstrip(".") if value else "0"


def count_text(value: float | None) -> str:
    """A count or rate with thousands separators, no decimals: 81,250."""
    return "-" if value is None else f"{value:,.0f}"


def factor_text(value: float | None) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.2f}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: str = "") -> str:
    """A plain aligned table. `right` has an "r" for every column set flush right, "l" otherwise."""
    body = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in body) for i in range(len(header))]
    sides = right.ljust(len(header), "l")
    lines = []
    for row in body:
        cells = [
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def pairs(items: Iterable[tuple[str, str]]) -> str:
    """Lines of "name  value", values aligned."""
    known = list(items)
    width = max((len(name) for name, _ in known), default=0)
    return "\n".join(f"{name:{width}}  {value}".rstrip() for name, value in known)
