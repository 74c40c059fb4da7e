"""Choose a drive for a load by limits, weights and prices."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from writecliff.cli.options import OutputPath, Scheduler, Whole, check_jobs, new_path
from writecliff.cli.output import NOTHING_DONE, JsonFlag, emit_json, table
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from writecliff.api.choose import Asked, Choice
    from writecliff.shown import Grid

GROUP = "tests and suites", 6
EXIT_MISSED = 3  # Exit code if no drive meets the limits.
EXIT_INTERRUPTED = 130
SHOWN = 5  # Number of drives in a provisional ranking.
LINE = 80  # Columns of the list of drives in a plan.
EXPLAINED = 5  # Number of drives with reasons below the ranking.


def choose(
    *,
    workload: Path | None = None,
    candidates: Annotated[tuple[str, ...], Parameter(name=("--candidates", "--on"))] = (),
    include_discontinued: Annotated[bool, Parameter(negative=())] = False,
    capacity: str | None = None,
    limit: tuple[str, ...] = (),
    weight: tuple[str, ...] = (),
    prices: Path | None = None,
    writes_per_day: str | None = None,
    overprovision: str | None = None,
    precondition: str | None = None,
    duration: str | None = None,
    seeds: Whole = None,
    scale: float | None = None,
    exhaustive: bool = False,
    budget: str | None = None,
    what_if: Annotated[bool | None, Parameter(negative="--no-what-if")] = None,
    output: OutputPath = None,
    resume: Path | None = None,
    store: str | None = None,
    jobs: Whole = None,
    scheduler: Scheduler = None,
    dry_run: bool = False,
    quiet: bool = False,
    json: JsonFlag = False,
) -> int:
    """Find the best drive for a load, given limits, weights and prices.

    Each drive is preconditioned, then runs the same load. All drives are first simulated at a small
    fraction of their size, and drives that could still win are then simulated at a larger fraction.
    The report explains the ranking and how certain it is. The exit code is 3 if no drive meets all
    limits.

    Parameters
    ----------
    workload
        Workload to run: a workload file, a fio job file, a ready-made workload (`writecliff profile
        list`), or a block trace, from which `writecliff trace synthesise` would synthesise the
        workload.
    candidates
        Candidate drives, as a comma-separated list or a repeated option: names from `writecliff
        device list`, patterns such as "pm863-*", device files, today (the default: current drives)
        or all.
    include_discontinued
        Include discontinued drives in the group today.
    capacity
        Capacity of the candidates, such as 1TB..2TB (default: any).
    limit
        Limit on a figure, such as "p99.99 <= 2 ms", "life >= 5 years", "iops >= 50000" or
        "reads/p99.9 <= 500 us"; may be repeated.
    weight
        Weight of a figure, as FIGURE=WEIGHT; may be repeated (default: 1 each for p99.99, for life,
        for price if --prices is given, and for IOPS if the load has no rate).
    prices
        CSV file of drive prices, in any currency.
    writes_per_day
        Volume written per day, such as 2TB, for the lifetime estimate (default: the load's write
        rate, around the clock).
    overprovision
        Additional over-provisioning levels at which to run each drive, in percent, such as 28 or
        14,28.
    precondition
        Initial state of the drives: fill, sustained, used:40% or none (default: the load's initial
        state, else sustained).
    duration
        Duration of each timed job, such as 30min.
    seeds
        Number of runs per drive (default: 1). Each repetition prepares a new drive with a different
        seed, and intervals then apply to the mean over the seeds.
    scale
        Largest factor by which drives are scaled down at the finest level; 1 simulates whole drives
        (default: down to 100 GB, and by 16 for drives with an SLC cache).
    exhaustive
        Simulate every drive at the finest level.
    budget
        Time budget for the finer levels (default: 5min). If time runs out, the result lists the
        drives that could still win.
    what_if
        Repeat the runs of the top three drives with more spare flash, with another queue depth or
        rate, and with streams (default: no; with --resume, the original setting).
    output
        Parent directory of the runs, which must be empty or not exist (default: choices/LOAD-TIME).
    resume
        Resume the choice in this directory. New limits, weights, prices, --budget and --what-if are
        accepted, and the measurements are ranked again.
    store
        Run store for the new runs (default: the store in WRITECLIFF_STORE, else the current
        folder).
    jobs
        Number of simultaneous runs (default: one per core, as memory allows).
    scheduler
        Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT).
    dry_run
        List the drives and levels, with time and memory estimates from short pilot runs.
    quiet
        Suppress progress output on stderr.
    """
    from writecliff.api.choose import ask, ask_again

    check_jobs(jobs)
    if dry_run and resume is not None:
        raise ConfigError("--dry-run cannot be combined with --resume", hint="omit --resume")
    if resume is not None:
        fixed = (workload, candidates, include_discontinued or None, capacity, writes_per_day,
                 overprovision, precondition, duration, seeds, scale, exhaustive or None,
                 output)  # fmt: skip
        if any(option is not None and option != () for option in fixed):
            raise ConfigError(
                "the load and the drives cannot be changed when a choice is resumed",
                hint="with --resume, set only limits, weights, prices, --budget and --what-if",
            )
        again = ask_again(resume, limits=limit, weights=weight, prices=prices, budget=budget,
                          what_if=what_if)  # fmt: skip
        return _answer(again, resume, jobs, scheduler, quiet=quiet, as_json=json)
    if workload is None:
        raise ConfigError(
            "no load was specified", hint="add --workload, for example --workload oltp-4k"
        )
    asked = ask(
        workload,
        candidates=candidates,
        capacity=capacity,
        limits=limit,
        weights=weight,
        prices=prices,
        writes_per_day=writes_per_day,
        overprovision=overprovision,
        precondition=precondition,
        duration=duration,
        seeds=1 if seeds is None else seeds,
        scale=scale,
        exhaustive=exhaustive,
        budget=budget,
        what_if=what_if is True,
        include_discontinued=include_discontinued,
    )
    if dry_run:
        return _show_plan(asked, jobs, scheduler, quiet=quiet, as_json=json)
    path = output or new_path("choices", workload.stem, store=store)
    return _answer(asked, path, jobs, scheduler, quiet=quiet, as_json=json)


def _answer(
    asked: Asked,
    path: Path,
    jobs: int | None,
    scheduler: str | None,
    *,
    quiet: bool,
    as_json: bool,
) -> int:
    from writecliff.api.choose import choose_drive
    from writecliff.cli.screen import Screen
    from writecliff.cli.sets import SetView

    screen = Screen(quiet=quiet)
    view = SetView(screen, [])

    def begin(names: Sequence[str]) -> None:
        screen.log(f"{len(names)} runs in {path}")
        view.begin(names)

    def provisional(ranking: Grid, names: Sequence[str]) -> None:
        rows, others = ranking.rows[:SHOWN], len(ranking.rows) - SHOWN
        screen.log("provisional ranking:")
        screen.log(_ranking_text(ranking._replace(rows=rows)))
        more = [f"and {others} more"] if others > 0 else []
        screen.log("; ".join([*more, f"simulating at a larger scale: {', '.join(names)}"]))

    with screen.showing(view.render, keep=True):
        done = choose_drive(asked.question, output=path, named=asked.named, workers=jobs,
                            scheduler=scheduler, log=view.log, begin=begin,
                            note=screen.log, on_ranking=provisional)  # fmt: skip
    if as_json:
        emit_json(done.json_answer())
    else:
        _show(done)
    if done.answer.ended == "interrupted":
        screen.log(f"to resume, run `writecliff choose --resume {path}`")
        return EXIT_INTERRUPTED
    return 0 if done.answer.answered else EXIT_MISSED


def _show_plan(
    asked: Asked, jobs: int | None, scheduler: str | None, *, quiet: bool, as_json: bool
) -> int:
    """Show the drives, levels and expected cost of a choice without running it."""
    from writecliff import units
    from writecliff.api.choose import plan_cost
    from writecliff.cli.screen import Screen

    planned = plan_cost(asked, workers=jobs, scheduler=scheduler, note=Screen(quiet=quiet).log)
    if as_json:
        emit_json(planned.json_answer())
        return 0
    names = planned.names()
    print(f"{len(names)} drives on {planned.question.workload}:")
    print(fill(", ".join(names), LINE, initial_indent="  ", subsequent_indent="  ",
               break_on_hyphens=False))  # fmt: skip
    print()
    rows = []
    for number, cost in enumerate(planned.costs):
        many = "up to " if number else ""
        scales = " to ".join(
            dict.fromkeys(f"1/{scale:.3g}" for scale in (cost.scale_max, cost.scale_min))
        )
        time = units.UNKNOWN if cost.time_s is None else units.duration(cost.time_s * 1e9)
        memory = units.size(cost.memory_bytes)
        rows.append((cost.level, f"{many}{cost.drives}", scales, f"{many}{time}", memory))
    print(table(("level", "drives", "scale", "time", "memory"), rows, "lrlrr"))
    print()
    first_s, budget_ns = planned.first_s(), planned.question.budget_ns
    if first_s is None:
        print("time: unknown, because a pilot run takes too long")
    else:
        print(f"first ranking after about {units.duration(first_s * 1e9)} on this machine")
    if len(planned.costs) > 1 and budget_ns is not None:
        print(f"no finer level starts more than {units.duration(budget_ns)} later (--budget)")
    print(f"peak memory {units.size(planned.memory_bytes())}")
    print(NOTHING_DONE)
    return 0


def _ranking_text(ranking: Grid) -> str:
    """Return the ranking as text, with units in a line below the names of the figures."""
    heads = [head.removesuffix(")").partition(" (") for head in ranking.head[1:]]
    units = ("", *(unit and f"({unit})" for _, _, unit in heads))
    rows = [units, *ranking.rows] if any(units) else ranking.rows
    return table(("", *(name for name, _, _ in heads)), rows, ranking.align)


def _show(done: Choice) -> None:
    print(_ranking_text(done.table()))
    print()
    for row in done.answer.ranked[:EXPLAINED]:
        print(f"{row.name}: {row.why}")
    print()
    for change in done.answer.changed:
        first = change.first.name
        same = first == done.answer.first.name
        print(f"with {change.text}: {first} ranks first{'' if same else ' instead'}")
    if done.answer.smaller:
        print(done.answer.smaller)
    print(done.page)
    print(done.answer.verdict)
