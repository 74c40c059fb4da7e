"""Writes a reproduction: a folder with the page, `figures.csv`, `loads.csv` and `results.json`.

The folder appears under its name as a whole or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from writecliff.engines.state_cache import build_id
from writecliff.errors import ConfigError, encoded
from writecliff.lab.published.notes import note_of
from writecliff.lab.published.reproduce import LoadResult, Reproduction
from writecliff.published.conditions import Load, condition, preset_of
from writecliff.published.figures import STATE
from writecliff.published.modern import part_scores, split
from writecliff.published.scores import Row, Score, right_pct
from writecliff.report.csvs import csv_text
from writecliff.store.files import store_error, write_atomically

SCHEMA = "writecliff/reproduce/2"
PAGE, CSV, LOADS_CSV, JSON = "report.html", "figures.csv", "loads.csv", "results.json"


def check_output(path: Path) -> None:
    """Check the folder before anything runs. Raises ConfigError if it is not empty."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path} exists and is not empty", hint="give a new directory")


def write_folder(found: Reproduction, path: Path) -> Path:
    """Write all files and return the path of the page. Raises StoreError."""
    from writecliff.lab.published.page import page_of
    from writecliff.report.pages import render_page

    files = {
        PAGE: render_page(page_of(found)),
        CSV: figures_csv(found),
        LOADS_CSV: loads_csv(found),
        JSON: json.dumps(mapping(found), indent=1, allow_nan=False) + "\n",
    }
    write_files(files, path)
    return path / PAGE


def write_files(files: Mapping[str, str], path: Path) -> None:
    """Write texts by file name to a new folder, atomically. Raises StoreError."""
    part = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        part.mkdir()
        for name, text in files.items():
            write_atomically(part / name, encoded(text))
        part.rename(path)
    except OSError as error:
        raise store_error(error, path) from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)


def mapping(found: Reproduction) -> dict[str, Any]:
    """The whole reproduction as plain data for `--json`; unknown values are None."""
    comparisons, predicted = found.comparisons, found.predicted
    return {
        "schema": SCHEMA,
        "campaign": found.name,
        "about": found.about,
        "build": build_id(),
        "wall_s": found.wall_s,
        "kinds": [_score(score, predicted.get(score.kind)) for score in found.scores],
        "comparisons": {
            "count": len(comparisons),
            "right": sum(one.right for one in comparisons),
            "right_pct": right_pct(comparisons),
            "wrong": [asdict(one) for one in comparisons if not one.right],
        },
        "parts": [{**asdict(one), "reached": one.reached} for one in part_scores(found.rows)],
        "figures": [_row(row, found) for row in found.rows],
        "not_simulated": [_row(row, found) for row in found.missing],
        "skipped": [
            {"path": str(one.path), "line": one.line, "why": one.why} for one in found.skipped
        ],
        "loads": [_load(one) for one in found.loads],
        "drives": [_without(asdict(drive), "description") for drive in found.drives],
    }


def _without(values: dict[str, Any], name: str) -> dict[str, object]:
    return {key: value for key, value in values.items() if key != name}


def _score(score: Score, predicted: Score | None) -> dict[str, object]:
    worst = None
    if score.worst is not None:
        figure = score.worst.figure
        worst = {
            "device": figure.device,
            "metric": figure.metric,
            "label": figure.label,
            "error": score.worst.error,
        }
    cross_validated = predicted and {"figures": predicted.figures, "value": predicted.value}
    return {
        **vars(score),
        "reached": score.reached,
        "worst": worst,
        "cross_validated": cross_validated,
    }


def _load(one: LoadResult) -> dict[str, Any]:
    return {"drive": one.drive, **vars(one.load), "metrics": one.metrics}


def _row(row: Row, found: Reproduction) -> dict[str, Any]:
    """The columns of the table of published figures, and what was simulated."""
    f = row.figure
    return {
        **f.columns,
        STATE: f.state,
        "preset": preset_of(f.device),
        "kind": row.kind.name,
        **({"part": split()[f]} if f in split() else {}),
        "simulated": row.simulated,
        "error": row.error,
        "error_unit": row.kind.unit,
        "error_pct": row.error_pct,
        **_condition(row),
        "device_hash": found.hash_of(f),
        "why": row.why,
        "reason": note_of(f),
    }


def _condition(row: Row) -> Mapping[str, object]:
    """The load behind the simulated figure, under names that differ from the figure's own."""
    one = condition(row.figure)
    load = None if one is None else one.load
    found = {
        f"simulated_{field.name}": None if load is None else getattr(load, field.name)
        for field in fields(Load)
    }
    return {**found, "simulated_outstanding": row.figure.oio} if row.figure.depths else found


def figures_csv(found: Reproduction) -> str:
    """A row for each figure. The columns begin with those of the published table, so that the file
    can be given to `--figures` again.
    """
    rows = [_row(row, found) for row in found.rows]
    return csv_text(list(rows[0]), (row.values() for row in rows))


def loads_csv(found: Reproduction) -> str:
    """A row for each load, a column for each metric."""
    names = [field.name for field in fields(Load)]
    metrics = list(dict.fromkeys(name for one in found.loads for name in one.metrics))
    rows = (
        [one.drive, *(getattr(one.load, name) for name in names), *map(one.metrics.get, metrics)]
        for one in found.loads
    )
    return csv_text(["drive", *names, *metrics], rows)
