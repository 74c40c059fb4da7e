"""Find the drive for a load, by limits, weights and prices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from writecliff.cli.options import OutputPath, Scheduler, Whole, check_jobs, new_path
from writecliff.cli.output import JsonFlag, emit_json
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from writecliff.api.choose import Choice as Made
    from writecliff.choice.question import Question

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
        a block trace, of which a workload is made as by `writecliff trace synthesise`.
    candidates
        The drives: names of `writecliff device list`, patterns such as "pm863-*", device files,
        today (the default: drives of today) or all; with commas between, or repeated.
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
    from writecliff.choice.candidates import find_candidates
    from writecliff.choice.question import Question, read_prices, read_weights
    from writecliff.units import parse_size, parse_time

    check_jobs(jobs)
    if resume is not None:
        kept = (workload, candidates, capacity, writes_per_day, overprovision, precondition,
                duration, seeds, scale, output)  # fmt: skip
        question = _asked_anew(resume, kept, limit, weight, prices, what_if=what_if)
        return _answer(question, resume, jobs, scheduler, named=None, quiet=quiet, as_json=json)
    if workload is None:
        raise ConfigError("no load given", hint="give --workload, for example --workload oltp-4k")
    spares = _percentages(overprovision)
    question = Question(
        workload=str(workload),
        candidates=find_candidates(
            candidates, capacity=capacity, least=1 if spares or limit else 2
        ),
        limits=limit,
        weights=read_weights(weight),
        prices={} if prices is None else read_prices(prices),
        writes_per_day_bytes=None if writes_per_day is None else parse_size(writes_per_day),
        spare_pct=spares,
        precondition=precondition,
        duration_ns=None if duration is None else parse_time(duration),
        seeds=1 if seeds is None else seeds,
        scale=Question.scale if scale is None else scale,
        what_if=what_if is not False,
    )
    path = output or new_path("choices", workload.stem, store=store)
    named = _named(question, candidates)
    return _answer(question, path, jobs, scheduler, named=named, quiet=quiet, as_json=json)


def _named(question: Question, words: Sequence[str]) -> set[str]:
    """Return the candidates that were given by name, and all device files."""
    given = {part.strip().removeprefix("sim:") for word in words for part in word.split(",")}
    return given | {drive for drive in question.candidates if drive.endswith(".toml")}


def _asked_anew(
    folder: Path,
    kept: Sequence[object],
    limit: tuple[str, ...],
    weight: tuple[str, ...],
    prices: Path | None,
    *,
    what_if: bool | None,
) -> Question:
    """The question of a folder, with other limits, weights or prices."""
    from dataclasses import replace

    from writecliff.choice.question import Question, read_prices, read_weights

    if any(one is not None and one != () for one in kept):
        raise ConfigError(
            "a choice is resumed with the load and drives it was started with",
            hint="with --resume, give only limits, weights, prices and --no-what-if",
        )
    question = Question.read(folder)
    return replace(
        question,
        limits=limit or question.limits,
        weights=read_weights(weight) or question.weights,
        prices=question.prices if prices is None else read_prices(prices),
        what_if=question.what_if if what_if is None else what_if,
    )


def _percentages(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise ConfigError(f"--overprovision {text} is no list of percentages",
                          hint="for example 28 or 14,28") from None  # fmt: skip


def _answer(
    question: Question,
    path: Path,
    jobs: int | None,
    scheduler: str | None,
    *,
    named: set[str] | None,
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
        done = choose_drive(question, output=path, named=named, workers=jobs, scheduler=scheduler,
                            log=view.log, begin=begin, note=screen.log)  # fmt: skip
    if as_json:
        from writecliff.api.answers.choices import Choice

        emit_json(Choice(**done.answer.mapping(), folder=path, report=done.page))
    else:
        _show(done)
    return 0 if done.answer.answered else EXIT_MISSED


def _show(done: Made) -> None:
    from writecliff.choice.answer import lines_of
    from writecliff.cli.output import table

    head = ("", "drive", "passes", "score", *done.answer.weights, "why")
    right = "rllr" + "r" * len(done.answer.weights) + "l"
    print(table(head, lines_of(done.answer), right))
    for one in done.answer.changed:
        first = one.first.name
        same = first == done.answer.first.name
        print(f"with {one.text}: {first} is first{'' if same else ' instead'}")
    if done.answer.smaller:
        print(done.answer.smaller)
    print(done.page)
    print(done.answer.verdict)
