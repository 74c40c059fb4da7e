"""Several runs on one plot, as they are or normalised; and their figures side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from writecliff.errors import ConfigError
from writecliff.report.headline import Interval, interval_text, value_text
from writecliff.ui.library import Library
from writecliff.ui.marks import columns_for
from writecliff.ui.plots import PLOTS, QUANTITIES, drawn, key_title, page_of_plots, view_of
from writecliff.ui.series import Line, Series, Shelf, named, scaled

MOST = 8  # runs, and colours
NORMS: Mapping[str, str] = {
    "": "as measured",
    "first": "relative to the mean of the first run",
    "maximum": "relative to each run's own maximum",
}


def check_runs(runs: Sequence[str]) -> list[str]:
    """The runs, each once. Raises ConfigError: none, or more than there are colours."""
    found = list(dict.fromkeys(runs))
    if not 1 <= len(found) <= MOST:
        raise ConfigError(f"choose 1 to {MOST} runs to lay over one another, not {len(found)}")
    return found


def overlay(
    library: Library,
    shelf: Shelf,
    runs: Sequence[str],
    key: str,
    norm: str,
    view: tuple[float | None, float | None],
    wanted: int,
) -> dict[str, object]:
    """The plot of a quantity of some runs; `key` names it, empty: the first that there is. Time is
    that of each run. Raises ConfigError, StoreError.
    """
    if norm not in NORMS:
        raise ConfigError.unknown("way to normalise", norm, NORMS)
    found: dict[str, Series] = {}
    for run in check_runs(runs):
        with library.folder(run) as folder:
            found[run] = shelf.series(run, folder)
    keys = {line.key: key_title(line.key) for one in found.values() for line in one.lines}
    key = key or next(iter(keys), "")
    if keys and key not in keys:
        raise ConfigError.unknown("quantity", key, keys)
    lines = {run: named(one, key) for run, one in found.items()}
    spans = [one.span_s for one in found.values() if one.lines]
    span = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else (0.0, 0.0)
    shown = view_of(span, *view)
    columns = columns_for(len(found), wanted)
    factor = _factors(lines, norm)
    parts = [
        {**drawn(scaled(line, factor[run]), run, shown, columns), "look": number}
        for number, (run, line) in enumerate(lines.items())
        if line is not None and factor[run] > 0
    ]
    plots = []
    if parts:
        plot = PLOTS[QUANTITIES[key.partition(".")[0]].plot]
        plots = [{"key": key, "title": key_title(key), "log": plot.log and not norm,
                  "unit": NORMS[norm] if norm else plot.unit, "lines": parts}]  # fmt: skip
    most = max((one.intervals for one in found.values()), default=0)
    page = page_of_plots(plots, span, shown, most)
    without = [run for run in runs if run not in {part["name"] for part in parts}]
    return {**page, "keys": keys, "chosen": key, "without": without}


def _factors(lines: Mapping[str, Line | None], norm: str) -> dict[str, float]:
    """What the values of each run are multiplied by; 0: nothing to relate them to."""
    if not norm:
        return dict.fromkeys(lines, 1.0)
    if norm == "first":
        first = next(iter(lines.values()), None)
        return dict.fromkeys(lines, _over(np.nanmean, first))
    return {run: _over(np.nanmax, line) for run, line in lines.items()}


def _over(kind: Any, line: Line | None) -> float:
    if line is None or not np.isfinite(line.y).any():
        return 0.0
    level = float(kind(line.y))
    return 1 / level if level > 0 else 0.0


def figures_beside(library: Library, runs: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The headline figures of some runs, each with its label and a cell for every run."""
    library.complete(runs)
    marks = ", ".join("?" * len(runs))
    with library.catalogue() as database:
        rows = database.rows(
            "select run, key, label, value, unit, low, high, steady from figures "
            f"where run in ({marks})", list(runs))[1]  # fmt: skip
    table: dict[tuple[str, str], dict[str, str]] = {}
    for run, key, label, *figure in rows:
        table.setdefault((key, label), {})[run] = figure_text(*figure)
    return [(label, [cells.get(run, "") for run in runs]) for (_, label), cells in table.items()]


def figure_text(
    value: float, unit: str, low: float | None, high: float | None, steady: bool
) -> str:
    """A headline figure with its interval; a star: not in steady state."""
    ends = None if low is None or high is None else Interval(low, high, "")
    text = f"{value_text(value)}{interval_text(ends)} {unit}".rstrip()
    return text if steady else f"{text} *"
