"""Repeat a published experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from writecliff.cli.output import emit_json, log, table
from writecliff.errors import ConfigError

GROUP = "validation and research", 3


def experiment(
    name: str | None = None,
    *,
    scale: float = 32.0,
    output: Path | None = None,
    list_: Annotated[bool, Parameter(name="--list")] = False,
    json: bool = False,
) -> int:
    """Repeat a published experiment on simulated drives and write a page about it.

    Parameters
    ----------
    name
        One of --list.
    scale
        By how much timed drives are smaller than the drive that they stand for.
    output
        The HTML file to write (default: NAME.html; an existing file is replaced).
    list_
        List the experiments.
    json
        Print all figures with the precondition that they belong to, and "report", the page.
    """
    from writecliff.experiments import EXPERIMENTS, experiment
    from writecliff.report.pages import write_page

    if list_:
        known = [{"name": key, "about": about} for key, about in EXPERIMENTS.items()]
        if json:
            emit_json({"experiments": known})
        else:
            print(table(("name", "about"), [(item["name"], item["about"]) for item in known]))
        return 0
    if name is None:
        raise ConfigError("which experiment?", hint="writecliff experiment --list names them")
    if not 1.0 <= scale <= 192.0:
        raise ConfigError(f"--scale is {scale:g}; it must be 1 to 192")
    runner, renderer = experiment(name)
    path = output or Path(f"{name}.html")
    log(f"{name}: some minutes on a machine of two cores")
    result = runner.run(scale=scale, log=log)
    write_page(renderer.page(result), path)
    figures = renderer.mapping(result)
    if json:
        emit_json({"report": path, **figures})
    else:
        print(f"precondition: {figures['precondition']}")
        for shown in renderer.tables(result):
            print(f"\n{shown.title}\n{table(shown.header, shown.rows)}")
        print(path)
    return 0
