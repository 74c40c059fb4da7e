"""Write the report of a run."""

from __future__ import annotations

from pathlib import Path

from writecliff.cli.output import emit_json
from writecliff.errors import ConfigError

GROUP = "tests and suites", 3


def report(
    run: Path,
    *,
    output: Path | None = None,
    pdf: bool = False,
    csv: Path | None = None,
    json: bool = False,
) -> int:
    """Write the report of a run; print its path and the outcome in one line.

    Parameters
    ----------
    run
        The run directory, as printed by `writecliff test`.
    output
        The HTML file to write (default: report.html in the run directory).
    pdf
        Also write it as PDF, next to the HTML file: report.pdf.
    csv
        A folder for the data of every figure and table as CSV; created if needed.
    json
        Print {"report": PATH, "pdf": PATH, "csv": PATH, "summary": {...}} with the run's figures.
    """
    from writecliff.api import Run, write_report
    from writecliff.report import REPORT_NAME
    from writecliff.store.manifest import read_manifest

    read_manifest(run)  # a clear error if it is not a run directory
    page = run / REPORT_NAME if output is None else output
    paper = page.with_suffix(".pdf") if pdf else None
    if paper == page:
        raise ConfigError(f"{page} cannot be HTML and PDF", hint=f"--output {page.stem}.html --pdf")
    for file in filter(None, (output, paper)):
        if file.is_dir():
            raise ConfigError(f"{file} is a directory", hint=f"give a file: {file / REPORT_NAME}")
    for path, given in ((page, output), (csv, csv)):
        if path is not None and given is not None and not path.parent.is_dir():
            raise ConfigError(f"{path.parent} is not a directory", hint="create it first")
    if csv is not None and csv.exists() and not csv.is_dir():
        raise ConfigError(f"{csv} is not a directory", hint="give a folder for the CSV files")
    write_report(run, output=page, pdf=paper, csv=csv)
    if json:
        shown = {"report": page, "pdf": paper, "csv": csv, "summary": Run(run).summary}
        emit_json(shown, "report")
    else:
        print(*filter(None, (page, paper, csv)), Run(run).verdict, sep="\n")
    return 0
