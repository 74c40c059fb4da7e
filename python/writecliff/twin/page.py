"""Report pages about a twin, and about the comparison of a drive with its twin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.procedures.twin_loads import HELD_OUT_RULE
from writecliff.report import REPORT_NAME, kinds
from writecliff.report.axes import Axis, Line
from writecliff.report.campaigns.results import metric_text
from writecliff.report.colours import one_page
from writecliff.report.csvs import data_file
from writecliff.report.kinds import Kind
from writecliff.report.model import Figure, Section, section
from writecliff.report.pages import Link, Page, write_page
from writecliff.report.plots import agreement
from writecliff.report.table import Column, DataFile, Head, Quantity, Table, Value, table
from writecliff.twin.check import PAGE_NAME as CHECK_PAGE
from writecliff.twin.check import Check
from writecliff.twin.result import DEVICE_NAME, ComparedFigure, FittedValue, TwinResult, sections_of

if TYPE_CHECKING:
    from writecliff.twin.device_file import HeldOutErrors

PAGE_NAME = "twin.html"
_PLOTS = (
    ("iops", "IOPS", Axis("IOPS", log=True)),
    ("throughput", "Throughput", Axis("MB/s", log=True)),
    ("latency_avg", "Mean latency", Axis("ms", log=True)),
    ("latency_p99", "99th percentiles", Axis("ms", log=True)),
)


@one_page()
def write_twin_page(result: TwinResult, run: Path) -> Path:
    """Write a twin's page to its run directory, and return the page's path.

    Raises:
        StoreError: If the page cannot be written.
    """
    return write_page(_twin_page(result), run / PAGE_NAME)


@one_page()
def write_check_page(check: Check, run: Path) -> Path:
    """Write a comparison's page next to the measurements, and return the page's path.

    Raises:
        StoreError: If the page cannot be written.
    """
    return write_page(_check_page(check), run / CHECK_PAGE)


def _twin_page(result: TwinResult) -> Page:
    data = _figures_file(result)
    sections: list[Section] = [
        section(
            "Prediction errors",
            f"Held out by a rule set in advance: {HELD_OUT_RULE}.",
            _errors(result),
        ),
        *(
            section(name, "", _compared(rows, data))
            for name, rows in sections_of(result).items()
            if rows
        ),
        section("Measured and simulated", "", *_plots(result, data)),
        section("Values", _VALUES, _values(result.values)),
        section("Values that are not determined", "", _open(result)),
        section("Flash", "", _flash(result)),
    ]
    return Page(
        title=f"Twin: {result.name}",
        intro=f"A simulated drive made from measurements of {result.drive}: "
        f"sim:{result.device_file}.",
        verdict=result.verdict,
        sections=tuple(sections),
        summary=result.mapping(),
        data=(data,),
        disclosures=tuple(_disclosures(result)),
        links=(Link("the measurements", REPORT_NAME), Link("the device file", DEVICE_NAME)),
    )


_VALUES = (
    "The standard error follows from the sensitivity of the figures to the value. A value that no "
    "figure determines stays near the middle of its bounds."
)


def _disclosures(result: TwinResult) -> Iterator[str]:
    yield (
        "Errors of fitted figures show how well the model can be adjusted. Only errors of held-out "
        "figures show how well it predicts."
    )
    if result.scale != 1:
        yield f"The twin was simulated at 1/{result.scale:g} of its capacity."


def _errors(result: TwinResult) -> Table:
    def cells(name: str, errors: HeldOutErrors) -> tuple[Value, ...]:
        return name, errors.rates_pct, errors.means_pct, errors.tails_pct, errors.figures

    rows = [cells("Held-out figures", result.errors), cells("Fitted figures", result.errors_of_fit)]
    parts = ("Rates", "Mean latencies", "99th percentiles")
    head: Head = ("Median error", *(Column(part, kinds.percents(1)) for part in parts),
            Column("Figures", kinds.plain()))  # fmt: skip
    return table("", head, rows)


def _compared(rows: Sequence[ComparedFigure], data: DataFile) -> Table:
    cells = [
        (
            row.load,
            row.state,
            metric_text(row.metric),
            Quantity(row.measured, kinds.digits(4, row.unit)),
            Quantity(row.twin, kinds.digits(4, row.unit)),
            row.error_pct,
        )
        for row in rows
    ]
    head = ("Load", "State", "Figure", "Measured", "Twin", Column("Error", kinds.signed()))
    return table("", head, cells, "wllrr", data=data)


def _figures_file(result: TwinResult) -> DataFile:
    head = ("part", "load", "state", "metric", "unit", "measured", "twin", "error_pct")
    rows = [
        (name, *vars(figure).values())
        for name, figures in sections_of(result).items()
        for figure in figures
    ]
    return data_file("figures.csv", head, rows)


def _plots(result: TwinResult, data: DataFile) -> Iterator[Figure | None]:
    for prefix, title, axis in _PLOTS:
        lines = []
        for name, rows in sections_of(result).items():
            pairs = [
                (row.measured, row.twin)
                for row in rows
                if row.metric.startswith(prefix) and row.twin is not None
            ]
            if pairs:
                lines.append(Line(name, [a for a, _ in pairs], [b for _, b in pairs]))
        alt = f"{title}: twin over measured"
        name = f"agreement-{prefix.replace('_', '-')}"
        yield agreement(name, title, data, lines, axis, axis, alt=alt)


def _values(values: Sequence[FittedValue]) -> Table:
    rows = [
        (
            value.key,
            Quantity(value.start, _KINDS.get(value.unit, _OTHER)),
            Quantity(value.value, _KINDS.get(value.unit, _OTHER)),
            value.error_pct,
            value.source,
        )
        for value in values
    ]
    head = (
        "Value",
        "Start",
        "Fitted",
        Column("Standard error", kinds.percents(1)),
        Column("Source"),
    )
    return table("", head, rows, "wrr")


_KINDS = {kind.unit: kind for kind in (kinds.LATENCY, kinds.THROUGHPUT, kinds.SIZE)}
_OTHER = Kind(lambda value: f"{value:.4g}")


def _open(result: TwinResult) -> Table:
    rows = [(text,) for text in result.not_told_apart] or [("none",)]
    return table("", ("",), rows, "l")


def _flash(result: TwinResult) -> Table:
    rows: list[tuple[str, Value]] = [
        ("Over-provisioning", Quantity(result.overprovision_pct, kinds.percents(1))),
        ("Write amplification, measured", Quantity(result.waf_measured, kinds.digits())),
        ("Write amplification, twin", Quantity(result.waf_twin, kinds.digits())),
        ("Overwritten, of the capacity", Quantity(result.overwritten_pct, kinds.percents(1))),
        ("First writes before the rate dropped", Quantity(result.cache_bytes, kinds.SIZE)),
        ("Dies", f"{result.dies}, {result.bounds}; the best of {result.starts} starts"),
    ]  # fmt: skip
    return table("", ("", ""), rows, "ll")


def _check_page(check: Check) -> Page:
    by_kind = [
        (
            kind.name,
            kind.outcome,
            kind.worse_pct,
            kind.allowed_pct,
            kind.figures,
        )
        for kind in check.kinds
    ]
    head = ("Kind of load", "", Column("Worse by (median)", kinds.signed()),
            Column("Allowed", kinds.percents(0)), Column("Figures", kinds.plain()))  # fmt: skip
    rows = [
        (
            figure.load,
            metric_text(figure.metric),
            Quantity(figure.measured, kinds.digits(4, figure.unit)),
            Quantity(figure.expected, kinds.digits(4, figure.unit)),
            figure.worse_pct,
        )
        for figure in check.figures
    ]
    columns = ("Load", "Figure", "Measured", "Expected", Column("Worse by", kinds.signed()))
    why = (
        "The drive is degraded under a kind of load if the median of its figures is worse by more "
        "than the limit: twice the model's error on held-out figures, and at least 10 %."
    )
    notes = []
    if not check.model_error_known:
        notes.append(
            "The expected figures come from the data sheet, which states best cases."
            if check.is_sheet
            else "The error of this model is unknown, so the limit is 20 %."
        )
    return Page(
        title=f"{check.drive} against {check.expected}",
        intro="Measured figures of the drive, and the expected ones.",
        verdict=check.verdict,
        sections=(
            section("By kind", why, table("", head, by_kind, "wl")),
            section("Figures", "", table("", columns, rows, "wlrr")),
        ),
        summary=check.mapping(),
        disclosures=tuple(notes),
        links=(Link("the measurements", REPORT_NAME),),
    )
