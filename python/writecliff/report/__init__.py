"""Run reports in the form of a self-contained HTML page and a small stable JSON summary.

    base.py          `TestReport`, the base class of all test reports
    iops.py, tp.py, lat.py, wsat.py, hir.py, xsr.py, ecw.py, dirth.py
                     reports for the standard's tests; cells.py implements cell loops,
                     demand_intensity*.py serve ECW and DIRTH, and wsat_data.py serves WSAT
    workload.py      report for a user's workload; loads.py tabulates results by step
    campaigns/       reports for published campaigns
    testdata.py      run data that reports read
    steady.py        steady state as sentences, table, figures, CSV and JSON
    latency.py       response times as key figures, table and JSON
    series.py        time series within steps
    compared.py      curves and grids that comparisons show
    sequence.py      steps over time, with their block sizes as a second track
    header.py        the standard's four-column header block
    disclosure.py    interruptions, purge, deviations, disturbed steps and platform
    figures.py       figures for any test: convergence, window, histogram and confidence
    plots.py         generic figures: lines, two y axes, normalised curves, bars, and a plot of
                     expected against measured values
    figures3d.py     3-D columns over two categories
    axes.py, style.py, colours.py
                     axes and series, the house style for static matplotlib SVG, and the series
                     colours, which are consistent across a page
    interaction.py   drawing data for the page's script
    table.py, kinds.py
                     tables of values, and the format of each kind of value
    csvs.py          figure and table data as CSV
    model.py         pages as plain data between tests and renderers
    pages.py, pdf.py pages for one or several runs as HTML, and for a single run as PDF
    headline.py      a run's headline figures with unit, direction and interval
    kept_figures.py  headline figures stored in the run directory, for run lists
    expectations.py  limits on headline figures, and their verdicts
    comparison/      comparisons of runs, with a verdict
    suite_page.py    page for a suite or sweep

Each test has an entry in `procedures.registry` that names its `TestReport`. A report depends only
on the run directory, so repeated reports are byte-identical.
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
        StoreError: If the run is damaged or has no measurements, or if this version does not
            include its test.
    """
    from writecliff.procedures.registry import entry_of
    from writecliff.report.damage import damage_reported
    from writecliff.report.testdata import load

    with damage_reported(run.path):
        report: TestReport = entry_of(run.manifest.procedure).load_report()(load(run))
        return report


def build_report(run: RunDirectory) -> ReportModel:
    """Return the report of any test's run as data.

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
        StoreError: If the run does not exist or has no measurements, or if a file cannot be
            written.
        PdfUnavailableError: If the PDF cannot be rendered; no file has been written in this case.
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
    """Return a run's summary as JSON-compatible values; no figures are drawn.

    The summary format is documented in docs/reference/json.md.

    Raises:
        StoreError: If the run does not exist or has no measurements.
    """
    from writecliff.report.damage import damage_reported
    from writecliff.store.rundir import RunDirectory

    with damage_reported(run_dir):
        return report_of(RunDirectory.open(run_dir)).summary()
