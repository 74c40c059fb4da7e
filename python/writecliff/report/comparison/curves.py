"""Curves of a comparison: what reports draw of every run, all contenders on one plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from writecliff import units
from writecliff.report.axes import Axis, Line
from writecliff.report.compared import Curve
from writecliff.report.comparison.contenders import Contender
from writecliff.report.csvs import lines_csv
from writecliff.report.model import Figure, Section, section
from writecliff.report.plots import lines, normalised
from writecliff.report.table import DURATION, Column, DataFile, Table, digits, table

Curves = Sequence[tuple[str, Curve]]  # of one name, by contender


def curves_section(contenders: Sequence[Contender]) -> Section:
    """All curves, and a table of the moments that are marked in them. A reader may choose one
    contender where all of them have curves of the same tests."""
    by_name = _by_name(contenders)
    shown = section("Curves", "", _moments(by_name), *map(_drawn, by_name))
    alike = len({tuple(one.runs) for one in contenders}) == 1
    return replace(shown, choices=tuple(one.label for one in contenders) if alike else ())


def curves_mapping(contenders: Sequence[Contender]) -> list[dict[str, Any]]:
    """The marked moments of the curves for programs, in base units of their x axes."""
    return [
        {
            "name": curve.name,
            "title": curve.title,
            "x": _column(curve.x),
            "contender": label,
            "marks": {mark.label: mark.x for mark in curve.marks},
        }
        for curves in _by_name(contenders)
        for label, curve in curves
        if curve.marks
    ]


def _by_name(contenders: Sequence[Contender]) -> list[Curves]:
    found: dict[str, list[tuple[str, Curve]]] = {}
    for one in contenders:
        for run in one.runs.values():
            for curve in run.curves:
                found.setdefault(curve.name, []).append((one.label, curve))
    return list(found.values())


def _moments(by_name: Sequence[Curves]) -> Table | None:
    """When each contender gets where, by every axis on which that is marked."""
    marked = [curves for curves in by_name if any(curve.marks for _, curve in curves)]
    if not marked:
        return None
    columns = {
        (mark.label, number): f"{mark.label[0].upper()}{mark.label[1:]}"
        for number, curves in enumerate(marked)
        for _, curve in curves
        for mark in curve.marks
    }
    labels = list(dict.fromkeys(label for curves in marked for label, _ in curves))
    rows = []
    for label in labels:
        of = [dict(curves).get(label) for curves in marked]
        at = {
            (mark.label, number): mark.x
            for number, curve in enumerate(of)
            if curve is not None
            for mark in curve.marks
        }
        rows.append((label, *(at.get(key) for key in columns)))
    axes = {key: marked[key[1]][0][1].x for key in columns}
    head = (
        Column("", key="contender"),
        *(
            Column(
                title,
                DURATION if axes[key].units else digits(3, axes[key].label.lower()),
                f"{key[0].replace(' ', '_')}_{_column(axes[key])}",
            )
            for key, title in columns.items()
        ),
    )
    return table("When the drives change their state", head, rows, file="moments.csv")


def _drawn(curves: Curves) -> Figure | None:
    one = curves[0][1]
    series = [
        Line(label, [x for x, _ in curve.points], [y for _, y in curve.points])
        for label, curve in curves
    ]
    x = max((curve.x for _, curve in curves), key=lambda axis: axis.unit([]).size)
    data = DataFile(f"{one.name}.csv", lines_csv(series, "contender", _column(x), _column(one.y)))
    if one.relative:
        marks = {label: [(mark.label, mark.x) for mark in c.marks] for label, c in curves}
        return normalised(one.name, one.title, data, series, x, marks=marks)
    return lines(one.name, one.title, data, series, x, one.y)


def _column(axis: Axis) -> str:
    """The name of a column in base units."""
    name = axis.label.lower().replace(" ", "_")
    if name == "block_size_(kib)":  # that is how its ticks are named
        return "block_bytes"
    if not axis.units:
        return name
    return f"{name}_{'bytes_per_s' if axis.units[0] is units.MB_S else 'ns'}"
