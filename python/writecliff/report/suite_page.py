"""Page for a suite or sweep in its directory, with links to the runs' reports.

Each run's text is written by its test's report, so a new test requires no change in this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff import units
from writecliff.procedures.operating_points import Cell
from writecliff.report import REPORT_NAME, kinds, report_of, write_report
from writecliff.report.base import TestReport
from writecliff.report.colours import one_page
from writecliff.report.comparison import Comparison
from writecliff.report.comparison.contenders import (
    labelled,
    members_of,
    of_folder,
    option_text,
)
from writecliff.report.comparison.page import (
    comparison_mapping,
    disclosures_of,
    headline_mapping,
    sections_of,
)
from writecliff.report.comparison.pictures import curves_section
from writecliff.report.csvs import Value, data_file
from writecliff.report.headline import Headline, interval_text, value_text
from writecliff.report.kinds import Kind
from writecliff.report.model import Section, section
from writecliff.report.pages import Link, Page, linked, write_page
from writecliff.report.sweep_page import cell_sections, has_cells, knee_of, knee_text
from writecliff.report.table import Column, DataFile, Table, table
from writecliff.store.rundir import RunDirectory
from writecliff.suite.folder import SuiteFolder

PAGE_NAME = "summary.html"


Reports = Mapping[str, TestReport]  # Reports on the complete runs by run name.


@dataclass(frozen=True)
class SuitePage:
    """Page for a suite or sweep, with the data that it shows."""

    path: Path
    reports: Reports
    compared: Comparison | None  # Result of `side_by_side`.
    knee: Cell | None  # Result of `knee_of`.


@one_page()
def write_suite_page(folder: SuiteFolder) -> SuitePage:
    """Write the summary of the complete runs atomically to `summary.html` in the folder."""
    reports = reports_of(folder)
    for report in reports.values():
        path = report.data.run.path
        if not (path / REPORT_NAME).exists():  # The run stopped before its report was written.
            write_report(path)
    conformant = all(report.data.conformant for report in reports.values())
    # Links show the badge if the badges differ.
    mixed = len({report.data.stamp for report in reports.values()}) > 1
    compared = side_by_side(folder, reports)
    missing = len(folder.members) - len(reports)
    knee = knee_of(folder, reports)
    answers = [
        "" if knee is None else knee_text(knee),
        "" if compared is None else compared.verdict,
    ]
    page = Page(
        title=_title(folder, reports),
        intro=f"{len(reports)} of {len(folder.members)} runs complete, each from a purge.",
        verdict=". ".join(filter(None, answers)),
        sections=(
            *([] if has_cells(folder) and not missing else [_runs(folder, reports)]),
            *_about_runs(folder, reports, compared),
        ),
        summary={
            "kind": folder.kind,
            "about": folder.about,
            "runs": {name: _summary(report) for name, report in reports.items()},
            **({} if compared is None else comparison_mapping(compared)),
            **({} if knee is None else {"knee": _knee_mapping(knee)}),
        },
        disclosures=(
            *_disclosures(reports),
            *(() if compared is None else disclosures_of(compared)),
        ),
        links=tuple(
            Link(
                f"{name}: {report.title}",
                linked(f"{name}/{REPORT_NAME}"),
                report.data.stamp if mixed else "",
            )
            for name, report in reports.items()
        ),
        stamp="" if conformant else "NOT PTS-CONFORMANT",
    )
    return SuitePage(write_page(page, folder.path / PAGE_NAME), reports, compared, knee)


def _knee_mapping(knee: Cell) -> dict[str, float]:
    return {"queue_depth": knee.queue_depth, "iops": knee.iops}


def _about_runs(
    folder: SuiteFolder, reports: Reports, compared: Comparison | None
) -> Iterator[Section]:
    if has_cells(folder):
        yield from cell_sections(folder, reports)
    else:
        yield from _sections(folder, reports) if compared is None else sections_of(compared)


def reports_of(folder: SuiteFolder) -> Reports:
    """Return the reports of the complete runs, by name."""
    return {
        name: report_of(RunDirectory.open(folder.run_directory(name))) for name in folder.complete()
    }


def side_by_side(folder: SuiteFolder, reports: Reports) -> Comparison | None:
    """Return a comparison of the sweep's runs.

    Returns:
        The result is `None` for a suite, for a sweep with cells, and if the runs share no figure.
    """
    if folder.kind == "suite" or has_cells(folder):
        return None
    comparison = Comparison(labelled(list(of_folder(folder, reports))))
    return comparison if comparison.figures else None


def _title(folder: SuiteFolder, reports: Reports) -> str:
    drives = (report.data.manifest.device for report in reports.values())
    names = (" ".join(filter(None, (d.vendor, d.model))) or d.target for d in drives)
    drive = next(names, ", ".join(folder.targets))
    if folder.kind == "suite":
        return f"{folder.about.upper()} suite: {drive}"
    varied = ", ".join(option_text(key) for key in folder.about.split(","))
    return f"Sweep of {varied}: {drive}"


def _summary(report: TestReport) -> dict[str, Any]:
    return {
        "test": report.data.manifest.procedure,
        "status": report.data.status,
        "figures": {
            item.key: {"label": item.label, "unit": item.unit, **headline_mapping(item)}
            for item in report.quoted
        },
    }


def _disclosures(reports: Reports) -> Iterator[str]:
    """Yield the main disclosures from each run's report, merging runs with equal text."""
    names_by_text: dict[str, list[str]] = {}
    for name, report in reports.items():
        for text in _main_disclosures(report):
            names_by_text.setdefault(text, []).append(name)
    for text, names in names_by_text.items():
        every = len(names) == len(reports) > 1
        yield f"{f'All {len(names)} runs' if every else ', '.join(names)}: {text}."


