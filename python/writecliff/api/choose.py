"""The choice of a drive: one load on many simulated drives, and their ranking."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.api.runs import PathLike, new_path
from writecliff.errors import ConfigError
from writecliff.shown import Grid, Shown, Shows

if TYPE_CHECKING:
    from writecliff.api.answers.choices import Choice as ChoiceAnswer
    from writecliff.choice.answer import Answer, Changed, Measured
    from writecliff.choice.load_kinds import LoadKinds
    from writecliff.choice.plan import Contender, Plan
    from writecliff.choice.question import Question
    from writecliff.choice.variants import Variant
    from writecliff.suite.children import ChildEvent
    from writecliff.suite.folder import Member, SuiteFolder

Begin = Callable[[Sequence[str]], None]
Log = Callable[["ChildEvent"], None]
WHAT_IF = "what-if"  # folder of the runs with changed drives or loads
SYNTHETIC = "synthetic"  # folder of the workload synthesised from a trace


@dataclass(frozen=True)
class Choice(Shows):
    """The answer of `choose_drive`: `answer.ranked`, `answer.verdict`."""

    path: Path
    """The directory of its runs."""

    page: Path
    """The page with the ranking."""

    answer: Answer
    """Ranking, figures, reasons, and changes that would alter them."""

    def table(self) -> Grid:
        """Return a row for each drive, best first."""
        from writecliff.choice.answer import lines_of

        head = ("rank", "drive", "passes", "score", *self.answer.weights, "why")
        align = "rllr" + "r" * len(self.answer.weights) + "l"
        return Grid(head, list(lines_of(self.answer)), align)

    def json_answer(self) -> ChoiceAnswer:
        """Return the answer of `writecliff choose --json`."""
        from writecliff.api.answers.choices import Choice

        return Choice.of(self.answer.mapping(), folder=self.path, report=self.page)

    def _shown(self) -> Shown:
        return Shown(self.answer.verdict, [f"page: {self.page}"], [self.table()])


@dataclass(frozen=True)
class Asked:
    """A question, and the candidates given by name, which may not be left out."""

    question: Question
    named: Collection[str] | None = None


def ask(
    workload: PathLike,
    *,
    candidates: Sequence[str] = (),
    capacity: str | None = None,
    limits: Sequence[str] = (),
    weights: Sequence[str] = (),
    prices: Path | None = None,
    writes_per_day: str | None = None,
    overprovision: str | None = None,
    precondition: str | None = None,
    duration: str | None = None,
    seeds: int = 1,
    scale: float | None = None,
    what_if: bool = True,
) -> Asked:
    """Return a question from arguments as in `writecliff choose`. Raises ConfigError."""
    from writecliff.choice.candidates import find_candidates
    from writecliff.choice.question import Question, read_prices, read_weights
    from writecliff.units import parse_size, parse_time

    spares = _percentages(overprovision)
    question = Question(
        workload=str(workload),
        candidates=find_candidates(
            candidates, capacity=capacity, least=1 if spares or limits else 2
        ),
        limits=tuple(limits),
        weights=read_weights(weights),
        prices={} if prices is None else read_prices(prices),
        writes_per_day_bytes=None if writes_per_day is None else parse_size(writes_per_day),
        spare_pct=spares,
        precondition=precondition,
        duration_ns=None if duration is None else parse_time(duration),
        seeds=seeds,
        scale=Question.scale if scale is None else scale,
        what_if=what_if,
    )
    given = {part.strip().removeprefix("sim:") for word in candidates for part in word.split(",")}
    files = {drive for drive in question.candidates if drive.endswith(".toml")}
    return Asked(question, given | files)


def ask_again(
    folder: Path,
    *,
    limits: Sequence[str] = (),
    weights: Sequence[str] = (),
    prices: Path | None = None,
    what_if: bool | None = None,
) -> Asked:
    """Return the question of a directory, with other limits, weights or prices if given.

    Raises:
        ConfigError: An argument is invalid, or the directory has no choice.
        StoreError: The directory is damaged.
    """
    from writecliff.choice.question import Question, read_prices, read_weights

    question = Question.read(folder)
    return Asked(
        replace(
            question,
            limits=tuple(limits) or question.limits,
            weights=read_weights(weights) or question.weights,
            prices=question.prices if prices is None else read_prices(prices),
            what_if=question.what_if if what_if is None else what_if,
        )
    )


def _percentages(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise ConfigError(f"--overprovision '{text}' is not a list of percentages",
                          hint="for example 28 or 14,28") from None  # fmt: skip


def choose_drive(
    question: Question,
    *,
    output: PathLike | None = None,
    named: Collection[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    log: Log | None = None,
    begin: Begin | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Choice:
    """Run the load of `question` on its candidates, rank them, and write the page.

    The load may be a file, a ready-made workload, or a trace, from which a workload is synthesised
    in the directory of the runs.

    Args:
        question: The load, candidates, limits and weights.
        output: A directory that does not exist, is empty, or has runs of the same question, which
            are reused (default: choices/LOAD-TIME).
        named: Candidates that must be simulated; others are left out if they are too large for
            this machine (default: all must be simulated).
        workers: Number of simultaneous runs.
        scheduler: "local", or the address of a Dask scheduler.
        log: Receives the events of the runs.
        begin: Receives the names of the runs that each part still has to run.
        note: Receives sentences for the user.

    Raises:
        ConfigError: The question is invalid, or the directory has other runs.
        EngineError: A run failed.
        StoreError: The directory cannot be written.
        SuiteStopped: The user stopped the runs, which can be resumed.
    """
    from writecliff.choice.answer import Answer, measure, ranking_of, runs_of
    from writecliff.choice.load_kinds import kinds_of_load
    from writecliff.choice.page import write_choice_page
    from writecliff.choice.plan import plan_choice
    from writecliff.choice.ranking import weights_of
    from writecliff.choice.variants import FIRST

    path = Path(output or new_path("choices", Path(question.workload).stem))
    with _readable(question, path, note) as readable:
        leave_out = scheduler is None and named is not None
        asked = _possible(readable, named or (), note) if leave_out else readable
        plan = plan_choice(asked, path)
        names = {key: _name(asked, *key) for key in plan.members}
        is_claimed = readable.workload.startswith(str(path / SYNTHETIC))
        folder = _folder(asked, path, plan, names, is_claimed=is_claimed)
    question = asked
    question.write(path)
    running = _Running(workers, scheduler, log, begin)
    running.run(folder)
    measured = measure(question, plan.contenders, runs_of(folder, names))
    measurable = {key for drive in measured.values() for key in drive.figures}
    load = kinds_of_load(question)
    weights = weights_of(question, open_loop=not load.full_rate, available=measurable)
    ranked = ranking_of(question, weights, measured, load)
    changed: tuple[Changed, ...] = ()
    if question.what_if:
        contenders = {contender.name: contender for contender in plan.contenders}
        first = [contenders[drive.name] for drive in ranked[:FIRST]]
        changed = _changed(question, weights, load, first, measured, path, running)
    answer = Answer(question, weights, measured, ranked, changed)
    return Choice(path, write_choice_page(answer, path), answer)


@contextmanager
def _readable(question: Question, path: Path, note: Callable[[str], None]) -> Iterator[Question]:
    """Yield the question with a workload file or job file as its load.

    The workload of a trace is stored beside the runs in `path`, and removed if the block raises.
    """
    import shutil

    from writecliff.api.block_traces import synthesise_trace
    from writecliff.profiles import find_workload
    from writecliff.report.pages import write_page
    from writecliff.report.synthetic import synthetic_page
    from writecliff.store.files import claim_directory

    load = find_workload(Path(question.workload))
    if load.suffix in (".toml", ".fio"):
        yield replace(question, workload=str(load))
        return
    if is_new := not _has_runs(path):
        claim_directory(path)
    try:
        note(f"synthesising a workload from the trace {load}")
        made = synthesise_trace(load, on_part=note)
        file, _ = made.write(path / SYNTHETIC)
        page = write_page(synthetic_page(made), path / SYNTHETIC / "synthetic.html")
        note(f"{file}: {page} shows its differences from the trace")
        yield replace(question, workload=str(file))
    except BaseException:
        if is_new:
            shutil.rmtree(path)
        raise


def _has_runs(path: Path) -> bool:
    from writecliff.store.manifest import SUITE_NAME

    return (path / SUITE_NAME).exists()


def _possible(question: Question, named: Collection[str], note: Callable[[str], None]) -> Question:
    """Leave out drives that are too large for this machine, except those that are `named`."""
    from writecliff.choice.too_large import left_out_text, without_too_large
    from writecliff.parallel import available_memory_bytes

    fitting = without_too_large(question, named, budget_bytes=available_memory_bytes())
    if fitting.left_out:
        note(f"left out, too large for this load: {left_out_text(fitting.left_out)}")
    return fitting


def _name(question: Question, contender: str, seed: int) -> str:
    return contender if question.seeds == 1 else f"{contender}-seed{seed}"


def _folder(
    question: Question,
    path: Path,
    plan: Plan,
    names: Mapping[tuple[str, int], str],
    *,
    is_claimed: bool,
) -> SuiteFolder:
    """Open the folder of the runs, or create it.

    With `is_claimed`, the directory exists already and has the workload.
    """
    from writecliff.suite.folder import SuiteFolder

    members = {names[key]: member for key, member in plan.members.items()}
    if _has_runs(path):
        folder = SuiteFolder.open(path)
        if folder.kind != "choice" or _options(folder.members) != _options(members):
            raise ConfigError(f"{path} has runs of another choice", hint="give another --output")
    else:
        about = Path(question.workload).stem
        folder = _created(path, about, members, plan.devices, is_claimed=is_claimed)
    return folder


def _created(
    path: Path,
    about: str,
    members: Mapping[str, Member],
    devices: Mapping[Path, str],
    *,
    is_claimed: bool = False,
) -> SuiteFolder:
    from writecliff.store.files import write_atomically
    from writecliff.suite.folder import SuiteFolder

    folder = SuiteFolder.create(path, "choice", about, members, is_claimed=is_claimed)
    for device, text in devices.items():
        write_atomically(device, text.encode())
    return folder


def _options(members: Mapping[str, Member]) -> dict[str, Any]:
    """Return the properties by which runs are equal, as they are stored."""
    import json

    keys = {name: (member.test, member.options, member.target) for name, member in members.items()}
    return dict(json.loads(json.dumps(keys)))


@dataclass(frozen=True)
class _Running:
    """Settings for the execution of runs."""

    workers: int | None
    scheduler: str | None
    log: Log | None
    begin: Begin | None

    def run(self, folder: SuiteFolder) -> None:
        from writecliff.cluster import connected
        from writecliff.report import write_report
        from writecliff.suite.runner import run_suite

        left = folder.left()
        if self.begin is not None and left:
            self.begin(left)
        with connected(self.scheduler, workers=self.workers) as cluster:
            run_suite(folder, self.log or (lambda event: None), opening={}, finish=write_report,
                      workers=self.workers, cluster=cluster)  # fmt: skip


def _what_if(
    question: Question, first: Sequence[Contender], path: Path
) -> tuple[list[Variant], SuiteFolder | None]:
    """Return the changes that apply to the first drives, and the folder of their runs.

    The folder of earlier runs is reused if they are the same; None if no change applies.
    """
    from itertools import count

    from writecliff.choice.variants import plan_variants
    from writecliff.suite.folder import SuiteFolder

    for number in count(1):  # other limits may have put other drives first
        below = path / (WHAT_IF if number == 1 else f"{WHAT_IF}-{number}")
        variants = list(plan_variants(question, first, below))
        members = {
            f"{variant.key}-{name}": member
            for variant in variants
            for name, member in variant.members.items()
        }
        if not members:
            return [], None
        if not _has_runs(below):
            devices = {file: text for variant in variants for file, text in variant.devices.items()}
            return variants, _created(below, Path(question.workload).stem, members, devices)
        folder = SuiteFolder.open(below)
        if _options(folder.members) == _options(members):
            return variants, folder
    raise AssertionError("unreachable")


def _changed(
    question: Question,
    weights: Mapping[str, float],
    load: LoadKinds,
    first: Sequence[Contender],
    measured: Mapping[str, Measured],
    path: Path,
    running: _Running,
) -> tuple[Changed, ...]:
    """Rank the first drives again, with one change at a time."""
    from writecliff.choice.answer import Changed, measure, ranking_of

    variants, folder = _what_if(question, first, path)
    if folder is None:
        return ()
    running.run(folder)
    changes = []
    for variant in variants:
        applied = [contender for contender in first if contender.name in variant.members]
        runs = {
            contender.name: [folder.run_directory(f"{variant.key}-{contender.name}")]
            for contender in applied
        }
        again = measure(question, applied, runs)
        here = {
            contender.name: again.get(contender.name, measured[contender.name])
            for contender in first
        }
        order = ranking_of(question, weights, here, load)
        changes.append(Changed(variant.key, variant.text, order, tuple(variant.members)))
    return tuple(changes)
