"""Sample reports, without a run: long names and every kind of figure."""

from __future__ import annotations

from dataclasses import replace

from tests.support.figure_gallery import GALLERY
from writecliff.report import kinds
from writecliff.report.csvs import csv_text, with_data
from writecliff.report.model import (
    Header,
    HeaderColumn,
    KeyFigure,
    ReportModel,
    Section,
    Verdict,
    with_lead,
)
from writecliff.report.table import Column, DataFile, table

STAMP = "NOT PTS-CONFORMANT"
COLUMNS = {
    "Test Platform": (
        "Ref Test Platform", "Motherboard", "CPU", "Memory", "Operating System", "Test SW",
        "Test SW Info", "Test ID No.", "HBA", "PCIe",
    ),
    "Device Under Test": (
        "Mfgr", "Model No.", "S/N", "Firmware ver", "Capacity", "Interface", "NAND Type",
        "PCIe NVM", "Purge Method", "Write Cache",
    ),
    "Set Up Parameters": (
        "Data Pattern", "(PC) AR", "AR Segments", "Pre Condition 1", "TOIO - TC/QD", "Duration",
        "Pre Condition 2", "TOIO - TC/QD", "SS Rounds", "Note",
    ),
    "Test Parameters": (
        "Data Pattern", "AR & Amount", "Test Stimulus 1", "RW Mix (Outer Loop)",
        "Block Sizes (Inner Loop)", "TOIO - TC/QD", "Steady State", "Test Stimulus 2",
        "TOIO - TC/QD", "Steady State",
    ),
}  # fmt: skip
LONG = {
    "CPU": "Example CPU Gold 6999, 2 x 56 cores, 4.1 GHz",
    "Operating System": "Debian GNU/Linux 12 (bookworm)",
    "Model No.": "Example Flash Data Centre Series 9000",
    "Purge Method": "NVMe format, user data erase",
}


def header() -> Header:
    columns = tuple(
        HeaderColumn(title, tuple((name, LONG.get(name, "N/A")) for name in names))
        for title, names in COLUMNS.items()
    )
    return Header(
        test_run_date="03/02/2026 03:30 PM UTC",
        report_run_date="03/02/2026 07:20 PM UTC",
        page_title="IOPS Test (REQUIRED) - Report Page",
        specification="Solid State Storage Performance Test Specification (PTS)",
        subtitle="IOPS - Block Size x RW Mix Matrix",
        revision="PTS-E 2.0.2",
        vendor="Example",
        model="Data Centre Series 9000",
        sponsor="-",
        columns=columns,
    )


def sample_report(*, stamp: str = STAMP, figures: tuple[str, ...] = tuple(GALLERY)) -> ReportModel:
    """Return a report with a section of `figures` and a section with a long table."""
    plots = []
    data = DataFile("numbers.csv", csv_text(("a", "b"), [(1, 2.5)]))
    for number, kind in enumerate(figures):
        name, figure = f"f{number}", GALLERY[kind]()
        assert figure is not None
        svg = figure.svg.replace('"g-', f'"{name}-').replace("#g-", f"#{name}-")
        wide = kind == "3-D columns"
        plots.append(replace(figure, name=name, title=kind, svg=svg, data=data, wide=wide))
    rows = [(4096 << k % 9, 1000 * k + 0.5, f"{k}/{100 - k}") for k in range(60)]
    columns = (
        Column("Block size", kinds.BLOCK),
        Column("IOPS", kinds.decimals(1)),
        Column("R/W", kinds.RIGHT),
    )
    shown = table("Tabular data", columns, rows)
    sections, files = with_data(
        (
            Section("Figures", "All kinds.", tuple(plots)),
            Section("Tables", "", (), (shown,)),
        ),
        (data,),
    )
    lead, sections = with_lead(sections)
    return ReportModel(
        title="IOPS Test: Example Data Centre Series 9000, 960 GB",
        question="How many random I/Os per second does the drive sustain?",
        finding="It sustains 31,000 IOPS of random 4 KiB writes.",
        lead=lead,
        header=header(),
        disclosures=("Cells of 1 s instead of 60 s.",),
        verdict=Verdict("good", "Steady state in rounds 1 to 5", ("All three are steady.",)),
        key_figures=(KeyFigure("RND 4 KiB W", "31,000", "", "mean of the window"),),
        latency_figures=(),
        latency_note="",
        sections=sections,
        notes=("A note.",),
        footer=(("Command", "writecliff test iops --on sim:nvme-tlc-960"),),
        data=files,
        summary={"schema": "writecliff/iops/1"},
        stamp=stamp,
    )
