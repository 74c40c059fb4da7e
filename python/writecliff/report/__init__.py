"""Run reports: a self-contained HTML page, and the small stable JSON summary.

    base.py          `TestReport`: shared by the reports of all tests
    iops.py, tp.py, lat.py, wsat.py, hir.py, xsr.py, ecw.py, dirth.py
                     the reports of the tests of the standard; with cells.py (loops of cells),
                     demand_intensity*.py (ECW and DIRTH) and wsat_data.py (WSAT)
    workload.py      the report of a user's workload; with loads.py (results by step)
    campaigns/       the reports of published campaigns
    testdata.py      the data of a run that reports read
    steady.py        steady state: sentences, table, figures, CSV, JSON
    latency.py       response times: key figures, table, JSON
    series.py        time series within steps
    compared.py      curves and grids of figures for comparisons
    sequence.py      steps over time with their block sizes as a second track
    header.py        the four-column header block of the standard
    disclosure.py    interruptions, purge, deviations, disturbed steps, platform
    figures.py       figures of any test: convergence, window, histogram, confidence
    plots.py         generic figures: lines, two y axes, normalised curves, bars, expected against
                     measured
    figures3d.py     3-D columns over two categories
    axes.py, style.py, colours.py
                     axes and series; the house style: matplotlib to static SVG; the colour of a
                     series, the same on the whole page
    interaction.py   data about a drawing for the script of the page
    table.py, kinds.py
                     tables of values; the format of each kind of value
    csvs.py          the numbers of figures and tables as CSV
    model.py         pages as plain data between tests and renderers
    pages.py, pdf.py pages of one run or several, as HTML; those of one run as PDF
    headline.py      headline figures of a run, with unit, direction and interval
    kept_figures.py  headline figures in a file of the run directory, for lists of runs
    expectations.py  limits on headline figures, and their verdicts
    comparison/      runs side by side, and the verdict
    suite_page.py    the page of a suite or sweep

Each test has an entry in `procedures.registry` that names its `TestReport`. A report depends only
on the run directory, and is byte-identical whenever it is written.
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
    """Return the report of a run of any test or workload.

    Raises:
        StoreError: If the run is damaged or has no measurements, or this version lacks its test.
    """
    from writecliff.procedures.registry import entry_of
    from writecliff.report.damage import damage_reported
    from writecliff.report.testdata import load

    with damage_reported(run.path):
        report: TestReport = entry_of(run.manifest.procedure).load_report()(load(run))
        return report


def build_report(run: RunDirectory) -> ReportModel:
    """Return a run's report as data, for any test.

    Raises:
        StoreError: see `report_of`.
    """
    from writecliff.report.damage import damage_reported

    with damage_reported(run.path):
        return report_of(run).model()


def write_report(
    run_dir: Path, output: Path | None = None, *, pdf: Path | None = None, csv: Path | None = None
) -> Path:
    """Write a run's report as an HTML file and return its path.

    Each file is written atomically.

    Args:
        run_dir: Run directory.
        output: HTML file (default: `report.html` in the run directory).
        pdf: PDF file for the same report.
        csv: Folder for CSV files of the report's figures and tables.

    Raises:
        StoreError: If the run does not exist, has no measurements, or a file cannot be written.
        PdfUnavailableError: If the PDF cannot be rendered; nothing has been written then.
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
    """Write a report like `write_report`, and return the path of the HTML file."""
    from writecliff.report.csvs import write_files
    from writecliff.report.damage import damage_reported
    from writecliff.report.kept_figures import keep_figures
    from writecliff.report.pages import check_page, render_html
    from writecliff.store.files import write_atomically

    run_dir = report.data.run.path
    page = run_dir / REPORT_NAME if output is None else output
    check_page(page)
    with damage_reported(run_dir):
        model = report.model()
        files = {page: render_html(model).encode(errors="replace")}
        if pdf is not None:
            from writecliff.report.pdf import render_pdf

            files[pdf] = render_pdf(model)
    for path, data in files.items():
        write_atomically(path, data)
    if csv is not None:
        write_files(model.data, csv)
    with damage_reported(run_dir):
        keep_figures(report)
    return page


def summarise(run_dir: Path) -> dict[str, Any]:
    """Return a run's summary as JSON-compatible values, without drawing figures.

    The summary format is documented in docs/reference/json.md.

    Raises:
        StoreError: If the run does not exist or has no measurements.
    """
    from writecliff.report.damage import damage_reported
    from writecliff.store.rundir import RunDirectory

    with damage_reported(run_dir):
        return report_of(RunDirectory.open(run_dir)).summary()
