"""The summary page of a suite or sweep, in its directory, with links to the reports of its runs."""

from __future__ import annotations

from pathlib import Path

from writecliff import units
from writecliff.report import REPORT_NAME, write_report
from writecliff.report import data as wsat_data
from writecliff.report.comparison import Drive, drives_of
from writecliff.report.comparison_page import comparison_mapping, data_files, sections_of
from writecliff.report.csvs import csv_text
from writecliff.report.model import Align, DataFile, Section, Table, drawn
from writecliff.report.pages import Link, Page, render_page
from writecliff.report.plots import Setting, two_settings
from writecliff.report.style import house_style
from writecliff.report.testdata import TestData, load
from writecliff.store.files import write_atomically
from writecliff.store.rundir import RunDirectory
from writecliff.suite.folder import SuiteFolder

PAGE_NAME = "summary.html"
SETTINGS_CSV = "settings.csv"
_ALIGN: tuple[Align, ...] = ("left", "left", "left", "right", "right", "right")


def write_suite_page(folder: SuiteFolder) -> Path:
    """Write the summary of what is complete; `summary.html` in the folder, whole or not there."""
    runs = {name: RunDirectory.open(folder.run_directory(name)) for name in folder.complete()}
    tests = {name: load(run) for name, run in runs.items()}
    for run in runs.values():
        if not (run.path / REPORT_NAME).exists():  # stopped between its end and its report
            write_report(run.path)
    drives = drives_of(folder.run_directory(name) for name in tests)
    with house_style():
        sections = (_runs(folder, tests), *_content(folder, tests, drives))
    page = Page(
        title=_title(folder, drives),
        intro=f"{len(tests)} of {len(folder.members)} runs complete, each from a purge.",
        sections=sections,
        data=data_files(drives) if folder.kind == "suite" else _settings_data(folder, tests),
        summary={
            "kind": folder.kind,
            "about": folder.about,
            "runs": {
                name: {"test": test.manifest.procedure, "status": test.status}
                for name, test in tests.items()
            },
            **comparison_mapping(drives),
        },
        disclosures=_disclosures(tests),
        links=tuple(
            Link(
                f"{name}: {test.procedure.title}",
                f"{name}/{REPORT_NAME}",
                "" if test.conformant else test.stamp,
            )
            for name, test in tests.items()
        ),
        stamp="" if all(test.conformant for test in tests.values()) else "NOT PTS-CONFORMANT",
    )
    path = folder.path / PAGE_NAME
    write_atomically(path, render_page(page).encode())
    return path


def _title(folder: SuiteFolder, drives: list[Drive]) -> str:
    drive = drives[0].label if drives else ", ".join(folder.targets)
    if folder.kind == "suite":
        return f"{folder.about.upper()} suite: {drive}"
    return f"Sweep of {folder.about.replace('_', ' ')}: {drive}"


def _disclosures(tests: dict[str, TestData]) -> tuple[str, ...]:
    """What each run's own report says first, in short."""
    found = []
    for name, test in tests.items():
        for stage in test.history.stages.values():
            if stage.tracker is not None and stage.steady_at_round is None:
                found.append(
                    f"{name}: NOT STEADY STATE ({stage.phase}, {stage.rounds_done} rounds)."
                )
        if test.manifest.interruptions:
            found.append(f"{name}: the run was interrupted and taken up again; see its report.")
    return tuple(found)


def _runs(folder: SuiteFolder, tests: dict[str, TestData]) -> Section:
    rows = []
    for name, member in folder.members.items():
        test = tests.get(name)
        if test is None:
            status = folder.status(name) or "not begun"
            rows.append((name, member.test, status, *([units.UNKNOWN] * 3)))
            continue
        stages = [s for s in test.history.stages.values() if s.tracker is not None]
        steady = ", ".join(
            "not achieved" if s.steady_at_round is None else f"round {s.steady_at_round}"
            for s in stages
        )
        time = units.duration(test.history.elapsed_ns)
        written = units.size(float(sum(row.host_write_bytes for row in test.rows)))
        title = test.procedure.title
        rows.append((name, title, "complete", steady or "not looked for", time, written))
    header = ("Run", "Test", "Status", "Steady state", "Device time", "Written")
    return Section("Runs", "", tables=(Table("", header, tuple(rows), _ALIGN),))


def _content(
    folder: SuiteFolder, tests: dict[str, TestData], drives: list[Drive]
) -> tuple[Section, ...]:
    if folder.kind == "suite":
        return sections_of(drives)
    settings = _settings(folder, tests)
    svg = two_settings(
        "settings", settings, description="IOPS over volume written and over time, by setting"
    )
    log = two_settings(
        "settings-log",
        settings,
        description="the same with a logarithmic axis of IOPS",
        log=True,
    )
    what = folder.about.replace("_", " ")
    figures = drawn(
        "settings", f"IOPS v volume written and time, by {what}", svg, SETTINGS_CSV,
        "IOPS by setting", wide=True,
    ) + drawn(
        "settings-log", f"IOPS (log) v volume written and time, by {what}", log, SETTINGS_CSV,
        "IOPS by setting", wide=True,
    )  # fmt: skip
    return (_sweep_table(folder, tests), Section("Settings side by side", "", figures))


def _sweep_table(folder: SuiteFolder, tests: dict[str, TestData]) -> Section:
    """The last steady-state window of each run (write saturation), by setting."""
    rows = []
    for name, test in tests.items():
        if test.manifest.procedure != "wsat":
            continue
        saturation = wsat_data.load(test.run)
        rows.append(
            (
                _label(folder, name),
                units.number(saturation.fob_iops),
                units.number(saturation.saturated_iops),
                {"steady": "yes"}.get(saturation.state, "no"),
                units.number(saturation.waf, 2),
                units.significant(saturation.drive_fills),
            )
        )
    if not rows:
        return Section("By setting", "")
    header = (
        folder.about.replace("_", " "), "FOB IOPS", "IOPS of the last window", "steady",
        "Write amplification", "Drive fills",
    )  # fmt: skip
    table = Table("", header, tuple(rows), ("left", "right", "right", "left", "right", "right"))
    return Section("By setting", "", tables=(table,))


def _label(folder: SuiteFolder, name: str) -> str:
    """ "write-cache-on" of a sweep of write_cache is "on"."""
    return name.removeprefix(f"{folder.about.replace('_', '-')}-")


def _settings(folder: SuiteFolder, tests: dict[str, TestData]) -> list[Setting]:
    settings = []
    for name, test in tests.items():
        rows = [row for row in test.rows if row.phase == "rounds"]
        # A step stands for its middle.
        settings.append(
            Setting(
                _label(folder, name),
                [row.started_ns + row.elapsed_ns / 2 for row in rows],
                [row.host_write_bytes_total - row.host_write_bytes / 2 for row in rows],
                [row.iops for row in rows],
            )
        )
    return settings


def _settings_data(folder: SuiteFolder, tests: dict[str, TestData]) -> tuple[DataFile, ...]:
    rows = (
        (setting.label, time_ns, written, iops)
        for setting in _settings(folder, tests)
        for time_ns, written, iops in zip(
            setting.time_ns, setting.written_bytes, setting.iops, strict=True
        )
    )
    text = csv_text((folder.about, "time_ns", "written_bytes", "iops"), rows)
    return (DataFile(SETTINGS_CSV, text),)
