"""The pages about a twin, and about a drive beside its twin."""

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
from writecliff.twin.result import DEVICE_NAME, Compared, FoundValue, TwinResult, sections_of

if TYPE_CHECKING:
    from writecliff.twin.device_file import KeptErrors

PAGE_NAME = "twin.html"
_PLOTS = (
    ("iops", "IOPS", Axis("IOPS", log=True)),
    ("throughput", "Throughput", Axis("MB/s", log=True)),
    ("latency_avg", "Mean latency", Axis("ms", log=True)),
    ("latency_p99", "99th percentiles", Axis("ms", log=True)),
)


@one_page()
def write_twin_page(result: TwinResult, run: Path) -> Path:
    """Write the page of a twin into its run directory and return its path. Raises StoreError."""
    return write_page(_twin_page(result), run / PAGE_NAME)


@one_page()
def write_check_page(found: Check, run: Path) -> Path:
    """Write the page of a check beside the measurements. Raises StoreError."""
    return write_page(_check_page(found), run / CHECK_PAGE)


def _twin_page(result: TwinResult) -> Page:
    data = _figures_file(result)
    sections: list[Section] = [
        section("How well it predicts", f"Rule, stated before: {HELD_OUT_RULE}.", _errors(result)),
        *(
            section(name, "", _compared(rows, data))
            for name, rows in sections_of(result).items()
            if rows
        ),
        section("Measured and simulated", "", *_pictures(result, data)),
        section("Values", _VALUES, _values(result.values)),
        section("What could not be told apart", "", _open(result)),
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
    "What the fit varied. The standard error follows from how much the figures change with the "
    "value; a value that no figure determines stays near the middle of its bounds."
)


def _disclosures(result: TwinResult) -> Iterator[str]:
    yield (
        "Errors of fitted figures say how well the model can be adjusted; only those of figures "
        "that were kept aside say how well it predicts."
    )
    if result.scale != 1:
        yield f"The twin was simulated at 1/{result.scale:g} of its capacity."


def _errors(result: TwinResult) -> Table:
    def cells(name: str, errors: KeptErrors) -> tuple[Value, ...]:
        return name, errors.rates_pct, errors.means_pct, errors.tails_pct, errors.figures

    rows = [cells("kept aside", result.errors), cells("fitted", result.errors_of_fit)]
    parts = ("Rates", "Mean latencies", "99th percentiles")
    head: Head = ("Median error of figures", *(Column(part, kinds.percents(1)) for part in parts),
            Column("Figures", kinds.plain()))  # fmt: skip
    return table("", head, rows)


def _compared(rows: Sequence[Compared], data: DataFile) -> Table:
    cells = [
        (
            one.load,
            one.state,
            metric_text(one.metric),
            Quantity(one.measured, kinds.digits(4, one.unit)),
            Quantity(one.twin, kinds.digits(4, one.unit)),
            one.error_pct,
        )
        for one in rows
    ]
    head = ("Load", "State", "Figure", "Measured", "Twin", Column("Error", kinds.signed()))
    return table("", head, cells, "wllrr", data=data)


def _figures_file(result: TwinResult) -> DataFile:
    head = ("part", "load", "state", "metric", "unit", "measured", "twin", "error_pct")
    rows = [(name, *vars(one).values()) for name, own in sections_of(result).items() for one in own]
    return data_file("figures.csv", head, rows)


def _pictures(result: TwinResult, data: DataFile) -> Iterator[Figure | None]:
    for prefix, title, axis in _PLOTS:
        found = []
        for name, rows in sections_of(result).items():
            pairs = [
                (one.measured, one.twin)
                for one in rows
                if one.metric.startswith(prefix) and one.twin is not None
            ]
            if pairs:
                found.append(Line(name, [a for a, _ in pairs], [b for _, b in pairs]))
        alt = f"{title}: twin over measured"
        name = f"agreement-{prefix.replace('_', '-')}"
        yield agreement(name, title, data, found, axis, axis, alt=alt)


def _values(values: Sequence[FoundValue]) -> Table:
    rows = [
        (
            one.key,
            Quantity(one.start, _KINDS.get(one.unit, _OTHER)),
            Quantity(one.value, _KINDS.get(one.unit, _OTHER)),
            one.error_pct,
            one.source,
        )
        for one in values
    ]
    head = (
        "Value",
        "Start",
        "Found",
        Column("Standard error", kinds.percents(1)),
        Column("Source"),
    )
    return table("", head, rows, "wrr")


_KINDS = {kind.unit: kind for kind in (kinds.LATENCY, kinds.THROUGHPUT, kinds.SIZE)}
_OTHER = Kind(lambda value: f"{value:.4g}")


def _open(result: TwinResult) -> Table:
    rows = [(text,) for text in result.not_told_apart] or [("nothing that the fit varied",)]
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


def _check_page(found: Check) -> Page:
    by_kind = [
        (
            one.name,
            one.outcome,
            one.worse_pct,
            one.allowed_pct,
            one.figures,
        )
        for one in found.kinds
    ]
    head = ("Kind of load", "", Column("Worse by (median)", kinds.signed()),
            Column("Allowed", kinds.percents(0)), Column("Figures", kinds.plain()))  # fmt: skip
    rows = [
        (
            one.load,
            metric_text(one.metric),
            Quantity(one.measured, kinds.digits(4, one.unit)),
            Quantity(one.expected, kinds.digits(4, one.unit)),
            one.worse_pct,
        )
        for one in found.figures
    ]
    columns = ("Load", "Figure", "Measured", "Expected", Column("Worse by", kinds.signed()))
    why = (
        "A kind is degraded if the median of its figures is worse by more than is allowed: twice "
        "the error that the model has on figures it had not seen, and 10 % at least."
    )
    notes = []
    if not found.model_error_known:
        notes.append(
            "What is expected is the data sheet, which states what is reached at best."
            if found.is_sheet
            else "The error of this model is not known: 20 % are allowed."
        )
    return Page(
        title=f"{found.drive} against {found.expected}",
        intro="Is this drive as it should be?",
        verdict=found.verdict,
        sections=(
            section("By kind", why, table("", head, by_kind, "wl")),
            section("Figures", "", table("", columns, rows, "wlrr")),
        ),
        summary=found.mapping(),
        disclosures=tuple(notes),
        links=(Link("the measurements", REPORT_NAME),),
    )
