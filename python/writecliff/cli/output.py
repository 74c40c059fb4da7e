"""How the commands print: figures with units, tables, JSON on stdout, diagnostics on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from writecliff import units
from writecliff.cli.schema import Schema

NOTHING_DONE = "\nnothing was done (--dry-run)"


def log(text: str) -> None:
    """A line of diagnostics; a closed stderr must not end a test that runs for hours."""
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")  # one write: threads do not mix their lines
        sys.stderr.flush()


def emit_json(
    value: Any, schema: str | None = None, schemas: Mapping[str, Schema] | None = None
) -> None:
    """One JSON object, indented, with a newline, on stdout. NaN and infinities become null.

    `schema`: the name of its schema in `schemas` (default: those of `schemas.py`), for an object
    that does not have it yet.
    """
    if schema is not None:
        from writecliff.cli.schemas import SCHEMAS, stamped

        value = stamped(schema, value, SCHEMAS if schemas is None else schemas)
    json.dump(_plain(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def show_list(
    name: str,
    items: Sequence[Mapping[str, Any]],
    align: str = "",
    *,
    as_json: bool,
    schemas: Mapping[str, Schema] | None = None,
) -> int:
    """Answer --list with {name: items}, or with a table that has a column per key; returns 0."""
    if as_json:
        emit_json({name: items}, f"{name.removesuffix('s')}-list", schemas)
    else:
        print(table(tuple(items[0]), [[*map(_cell, item.values())] for item in items], align))
    return 0


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list | tuple) else str(value)


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


def latency_text(latency_ns: float | None) -> str:
    """A latency with three significant digits: "1.50 ms"; "-" where it is not known."""
    return units.latency(latency_ns, digits=3)


def factor_text(value: float | None) -> str:
    """A factor such as write amplification: "1.73"; "-" where it is not known."""
    return units.number(value, 2)


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
