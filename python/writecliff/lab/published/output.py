"""Output folder of a reproduction, with page, `figures.csv`, `loads.csv` and `results.json`.

The folder is created atomically.
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
    """Check the folder before any simulation starts.

    Raises:
        ConfigError: If the folder is not empty.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path} exists and is not empty", hint="specify a new directory")


def write_folder(reproduction: Reproduction, path: Path) -> Path:
    """Write all files and return the path of the page.

    Raises:
        StoreError: If a file cannot be written.
    """
    from writecliff.lab.published.page import page_of
    from writecliff.report.pages import render_page

    files = {
        PAGE: render_page(page_of(reproduction)),
        CSV: figures_csv(reproduction),
        LOADS_CSV: loads_csv(reproduction),
        JSON: json.dumps(mapping(reproduction), indent=1, allow_nan=False) + "\n",
    }
    write_files(files, path)
    return path / PAGE


def write_files(files: Mapping[str, str], path: Path) -> None:
    """Write texts by file name to a new folder, atomically.

    Raises:
        StoreError: If a file cannot be written.
    """
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


def mapping(reproduction: Reproduction) -> dict[str, Any]:
    """Return the reproduction as plain data for `--json`, where unknown values are None."""
    comparisons, predicted = reproduction.comparisons, reproduction.predicted
    return {
        "schema": SCHEMA,
        "campaign": reproduction.name,
        "about": reproduction.about,
        "build": build_id(),
        "wall_s": reproduction.wall_s,
        "kinds": [_score(score, predicted.get(score.kind)) for score in reproduction.scores],
        "comparisons": {
            "count": len(comparisons),
            "right": sum(comparison.right for comparison in comparisons),
            "right_pct": right_pct(comparisons),
            "wrong": [asdict(comparison) for comparison in comparisons if not comparison.right],
        },
        "parts": [
            {**asdict(score), "reached": score.reached} for score in part_scores(reproduction.rows)
        ],
        "figures": [_row(row, reproduction) for row in reproduction.rows],
        "not_simulated": [_row(row, reproduction) for row in reproduction.missing],
        "skipped": [
            {"path": str(row.path), "line": row.line, "why": row.why}
            for row in reproduction.skipped
        ],
        "loads": [_load(result) for result in reproduction.loads],
        "drives": [_without(asdict(drive), "description") for drive in reproduction.drives],
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


def _load(result: LoadResult) -> dict[str, Any]:
    return {"drive": result.drive, **vars(result.load), "metrics": result.metrics}


def _row(row: Row, reproduction: Reproduction) -> dict[str, Any]:
    """Columns of the published figure table, plus the simulated value."""
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
        "device_hash": reproduction.hash_of(f),
        "why": row.why,
        "reason": note_of(f),
    }


def _condition(row: Row) -> Mapping[str, object]:
    """The simulated figure's load, as columns whose names differ from the published ones."""
    measured = condition(row.figure)
    load = None if measured is None else measured.load
    columns = {
        f"simulated_{field.name}": None if load is None else getattr(load, field.name)
        for field in fields(Load)
    }
    return {**columns, "simulated_outstanding": row.figure.oio} if row.figure.depths else columns


def figures_csv(reproduction: Reproduction) -> str:
    """Return a row per figure as CSV.

    The first columns are those of the published table, so that `--figures` accepts the file.
    """
    rows = [_row(row, reproduction) for row in reproduction.rows]
    return csv_text(list(rows[0]), (row.values() for row in rows))


def loads_csv(reproduction: Reproduction) -> str:
    """Return a row per load and a column per metric as CSV."""
    names = [field.name for field in fields(Load)]
    metrics = list(dict.fromkeys(name for result in reproduction.loads for name in result.metrics))
    rows = (
        [
            result.drive,
            *(getattr(result.load, name) for name in names),
            *map(result.metrics.get, metrics),
        ]
        for result in reproduction.loads
    )
    return csv_text(["drive", *names, *metrics], rows)
