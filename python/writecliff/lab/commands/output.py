"""JSON output of the lab's commands, with the lab's schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from writecliff.cli import output
from writecliff.lab.commands.schemas import SCHEMAS


def emit_json(value: Any, schema: str | None = None) -> None:
    """Print an object on stdout as `writecliff.cli.output.emit_json` does."""
    output.emit_json(value, schema, SCHEMAS)


def show_list(
    name: str, items: Sequence[Mapping[str, Any]], align: str = "", *, as_json: bool
) -> int:
    """Answer --list as `writecliff.cli.output.show_list` does; returns 0."""
    return output.show_list(name, items, align, as_json=as_json, schemas=SCHEMAS)
