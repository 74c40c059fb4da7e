"""Repeat a published experiment."""

from __future__ import annotations

from pathlib import Path

from writecliff.cli.options import ListFlag
from writecliff.cli.output import emit_json, log, show_list, table
from writecliff.errors import ConfigError

GROUP = "validation and research", 3


def experiment(
    name: str | None = None,
    *,
    scale: float = 32.0,
    output: Path | None = None,
    list_: ListFlag = False,
    json: bool = False,
) -> int:
    """Repeat a published experiment on simulated drives and write a page of its results.

    Parameters
    ----------
    name
        A name from --list.
    scale
        Factor by which timed drives are smaller than the drives they represent.
    output
        The HTML file to write (default: NAME.html); an existing file is replaced.
    list_
        List the experiments.
    json
        Print all figures with their precondition, and "report", the page.
    """
    from writecliff.experiments import EXPERIMENTS, experiment
    from writecliff.report.pages import write_page

    if list_:
        known = [{"name": key, "about": about} for key, about in EXPERIMENTS.items()]
        return show_list("experiments", known, as_json=json)
    if name is None:
        raise ConfigError("no experiment given", hint="see `writecliff experiment --list`")
    if not 1.0 <= scale <= 192.0:
        raise ConfigError(f"--scale must be 1 to 192, not {scale:g}")
    runner, renderer = experiment(name)
    path = output or Path(f"{name}.html")
    log(f"{name}: takes some minutes on two cores")
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
