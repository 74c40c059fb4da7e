"""Run all tests of an edition on a drive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from writecliff import units
from writecliff.api.outcome import check_limits
from writecliff.api.plans import plan_members
from writecliff.api.sets import start_suite, suite_members
from writecliff.cli.options import (
    NEW_SET,
    NO_TARGET,
    SetOptions,
    Settings,
    TargetOptions,
    Whole,
    check_jobs,
    check_scheduler,
    opened,
    test_names,
)
from writecliff.cli.output import NOTHING_DONE, JsonFlag, emit_json, log, table
from writecliff.cli.runner import refused
from writecliff.cli.sets import run_members, stored_folder
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.procedures.model import Plan
    from writecliff.suite.folder import Member

GROUP = "tests and suites", 2


def suite(
    edition: str | None = None,
    *,
    target: TargetOptions = NO_TARGET,
    options: SetOptions = NEW_SET,
    revision: Literal["1.x", "2.0"] = "1.x",
    tests: str | None = None,
    set_: Settings = (),
    quick: bool = False,
    no_purge: bool = False,
    seed: Whole = None,
    dry_run: bool = False,
    json: JsonFlag = False,
) -> int:
    """Run all tests of an edition on a drive, each after a purge, and write a summary.

    Parameters
    ----------
    edition
        PTS edition: pts-e (enterprise) or pts-c (client).
    revision
        PTS revision.
    tests
        A comma-separated list of tests to run (default: all tests of the edition):
        iops,tp,lat,wsat,hir,xsr,ecw,dirth.
    set_
        Set an option of one test, as TEST.OPTION=VALUE; may be repeated.
    quick
        Reduce the capacity of a simulated drive, or run short tests that cannot reach steady state
        on a real drive. Every report page is stamped NOT PTS-CONFORMANT.
    no_purge
        Skip the purge before every test, for a real drive that was purged by other means (behind
        USB, RAID or virtio, or with the vendor's tool). Every report page is stamped.
    seed
        Seed for all random choices (default: 1).
    dry_run
        List the planned runs and their estimated durations, without running them or writing files.
    """
    check_jobs(options.jobs)
    check_scheduler(options.scheduler, [target.on])
    check_limits(options.expect, options.junit)
    if options.resume is not None:
        others = (edition, options.output, set_, tests)
        folder = stored_folder(options.resume, "suite", target, others)
        return run_members(folder, target, options, as_json=json)
    if edition is None:
        raise ConfigError("no edition was given", hint="specify the edition pts-e or pts-c")
    common: dict[str, Any] = {"revision": revision, "quick": quick, "no_purge": no_purge}
    if seed is not None:
        common["seed"] = seed
    members = suite_members(
        edition,
        target.on or "",
        tests=test_names(tests),
        special=_settings(set_),
        options=common,
        expect=options.expect,
    )
    if dry_run:
        return _show_plan(members, target, json)
    folder = start_suite(
        edition, members, target.checked(), output=options.output, store=options.store,
        opening=target.opening(),
    )  # fmt: skip
    return run_members(folder, target, options, as_json=json)


def _settings(texts: tuple[str, ...]) -> Mapping[str, Mapping[str, Any]]:
    """Parse settings such as `iops.threads=8`, and return the options by test."""
    from writecliff.cli.test_commands import setting

    options: dict[str, dict[str, Any]] = {}
    for text in texts:
        test, dot, rest = text.strip().partition(".")
        if not dot or "=" in test:
            raise ConfigError(
                f"the setting '{text}' in --set is not TEST.OPTION=VALUE",
                hint="specify settings in the form --set iops.threads=8",
            )
        options.setdefault(test, {}).update([setting(test, rest)])
    return options


def _show_plan(members: Mapping[str, Member], target: TargetOptions, as_json: bool) -> int:
    """Show the plan, with bounds for a real drive or pilot-run estimates for a simulated drive."""
    with opened(target, seed=1, look_only=True) as engine:
        planned = plan_members(members, engine, note=log)
    if as_json:
        emit_json(planned.suite_answer())
        return refused(planned.refusal)
    simulated = planned.identity.simulated
    print(_estimates(planned.plans) if simulated else _bounds(planned.plans))
    for text in planned.scales:
        print(f"the drive is {text}")
    print(NOTHING_DONE)
    return refused(planned.refusal)


def _bounds(plans: Mapping[str, Plan]) -> str:
    rows = [
        (
            name,
            f"{plan.steps_min:,}",
            units.duration(plan.device_time_min_ns),
            units.duration(plan.device_time_max_ns),
            units.size(plan.write_bytes_max),
        )
        for name, plan in plans.items()
    ]
    return table(("test", "steps >=", "time >=", "time <=", "written <="), rows, "lrrrr")


def _estimates(plans: Mapping[str, Plan]) -> str:
    """Return one row per test and a total row; tests without a pilot run have no figures."""
    totals = [0.0] * 5
    rows = []
    for name, plan in plans.items():
        e = plan.estimate
        if e is None:
            rows.append((name, *("-" for _ in totals)))
            continue
        figures = (e.steps, e.device_time_ns, e.write_bytes, e.drive_fills, e.wall_time_s * 1e9)
        totals = [total + figure for total, figure in zip(totals, figures, strict=True)]
        rows.append((name, *_estimate_cells(*figures)))
    missing = [name for name, plan in plans.items() if plan.estimate is None]
    label = f"{len(plans) - len(missing)} of {len(plans)}" if missing else "all"
    rows.append((label, *_estimate_cells(*totals)))
    header = ("test", "steps", "device time", "written", "drive fills", "CPU time here")
    text = table(header, rows, "lrrrrr")
    if missing:
        text += f"\nno estimate: even the smallest pilot of {', '.join(missing)} takes too long"
    return text


def _estimate_cells(
    steps: float, device_time_ns: float, write_bytes: float, fills: float, cpu_ns: float
) -> tuple[str, ...]:
    time, cpu = units.duration(device_time_ns), units.duration(cpu_ns)
    return units.number(steps), time, units.size(write_bytes), f"{fills:.1f}", cpu
