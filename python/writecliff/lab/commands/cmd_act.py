"""Run ACT from its own configuration files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

from writecliff.cli.options import NEW_RUN, NO_TARGET, RunOptions, TargetOptions
from writecliff.cli.output import JsonFlag, emit_json, log
from writecliff.cli.runner import run_test
from writecliff.errors import ConfigError
from writecliff.lab.commands.answers import ActLatency, ActLog

if TYPE_CHECKING:
    from writecliff.procedures.campaigns.act_judge import Slice, Trial
    from writecliff.report.testdata import TestData

GROUP = "lab", 7
app = App(name="act", help=__doc__)


@app.command
def run(
    config: Path,
    *,
    target: TargetOptions = NO_TARGET,
    run: RunOptions = NEW_RUN,
    quick: bool = False,
    json: JsonFlag = False,
) -> int:
    """Run ACT from a configuration file of any ACT version from 2.x to 6.x.

    The test runs on the drive given by --on; rates in the file are per device. `writecliff test
    act` runs the same test from command-line options.

    Parameters
    ----------
    config
        ACT configuration file.
    quick
        Run a shortened test for demonstrations, and stamp the report.
    """
    from writecliff.procedures.campaigns.act_config import read_config

    act_config = read_config(config)
    for note in act_config.notes:
        log(f"note: {note}")
    for device in act_config.devices:
        if device != target.on:
            log(f"note: {config} names {device}, but the test runs on the drive given by --on")
    options = dict(act_config.options)
    if quick:
        for name in ("test_duration_sec", "report_interval_sec"):
            options.pop(name, None)
        options["quick"] = True
    return run_test("act", options, target, run, as_json=json)


@app.command(name="log")
def print_log(run: Path, *, json: JsonFlag = False) -> int:
    """Print the log of a run in ACT's format, for tools that parse ACT logs.

    Parameters
    ----------
    run
        Run directory of an `act` test.
    """
    from writecliff.report.campaigns.act_text import log_text
    from writecliff.report.damage import damage_reported

    with damage_reported(run):
        text = log_text(*_tested(run))
    if json:
        emit_json(ActLog.of({"run": run, "log": text}))
    else:
        sys.stdout.write(text)
    return 0


@app.command
def latency(run: Path, *, json: JsonFlag = False) -> int:
    """Print a run's latency table in the output format of ACT's act_latency.py.

    Parameters
    ----------
    run
        Run directory of an `act` test.
    """
    from writecliff.report.campaigns.act_text import procedure_of, slices, table_text
    from writecliff.report.damage import damage_reported

    with damage_reported(run):
        data, trial = _tested(run)
        done = slices(data, trial)
    if not done:
        raise ConfigError(f"{run} contains no complete slice", hint="see `writecliff lab act log`")
    if json:
        emit_json(ActLatency.of({"run": run, "slices": [_slice(row) for row in done]}))
        return 0
    sys.stdout.write(table_text(done, old=procedure_of(data).options.model == "3.x"))
    return 0


def _slice(row: Slice) -> dict[str, float]:
    over = {f"over_{ms}ms_pct": share for ms, share in row.over_pct.items()}
    return {"slice": row.number, "reads": row.reads, **over}


def _tested(path: Path) -> tuple[TestData, Trial]:
    from writecliff.report.campaigns.act_text import certified
    from writecliff.report.testdata import load
    from writecliff.store.rundir import RunDirectory

    data = load(RunDirectory.open(path))
    if data.manifest.procedure != "act":
        raise ConfigError(
            f"{path} is a run of {data.manifest.procedure}, not of act",
            hint="specify a run of `writecliff lab act run` or `writecliff test act`",
        )
    trial = certified(data)
    if trial is None:
        raise ConfigError(
            f"{path} contains no complete test", hint="none of the loads in the search passed"
        )
    return data, trial
