"""Repeat a published experiment."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from writecliff.cli.options import ListFlag, OutputPath, Scheduler, on_scheduler
from writecliff.cli.output import JsonFlag, emit_json, log, show_list
from writecliff.cli.progress import work_shown
from writecliff.cli.screen import Screen
from writecliff.errors import ConfigError
from writecliff.lab.commands.answers import ExperimentList
from writecliff.parallel import watched

GROUP = "lab", 4


def experiment(
    name: str | None = None,
    *,
    live: bool = False,
    repeats: int = 3,
    trim: Literal["both", "on", "off"] = "both",
    scale: float | None = None,
    quick: bool = False,
    output: OutputPath = None,
    scheduler: Scheduler = None,
    list_: ListFlag = False,
    json: JsonFlag = False,
) -> int:
    """Repeat a published experiment on simulated drives and write a page of its results.

    Parameters
    ----------
    name
        Name from --list.
    live
        Run the application itself, with its own client, on a served drive; requires root.
    repeats
        Number of pairs of live trials under each condition, each with one trial without and one
        with streams.
    trim
        Mount file systems in a live experiment with discard (on), without discard (off), or run
        both variants.
    scale
        Factor by which to scale down timed drives (default: 32, or 96 with --quick).
    quick
        Write less data, for a quick check of fms-fio, and mark the report.
    output
        HTML file to write (default: NAME.html, NAME-live.html); an existing file is replaced. The
        run directories of a live experiment are in a folder next to the HTML file.
    scheduler
        Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT). Live
        experiments cannot run on Dask.
    list_
        List the experiments.
    """
    from writecliff.lab.experiments import ABOUT_LIVE, EXPERIMENTS, experiment
    from writecliff.report.pages import write_page

    if list_:
        rows = [{"name": key, "about": about} for key, about in EXPERIMENTS.items()]
        rows += [{"name": f"{key} --live", "about": about} for key, about in ABOUT_LIVE.items()]
        return show_list(ExperimentList(rows), as_json=json)
    if name is None:
        raise ConfigError(
            "no experiment was specified", hint="see `writecliff lab experiment --list`"
        )
    if scale is not None and not 1.0 <= scale <= 192.0:
        raise ConfigError(f"--scale must be 1 to 192, not {scale:g}")
    if quick and live:
        raise ConfigError("a live experiment does not accept --quick", hint="give --repeats 1")
    if live and scheduler is not None:
        raise ConfigError("a live experiment runs only on this machine", hint="drop --scheduler")
    if live:
        path = output or Path(f"{name}-live.html")
        result, renderer = _live(name, repeats, trim, path)
    else:
        runner, renderer = experiment(name)
        path = output or Path(f"{name}.html")
        if quick and not hasattr(runner, "QUICK"):
            raise ConfigError(f"{name} does not accept --quick", hint="drop --quick")
        settings = {"scale": 32.0, **(runner.QUICK if quick else {})}
        if scale is not None:
            settings["scale"] = scale
        log(f"{name}: takes a few minutes on two cores")
        with on_scheduler(scheduler), watched(work_shown(Screen())):
            result = runner.run(**settings, log=log)
    write_page(renderer.page(result), path)
    figures = renderer.mapping(result)
    if json:
        emit_json({"report": path, **figures})
    else:
        print(f"precondition: {figures['precondition']}")
        for shown in renderer.tables(result):
            print(f"\n{shown.title}\n{shown.grid().text()}")
        print(path)
    return 0


def _live(name: str, repeats: int, trim: str, page: Path) -> tuple[Any, ModuleType]:
    """Run a live experiment; return its result, and the module that renders it."""
    from writecliff.lab.experiments import live_application
    from writecliff.lab.experiments.live import page as renderer
    from writecliff.lab.experiments.live.trials import run_trials

    trims = {"both": (False, True), "on": (True,), "off": (False,)}[trim]
    if not 1 <= repeats <= 100:
        raise ConfigError(f"--repeats must be 1 to 100, not {repeats}")
    application = live_application(name)
    trials = 2 * repeats * len(trims)
    log(f"{name}: {trials} trials of a few minutes each on two cores")
    runs = page.with_suffix("")
    result = run_trials(application, repeats=repeats, trims=trims, folder=runs, log=log)
    return result, renderer
