"""`writecliff report RUN`: the report of a run as one HTML file, or its figures as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from writecliff.cli.output import emit_json
from writecliff.errors import ConfigError


def report(
    run: Path,
    *,
    output: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Write the report of a run and print where it is.

    Parameters
    ----------
    run
        The run directory that `writecliff test` named.
    output
        The HTML file to write (default: report.html in the run directory).
    json
        Print {"report": PATH, "summary": {...}} with the run's figures.
    """
    from writecliff.procedures.journal import stored_run
    from writecliff.report import summarise, write_report

    stored_run(run)  # says clearly what is wrong if there is no run
    if output is not None and output.is_dir():
        raise ConfigError(f"{output} is a directory", hint=f"give a file: {output / 'report.html'}")
    if output is not None and not output.parent.is_dir():
        raise ConfigError(f"{output.parent} is not a directory", hint="make it first")
    path = write_report(run, output)
    if json:
        emit_json({"report": path, "summary": summarise(run)})
    else:
        print(path)
    return 0
