"""The page that compares drives: the primer's table, their saturation on one plot, and what
campaigns have of both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from writecliff import units
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.campaigns import improvement
from writecliff.report.comparison import FIGURES, Drive, Value
from writecliff.report.csvs import csv_text, lines_csv
from writecliff.report.model import DataFile, Figure, Section, Table, drawn
from writecliff.report.pages import Page, render_page
from writecliff.report.plots import lines, normalised
from writecliff.report.style import house_style
from writecliff.store.files import write_atomically

TABLE_CSV = "comparison.csv"
CURVES_CSV = "saturation.csv"
SCHEMA = "writecliff/comparison/1"
NOT_STEADY, NOT_CONFORMANT = "*", "†"


def write_comparison(drives: Sequence[Drive], path: Path) -> Path:
    """Write the page; an existing file of the same name is replaced as a whole."""
    write_atomically(path, render_page(comparison_page(drives)).encode())
    return path


def comparison_page(drives: Sequence[Drive]) -> Page:
    with house_style():
        sections = sections_of(drives)
    marked = [value for drive in drives for value in drive.values.values()]
    disclosures = []
    if not all(value.steady for value in marked):
        disclosures.append(
            f"Figures marked {NOT_STEADY} were taken without steady state and must not be quoted "
            "as sustained performance."
        )
    if not all(value.conformant for value in marked):
        disclosures.append(
            f"Figures marked {NOT_CONFORMANT} are of tests that depart from what the standard "
            "requires; their reports say how."
        )
    departing = [name for drive in drives for name in drive.departing]
    if departing:
        disclosures.append(
            f"Not as published, by options or because shortened: {', '.join(departing)}. Figures "
            "compare only where both runs were made alike; their reports say how."
        )
    return Page(
        title=f"Comparison of {len(drives)} drives" if len(drives) != 1 else drives[0].label,
        intro="Averages of steady-state measurement windows unless marked; fresh out of box is the "
        "first minute after the purge.",
        sections=sections,
        data=data_files(drives),
        summary=comparison_mapping(drives),
        disclosures=tuple(disclosures),
    )


def sections_of(drives: Sequence[Drive]) -> tuple[Section, ...]:
    """The table, and the curves if any drive has one. Call inside `house_style()`."""
    sections = [Section("Figures", "", tables=(comparison_table(drives),))]
    if not any(drive.values for drive in drives):
        sections = []  # of campaigns only: the primer's table would be empty
    sections += improvement.sections_of(_improvements(drives))
    figures = _curves(drives)
    if figures:
        sections.append(
            Section(
                "Write saturation",
                "Each curve relative to its own peak: the shapes compare, not the speeds.",
                figures,
            )
        )
    return tuple(sections)


def comparison_table(drives: Sequence[Drive]) -> Table:
    header = (
        "Drive",
        "Class",
        "Capacity",
        "Interface",
        "Cache",
        *(f"{t}, {u}" for _, t, u in FIGURES),
    )
    rows = tuple(
        (
            drive.label,
            drive.kind or units.UNKNOWN,
            units.size(drive.identity.capacity_bytes),
            drive.identity.interface or units.UNKNOWN,
            {True: "WCE", False: "WCD", None: units.UNKNOWN}[drive.write_cache],
            *(_cell(drive.values.get(key), unit) for key, _, unit in FIGURES),
        )
        for drive in drives
    )
    align = ("left", "left", "right", "left", "left", *("right" for _ in FIGURES))
    return Table("", header, rows, align, data=TABLE_CSV)  # type: ignore[arg-type]


def _cell(value: Value | None, unit: str) -> str:
    if value is None:
        return units.UNKNOWN
    text = units.number(value.value, 3 if unit == "ms" else 0)
    mark = ("" if value.steady else NOT_STEADY) + ("" if value.conformant else NOT_CONFORMANT)
    return text + mark


def _curves(drives: Sequence[Drive]) -> tuple[Figure, ...]:
    known = [(drive.label, drive.curve) for drive in drives if drive.curve is not None]
    by_fill = [Line(label, curve.drive_fills, curve.iops) for label, curve in known]
    by_time = [Line(label, curve.time_ns, curve.iops) for label, curve in known]
    longest_ns = max((max(curve.time_ns) for _, curve in known), default=0.0)
    fills = Axis("Drive fills")
    relative = normalised(
        "saturation-relative", by_fill, fills, description="IOPS of each drive over drive fills"
    )
    absolute = lines(
        "saturation-iops",
        by_time,
        time_axis(longest_ns),
        Axis("IOPS", log=True),
        description="IOPS of each drive over time",
    )
    text = "Write saturation of each drive"
    return drawn(
        "saturation-relative", "WSAT IOPS relative to own peak v drive fills", relative,
        CURVES_CSV, text,
    ) + drawn(
        "saturation-iops", "WSAT IOPS (log) v time", absolute, CURVES_CSV, text
    )  # fmt: skip


def data_files(drives: Sequence[Drive]) -> tuple[DataFile, ...]:
    head = ("drive", "target", "capacity_bytes", *(f"{k}_{_name(u)}" for k, _, u in FIGURES))
    rows = (
        (
            drive.label,
            drive.identity.target,
            drive.identity.capacity_bytes,
            *(drive.values[key].value if key in drive.values else None for key, _, _ in FIGURES),
        )
        for drive in drives
    )
    files = [DataFile(TABLE_CSV, csv_text(head, rows))]
    curves = [
        Line(drive.label, drive.curve.drive_fills, drive.curve.iops)
        for drive in drives
        if drive.curve is not None
    ]
    if curves:
        files.append(DataFile(CURVES_CSV, lines_csv(curves, "drive", "drive_fills", "iops")))
    found = _improvements(drives)
    return (*files, *((improvement.file_of(found),) if found else ()))


def _improvements(drives: Sequence[Drive]) -> list[improvement.Improvement]:
    """The first drive over each of the others, by the campaigns that they share."""
    labels = [drive.label for drive in drives]
    return improvement.improvements(
        [
            improvement.Contender(
                # Two drives of one model are told apart by their targets.
                drive.label if labels.count(drive.label) == 1 else drive.identity.target,
                drive.results,
            )
            for drive in drives
        ]
    )


def _name(unit: str) -> str:
    return {"IOPS": "iops", "MB/s": "mb_per_s", "ms": "ms"}[unit]


def comparison_mapping(drives: Sequence[Drive]) -> dict[str, Any]:
    """For programs; unknown figures are absent."""
    return {
        "schema": SCHEMA,
        "drives": [
            {
                "label": drive.label,
                "target": drive.identity.target,
                "model": drive.identity.model,
                "serial": drive.identity.serial,
                "capacity_bytes": drive.identity.capacity_bytes,
                "simulated": drive.identity.simulated,
                "class": drive.kind,
                "figures": {
                    key: {
                        "value": drive.values[key].value,
                        "unit": unit,
                        "steady": drive.values[key].steady,
                        "conformant": drive.values[key].conformant,
                        "run": drive.values[key].run.name,
                    }
                    for key, _, unit in FIGURES
                    if key in drive.values
                },
            }
            for drive in drives
        ],
        "improvements": [improvement.mapping_of(item) for item in _improvements(drives)],
    }
