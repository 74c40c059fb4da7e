"""Several runs on a single plot, absolute or normalised, and their headline figures."""

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

MOST = 8  # Maximum number of runs, limited by the available colours.
NORMS: Mapping[str, str] = {
    "": "as measured",
    "first": "relative to the mean of the first run",
    "maximum": "relative to the maximum of each run",
}


def check_runs(runs: Sequence[str]) -> list[str]:
    """Return the runs without duplicates.

    Raises:
        ConfigError: If no run is given, or more runs than there are colours.
    """
    check_runs = list(dict.fromkeys(runs))
    if not 1 <= len(check_runs) <= MOST:
        raise ConfigError(f"select 1 to {MOST} runs for the overlay, not {len(check_runs)}")
    return check_runs


def overlay(
    library: Library,
    shelf: Shelf,
    runs: Sequence[str],
    key: str,
    norm: str,
    view: tuple[float | None, float | None],
    wanted: int,
) -> dict[str, object]:
    """Return the plot of a quantity over time for several runs.

    Args:
        library: Store that contains the runs.
        shelf: Cache of the runs' series.
        runs: Run names.
        key: Name of the quantity (empty: the first quantity).
        norm: Key of `NORMS`.
        view: Time range in s.
        wanted: Screen width in pixels.

    Raises:
        ConfigError: If an argument is not valid.
        StoreError: If a run cannot be read.
    """
    if norm not in NORMS:
        raise ConfigError.unknown("normalisation", norm, NORMS)
    series: dict[str, Series] = {}
    for run in check_runs(runs):
        with library.folder(run) as folder:
            series[run] = shelf.series(run, folder)
    keys = {
        line.key: key_title(line.key) for run_series in series.values() for line in run_series.lines
    }
    key = key or next(iter(keys), "")
    if keys and key not in keys:
        raise ConfigError.unknown("quantity", key, keys)
    lines = {run: named(run_series, key) for run, run_series in series.items()}
    spans = [run_series.span_s for run_series in series.values() if run_series.lines]
    span = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else (0.0, 0.0)
    shown = view_of(span, *view)
    columns = columns_for(len(series), wanted)
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
    most = max((run_series.intervals for run_series in series.values()), default=0)
    page = page_of_plots(plots, span, shown, most)
    without = [run for run in runs if run not in {part["name"] for part in parts}]
    return {**page, "keys": keys, "chosen": key, "without": without}


def _factors(lines: Mapping[str, Line | None], norm: str) -> dict[str, float]:
    """Return the factor for each run's values, or 0 without a reference value."""
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
    """Return the headline figures of several runs, each with a label and a cell per run."""
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
    """Return a headline figure with its interval; a star marks runs without steady state."""
    ends = None if low is None or high is None else Interval(low, high, "")
    text = f"{value_text(value)}{interval_text(ends)} {unit}".rstrip()
    return text if steady else f"{text} *"
