"""The page that compares drives: the primer's table, their saturation on one plot, and what
campaigns have of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from writecliff import units
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.campaigns import improvement
from writecliff.report.comparison import Drive, Value, compared_figures
from writecliff.report.csvs import data_file, lines_csv
from writecliff.report.model import DataFile, Section, Table, section, table
from writecliff.report.pages import Page
from writecliff.report.plots import lines, normalised

SCHEMA = "writecliff/comparison/1"
NOT_STEADY, NOT_CONFORMANT = "*", "†"
WRITE_CACHE = {True: "WCE", False: "WCD", None: units.UNKNOWN}


def comparison_page(drives: Sequence[Drive]) -> Page:
    """The comparison of `drives` as plain data."""
    return Page(
        title=f"Comparison of {len(drives)} drives" if len(drives) != 1 else drives[0].label,
        intro="Averages of steady-state measurement windows unless marked; fresh out of box is the "
        "first minute after the purge.",
        sections=tuple(sections_of(drives)),
        summary=comparison_mapping(drives),
        disclosures=tuple(mark_disclosures(drives)),
    )


def mark_disclosures(drives: Sequence[Drive]) -> Iterator[str]:
    """What the marks of figures mean, as far as there are any."""
    marked = [value for drive in drives for value in drive.values.values()]
    if not all(value.steady for value in marked):
        yield (
            f"Figures marked {NOT_STEADY} were taken without steady state and must not be quoted "
            "as sustained performance."
        )
    if not all(value.conformant for value in marked):
        yield (
            f"Figures marked {NOT_CONFORMANT} are of tests that depart from what the standard "
            "requires; their reports say how."
        )
    departing = [name for drive in drives for name in drive.departing]
    if departing:
        yield (
            f"Not as published, by options or because shortened: {', '.join(departing)}. Figures "
            "compare only where both runs were made alike; their reports say how."
        )


def sections_of(drives: Sequence[Drive]) -> Iterator[Section]:
    """The table, what campaigns have of several drives, and the curves if any drive has one."""
    if any(drive.values for drive in drives):  # otherwise the primer's table would be empty
        yield section("Figures", "", _table(drives))
    yield from improvement.sections_of(_improvements(drives))
    if any(drive.curve is not None for drive in drives):
        yield _saturation(drives)


def _table(drives: Sequence[Drive]) -> Table:
    figures = compared_figures()
    head = ("Drive", "Class", "Capacity", "Interface", "Cache")
    rows = [
        (
            drive.label,
            drive.kind or units.UNKNOWN,
            units.size(drive.identity.capacity_bytes),
            drive.identity.interface or units.UNKNOWN,
            WRITE_CACHE[drive.write_cache],
            *(_cell(drive.values.get(figure.key), figure.unit) for figure in figures),
        )
        for drive in drives
    ]
    columns = (f"{figure.title}, {figure.unit}" for figure in figures)
    return table("", (*head, *columns), rows, "llrll", data=_table_file(drives))


def _cell(value: Value | None, unit: str) -> str:
    if value is None:
        return units.UNKNOWN
    text = units.number(value.value, 3 if unit == "ms" else 0)
    mark = ("" if value.steady else NOT_STEADY) + ("" if value.conformant else NOT_CONFORMANT)
    return text + mark


def _table_file(drives: Sequence[Drive]) -> DataFile:
    figures = compared_figures()
    names = {"IOPS": "iops", "MB/s": "mb_per_s", "ms": "ms"}
    head = ("drive", "target", "capacity_bytes", *(f"{f.key}_{names[f.unit]}" for f in figures))
    rows = (
        (
            drive.label,
            drive.identity.target,
            drive.identity.capacity_bytes,
            *(drive.values[f.key].value if f.key in drive.values else None for f in figures),
        )
        for drive in drives
    )
    return data_file("comparison.csv", head, rows)


def _saturation(drives: Sequence[Drive]) -> Section:
    known = [(drive.label, drive.curve) for drive in drives if drive.curve is not None]
    by_fill = [Line(label, curve.drive_fills, curve.iops) for label, curve in known]
    by_time = [Line(label, curve.time_ns, curve.iops) for label, curve in known]
    longest_ns = max((max(curve.time_ns) for _, curve in known), default=0.0)
    data = DataFile("saturation.csv", lines_csv(by_fill, "drive", "drive_fills", "iops"))
    return section(
        "Write saturation",
        "Each curve relative to its own peak: the shapes compare, not the speeds.",
        normalised(
            "saturation-relative", "WSAT IOPS relative to own peak v drive fills", data, by_fill,
            Axis("Drive fills"), alt="IOPS of each drive over drive fills, relative to its peak",
        ),
        lines(
            "saturation-iops", "WSAT IOPS (log) v time", data, by_time, time_axis(longest_ns),
            Axis("IOPS", log=True), alt="IOPS of each drive over time",
        ),
    )  # fmt: skip


def _improvements(drives: Sequence[Drive]) -> list[improvement.Improvement]:
    """The first drive over each of the others, by the campaigns that they share."""
    labels = [drive.label for drive in drives]
    return improvement.improvements(
        [
            improvement.Contender(
                # Two drives of one model are distinguished by their targets.
                drive.label if labels.count(drive.label) == 1 else drive.identity.target,
                drive.results,
            )
            for drive in drives
        ]
    )


_IDENTITY = ("target", "model", "serial", "capacity_bytes", "simulated")


def comparison_mapping(drives: Sequence[Drive]) -> dict[str, Any]:
    """The comparison for programs; unknown figures are absent."""
    return {
        "schema": SCHEMA,
        "drives": [
            {
                "label": drive.label,
                **{name: getattr(drive.identity, name) for name in _IDENTITY},
                "class": drive.kind,
                "figures": {
                    figure.key: {
                        "value": drive.values[figure.key].value,
                        "unit": figure.unit,
                        "steady": drive.values[figure.key].steady,
                        "conformant": drive.values[figure.key].conformant,
                        "run": drive.values[figure.key].run.name,
                    }
                    for figure in compared_figures()
                    if figure.key in drive.values
                },
            }
            for drive in drives
        ],
        "improvements": [improvement.mapping_of(item) for item in _improvements(drives)],
    }
