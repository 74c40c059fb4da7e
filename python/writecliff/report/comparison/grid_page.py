"""Grids of figures on a comparison page, with adjacent tables, differences and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nan

from writecliff import units
from writecliff.report import plots
from writecliff.report.axes import Axis, Line
from writecliff.report.comparison.grids import SharedGrid
from writecliff.report.csvs import data_file
from writecliff.report.headline import value_text
from writecliff.report.interaction import Label
from writecliff.report.model import Figure, Section, section
from writecliff.report.table import CellMark, DataFile, Table, table

WINNER = "✓"
NOT_STEADY = "*"
_WITH_DIFFERENCES = 9  # Maximum number of cells in a row that shows values and differences.
_VALUES = 14  # Maximum number of cells in a row of values; wider grids have a table per contender.


def grid_sections(grids: Sequence[SharedGrid], labels: Sequence[str]) -> Iterator[Section]:
    """Yield a section for each grid."""
    many = len({grid.test for grid in grids}) > 1
    for grid in grids:
        title = f"{grid.test}: {grid.sample.title}" if many else grid.sample.title
        name = f"{grid.test}-{grid.sample.name}-grid".replace("_", "-")
        data = _file(name, grid, labels)
        yield section(
            title,
            _intro(grid, labels),
            *_tables(grid, labels, data),
            *_figures(name, grid, labels, data),
        )


def _intro(grid: SharedGrid, labels: Sequence[str]) -> str:
    better = "higher" if grid.sample.higher_is_better else "lower"
    unit = f"In {grid.sample.unit}; {better}" if grid.sample.unit else better.capitalize()
    of = "in points" if grid.points else "in percent of it"
    return f"{unit} is better, {WINNER} marks the best. Differences are from {labels[0]}, {of}."


def _file(name: str, grid: SharedGrid, labels: Sequence[str]) -> DataFile:
    head = ("row", "column", "contender", "value", "unit", "difference", "difference_unit", "best")
    unit = "points" if grid.points else "%"
    rows = (
        (row, column, label, value, grid.sample.unit, grid.difference((row, column), number),
         unit, int(grid.best((row, column)) == number))
        for row in grid.rows
        for column in grid.columns
        for number, label in enumerate(labels)
        if (value := grid.value((row, column), number)) is not None
    )  # fmt: skip
    return data_file(f"{name}.csv", head, rows)


# -- tables -----------------------------------------------------------------------------------


def _tables(grid: SharedGrid, labels: Sequence[str], data: DataFile) -> Iterator[Table]:
    """Yield values and differences in one table, or in several if it would be too wide."""
    every, others = range(len(labels)), range(1, len(labels))
    wide = len(grid.columns) * (2 * len(labels) - 1)
    if wide <= _WITH_DIFFERENCES:
        yield _side_by_side("Side by side, with differences", grid, labels, data, every, others)
        return
    if len(grid.columns) * len(labels) <= _VALUES:
        yield _side_by_side("Side by side", grid, labels, data, every, ())
    else:
        for number in every:
            yield _side_by_side(_named(grid, labels, number), grid, labels, data, [number], ())
    for number in others:
        title = f"{_named(grid, labels, number)} against {_named(grid, labels, 0)}"
        yield _side_by_side(title, grid, labels, data, (), [number])


def _named(grid: SharedGrid, labels: Sequence[str], number: int) -> str:
    of = grid.by[number]
    return labels[number] + (NOT_STEADY if of is not None and not of.steady else "")


def _side_by_side(
    title: str,
    grid: SharedGrid,
    labels: Sequence[str],
    data: DataFile,
    values: Sequence[int],
    differences: Sequence[int],
) -> Table:
    """Return a table with a row for each grid row.

    Each grid column contains these contenders' `values` and `differences`. If a grid column
    contains a single cell, the column name is the cell's heading.
    """
    marks: dict[tuple[int, int], CellMark] = {}
    rows = []
    for at, row in enumerate(grid.rows):
        cells = [row]
        for column in grid.columns:
            key = (row, column)
            for number in values:
                text = value_text(value) if (value := grid.value(key, number)) is not None else None
                if grid.best(key) == number:
                    marks[at, len(cells)] = "best"
                    text = f"{text} {WINNER}"
                cells.append(text or units.UNKNOWN)
            for number in differences:
                better = grid.better(key, number)
                if better is not None:
                    marks[at, len(cells)] = "better" if better else "worse"
                cells.append(grid.difference_text(key, number))
        rows.append(cells)
    many = len(differences) > 1 or not values
    parts = [
        *(_named(grid, labels, number) for number in values),
        *(f"{labels[number]} v {labels[0]}" if many else "Difference" for number in differences),
    ]
    if len(parts) == 1:
        return table(title, (grid.sample.corner, *grid.columns), rows, data=data, marks=marks)
    return table(
        title,
        ("", *parts * len(grid.columns)),
        rows,
        data=data,
        marks=marks,
        groups=((grid.sample.corner, 1), *((column, len(parts)) for column in grid.columns)),
    )


# -- pictures ---------------------------------------------------------------------------------


def _figures(
    name: str, grid: SharedGrid, labels: Sequence[str], data: DataFile
) -> Iterator[Figure | None]:
    if grid.sample.drawn == "bars":
        yield from _bars(name, grid, labels, data)
    if grid.sample.drawn == "lines" and grid.sample.x is not None:
        places = dict(zip(grid.sample.rows, grid.sample.places, strict=True))
        for other in (
            grid_of_contender for grid_of_contender in grid.by if grid_of_contender is not None
        ):
            places |= dict(zip(other.rows, other.places, strict=True))
        for column in grid.columns:
            yield _lines(name, grid, labels, data, column, places)


def _bars(
    name: str, grid: SharedGrid, labels: Sequence[str], data: DataFile
) -> Iterator[Figure | None]:
    """Yield a picture per column, with a group of bars per row and a bar per contender."""
    for number, column in enumerate(grid.columns, 1):
        series = [
            plots.Bars(label, [_number(grid.value((row, column), who)) for row in grid.rows])
            for who, label in enumerate(labels)
        ]
        title = ", ".join(filter(None, (grid.sample.title, column)))
        axis = Axis(Label(column, "" if column.endswith(grid.sample.unit) else grid.sample.unit))
        yield plots.bars(f"{name}-bars-{number}", title, data, grid.rows, series, axis)


def _lines(
    name: str,
    grid: SharedGrid,
    labels: Sequence[str],
    data: DataFile,
    column: str,
    places: Mapping[str, float],
) -> Figure | None:
    """Return a column's values (left axis) and differences from the first contender."""
    sample, axis = grid.sample, grid.sample.x
    assert axis is not None
    x = [places[row] for row in grid.rows]
    values = [
        Line(label, x, [_number(grid.value((row, column), number)) for row in grid.rows])
        for number, label in enumerate(labels)
    ]
    differences = [
        Line(f"{label} v {labels[0]}", x,
             [_number(grid.difference((row, column), number)) for row in grid.rows])
        for number, label in enumerate(labels)
        if number
    ]  # fmt: skip
    left = Axis(Label("IOPS") if sample.unit == "IOPS" else Label(sample.title, sample.unit))
    right = Axis(Label("Difference", note="points") if grid.points else Label("Difference", "%"))
    full = f"{column}: {sample.title} and difference"
    number = grid.columns.index(column) + 1
    return plots.two_axes(
        f"{name}-{number}", full, data, axis, (left, values), (right, differences)
    )


def _number(value: float | None) -> float:
    return nan if value is None else value
