"""What a reproduction leaves: a folder with the page, `figures.csv` and `results.json`.

The folder appears whole under its name or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from writecliff.engines.preconditioned import build_id
from writecliff.errors import ConfigError
from writecliff.published.conditions import condition, preset_of
from writecliff.published.goals import Goal, right_pct
from writecliff.published.notes import note_of
from writecliff.published.reproduce import Reproduction
from writecliff.published.scores import Duel, Row, Score
from writecliff.report.csvs import csv_text
from writecliff.store.files import store_error, write_atomically

SCHEMA = "writecliff/reproduce/1"
PAGE, CSV, JSON = "report.html", "figures.csv", "results.json"


def check_output(path: Path) -> None:
    """Raises ConfigError, before anything runs, if the folder is in use."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path} exists and is not empty", hint="give a new directory")


def write_folder(found: Reproduction, path: Path) -> Path:
    """Write all files; the page's path. Raises StoreError: no space, no permission."""
    from writecliff.published.page import page_of
    from writecliff.report.pages import render_page

    files = {
        PAGE: render_page(page_of(found)),
        CSV: figures_csv(found),
        JSON: json.dumps(mapping(found), indent=1, allow_nan=False) + "\n",
    }
    part = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        part.mkdir()
        for name, text in files.items():
            write_atomically(part / name, text.encode())
        part.rename(path)
    except OSError as error:
        raise store_error(error, path) from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)
    return path / PAGE


def mapping(found: Reproduction) -> dict[str, Any]:
    """For programs; what is not known is null."""
    duels = found.duels
    return {
        "schema": SCHEMA,
        "campaign": found.name,
        "about": found.about,
        "build": build_id(),
        "wall_s": found.wall_s,
        "goals": [_goal(goal) for goal in found.goals],
        "groups": [_score(score) for score in found.scores],
        "duels": {
            "count": len(duels),
            "right": sum(duel.right for duel in duels),
            "right_pct": right_pct(duels),
            "wrong": [_duel(duel) for duel in duels if not duel.right],
        },
        "figures": [_row(row, found) for row in found.rows],
        "not_simulated": [_row(row, found) for row in found.missing],
        "drives": [
            {
                "name": drive.name,
                "device_hash": drive.device_hash,
                "loads": drive.loads,
                "wall_s": drive.wall_s,
            }
            for drive in found.drives
        ],
    }


def _goal(goal: Goal) -> dict[str, Any]:
    return {
        "what": goal.what,
        "limit_pct": goal.limit_pct,
        "at_least": goal.at_least,
        "reached_pct": goal.reached_pct,
        "met": goal.met,
        "short_by_pct": goal.short_by_pct,
    }


def _score(score: Score) -> dict[str, Any]:
    return {
        "group": score.group,
        "figures": score.figures,
        "median_error_pct": score.median_error_pct,
        "within_20_pct": score.within_20_pct,
        "worst": {
            "device": score.worst.figure.device,
            "metric": score.worst.figure.metric,
            "label": score.worst.figure.label,
            "error_pct": score.worst.error_pct,
        },
    }


def _duel(duel: Duel) -> dict[str, Any]:
    return {
        "item": duel.item,
        "metric": duel.metric,
        "label": duel.label,
        "drives": duel.drives,
        "published": duel.published,
        "simulated": duel.simulated,
    }


def _row(row: Row, found: Reproduction) -> dict[str, Any]:
    figure = row.figure
    return {
        **_figure(row),
        "preset": preset_of(figure.device),
        "group": row.group,
        "simulated": row.simulated,
        "error_pct": row.error_pct,
        **_condition(row),
        "device_hash": found.hash_of(figure),
        "why": row.why,
        "reason": note_of(figure),
    }


def _figure(row: Row) -> dict[str, Any]:
    """The columns of the table of published figures."""
    f = row.figure
    return {
        "source": f.source,
        "item": f.item,
        "device": f.device,
        "baseline": f.baseline,
        "access": f.access,
        "block_kib": None if f.block_bytes is None else f.block_bytes / 1024,
        "read_pct": f.read_pct,
        "oio": f.outstanding,
        "metric": f.metric,
        "value": f.value,
        "unit": f.unit,
        "note": f.note,
        "compressible_pct": f.compressible_pct,
    }


def _condition(row: Row) -> Mapping[str, Any]:
    """The load behind the simulated figure, under names that the figure's own do not take."""
    one = condition(row.figure)
    load = None if one is None else one.load
    names = (
        "state", "pattern", "block_bytes", "read_pct", "outstanding", "seconds", "compressible_pct",
    )  # fmt: skip
    if load is None:
        return {f"simulated_{name}": None for name in names}
    return {f"simulated_{name}": getattr(load, name) for name in names}


def figures_csv(found: Reproduction) -> str:
    """One row a figure. Its columns begin with those of the published table, so that it can be
    given to `--figures` again."""
    rows = [_row(row, found) for row in found.rows]
    return csv_text(list(rows[0]), (row.values() for row in rows))
