"""Run one workload (.fio or .toml) on a drive."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from writecliff.cli.output import count_text, emit_json, factor_text, talk
from writecliff.cli.results import result_mapping, result_table
from writecliff.cli.target_options import NO_TARGET, TargetOptions, opened
from writecliff.cli.values import Whole
from writecliff.errors import ConfigError
from writecliff.workload.load import WorkloadFile, check_workload_path, load_workload

if TYPE_CHECKING:
    from writecliff.engines.base import Engine, Progress, StepResult
    from writecliff.workload.model import Workload

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
    """Run one job or workload file on a drive and show what it measured.

    Parameters
    ----------
    file
        A fio job file (.fio), a workload file (.toml), or the name of a ready workload
        (`writecliff profile list`).
    seed
        Fixes every random choice (default: that of the file).
    precondition
        State to bring the drive to first. fill: the whole capacity once, 128 KiB in order;
        sustained: then twice, 4 KiB at random; act: twice in order, as for ACT. A simulated drive
        is made once and cached; on a real one it takes hours.
    output_format
        table for people, json (stable, small; times in ns), or fio-json as fio prints it.
    json
        Same as --output-format json.
    quiet
        No progress and no notes on stderr.
    """
    form = "json" if json else output_format
    from writecliff.profiles import find_workload

    file = find_workload(file)
    check_workload_path(file)
    if form == "fio-json" and file.suffix != ".fio":
        raise ConfigError(
            f"--output-format fio-json is for fio job files, not for {file}", hint="use --json"
        )
    with opened(target, seed=1 if seed is None else seed) as engine:
        load = load_workload(file, capacity_bytes=engine.identify().capacity_bytes, seed=seed)
        for note in () if quiet else load.notes:
            talk(f"note: {note}")
        _precondition(engine, precondition, live=not quiet and sys.stderr.isatty())
        _keep_event_log(engine)
        results = [
            _run_step(engine, ramp, workload, live=not quiet and sys.stderr.isatty())
            for ramp, workload in load.steps
        ]
        _show(load, results, form, engine)
    return 0


def _precondition(engine: Engine, name: str, *, live: bool) -> None:
    from writecliff.engines.preconditioned import StateCache, default_folder, precondition

    ticker = _Ticker(live)
    try:
        precondition(engine, name, cache=StateCache(default_folder()), on_progress=ticker)
    finally:
        ticker.done()


def _keep_event_log(engine: Engine) -> None:
    """Of a simulated drive with FDP: it logs only what its host has enabled."""
    from writecliff.engines.sim import SimEngine

    if isinstance(engine, SimEngine):
        engine.placement.fdp.enable_all_events()


def _run_step(
    engine: Engine, ramp: Workload | None, workload: Workload, *, live: bool
) -> StepResult:
    ticker = _Ticker(live)
    try:
        if ramp is not None:
            engine.run(ramp, ticker)
        result = engine.run(workload, ticker)
    finally:
        ticker.done()
    for warning in result.warnings:
        talk(f"warning: {warning}")
    return result


def _show(load: WorkloadFile, results: list[StepResult], form: str, engine: Engine) -> None:
    if form == "json":
        steps = [result_mapping(w, r) for w, r in zip(load.workloads, results, strict=True)]
        emit_json({"file": load.path, "target": engine.identify().target, "steps": steps})
    elif form == "fio-json":
        from writecliff.engines.fiojson import fio_json

        assert load.fio is not None
        emit_json(fio_json(load.fio, results))
    else:
        titles = len(results) > 1
        for workload, result in zip(load.workloads, results, strict=True):
            print((f"{workload.name}\n" if titles else "") + result_table(result))


class _Ticker:
    """Live figures on one line of a terminal, about four times a second; nothing in a log."""

    def __init__(self, live: bool) -> None:
        self._live = live
        self._last_s = 0.0

    def __call__(self, progress: Progress) -> None:
        now_s = time.monotonic()
        if not self._live or now_s - self._last_s < 0.25:
            return
        self._last_s = now_s
        share = "" if progress.fraction is None else f"{100 * progress.fraction:3.0f} %  "
        waf = "" if progress.waf is None else f"  WAF {factor_text(progress.waf)}"
        sys.stderr.write(f"\r{share}{count_text(progress.iops)} IOPS{waf}\x1b[K")
        sys.stderr.flush()

    def done(self) -> None:
        if self._live and self._last_s:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
