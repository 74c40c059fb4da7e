"""Run all tests of an edition on a drive."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from writecliff import units
from writecliff.cli.output import emit_json, log, table
from writecliff.cli.sets import check_jobs, go_on, new_folder, run_members
from writecliff.cli.target_options import NO_TARGET, TargetOptions, opened
from writecliff.cli.values import Whole
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.procedures.model import Plan

GROUP = "tests and suites", 2


def suite(
    edition: str | None = None,
    *,
    target: TargetOptions = NO_TARGET,
    revision: Literal["1.x", "2.0"] = "1.x",
    tests: str | None = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    quick: bool = False,
    seed: Whole = None,
    output: Path | None = None,
    resume: Path | None = None,
    jobs: Whole = None,
    dry_run: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Run all tests of an edition on a drive, each from a purge, and write one summary.

    Parameters
    ----------
    edition
        pts-e (enterprise) or pts-c (client).
    revision
        Revision of the standard (default: 1.x).
    tests
        A list of tests to run (default: all): iops,tp,lat,wsat,hir,xsr,ecw,dirth.
    set_
        An option of one test, as TEST.OPTION=VALUE; may be given again.
    quick
        A shortened form; every page is stamped NOT PTS-CONFORMANT.
    seed
        Fixes every random choice (default: 1).
    output
        Directory of the suite; it must not exist or be empty (default: suites/EDITION-TARGET-TIME).
    resume
        Go on with the unfinished suite in this directory, with its options.
    jobs
        Tests at a time, on a simulated drive (default: one a core, as memory allows).
    dry_run
        Show what would be run and how long it would take; touch nothing.
    json
        Print {"kind", "about", "folder", "report", "runs": [{"name", "test", "status", "run",
        "report"}]}.
    quiet
        No progress on stderr.
    """
    check_jobs(jobs)
    if resume is not None:
        others = (edition, output, set_, tests)
        return go_on(resume, "suite", target, others, jobs=jobs, as_json=json, quiet=quiet)
    from writecliff.suite.plan import plan_suite

    if edition is None:
        raise ConfigError("no edition is named", hint="give pts-e or pts-c")
    common: dict[str, Any] = {"revision": revision, "quick": quick}
    if seed is not None:
        common["seed"] = seed
    members = plan_suite(
        edition, target.on or "", tests=_names(tests), common=common, special=_settings(set_)
    )
    if dry_run:
        return _show_plan({name: m.options for name, m in members.items()}, target, json)
    folder = new_folder("suite", edition, members, target, output)
    return run_members(folder, target, jobs=jobs, as_json=json, quiet=quiet)


def _names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError("--tests is empty", hint="give a list such as iops,tp,lat")
    return names


def _settings(texts: tuple[str, ...]) -> Mapping[str, Mapping[str, Any]]:
    """`iops.threads=8` for each test."""
    from writecliff.cli.test_commands import option_from_text

    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        match = re.fullmatch(r"([a-z-]+)\.([a-z0-9_-]+)=(.*)", text.strip())
        if match is None:
            raise ConfigError(f"--set '{text}' is not TEST.OPTION=VALUE", hint="iops.threads=8")
        test, option = match[1], match[2].replace("-", "_")
        found.setdefault(test, {})[option] = option_from_text(test, option, match[3])
    return found


def _show_plan(tests: Mapping[str, Mapping[str, Any]], target: TargetOptions, as_json: bool) -> int:
    """Bounds on a real drive, estimates by pilots on a simulated one."""
    from writecliff.procedures.estimate import with_estimate
    from writecliff.procedures.registry import procedure_from_mapping

    plans: dict[str, Plan] = {}
    with opened(target, seed=1) as engine:
        identity = engine.identify()
        for name, options in tests.items():
            if identity.simulated:
                log(f"estimating {name}")
            procedure = procedure_from_mapping(name, options)
            plans[name] = with_estimate(procedure.plan(identity), procedure, engine)
    if as_json:
        emit_json({"dry_run": True, "target": identity, "tests": plans})
        return 0
    if identity.simulated:
        print(_estimates(plans))
    else:
        print(_bounds(plans))
    print("\nnothing was done (--dry-run)")
    return 0


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
    """One line a test, and their sum; a test that no pilot could estimate has none."""
    known = {name: plan.estimate for name, plan in plans.items() if plan.estimate is not None}
    rows: list[tuple[str, ...]] = [
        (
            name,
            f"{e.steps:,}",
            units.duration(e.device_time_ns),
            units.size(e.write_bytes),
            f"{e.drive_fills:.1f}",
            units.duration(e.wall_time_s * 1e9),
        )
        for name, e in known.items()
    ]
    rows += [(name, *("-" for _ in range(5))) for name in plans if name not in known]
    rows.append(
        (
            "all",
            f"{sum(e.steps for e in known.values()):,}",
            units.duration(sum(e.device_time_ns for e in known.values())),
            units.size(sum(e.write_bytes for e in known.values())),
            f"{sum(e.drive_fills for e in known.values()):.1f}",
            units.duration(sum(e.wall_time_s for e in known.values()) * 1e9),
        )
    )
    header = ("test", "steps", "device time", "written", "drive fills", "CPU time here")
    return table(header, rows, "lrrrrr")
