"""Write the report of a run."""

from __future__ import annotations

from pathlib import Path

from writecliff.cli.cmd_compare import paper_of
from writecliff.cli.options import OutputPath
from writecliff.cli.output import JsonFlag, emit_json

GROUP = "tests and suites", 3


def report(
    run: Path,
    *,
    output: OutputPath = None,
    pdf: bool = False,
    csv: OutputPath = None,
    power: Path | None = None,
    power_offset: float = 0.0,
    json: JsonFlag = False,
) -> int:
    """Write a run's report, and print the report's path and a one-line outcome.

    Parameters
    ----------
    run
        Run directory, as printed by `writecliff test`.
    output
        HTML file to write (default: report.html in the run directory).
    pdf
        Also write report.pdf next to the HTML file.
    csv
        Write the data of every plot and table to this folder as CSV. The folder is created if
        needed.
    power
        Power meter log (CSV: seconds, watts). The log is copied to the run directory, and reports
        of the IOPS test and the block size comparison show power over time.
    power_offset
        Time in the power log at which the first step of the run started, in seconds.
    """
    from writecliff.api import load_run

    opened = load_run(run)
    page = output or opened.page
    paper = paper_of(page, output, pdf=pdf, csv=csv)
    if power is not None:
        opened.add_power(power, offset_s=power_offset)
        opened = load_run(run)
    opened.write_pages(page, pdf=paper, csv=csv)
    if json:
        from writecliff.api.answers.tests import ReportFiles

        emit_json(ReportFiles(page, paper, csv, opened.summary))
    else:
        print(*filter(None, (page, paper, csv)), opened.verdict, sep="\n")
    return 0
