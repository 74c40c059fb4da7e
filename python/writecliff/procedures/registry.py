"""The tests by name, without importing them: what `test --list` shows and `--resume` looks up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from writecliff.errors import StoreError

if TYPE_CHECKING:
    from writecliff.procedures.pts import PtsProcedure


@dataclass(frozen=True)
class Entry:
    """A test that exists."""

    name: str
    title: str
    summary: str
    editions: tuple[str, ...]
    target: str  # "module:class"


PROCEDURES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "wsat",
            "Write Saturation Test",
            "Random 4 KiB writes from purge until saturation.",
            ("pts-e", "pts-c"),
            "writecliff.procedures.wsat:Wsat",
        ),
    )
}


def procedure_from_mapping(name: str, options: Mapping[str, Any]) -> PtsProcedure:
    """The procedure of a stored run. Raises StoreError if this version does not have it."""
    return procedure_class(name).from_mapping(options)


def procedure_class(name: str) -> type[PtsProcedure]:
    """Raises StoreError if this version does not have the test."""
    entry = PROCEDURES.get(name)
    if entry is None:
        raise StoreError(
            f"the run is of a test '{name}' that this version does not have",
            hint=f"known tests: {', '.join(PROCEDURES)}",
        )
    module, _, attribute = entry.target.partition(":")
    return cast("type[PtsProcedure]", getattr(import_module(module), attribute))
