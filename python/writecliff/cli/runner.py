"""Execution of `writecliff test NAME`, from option parsing to the complete run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.api.outcome import Outcome, check_limits, read_baseline
from writecliff.api.plans import (
    check_limits_of,
    check_permission,
    plan_run,
    procedure_of,
    stored_run,
)
from writecliff.cli.options import RunOptions, TargetOptions, new_path, opened
from writecliff.cli.output import NOTHING_DONE, emit_json, log, pairs
from writecliff.cli.progress import ProgressView, drive_text, written_text
from writecliff.cli.screen import Screen
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.api import Run
    from writecliff.engines.base import DeviceIdentity, Engine
    from writecliff.errors import WritecliffError
    from writecliff.procedures.model import Estimate, Procedure


def run_test(
    name: str, given: Mapping[str, Any], target: TargetOptions, run: RunOptions, *, as_json: bool
) -> int:
    """Run the test `name` with the options `given`, or resume it, and return the exit code."""
    baseline = read_baseline(run.baseline)
    limits = check_limits(run.expect, run.junit)
    if run.resume is not None:
        if given:
            option = next(iter(given)).replace("_", "-")
            raise ConfigError(
                f"--{option} cannot be combined with --resume",
                hint="omit the option: a resumed run keeps its original options",
            )
        procedure, target, directory = run_to_resume(name, target, run)
        check_limits_of(procedure, limits)
    else:
        procedure = procedure_of(name, given, target.on, limits)
        directory = run.output or new_path("runs", name, target.on, store=run.store)
    with opened(target, seed=procedure.seed, look_only=run.dry_run) as engine:
        if run.dry_run:
            return show_plan(procedure, engine, as_json)
        check_permission(engine)
        from writecliff.api import execute

        view = ProgressView(Screen(quiet=run.quiet))
        resume = run.resume is not None
        made = execute(procedure, engine, directory, view, resume=resume, expect=limits)
    end = Outcome.of_run(made, baseline)
    _show_outcome(procedure, made, end, as_json)
    return end.end(run.junit)


def run_to_resume(
    name: str, target: TargetOptions, run: RunOptions
) -> tuple[Procedure, TargetOptions, Path]:
    """Return the procedure, target and directory of the run to resume.

    Raises:
        ConfigError: If the run cannot be resumed with these options.
        StoreError: If the run is damaged.
    """
    assert run.resume is not None
    if run.output is not None:
        raise ConfigError("--output cannot be combined with --resume", hint="omit --output")
    stored = stored_run(run.resume, name)
    if target.on is None:
        target = replace(target, on=stored.on)
        if stored.on != stored.then:
            log(f"note: the drive {stored.then} is now called {stored.on}")
    return stored.procedure, replace(target, **stored.opening), run.resume


def refused(refusal: WritecliffError | None) -> int:
    """Report that a planned run would be rejected, and return the plan's exit code."""
    if refusal is None:
        return 0
    log(f"the run would be rejected: {refusal}")
    if refusal.hint:
        log(f"hint: {refusal.hint}")
    return refusal.exit_code


def show_plan(procedure: Procedure, engine: Engine, as_json: bool, *, writes: bool = True) -> int:
    """Show a run's plan and cost without running it.

    Returns:
        The plan's exit code, or the run's exit code if the run would be rejected.
    """
    planned = plan_run(procedure, engine, writes=writes, note=log)
    identity, plan = planned.identity, planned.plan
    if as_json:
        emit_json(planned.test_answer())
        return refused(planned.refusal)
    print(f"{plan.title} on {identity.target}: {drive_text(identity)}\n")
    for number, phase in enumerate(plan.phases, 1):
        print(f"{number}. {phase}")
    print()
    bounds = (
        ("steps", str, plan.steps_min, plan.steps_max),
        ("device time", units.duration, plan.device_time_min_ns, plan.device_time_max_ns),
    )
    lines = [("scale", identity.scale_text)] if identity.scale_text else []
    lines += [(name, _bounds(text, low, high)) for name, text, low, high in bounds]
    lines += [("host writes", written_text(plan, identity))]
    lines += estimate_lines(plan.estimate, identity)
    lines += [("deviation", str(deviation)) for deviation in plan.deviations]
    print(pairs(lines))
    print(NOTHING_DONE)
    return refused(planned.refusal)


