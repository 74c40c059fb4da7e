"""Reports of runs: one self-contained HTML page, and the small stable JSON summary.

    base.py          `TestReport`: what the reports of all tests share
    iops.py, tp.py, lat.py, wsat.py, hir.py, xsr.py, ecw.py, dirth.py
                     the reports of the tests of the standard; with cells.py (loops of cells),
                     demand_intensity*.py (ECW and DIRTH) and wsat_data.py (WSAT)
    workload.py      the report of a load of one's own; with loads.py (what each step measured)
    campaigns/       the reports of published campaigns
    testdata.py      everything that a report needs of a run
    steady.py        steady state: sentences, table, figures, CSV, JSON
    latency.py       response times: key figures, table, JSON
    series.py        what happened inside steps
    compared.py      what reports give to comparisons besides headline figures: curves, grids
    sequence.py      steps over time with their block sizes as a second track
    header.py        the four-column header block of the standard
    disclosure.py    besides the test: interruptions, purge, deviations, disturbed steps, platform
    figures.py       figures of any test: convergence, window, histogram, confidence
    plots.py         generic figures: lines, two y axes, normalised curves, bars, expected against
                     found
    figures3d.py     3-D columns over two categories
    axes.py, style.py, colours.py
                     axes and series; the house style: matplotlib to static SVG; the colour of a
                     series, the same on the whole page
    interaction.py   what the script of a page must know of a drawing
    table.py, kinds.py
                     tables of values; how each kind of value is shown
    csvs.py          the numbers of figures and tables as CSV
    model.py         pages as plain data between tests and renderers
    pages.py, pdf.py pages of a run and about several, as HTML; the former as PDF
    headline.py      what a run is quoted by: figures with unit, direction and interval
    kept_figures.py  the same in a file of the run directory, for lists of many runs
    expectations.py  limits on these figures, and what became of them
    comparison/      runs side by side, and who is better
    suite_page.py    the page of a suite or sweep

A test has one entry in `procedures.registry`, which names its `TestReport`. A report is a function
of the run directory alone: it comes out the same, byte for byte, whenever it is made.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from writecliff.report.base import TestReport
    from writecliff.report.model import ReportModel
    from writecliff.store.rundir import RunDirectory

REPORT_NAME = "report.html"


def report_of(run: RunDirectory) -> TestReport:
    """The report of a run of any test or workload. Raises StoreError: of a test that this version
    does not have, damaged, or nothing measured yet.
    """
    from writecliff.procedures.registry import entry_of
    from writecliff.report.damage import damage_said
    from writecliff.report.testdata import load

    with damage_said(run.path):
        found: TestReport = entry_of(run.manifest.procedure).load_report()(load(run))
        return found


def build_report(run: RunDirectory) -> ReportModel:
    """The report of a run of any test, as data. Raises StoreError: see `report_of`."""
    from writecliff.report.damage import damage_said

    with damage_said(run.path):
        return report_of(run).model()


def write_report(
    run_dir: Path, output: Path | None = None, *, pdf: Path | None = None, csv: Path | None = None
) -> Path:
    """Write the report of a run as one HTML file and return its path.

    `output` defaults to `report.html` in the run directory. `pdf` is a file for the same report as
    PDF, `csv` a folder for the numbers of its figures and tables. Each file is whole or not there.
    Raises StoreError: no such run, nothing measured yet, or not writable; PdfUnavailableError,
    before anything is written.
    """
    from writecliff.report.pages import check_page
    from writecliff.store.rundir import RunDirectory

    check_page(run_dir / REPORT_NAME if output is None else output)
    return write_pages(report_of(RunDirectory.open(run_dir)), output, pdf=pdf, csv=csv)


def write_pages(
    report: TestReport,
    output: Path | None = None,
    *,
    pdf: Path | None = None,
    csv: Path | None = None,
) -> Path:
    """Write a report as `write_report` does, and return the path of the HTML file."""
    from writecliff.report.csvs import write_files
    from writecliff.report.damage import damage_said
    from writecliff.report.kept_figures import keep_figures
    from writecliff.report.pages import check_page, render_html
    from writecliff.store.files import write_atomically

    run_dir = report.data.run.path
    page = run_dir / REPORT_NAME if output is None else output
    check_page(page)
    with damage_said(run_dir):
        model = report.model()
        files = {page: render_html(model).encode(errors="replace")}
        if pdf is not None:
            from writecliff.report.pdf import render_pdf

            files[pdf] = render_pdf(model)
    for path, data in files.items():
        write_atomically(path, data)
    if csv is not None:
        write_files(model.data, csv)
    with damage_said(run_dir):
        keep_figures(report)
    return page


def summarise(run_dir: Path) -> dict[str, Any]:
    """The summary of a run as JSON-able values; see docs/reference/json.md. Draws nothing.

    Raises StoreError: no such run, or nothing measured yet.
    """
    from writecliff.report.damage import damage_said
    from writecliff.store.rundir import RunDirectory

    with damage_said(run_dir):
        return report_of(RunDirectory.open(run_dir)).summary()
