"""Suites and sweeps: the runs of one, with what was varied and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.store.manifest import SUITE_NAME
from writecliff.suite.folder import SuiteFolder
from writecliff.ui.library import Library, NoSuchRun, OutsideError
from writecliff.ui.overlay import figure_text

MOST_FIGURES = 6  # that have an axis
MOST_RUNS = 2_000  # that are drawn
MOST_MADE = 50  # runs whose figures are made for a page, a tenth of a second each


@dataclass(frozen=True)
class SetRow:
    """A run of a set: what was varied in it, and its figures by key."""

    run: str
    name: str
    status: str
    test: str
    settings: Mapping[str, str]
    figures: Mapping[str, float]
    cells: Mapping[str, str]  # the same for people


@dataclass(frozen=True)
class SetTable:
    """The runs of one test of a set. `test` is empty where all runs are of one."""

    test: str
    labels: Mapping[str, str]  # of their figures, by their keys
    rows: Sequence[SetRow]


@dataclass(frozen=True)
class Set:
    """A suite or sweep."""

    name: str
    kind: str
    about: str
    settings: Sequence[str]  # names of what was varied
    labels: Mapping[str, str]  # of figures, by their keys
    rows: Sequence[SetRow]

    @property
    def tables(self) -> list[SetTable]:
        """The rows by test, each table with the figures that its runs have: those of IOPS and of
        latency have none in common.
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
        """Keys of the figures that all runs with figures have, as many as have an axis."""
        having = [row for row in self.rows if row.figures]
        return [key for key in self.labels if having and all(key in row.figures for row in having)][
            :MOST_FIGURES
        ]


def all_sets(library: Library) -> list[tuple[str, int]]:
    """The suites and sweeps of the store, and how many of their runs were begun."""
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
    """A suite or sweep of the store. Raises NoSuchRun, OutsideError, StoreError: damaged."""
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
        raise NoSuchRun(f"there is no suite or sweep '{name}' in {library.location}")
    if library.leads_outside(name):
        raise OutsideError(f"{name} has a link that leads out of the store")
    path = library.place.path_of(name)
    try:
        folder = SuiteFolder.parse(library.place.read(name, SUITE_NAME), path)
    except FileNotFoundError:
        raise NoSuchRun(f"{name} has gone") from None
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


def coordinates(found: Set) -> dict[str, object]:
    """The runs of a sweep as lines through an axis for each setting and figure: of every axis its
    title and ticks, of every run a height on each, from 0 to 1.
    """
    from writecliff.report.sweep_page import Column, axis_ticks, scaled, setting_column

    keys = found.common
    rows = [row for row in found.rows if row.figures and len(row.settings) == len(found.settings)]
    rows = rows[:MOST_RUNS]
    if not rows or not found.settings:
        return {"axes": [], "runs": []}
    columns = [setting_column(key, [row.settings[key] for row in rows]) for key in found.settings]
    columns += [Column(found.labels[key], [row.figures[key] for row in rows], {}) for key in keys]
    heights = [scaled(column.numbers).tolist() for column in columns]
    shades = heights[len(found.settings)] if keys else [0.0] * len(rows)
    return {
        "axes": [{"title": c.title, "ticks": [*axis_ticks(c)]} for c in columns],
        "runs": [
            {
                "run": row.run,
                "name": row.name,
                "heights": [one[number] for one in heights],
                "shade": shades[number],
                "says": ", ".join(
                    [*(f"{k} {v}" for k, v in row.settings.items()),
                     *(f"{found.labels[k]}: {row.cells[k]}" for k in keys)]
                ),
            }
            for number, row in enumerate(rows)
        ],
    }  # fmt: skip
