"""Reports of runs: one self-contained HTML page, and the small stable JSON summary.

    data.py          everything a report needs, read from a run directory
    summary.py       the summary: what programs read ("writecliff/wsat/1")
    header.py        the four-column header block of the standard
    disclosure.py    what the reader must know first: interruptions, purge, deviations
    wsat.py          the `ReportModel` of the write saturation test
    wsat_figures.py  its figures
    figures.py       figures that any test has: steady-state window, histogram, confidence
    style.py         the house style of figures: matplotlib to static SVG, same bytes every time
    units.py         numbers for people: fixed units, never flipping within an axis
    model.py         `ReportModel`: plain data between the procedures and the renderer
    render.py        jinja2: the model as one HTML file

A report is a function of the run directory alone, so that it comes out the same, byte for byte,
whenever it is made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

REPORT_NAME = "report.html"


def write_report(run_dir: Path, output: Path | None = None) -> Path:
    """Write the report of a run as one HTML file and return where it is.

    `output` defaults to `report.html` in the run directory. The file is whole or not there.
    Raises StoreError: no such run, nothing measured yet, or not writable.
    """
    from writecliff.report.render import render_html
    from writecliff.report.wsat import wsat_report
    from writecliff.store.files import write_atomically
    from writecliff.store.rundir import RunDirectory

    run = RunDirectory.open(run_dir)
    page = render_html(wsat_report(run))
    path = run_dir / REPORT_NAME if output is None else output
    write_atomically(path, page.encode())
    return path


def summarise(run_dir: Path) -> dict[str, Any]:
    """The summary of a run as JSON-able values; see docs/reference/json.md.

    Raises StoreError: no such run, or nothing measured yet.
    """
    from writecliff.report.data import load
    from writecliff.report.summary import summary
    from writecliff.store.rundir import RunDirectory

    return summary(load(RunDirectory.open(run_dir)))
