"""From parsed options to a finished run: what every `writecliff test NAME` does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.cli.output import emit_json, pairs
from writecliff.cli.progress import ProgressView, written_text
from writecliff.cli.run_options import RunOptions
from writecliff.cli.screen import Screen
from writecliff.cli.target_options import TargetOptions, opened
from writecliff.errors import ConfigError, TargetError
from writecliff.procedures.registry import procedure_from_mapping

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity
    from writecliff.procedures.framework import RunOutcome
    from writecliff.procedures.model import Estimate, Plan, Procedure


def run_test(
    name: str, given: Mapping[str, Any], target: TargetOptions, run: RunOptions, *, as_json: bool
) -> int:
    """Run the test `name` with the options that were `given`, or go on with `run.resume`."""
    if run.resume is not None:
        procedure, target, directory = _taken_up(name, given, target, run)
    else:
        procedure = procedure_from_mapping(name, given)
        directory = run.output or _new_directory(name, target.on or "drive")
    with opened(target, seed=procedure.seed) as engine:
        if run.dry_run:
            identity = engine.identify()
            from writecliff.procedures.estimate import with_estimate

            _show_plan(
                with_estimate(procedure.plan(identity), procedure, engine), identity, as_json
            )
            return 0
        check_permission(engine.identify(), target)
        from writecliff.procedures.framework import run_procedure

        outcome = run_procedure(
            procedure,
            engine,
            directory,
            ProgressView(Screen(quiet=run.quiet)),
            resume=run.resume is not None,
        )
    from writecliff.report import write_report

    _show_outcome(outcome, write_report(outcome.run_directory), as_json)
    return 0


def check_permission(identity: DeviceIdentity, target: TargetOptions) -> None:
    """Refuse before anything is made on disk; the engine itself refuses to write as well."""
    if (target.on or "").startswith("/dev/") and target.destroy is None:
        who = " ".join(filter(None, (identity.vendor, identity.model))) or "a drive"
        size = units.size(identity.capacity_bytes)
        if identity.serial:
            number, consent = f"serial number {identity.serial}", "that serial number"
        else:
            number, consent = "no serial number", f"its path, {target.on}"
        raise TargetError(
            f"this test destroys all data on {target.on} ({who}, {size}, {number})",
            hint=f"to confirm, repeat the command with --destroy and {consent}",
        )


def _taken_up(
    name: str, given: Mapping[str, Any], target: TargetOptions, run: RunOptions
) -> tuple[Procedure, TargetOptions, Path]:
    """Procedure, target and directory of the run to go on with."""
    from writecliff.store.rundir import RunDirectory

    assert run.resume is not None
    if given:
        option = next(iter(given)).replace("_", "-")
        raise ConfigError(
            f"--{option} cannot be given with --resume",
            hint="a run goes on with the options it was started with",
        )
    if run.output is not None:
        raise ConfigError("--output cannot be given with --resume", hint="drop --output")
    stored = RunDirectory.open(run.resume).manifest
    if stored.procedure != name:
        raise ConfigError(
            f"{run.resume} is a run of {stored.procedure}, not of {name}",
            hint=f"writecliff test {stored.procedure} --resume {run.resume}",
        )
    procedure = procedure_from_mapping(stored.procedure, stored.options)
    if target.on is None:
        target = replace(target, on=stored.device.target)
    return procedure, target, run.resume


def _new_directory(name: str, target: str) -> Path:
    """`runs/wsat-sim-sata-tlc-120-20260131-142501`."""
    short = re.sub(r"[^A-Za-z0-9.]+", "-", target).strip("-")
    return Path("runs") / f"{name}-{short}-{datetime.now():%Y%m%d-%H%M%S}"


def _show_plan(plan: Plan, identity: DeviceIdentity, as_json: bool) -> None:
    if as_json:
        emit_json(
            {
                "dry_run": True,
                "target": identity,
                "plan": {**vars(plan), "deviations": [vars(d) for d in plan.deviations]},
            }
        )
        return
    who = " ".join(filter(None, (identity.vendor, identity.model, identity.serial)))
    print(f"{plan.title} on {identity.target}: {who}, {units.size(identity.capacity_bytes)}\n")
    for number, phase in enumerate(plan.phases, 1):
        print(f"{number}. {phase}")
    print()
    print(
        pairs(
            (
                ("steps", _bounds(str(plan.steps_min), _optional(plan.steps_max, str))),
                (
                    "device time",
                    _bounds(
                        units.duration(plan.device_time_min_ns),
                        _optional(plan.device_time_max_ns, units.duration),
                    ),
                ),
                ("written", written_text(plan, identity)),
                *estimate_lines(plan.estimate, identity),
                *(("deviation", str(deviation)) for deviation in plan.deviations),
            )
        )
    )
    print("\nnothing was done (--dry-run)")


def estimate_lines(estimate: Estimate | None, identity: DeviceIdentity) -> list[tuple[str, str]]:
    """What a run is expected to take, and how that is known."""
    if estimate is None:
        why = "no pilot could be run" if identity.simulated else "a real drive has no pilot runs"
        return [("expected", f"within these bounds; {why}")]
    what = [
        f"{units.duration(estimate.device_time_ns)} of device time",
        f"{units.size(estimate.write_bytes)} written ({estimate.drive_fills:.2f} drive fills)",
        f"{units.size(estimate.read_bytes)} read" if estimate.read_bytes else "",
    ]
    loops = ", ".join(f"{phase} {count}" for phase, count in estimate.rounds.items())
    counts = [f"{estimate.steps} steps", f"complete rounds: {loops}" if loops else ""]
    pilots = "a pilot" if estimate.pilots == 1 else f"{estimate.pilots} pilots, the last"
    apart = "" if estimate.apart_pct is None else f"; the last two {estimate.apart_pct:.1f} % apart"
    return [
        ("expected", ", ".join(filter(None, what))),
        ("", "; ".join(filter(None, counts))),
        ("", f"roughly {units.duration(estimate.wall_time_s * 1e9)} of wall time on this machine"),
        ("", f"by {pilots} at 1/{estimate.scale:.3g} scale, in {estimate.took_s:.1f} s{apart}"),
    ]


def _optional(value: Any, text: Any) -> str | None:
    return None if value is None else text(value)


def _bounds(low: str, high: str | None) -> str:
    if high is None:
        return f"{low} or more"
    return low if low == high else f"{low} to {high}"


def _show_outcome(outcome: RunOutcome, report: Path, as_json: bool) -> None:
    from writecliff.report.steady import SteadyView, views_text

    last = outcome.history.rows[-1]
    stages = [stage for stage in outcome.history.stages.values() if stage.tracker is not None]
    views = [SteadyView(stage, stage.phase) for stage in stages]
    if as_json:
        emit_json(
            {
                "run": outcome.run_directory,
                "report": report,
                "status": "complete",
                "ended_by": outcome.ended_by,
                "steps": len(outcome.history.rows),
                "stages": [view.mapping() for view in views],
                "device_time_ns": outcome.history.elapsed_ns,
                "host_write_bytes_total": last.host_write_bytes_total,
                "drive_fills": last.drive_fills,
                "last_step": vars(last),
                "warnings": outcome.warnings,
            }
        )
        return
    written = units.size(last.host_write_bytes_total)
    print(
        pairs(
            (
                ("run", str(outcome.run_directory)),
                ("ended by", outcome.reason),
                ("steady state", views_text(views) or "not required"),
                ("device time", units.duration(outcome.history.elapsed_ns)),
                ("written", f"{written} ({last.drive_fills:.2f} fills)"),
                ("last step", f"{last.iops:,.0f} IOPS"),
                ("report", str(report)),
            )
        )
    )
