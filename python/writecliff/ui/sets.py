"""Suites and sweeps, with the settings and figures of their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.store.manifest import SUITE_NAME
from writecliff.suite.folder import SuiteFolder
from writecliff.ui.library import Library, NoSuchRun, OutsideError
from writecliff.ui.overlay import figure_text

MOST_FIGURES = 6  # Maximum number of figures that have an axis.
MOST_RUNS = 2_000  # Maximum number of runs to draw.
MOST_MADE = 50  # Maximum number of runs whose figures are computed for a page, at 0.1 s each.


@dataclass(frozen=True)
class SetRow:
    """A run in a set, with its settings, and its figures by key."""

    run: str
    name: str
    status: str
    test: str
    settings: Mapping[str, str]
    figures: Mapping[str, float]
    cells: Mapping[str, str]  # Figures as text.


@dataclass(frozen=True)
class SetTable:
    """The runs of one test in a set; `test` is empty if the set has only one test."""

    test: str
    labels: Mapping[str, str]  # Figure titles by key.
    rows: Sequence[SetRow]


@dataclass(frozen=True)
class Set:
    """A suite or sweep."""

    name: str
    kind: str
    about: str
    settings: Sequence[str]  # Names of the varied settings.
    labels: Mapping[str, str]  # Figure titles by key.
    rows: Sequence[SetRow]

    @property
    def tables(self) -> list[SetTable]:
        """Tables of the runs by test, each with the figures of its runs.

        For example, the figures of IOPS and latency tests have nothing in common.
        """
        by_test: dict[str, list[SetRow]] = {}
        for row in self.rows:
            by_test.setdefault(row.test, []).append(row)
        return [
            SetTable(
                test if len(by_test) > 1 else "",
                {key: text for key, text in self.labels.items()
                 if any(key in row.figures for row in rows)},
                rows,
            )
            for test, rows in by_test.items()
        ]  # fmt: skip

    @property
    def common(self) -> list[str]:
        """Keys of at most `MOST_FIGURES` figures that all runs with figures share."""
        having = [row for row in self.rows if row.figures]
        return [key for key in self.labels if having and all(key in row.figures for row in having)][
            :MOST_FIGURES
        ]


def all_sets(library: Library) -> list[tuple[str, int]]:
    """Return the suites and sweeps in the store, with the number of started runs."""
    with library.catalogue() as database:
        return [
            (name, count)
            for name, count in database.rows(
                "select member_of, count(*) from runs where member_of is not null "
                "group by all order by 1"
            )[1]
            if not library.leads_outside(name)
        ]


def open_set(library: Library, name: str) -> Set:
    """Return a suite or sweep in the store.

    Raises:
        NoSuchRun: If the store does not contain the suite or sweep.
        OutsideError: If the suite or sweep contains a link to outside the store.
        StoreError: If the suite or sweep is damaged.
    """
    with library.catalogue() as database:
        runs = database.rows(
            "select run, name, status, test from runs where member_of = ? order by run", [name]
        )[1]
        without = database.rows(
            "select run from runs where member_of = ? and status = 'complete' "
            "except select run from figures", [name])[1]  # fmt: skip
    inside = [run for (run,) in without if not library.leads_outside(run)]
    library.complete(inside[:MOST_MADE])
    with library.catalogue() as database:
        figures = database.rows(
            "select run, key, label, value, unit, low, high, steady from figures "
            "join runs using (run) where member_of = ?", [name])[1]  # fmt: skip
    if not runs:
        raise NoSuchRun(f"{library.location} does not contain a suite or sweep '{name}'")
    if library.leads_outside(name):
        raise OutsideError(f"{name} contains a link to a file outside the store")
    path = library.place.path_of(name)
    try:
        folder = SuiteFolder.parse(library.place.read(name, SUITE_NAME), path)
    except FileNotFoundError:
        raise NoSuchRun(f"{name} no longer exists") from None
    values: dict[str, dict[str, float]] = {}
    cells: dict[str, dict[str, str]] = {}
    labels: dict[str, str] = {}
    for run, key, label, value, unit, *rest in figures:
        labels.setdefault(key, f"{label} ({unit})" if unit else label)
        values.setdefault(run, {})[key] = value
        cells.setdefault(run, {})[key] = figure_text(value, "", *rest)
    rows = []
    for run, last, status, test in runs:
        if library.leads_outside(run):
            continue
        member = folder.members.get(last)
        varied = {} if member is None else {str(k): str(v) for k, v in member.settings.items()}
        shown = values.get(run, {}), cells.get(run, {})
        rows.append(SetRow(run, last, status, str(test or ""), varied, *shown))
    settings = dict.fromkeys(key for row in rows for key in row.settings)
    return Set(name, str(folder.kind), str(folder.about), list(settings), labels, rows)


def coordinates(opened: Set) -> dict[str, object]:
    """Return a sweep's runs as lines through an axis for each setting and figure.

    The result contains the title and ticks of every axis, and a height from 0 to 1 on each axis for
    every run.
    """
    from writecliff.report.sweep_page import Column, axis_ticks, scaled, setting_column

    keys = opened.common
    rows = [row for row in opened.rows if row.figures and len(row.settings) == len(opened.settings)]
    rows = rows[:MOST_RUNS]
    if not rows or not opened.settings:
        return {"axes": [], "runs": []}
    columns = [setting_column(key, [row.settings[key] for row in rows]) for key in opened.settings]
    columns += [Column(opened.labels[key], [row.figures[key] for row in rows], {}) for key in keys]
    heights = [scaled(column.numbers).tolist() for column in columns]
    shades = heights[len(opened.settings)] if keys else [0.0] * len(rows)
    return {
        "axes": [{"title": c.title, "ticks": [*axis_ticks(c)]} for c in columns],
        "runs": [
            {
                "run": row.run,
                "name": row.name,
                "heights": [height[number] for height in heights],
                "shade": shades[number],
                "says": ", ".join(
                    [*(f"{k} {v}" for k, v in row.settings.items()),
                     *(f"{opened.labels[k]}: {row.cells[k]}" for k in keys)]
                ),
            }
            for number, row in enumerate(rows)
        ],
    }  # fmt: skip