def _bounds(text: Callable[[Any], str], low: Any, high: Any) -> str:
    if high is None:
        return f"{text(low)} or more"
    return text(low) if text(low) == text(high) else f"{text(low)} to {text(high)}"


def estimate_lines(estimate: Estimate | None, identity: DeviceIdentity) -> list[tuple[str, str]]:
    """Return a run's expected cost, and the basis of the estimate."""
    if estimate is None:
        why = "no pilot run was possible" if identity.simulated else "no pilot runs on real drives"
        return [("expected", f"within these bounds; {why}")]
    what = [
        f"{units.duration(estimate.device_time_ns)} of device time",
        f"{units.size(estimate.write_bytes)} written ({estimate.drive_fills:.2f} drive fills)",
        f"{units.size(estimate.read_bytes)} read" if estimate.read_bytes else "",
    ]
    loops = ", ".join(f"{phase} {count}" for phase, count in estimate.rounds.items())
    counts = [f"{estimate.steps} steps", f"complete rounds: {loops}" if loops else ""]
    pilots = "a pilot run" if estimate.pilots == 1 else f"{estimate.pilots} pilot runs, the last"
    last = estimate.apart_pct
    difference = "" if last is None else f"; the last two differ by {last:.1f} %"
    return [
        ("expected", ", ".join(filter(None, what))),
        ("", "; ".join(filter(None, counts))),
        ("", f"about {units.duration(estimate.wall_time_s * 1e9)} of wall time on this machine"),
        (
            "",
            f"from {pilots} at 1/{estimate.scale:.3g} scale, in {estimate.took_s:.1f} s"
            f"{difference}",
        ),
    ]


def _show_outcome(procedure: Procedure, run: Run, end_of: Outcome, as_json: bool) -> None:
    from writecliff.report.steady import OTHER_ENDS, SteadyView
    from writecliff.report.steady_stages import views_text

    outcome = run.ended
    assert outcome is not None
    last = outcome.history.rows[-1]
    stages = [stage for stage in outcome.history.stages.values() if stage.tracker is not None]
    end = outcome.reason if outcome.ended_by in OTHER_ENDS else ""
    views = [SteadyView(stage, stage.phase, short=procedure.is_short, end=end) for stage in stages]
    device = run.directory.manifest.device
    written_bytes = outcome.history.host_write_bytes
    fills = written_bytes / device.capacity_bytes
    if as_json:
        from writecliff.api.answers.tests import TestOutcome

        emit_json(
            TestOutcome(
                run=outcome.run_directory,
                report=run.page,
                status="complete",
                scale=device.scale,
                ended_by=outcome.ended_by,
                steps=len(outcome.history.rows),
                stages=[view.mapping() for view in views],
                device_time_ns=outcome.history.elapsed_ns,
                host_write_bytes_total=written_bytes,
                drive_fills=fills,
                last_step=vars(last),
                warnings=outcome.warnings,
                verdict=run.verdict,
                **end_of.answer(),
            )
        )
        return
    print(
        pairs(
            (
                ("run", str(outcome.run_directory)),
                *([("scale", device.scale_text)] if device.scale_text else []),
                ("ended by", outcome.reason),
                ("steady state", views_text(views) or "not required"),
                ("device time", units.duration(outcome.history.elapsed_ns)),
                ("written", f"{units.size(written_bytes)} ({fills:.2f} fills)"),
                ("last step", f"{last.iops:,.0f} IOPS"),
                ("report", str(run.page)),
                ("verdict", run.verdict),
                *end_of.lines(),
            )
        )
    )
