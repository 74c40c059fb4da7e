"""Find the drive for a load, by limits, weights and prices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from writecliff.cli.options import OutputPath, Scheduler, Whole, check_jobs, new_path
from writecliff.cli.output import JsonFlag, emit_json, table
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from writecliff.api.choose import Asked, Choice

GROUP = "tests and suites", 6
EXIT_MISSED = 3  # no drive meets the limits


def choose(
    *,
    workload: Path | None = None,
    candidates: tuple[str, ...] = (),
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
    what_if: Annotated[bool | None, Parameter(negative="--no-what-if")] = None,
    output: OutputPath = None,
    resume: Path | None = None,
    store: str | None = None,
    jobs: Whole = None,
    scheduler: Scheduler = None,
    quiet: bool = False,
    json: JsonFlag = False,
) -> int:
    """Find the drive for a load, by limits, weights and prices.

    Each drive is preconditioned and runs the same load. The page says who wins, why each loser
    loses, how sure that is, and what would change the answer. The exit code is 3 if no drive meets
    all limits.

    Parameters
    ----------
    workload
        The load: a workload file, a fio job file, a ready-made one (`writecliff profile list`), or
        a block trace, from which a workload is synthesised as by `writecliff trace synthesise`.
    candidates
        The drives: names of `writecliff device list`, patterns such as "pm863-*", device files,
        today (the default: current drives) or all; with commas between, or repeated.
    capacity
        Only candidates of this capacity, such as 1TB..2TB.
    limit
        A limit on a figure, such as "p99.99 <= 2 ms", "life >= 5 years", "iops >= 50000" or
        "reads/p99.9 <= 500 us"; may be repeated.
    weight
        How much a figure counts, as FIGURE=WEIGHT; may be repeated (default: p99.99, life, price
        with a price list, and IOPS where drives run as fast as they can, 1 each).
    prices
        A CSV file of drives and prices, in any currency.
    writes_per_day
        What is written in a day, such as 2TB, to count life (default: the load's rate, all day).
    overprovision
        Run each drive with these over-provisionings too, in percent: 28 or 14,28.
    precondition
        The state of the drives: fill, sustained, used:40%, none (default: as the load asks, else
        sustained).
    duration
        The length of each job that has one, such as 30min.
    seeds
        Runs of each drive (default: 1). Each is a repetition: it prepares a drive of its own with a
        seed of its own. Intervals are then those of the mean over the seeds.
    scale
        Simulate drives at most so many times smaller (default: 16); 1: whole.
    what_if
        Run the first three drives again with more spare, another queue depth or rate, streams
        (default: yes, or as the choice to resume was started).
    output
        Directory of the runs; it must be empty or not exist (default: choices/LOAD-TIME).
    resume
        Resume the choice in this directory. Limits, weights, prices and --no-what-if may be given
        anew: what is measured already is ranked again.
    store
        The store that the new runs are of (default: WRITECLIFF_STORE, else the current folder).
    jobs
        Runs at a time (default: one per core, as memory allows).
    scheduler
        Run on Dask: local, or the address of a scheduler (tcp://HOST:PORT).
    quiet
        Show no progress on stderr.
    """
    from writecliff.api.choose import ask, ask_again

    check_jobs(jobs)
    if resume is not None:
        kept = (workload, candidates, capacity, writes_per_day, overprovision, precondition,
                duration, seeds, scale, output)  # fmt: skip
        if any(option is not None and option != () for option in kept):
            raise ConfigError(
                "a choice is resumed with the load and drives it was started with",
                hint="with --resume, give only limits, weights, prices and --no-what-if",
            )
        again = ask_again(resume, limits=limit, weights=weight, prices=prices, what_if=what_if)
        return _answer(again, resume, jobs, scheduler, quiet=quiet, as_json=json)
    if workload is None:
        raise ConfigError("no load given", hint="give --workload, for example --workload oltp-4k")
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
        what_if=what_if is not False,
    )
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

    with screen.showing(view.render, keep=True):
        done = choose_drive(asked.question, output=path, named=asked.named, workers=jobs,
                            scheduler=scheduler, log=view.log, begin=begin,
                            note=screen.log)  # fmt: skip
    if as_json:
        emit_json(done.json_answer())
    else:
        _show(done)
    return 0 if done.answer.answered else EXIT_MISSED


def _show(done: Choice) -> None:
    rows = done.table()
    print(table(("", *rows.head[1:]), rows.rows, rows.align))
    for change in done.answer.changed:
        first = change.first.name
        same = first == done.answer.first.name
        print(f"with {change.text}: {first} is first{'' if same else ' instead'}")
    if done.answer.smaller:
        print(done.answer.smaller)
    print(done.page)
    print(done.answer.verdict)
