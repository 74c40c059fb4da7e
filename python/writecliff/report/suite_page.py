"""The page of a suite or sweep, in its directory, with links to the reports of its runs.

What the page says of a run comes from the report of its test, so that a new test needs nothing
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from writecliff import units
from writecliff.report import REPORT_NAME, report_of, write_report
from writecliff.report.base import TestReport
from writecliff.report.comparison import Drive, drives_of
from writecliff.report.comparison_page import comparison_mapping, mark_disclosures, sections_of
from writecliff.report.csvs import data_file
from writecliff.report.model import Section, section, table
from writecliff.report.pages import Link, Page, write_page
from writecliff.report.plots import Setting, two_settings
from writecliff.store.rundir import RunDirectory

PAGE_NAME = "summary.html"


class _Member(Protocol):
    @property
    def test(self) -> str: ...


class Folder(Protocol):
    """A suite or sweep on disk: what this page reads of `suite.folder.SuiteFolder`."""

    @property
    def path(self) -> Path: ...
    @property
    def kind(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def members(self) -> Mapping[str, _Member]: ...
    @property
    def targets(self) -> Sequence[str]: ...
    def run_directory(self, name: str) -> Path: ...
    def status(self, name: str) -> str | None: ...
    def complete(self) -> Sequence[str]: ...


Reports = Mapping[str, TestReport]  # of the complete runs, by name


def write_suite_page(folder: Folder) -> Path:
    """Write the summary of what is complete: `summary.html` in the folder, whole or not there."""
    reports = {
        name: report_of(RunDirectory.open(folder.run_directory(name))) for name in folder.complete()
    }
    for report in reports.values():
        path = report.data.run.path
        if not (path / REPORT_NAME).exists():  # stopped between its end and its report
            write_report(path)
    drives = drives_of(folder.run_directory(name) for name in reports)
    conformant = all(report.data.conformant for report in reports.values())
    page = Page(
        title=_title(folder, drives),
        intro=f"{len(reports)} of {len(folder.members)} runs complete, each from a purge.",
        sections=(
            _runs(folder, reports),
            _results(folder, reports),
            *(sections_of(drives) if folder.kind == "suite" else _side_by_side(folder, reports)),
        ),
        summary={
            "kind": folder.kind,
            "about": folder.about,
            "runs": {
                name: {"test": report.data.manifest.procedure, "status": report.data.status}
                for name, report in reports.items()
            },
            **comparison_mapping(drives),
        },
        disclosures=(*_disclosures(reports), *mark_disclosures(drives)),
        links=tuple(
            Link(f"{name}: {report.title}", f"{name}/{REPORT_NAME}", report.data.stamp)
            for name, report in reports.items()
        ),
        stamp="" if conformant else "NOT PTS-CONFORMANT",
    )
    return write_page(page, folder.path / PAGE_NAME)


def _title(folder: Folder, drives: Sequence[Drive]) -> str:
    drive = drives[0].label if drives else ", ".join(folder.targets)
    if folder.kind == "suite":
        return f"{folder.about.upper()} suite: {drive}"
    return f"Sweep of {_words(folder)}: {drive}"


def _words(folder: Folder) -> str:
    return folder.about.replace("_", " ")


def _disclosures(reports: Reports) -> Iterator[str]:
    """What each run's own report says first, in short."""
    for name, report in reports.items():
        for view in report.views:
            if not view.reached:
                where = f"{view.label}: " if view.label else ""
                yield f"{name}: NOT STEADY STATE ({where}{len(view.rounds)} rounds)."
        if report.data.manifest.interruptions:
            yield f"{name}: the run was interrupted and resumed; see its report."


def _runs(folder: Folder, reports: Reports) -> Section:
    rows = []
    for name, member in folder.members.items():
        report = reports.get(name)
        if report is None:
            status = folder.status(name) or "not begun"
            rows.append((name, member.test, status, *[units.UNKNOWN] * 3))
            continue
        texts = (f"{v.label}: {v.text}" if v.label else v.text for v in report.views)
        time = units.duration(report.data.history.elapsed_ns)
        written = units.size(report.data.host_write_bytes)
        steady = "; ".join(texts) or "not required"
        rows.append((name, report.title, "complete", steady, time, written))
    head = ("Run", "Test", "Status", "Steady state", "Device time", "Written")
    return section("Runs", "", table("", head, rows, "llll"))


def _results(folder: Folder, reports: Reports) -> Section:
    """The key figures of every run."""
    rows = [
        (_label(folder, name), figure.label, f"{figure.value} {figure.unit}".strip(), figure.note)
        for name, report in reports.items()
        for figure in report.key_figures()
    ]
    head = ("Run" if folder.kind == "suite" else _words(folder), "Figure", "Value", "")
    return section("Key figures", "", table("", head, rows, "llrl"))


def _label(folder: Folder, name: str) -> str:
    """ "write-cache-on" of a sweep of write_cache is "on"."""
    return name.removeprefix(f"{folder.about.replace('_', '-')}-")


def _side_by_side(folder: Folder, reports: Reports) -> Iterator[Section]:
    settings = []
    for name, report in reports.items():
        rows = report.data.stage_rows("rounds")
        # A step stands for its middle.
        settings.append(
            Setting(
                _label(folder, name),
                [row.started_ns + row.elapsed_ns / 2 for row in rows],
                [row.host_write_bytes_total - row.host_write_bytes / 2 for row in rows],
                [row.iops for row in rows],
            )
        )
    points = (
        (setting.label, *point)
        for setting in settings
        for point in zip(setting.time_ns, setting.written_bytes, setting.iops, strict=True)
    )
    head = (folder.about, "time_ns", "written_bytes", "iops")
    data = data_file("settings.csv", head, points)
    yield section(
        "Settings side by side",
        "",
        *(
            two_settings(
                name,
                f"{iops} v volume written and time, by {_words(folder)}",
                data,
                settings,
                alt="IOPS over volume written and over time, by setting",
                log=log,
            )
            for name, iops, log in (
                ("settings", "IOPS", False),
                ("settings-log", "IOPS (log)", True),
            )
        ),
    )
