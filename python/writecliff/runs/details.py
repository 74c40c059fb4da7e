"""A run's catalogue row, headline figures and manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from writecliff.errors import StoreError
from writecliff.runs.catalogue import Catalogue
from writecliff.runs.columns import RUNS
from writecliff.store.manifest import MANIFEST_NAME, Manifest, parse_manifest

_COLUMNS = ", ".join(column.name for column in RUNS)


@dataclass(frozen=True)
class Details:
    """A run's row in `runs`, its rows in `figures`, and its manifest (None if it is damaged)."""

    run: dict[str, Any]
    figures: list[dict[str, Any]]
    manifest: Manifest | None


def details(catalogue: Catalogue, run: str) -> Details:
    """Read a run's row, figures and manifest, and compute missing headline figures.

    Raises:
        StoreError: If the run was deleted or the catalogue cannot be read.
    """
    catalogue.refresh()
    catalogue.complete([run])
    with catalogue.opened() as database:
        names, rows = database.rows(f"select {_COLUMNS} from runs where run = ?", [run])
        head, figures = database.rows("select * exclude (run) from figures where run = ?", [run])
    if not rows:
        raise StoreError(f"{run} was deleted", hint="list the runs with `writecliff runs list`")
    entry = dict(zip(names, rows[0], strict=True))
    manifest = None
    if entry["status"] != "damaged":
        path = catalogue.place.path_of(run) / MANIFEST_NAME
        try:
            manifest = parse_manifest(catalogue.place.read(run, MANIFEST_NAME), path)
        except FileNotFoundError:
            raise StoreError(
                f"{run} was deleted", hint="list the runs with `writecliff runs list`"
            ) from None
    return Details(entry, [dict(zip(head, row, strict=True)) for row in figures], manifest)
