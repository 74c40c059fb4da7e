"""Run one workload (.fio or .toml) on a drive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from writecliff.cli.options import NO_TARGET, TargetOptions, Whole, opened
from writecliff.cli.output import emit_json, log
from writecliff.cli.results import result_mapping, result_table
from writecliff.cli.screen import Screen
from writecliff.cli.ticker import Ticker
from writecliff.errors import ConfigError
from writecliff.workload.load import WorkloadFile, check_workload_path, load_workload

if TYPE_CHECKING:
    from writecliff.engines.base import Engine, StepResult

GROUP = "workloads and traces", 1


def run(
    file: Path,
    *,
    target: TargetOptions = NO_TARGET,
    seed: Whole = None,
    precondition: Literal["none", "fill", "sustained", "act"] = "none",
    output_format: Literal["table", "json", "fio-json"] = "table",
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Run a job or workload file on a drive and show the results.

    Parameters
    ----------
    file
        A fio job file (.fio), a workload file (.toml), or the name of a ready-made workload
        (`writecliff profile list`).
    seed
        Seed of all random choices (default: that of the file).
    precondition
        State to bring the drive to first. fill: write the whole capacity once, 128 KiB
        sequentially; sustained: then twice, 4 KiB at random; act: twice sequentially, as for ACT.
        Simulated drives are prepared once and cached; on a real drive this takes hours.
    output_format
        table for people, json (stable and small, times in ns), or fio-json as fio prints it.
    json
        Same as --output-format json.
    quiet
        Show no progress and no notes on stderr.
    """
    form = "json" if json else output_format
    from writecliff.profiles import find_workload

    file = find_workload(file)
    check_workload_path(file)
    if form == "fio-json" and file.suffix != ".fio":
        raise ConfigError(
            f"--output-format fio-json is for fio job files, not for {file}", hint="use --json"
        )
    from writecliff.engines.preconditioned import precondition as bring_to_state
    from writecliff.engines.state_cache import StateCache

    screen = Screen(quiet=quiet)
    with opened(target, seed=1 if seed is None else seed) as engine:
        load = load_workload(file, capacity_bytes=engine.identify().capacity_bytes, seed=seed)
        for note in load.notes:
            screen.log(f"note: {note}")
        ticker = Ticker()
        with screen.showing(ticker.render):
            bring_to_state(engine, precondition, cache=StateCache.of_user(), on_progress=ticker)
            _keep_event_log(engine)
            results = []
            for ramp, workload in load.steps:
                if ramp is not None:
                    engine.run(ramp, ticker)
                results.append(engine.run(workload, ticker))
                for warning in results[-1].warnings:
                    log(f"warning: {warning}")
        _show(load, results, form, engine)
        if load.fio is not None:
            from writecliff.engines.fiologs import write_logs

            write_logs(load.fio, results)
    return 0


def _keep_event_log(engine: Engine) -> None:
    """Of a simulated drive with FDP: it logs only what its host has enabled."""
    from writecliff.engines.sim import SimEngine

    if isinstance(engine, SimEngine):
        engine.data_placement.fdp.enable_all_events()


def _show(load: WorkloadFile, results: list[StepResult], form: str, engine: Engine) -> None:
    if form == "json":
        steps = [result_mapping(w, r) for w, r in zip(load.workloads, results, strict=True)]
        from writecliff.report.comparison.answers import RUN_SCHEMA

        target = engine.identify().target
        emit_json({"schema": RUN_SCHEMA, "file": load.path, "target": target, "steps": steps})
    elif form == "fio-json":
        from writecliff.engines.fiojson import fio_json

        assert load.fio is not None
        emit_json(fio_json(load.fio, results))
    else:
        titles = len(results) > 1
        for workload, result in zip(load.workloads, results, strict=True):
            print((f"{workload.name}\n" if titles else "") + result_table(result))
