"""Command output, with figures, tables and JSON on stdout, and diagnostics on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from writecliff import units

if TYPE_CHECKING:
    from writecliff.api.answers.base import Answer

# Option groups in `--help`, which follow the command's own options in this order.
DRIVE = Group("Drive", sort_key=1)
OUTPUT = Group("Output", sort_key=2)
ADVANCED = Group("Advanced", sort_key=3)

JsonFlag = Annotated[
    bool,
    Parameter(group=OUTPUT, help="Print the result as JSON (see docs/reference/json-commands.md)."),
]
"""Type of a parameter `json`."""

NOTHING_DONE = "\nnothing was done (--dry-run)"


def log(text: str) -> None:
    """Print a diagnostic line, ignoring a closed stderr, which must not abort a long test."""
    with suppress(OSError):
        # A single write call prevents threads from mixing their lines.
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def emit_json(value: Any) -> None:
    """Print an output object as indented JSON. NaN and infinities are printed as null."""
    json.dump(_plain(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def show_list(answer: Answer, align: str = "", *, as_json: bool) -> int:
    """Print an output object as JSON, or the objects in its only field as a table."""
    if as_json:
        emit_json(answer)
    else:
        (name,) = answer.__struct_fields__
        items = _plain(getattr(answer, name))
        print(table(tuple(items[0]), [[*map(_cell, item.values())] for item in items], align))
    return 0


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list | tuple) else str(value)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if hasattr(value, "__struct_config__"):
        import msgspec

        config = value.__struct_config__
        fields = msgspec.structs.asdict(value).items()
        tag = {config.tag_field: config.tag} if config.tag_field else {}
        present = {key: item for key, item in fields if item is not msgspec.UNSET}
        return {**tag, **_plain(present)}
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
    item = getattr(value, "item", None)  # The value is a numpy scalar.
    return _plain(item()) if item is not None else str(value)


def latency_text(latency_ns: float | None) -> str:
    """Format a latency with three significant digits, such as "1.50 ms", or "-" for `None`."""
    return units.latency(latency_ns, digits=3)


def factor_text(value: float | None) -> str:
    """Format a factor such as write amplification, for example "1.73", or "-" for `None`."""
    return units.number(value, 2)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: str = "") -> str:
    """Return an aligned table, where `right` contains "r" or "l" for each column's alignment."""
    from writecliff.shown import Grid

    return Grid(header, [*rows], right.ljust(len(header), "l")).text()


def pairs(items: Iterable[tuple[str, str]]) -> str:
    """Return lines of the form "name value", with aligned values."""
    lines = list(items)
    width = max((len(name) for name, _ in lines), default=0)
    return "\n".join(f"{name:{width}}  {value}".rstrip() for name, value in lines)
