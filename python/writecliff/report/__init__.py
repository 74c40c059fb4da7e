"""Reports of runs: one self-contained HTML page, and the small stable JSON summary.

    testdata.py      everything that any test's report needs, read from a run directory
    data.py          what only WSAT's report needs
    summary.py       the summary: what programs read ("writecliff/wsat/1")
    header.py        the four-column header block of the standard
    disclosure.py    what the reader must know first: interruptions, purge, deviations
    wsat.py          the `ReportModel` of the write saturation test
    wsat_figures.py  its figures
    loops.py         what reports of tests with rounds of cells share: IOPS, throughput, latency
    iops.py, tp.py, lat.py   the pages of these
    campaigns/       the pages of published campaigns
    parts.py         tables, notes and footer that reports of several tests have
    figures.py       figures of any test: convergence, steady window, histogram, confidence
    plots.py         generic figures: lines, two y axes, normalised curves, two settings, bars
    figures3d.py     3-D columns over two categories
    axes.py          axes and series of the generic figures, one unit for each axis
    csvs.py          the numbers of figures and tables as CSV
    style.py         the house style of figures: matplotlib to static SVG, same bytes every time
    model.py         `ReportModel`: plain data between the procedures and the renderer
    render.py        jinja2: the model as one HTML file
    pdf.py           the same page as PDF

A report is a function of the run directory alone, so that it comes out the same, byte for byte,
whenever it is made.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import StoreError

if TYPE_CHECKING:
    from writecliff.report.model import ReportModel
    from writecliff.store.rundir import RunDirectory

REPORT_NAME = "report.html"


def build_report(run: RunDirectory) -> ReportModel:
    """The report of a run of any test, as data. Raises StoreError: see `write_report`."""
    from writecliff.report.extras import with_extras

    return with_extras(_module(run).report(run), run)


def write_report(
    run_dir: Path, output: Path | None = None, *, pdf: Path | None = None, csv: Path | None = None
) -> Path:
    """Write the report of a run as one HTML file and return where it is.

    `output` defaults to `report.html` in the run directory. `pdf` is a file for the same report as
    PDF, `csv` a folder for the numbers of its figures and tables. Each file is whole or not there.
    Raises StoreError: no such run, nothing measured yet, or not writable; PdfUnavailableError,
    before anything is written.
    """
    from writecliff.report.csvs import data_files, write_files
    from writecliff.report.render import render_html
    from writecliff.store.files import write_atomically
    from writecliff.store.rundir import RunDirectory

    run = RunDirectory.open(run_dir)
    model = build_report(run)
    path = run_dir / REPORT_NAME if output is None else output
    files = {path: render_html(model).encode()}
    if pdf is not None:
        from writecliff.report.pdf import render_pdf

        files[pdf] = render_pdf(model)
    numbers = data_files(model) if csv is not None else ()
    for place, data in files.items():
        write_atomically(place, data)
    if csv is not None:
        write_files(numbers, csv)
    return path


def summarise(run_dir: Path) -> dict[str, Any]:
    """The summary of a run as JSON-able values; see docs/reference/json.md.

    Raises StoreError: no such run, or nothing measured yet.
    """
    from writecliff.store.rundir import RunDirectory

    run = RunDirectory.open(run_dir)
    values: dict[str, Any] = _module(run).summary_of(run)
    return values


def _module(run: RunDirectory) -> Any:
    from writecliff.procedures.registry import PROCEDURES

    name = run.manifest.procedure
    if name not in PROCEDURES:
        raise StoreError(
            f"{run.path} is a run of {name}, which has no report",
            hint=f"tests with reports: {', '.join(PROCEDURES)}",
        )
    return PROCEDURES[name].load_report()
