"""Rendering of a campaign's result as page, tables, JSON and CSV files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from writecliff.lab.reliability.model import Plot, Result
from writecliff.report import kinds
from writecliff.report.axes import Axis, Line
from writecliff.report.colours import one_page
from writecliff.report.csvs import csv_text
from writecliff.report.kinds import Kind
from writecliff.report.model import Figure, section
from writecliff.report.pages import Page
from writecliff.report.plots import Reference, lines
from writecliff.report.table import Column, DataFile, Table, table

SCHEMA = "writecliff/reliability/1"


def mapping(result: Result) -> dict[str, Any]:
    """Return all results as plain data."""
    fields = asdict(result)
    checks = [asdict(check) | {"error_pct": check.error_pct} for check in result.checks]
    return {"schema": SCHEMA, **fields, "checks": checks}


def _number(value: float | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    small = value != 0 and abs(value) < 1e-3
    return f"{value:.2e}" if small else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


_NUMBERS = Kind(_number)


def tables(result: Result) -> tuple[Table, ...]:
    """Return the findings by variant and, if there are any, the comparison with closed forms."""
    findings = table(
        "Results by drive",
        [Column(""), *(Column(name, _NUMBERS) for name in result.variants)],
        [[finding.what, *finding.values] for finding in result.findings],
    )
    checks = table(
        "Comparison with the closed form",
        [
            Column(""),
            Column("simulated", _NUMBERS),
            Column("expected", _NUMBERS),
            Column("difference", kinds.signed(2)),
        ],
        [[check.what, check.measured, check.expected, check.error_pct] for check in result.checks],
    )
    return (findings, checks) if result.checks else (findings,)


def data(result: Result) -> tuple[DataFile, ...]:
    """Return the data of each plot, and the settings, as CSV files."""
    files = [DataFile(f"{plot.name}.csv", _plot_csv(plot)) for plot in result.plots]
    rows = [(setting.key, setting.value, setting.source) for setting in result.settings]
    return (*files, DataFile("settings.csv", csv_text(("key", "value", "source"), rows)))


def _plot_csv(plot: Plot) -> str:
    rows = [
        (curve.label, x, y) for curve in plot.curves for x, y in zip(curve.x, curve.y, strict=True)
    ]
    return csv_text(("drive", plot.x_label, plot.y_label), rows)


def _figure(plot: Plot) -> Figure | None:
    return lines(
        plot.name,
        plot.title,
        f"{plot.name}.csv",
        [Line(curve.label, curve.x, curve.y) for curve in plot.curves],
        Axis(plot.x_label, log=plot.x_log),
        Axis(plot.y_label, log=plot.y_log, from_zero=plot.from_zero),
        references=[Reference(label, value) for label, value in plot.limits],
    )


@one_page()
def page(result: Result) -> Page:
    """Return the page of a campaign."""
    findings, *checks = tables(result)
    size = "" if result.scale == 1.0 else f", simulated {result.scale:g} times smaller"
    settings = table(
        "Values of the drive",
        ["key", "value", "source"],
        [(setting.key, setting.value, setting.source) for setting in result.settings],
        "lll",
        data="settings.csv",
    )
    return Page(
        title=result.title,
        intro=f"{result.intro} Drive: {result.drive}{size}.",
        verdict=result.verdict,
        sections=(
            section("With and without", "", findings, *map(_figure, result.plots)),
            *((section("Theory", "", *checks),) if checks else ()),
            section(
                "Assumptions",
                "Sections that the device file lacks are added with these values. Figures from "
                "assumed values show how the mechanism works, not how a drive of this name "
                "performs.",
                settings,
            ),
        ),
        data=data(result),
        summary=mapping(result),
        disclosures=tuple(result.notes),
    )