def _main_disclosures(report: TestReport) -> Iterator[str]:
    for view in report.views:
        if not view.reached:
            where = f"{view.label}: " if view.label else ""
            yield f"{view.flag} ({where}{len(view.rounds)} rounds)"
    if scaled := report.data.manifest.device.scale_text:
        yield scaled
    if report.data.manifest.interruptions:
        yield "the run was interrupted and resumed; see its report"


def _runs(folder: SuiteFolder, reports: Reports) -> Section:
    rows: list[tuple[Value, ...]] = []
    titles: dict[str, str] = {}
    for name, member in folder.members.items():
        report = reports.get(name)
        if report is None:
            status = folder.status(name) or "not started"
            rows.append((name, member.test, status, None, None, None))
            continue
        titles[member.test] = report.title
        texts = (f"{v.label}: {v.text}" if v.label else v.text for v in report.views)
        steady = "; ".join(texts) or "not required"
        done = report.data
        rows.append((name, member.test, "complete", steady, done.history.elapsed_ns,
                     done.host_write_bytes))  # fmt: skip
    columns = (
        Column("Run", key="run"),
        Column("Test", Kind(lambda test: titles.get(test, test), align="left", number=False),
               "test"),
        Column("Status", key="status"),
        Column("Steady state", key="steady_state"),
        Column("Device time", kinds.DURATION, "device_time_ns"),
        Column("Written", kinds.SIZE, "host_write_bytes"),
    )  # fmt: skip
    return section("Runs", "", table("", columns, rows, file="runs.csv"))


def _sections(folder: SuiteFolder, reports: Reports) -> Iterator[Section]:
    """Yield each run's headline figures with intervals and curves.

    Runs of the same test, which differ in their active range, are shown side by side.
    """
    every = [(name, item) for name, report in reports.items() for item in report.quoted]
    numbers = (
        (name, item.label, item.unit, item.value, *_ends(item), item.at, int(item.steady))
        for name, item in every
    )
    columns = ("run", "figure", "unit", "value", "low", "high", "at", "steady")
    data = data_file("key-figures.csv", columns, numbers)
    by_test: dict[str, list[str]] = {}
    for name, report in reports.items():
        by_test.setdefault(report.title, []).append(name)
    alone = {name for names in by_test.values() if len(names) == 1 for name in names}
    tables = [
        _side_by_side(title, {name: reports[name] for name in names}, data)
        for title, names in by_test.items()
        if len(names) > 1
    ]
    rows = [
        (
            name,
            item.label,
            f"{value_text(item.value)}{'' if item.steady else ' (not steady)'}",
            interval_text(item.interval).strip(" ()") or units.UNKNOWN,
            item.unit,
            item.at,
        )
        for name, item in every
        if name in alone
    ]
    head = ("Run", "Figure", "Value", "95 % interval", "Unit", "At")
    others = [table("", head, rows, "llrrll", data=data)] if rows else []
    intro = "With 95 % intervals in parentheses." if tables else ""
    yield section("Key figures", intro, *tables, *others)
    yield curves_section(members_of(folder, reports))


def _side_by_side(title: str, reports: Reports, data: DataFile) -> Table:
    """Return the headline figures for several runs of one test, with a column for each run."""
    by_run = {
        name: {figure.key: figure for figure in report.quoted} for name, report in reports.items()
    }
    kinds: dict[str, list[Headline]] = {}
    for figures in by_run.values():
        for key, figure in figures.items():
            kinds.setdefault(key, []).append(figure)

    def cell(figure: Headline | None) -> str:
        if figure is None:
            return units.UNKNOWN
        state = "" if figure.steady else " (not steady)"
        return f"{value_text(figure.value)}{interval_text(figure.interval)}{state}"

    rows = [
        (
            " / ".join(dict.fromkeys(figure.label for figure in alike)),
            *(cell(figures.get(key)) for figures in by_run.values()),
            alike[0].unit,
        )
        for key, alike in kinds.items()
    ]
    return table(title, ("Figure", *by_run, "Unit"), rows, "l" + "r" * len(by_run) + "l", data=data)


def _ends(item: Headline) -> tuple[float | None, float | None]:
    """Return the end points of a figure's interval, if it has an interval."""
    return (None, None) if item.interval is None else (item.interval.low, item.interval.high)
