"""Drive selection: run one load on many simulated drives, and rank the drives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.api.runs import PathLike, new_path
from writecliff.errors import ConfigError
from writecliff.shown import Grid, Shown, Shows

if TYPE_CHECKING:
    from writecliff.api.answers.choices import Choice as ChoiceAnswer
    from writecliff.api.answers.choices import ChoicePlan
    from writecliff.choice.answer import Answer, Changed, Ended, Measured
    from writecliff.choice.cost import LevelCost
    from writecliff.choice.load_kinds import LoadKinds
    from writecliff.choice.plan import Contender, Plan
    from writecliff.choice.question import Question
    from writecliff.choice.ranking import Ranked
    from writecliff.choice.variants import Variant
    from writecliff.suite.children import ChildEvent
    from writecliff.suite.folder import Member, SuiteFolder

Begin = Callable[[Sequence[str]], None]
Log = Callable[["ChildEvent"], None]
OnRanking = Callable[[Grid, Sequence[str]], None]
FINER = "finer"  # Base name of folders for runs at finer levels: finer-1, finer-2.
WHAT_IF = "what-if"  # Folder for runs with changed drives or loads.
SYNTHETIC = "synthetic"  # Folder for the workload that is synthesised from a trace.


@dataclass(frozen=True, repr=False)
class Choice(Shows):
    """Result of `choose_drive`: `answer.ranked`, `answer.verdict`."""

    path: Path
    """The directory of its runs."""

    page: Path
    """The page with the ranking."""

    answer: Answer
    """Ranking, figures, reasons, and changes that would alter them."""

    def table(self) -> Grid:
        """Return a table with a row per drive, best first."""
        return _table(self.answer)

    def json_answer(self) -> ChoiceAnswer:
        """Return the output of `writecliff choose --json`."""
        from writecliff.api.answers.choices import Choice

        return Choice.of(self.answer.mapping(), folder=self.path, report=self.page)

    def _shown(self) -> Shown:
        return Shown(self.answer.verdict, [f"page: {self.page}"], [self.table()])

    def _shown_in_notebook(self) -> Shown:
        from writecliff.choice.page import page_of
        from writecliff.report.colours import one_page
        from writecliff.report.pages import first_screen

        with one_page():
            return self._shown()._replace(screen=first_screen(page_of(self.answer, self.path)))


def _table(answer: Answer) -> Grid:
    from writecliff.choice.answer import table_of

    return table_of(answer)


@dataclass(frozen=True)
class Asked:
    """A question with the explicitly named candidates, which are never excluded."""

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
    exhaustive: bool = False,
    budget: str | None = None,
    what_if: bool = False,
    include_discontinued: bool = False,
) -> Asked:
    """Return a question from arguments as in `writecliff choose`. Raises ConfigError."""
    from writecliff.choice.candidates import find_candidates, omitted_candidates
    from writecliff.choice.question import Question, read_prices, read_weights
    from writecliff.units import parse_size, parse_time

    spares = _percentages(overprovision)
    selected = find_candidates(
        candidates,
        capacity=capacity,
        least=1 if spares or limits else 2,
        include_discontinued=include_discontinued,
    )
    omitted = {} if include_discontinued else omitted_candidates(candidates, capacity)
    question = Question(
        workload=str(workload),
        candidates=selected,
        limits=tuple(limits),
        weights=read_weights(weights),
        prices={} if prices is None else read_prices(prices),
        writes_per_day_bytes=None if writes_per_day is None else parse_size(writes_per_day),
        spare_pct=spares,
        precondition=precondition,
        duration_ns=None if duration is None else parse_time(duration),
        seeds=seeds,
        scale=scale,
        exhaustive=exhaustive,
        budget_ns=Question.budget_ns if budget is None else parse_time(budget),
        what_if=what_if,
        left_out={name: why for name, why in omitted.items() if name not in selected},
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
    budget: str | None = None,
    what_if: bool | None = None,
) -> Asked:
    """Return the question stored in a directory, updated with any new limits, weights or prices.

    Raises:
        ConfigError: If an argument is invalid, or the directory contains no choice.
        StoreError: If the directory is damaged.
    """
    from writecliff.choice.question import Question, read_prices, read_weights
    from writecliff.units import parse_time

    question = Question.read(folder)
    return Asked(
        replace(
            question,
            limits=tuple(limits) or question.limits,
            weights=read_weights(weights) or question.weights,
            prices=question.prices if prices is None else read_prices(prices),
            budget_ns=question.budget_ns if budget is None else parse_time(budget),
            what_if=question.what_if if what_if is None else what_if,
        )
    )


def _percentages(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise ConfigError(f"--overprovision '{text}' is not a comma-separated list of percentages",
                          hint="give percentages, for example 28 or 14,28") from None  # fmt: skip


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
    on_ranking: OnRanking = lambda table, names: None,
) -> Choice:
    """Run the load of `question` on its candidates, rank them, and write the report.

    All candidates run at a coarse level first. Candidates that could still win, given that level's
    errors, then run at finer levels until the winner is decided or the budget is exhausted. If the
    user interrupts a finer level, the result contains the figures measured so far, and the choice
    can be resumed.

    The load may be a file, a ready-made workload or a trace. A workload synthesised from a trace is
    stored in the run directory.

    Args:
        question: The load, candidates, limits and weights.
        output: A directory that does not exist, is empty, or has runs of the same question, which
            are reused (default: choices/LOAD-TIME).
        named: Candidates that must be simulated; others are left out if they are too large for
            this machine (default: all must be simulated).
        workers: Number of simultaneous runs.
        scheduler: "local", or the address of a Dask scheduler.
        log: Callback that receives the runs' events.
        begin: Callback that receives the names of the runs that remain in each phase.
        note: Callback that receives remarks for the user.
        on_ranking: Callback that receives the ranking after each level, and the names of the drives
            that run at the next finer level.

    Raises:
        ConfigError: If the question is invalid, or the directory contains other runs.
        EngineError: A run failed.
        StoreError: If the directory cannot be written.
        SuiteStopped: If the user stopped the runs. The choice can be resumed.
    """
    from writecliff.choice.load_kinds import kinds_of_load
    from writecliff.choice.page import write_choice_page
    from writecliff.choice.plan import plan_choice
    from writecliff.choice.variants import FIRST

    path = Path(output or new_path("choices", Path(question.workload).stem))
    with _readable(question, path, note) as readable:
        leave_out = scheduler is None and named is not None
        asked = _possible(readable, named or (), note) if leave_out else readable
        plan = plan_choice(asked, path)
        is_claimed = readable.workload.startswith(str(path / SYNTHETIC))
        folder = _folder(asked, path, plan, is_claimed=is_claimed)
    question = asked
    question.write(path)
    running = _Running(workers, scheduler, log, begin)
    search = _Search(question, plan, folder, running, kinds_of_load(question))
    answer = search.run(on_ranking)
    if question.what_if and answer.ended != "interrupted":
        contenders = {contender.name: contender for contender in plan.contenders}
        first = [contenders[row.name] for row in answer.ranked[:FIRST]]
        changed = _changed(answer, search.load, first, path, running)
        answer = replace(answer, changed=changed)
    return Choice(path, write_choice_page(answer, path), answer)


@dataclass(frozen=True)
class PlannedChoice:
    """Drives that `choose` would compare, with the estimated time and memory of each level."""

    question: Question
    """The question, with the drives that would be compared and the omitted drives."""

    costs: Sequence[LevelCost]
    """Cost of each level. The first level runs all drives, later levels the possible winners."""

    def names(self) -> list[str]:
        """Return the display names of the drives."""
        from writecliff.choice.question import label_of

        return [label_of(drive) for drive in self.question.candidates]

    def first_s(self) -> float | None:
        """Return the expected time until the first ranking in seconds, or `None` if unknown."""
        return self.costs[0].time_s

    def longest_s(self) -> float | None:
        """Return the time to run all drives at all levels in seconds, or `None` if unknown."""
        times = [cost.time_s for cost in self.costs if cost.time_s is not None]
        return sum(times) if len(times) == len(self.costs) else None

    def memory_bytes(self) -> int:
        """Return the peak memory of the simultaneous runs, in bytes."""
        return max(cost.memory_bytes for cost in self.costs)

    def json_answer(self) -> ChoicePlan:
        """Return the output of `writecliff choose --dry-run --json`."""
        from dataclasses import asdict

        from writecliff.api.answers.choices import ChoicePlan, PlannedLevel

        budget_ns = self.question.budget_ns
        return ChoicePlan(
            dry_run=True,
            workload=self.question.workload,
            drives=self.question.candidates,
            left_out=self.question.left_out,
            levels=[PlannedLevel(**asdict(cost)) for cost in self.costs],
            first_ranking_s=self.first_s(),
            longest_s=self.longest_s(),
            budget_s=None if budget_ns is None else budget_ns / 1e9,
            memory_bytes=self.memory_bytes(),
        )


def plan_cost(
    asked: Asked,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> PlannedChoice:
    """Return the drives that `choose_drive` would compare, and the expected time and memory.

    The estimate is based on a short pilot run of one drive of each class. It does not include the
    variants of `what_if`. It assumes that all runs execute on this machine, even if `scheduler`
    would distribute them.

    Raises:
        ConfigError: If the question is invalid, or a drive cannot be simulated.
    """
    from tempfile import TemporaryDirectory

    from writecliff.choice.cost import level_costs
    from writecliff.choice.plan import plan_choice
    from writecliff.store.files import write_atomically

    with TemporaryDirectory() as folder:
        path = Path(folder) / "choice"
        with _readable(asked.question, path, note) as readable:
            leave_out = scheduler is None and asked.named is not None
            question = _possible(readable, asked.named or (), note) if leave_out else readable
            plan = plan_choice(question, path)
            path.mkdir(exist_ok=True)
            for device, text in plan.devices.items():
                write_atomically(device, text.encode())
            costs = level_costs(question, plan, workers=workers, note=note)
    return PlannedChoice(replace(question, workload=asked.question.workload), costs)


@dataclass
class _Search:
    """Search for the best drive, from a coarse level to finer levels."""

    question: Question
    plan: Plan
    folder: SuiteFolder
    running: _Running
    load: LoadKinds
    measured: dict[str, Measured] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)  # Last completed step of each contender.

    def run(self, on_ranking: OnRanking) -> Answer:
        """Run levels until the best drive is decided, and return the result."""
        import time

        from writecliff.suite.runner import SuiteStopped

        self._run(0, [contender.name for contender in self.plan.contenders])
        begun_ns = time.monotonic_ns()
        while True:
            answer = self._answer("decided")
            open_names = [row.name for row in answer.ranked if self._is_open(row, answer)]
            if not open_names:
                return answer
            answer = replace(answer, open=tuple(open_names))
            on_ranking(_table(answer), open_names)
            budget_ns = self.question.budget_ns
            if budget_ns is not None and time.monotonic_ns() - begun_ns >= budget_ns:
                return replace(answer, ended="budget")
            try:
                for step in sorted({self.done[name] + 1 for name in open_names}):
                    self._run(step, [name for name in open_names if self.done[name] + 1 == step])
            except SuiteStopped:
                return replace(self._answer("interrupted"), open=tuple(open_names))

    def _run(self, step: int, names: Sequence[str]) -> None:
        """Run a step for the named contenders, and measure the completed runs."""
        from writecliff.choice.answer import measure

        seeds = range(1, self.question.seeds + 1)
        of = {name: [_name(self.question, name, seed) for seed in seeds] for name in names}
        folder = self.folder if step == 0 else self._finer(step)
        is_last = all(len(self.plan.levels[name]) == step + 1 for name in names)
        try:
            self.running.run(folder, [m for members in of.values() for m in members], is_last)
        finally:
            complete = set(folder.complete())
            runs = {name: [folder.run_directory(member) for member in members]
                    for name, members in of.items() if complete.issuperset(members)}  # fmt: skip
            made = [contender for contender in self.plan.contenders if contender.name in runs]
            self.measured |= measure(self.question, made, runs)
            self.done |= dict.fromkeys(runs, step)

    def _finer(self, step: int) -> SuiteFolder:
        """Open or create the folder of a finer step."""
        from writecliff.suite.folder import SuiteFolder

        below = self.folder.path / f"{FINER}-{step}"
        if _has_runs(below):
            return SuiteFolder.open(below)
        return _created(below, self.folder.about, _members(self.question, self.plan, step), {})

    def _answer(self, ended: Ended) -> Answer:
        from writecliff.choice.answer import Answer, ranking_of
        from writecliff.choice.ranking import weights_of

        available = {key for drive in self.measured.values() for key in drive.figures}
        open_loop = not self.load.full_rate
        weights = weights_of(self.question, open_loop=open_loop, available=available)
        ranked = ranking_of(self.question, weights, self.measured, self.load)
        levels = {name: self.plan.levels[name][step].name for name, step in self.done.items()}
        return Answer(self.question, weights, self.measured, ranked, levels=levels, ended=ended)

    def _is_open(self, row: Ranked, answer: Answer) -> bool:
        """Return `True` if simulating a drive at a finer level could change the top rank."""
        from writecliff.choice.levels import could_be_first

        if self.done[row.name] + 1 == len(self.plan.levels[row.name]):
            return False
        if row.name == answer.first.name:
            return True
        if any(key not in row.figures for key in self._tails):
            return True  # This level simulates too few I/Os.
        errors = self._errors(row.name), self._errors(answer.first.name)
        return could_be_first(row, answer.first, self.question, answer.weights, errors)

    @property
    def _tails(self) -> Sequence[str]:
        """Percentile figures to compare if the load has enough I/Os."""
        from writecliff.choice.question import FIGURE_UNITS
        from writecliff.choice.ranking import weights_of
        from writecliff.operation_names import FLUSH

        available = {key for drive in self.measured.values() for key in drive.figures}
        flushes = any(key.startswith(FLUSH) for key in available)
        keys = [key for key in FIGURE_UNITS if flushes or not key.startswith(FLUSH)]
        weights = weights_of(self.question, open_loop=not self.load.full_rate, available=keys)
        limited = [limit.figure for limit in self.question.expectations()]
        return [key for key in (*weights, *limited) if "p9" in key]

    def _errors(self, name: str) -> Mapping[str, float]:
        """Return the scale errors that apply to a contender at its last step."""
        from writecliff.choice.levels import class_of, scale_errors
        from writecliff.devices import show_device

        contender = next(each for each in self.plan.contenders if each.name == name)
        device = show_device(contender.target.removeprefix("sim:"))
        level = self.plan.levels[name][self.done[name]]
        return scale_errors()[class_of(device)].get(level.name, {})


@contextmanager
def _readable(question: Question, path: Path, note: Callable[[str], None]) -> Iterator[Question]:
    """Yield the question with its load converted to a workload or job file.

    A workload synthesised from a trace is stored alongside the runs in `path`, and is removed if
    the block raises an exception.
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
    """Drop drives that are too large for this machine, except those that are `named`."""
    from writecliff.choice.too_large import left_out_text, without_too_large
    from writecliff.parallel import available_memory_bytes

    fitting = without_too_large(question, named, budget_bytes=available_memory_bytes())
    if fitting.left_out:
        note(f"omitted drives: {left_out_text(fitting.left_out)}")
    return fitting


def _name(question: Question, contender: str, seed: int) -> str:
    return contender if question.seeds == 1 else f"{contender}-seed{seed}"


def _folder(
    question: Question,
    path: Path,
    plan: Plan,
    *,
    is_claimed: bool,
) -> SuiteFolder:
    """Open or create the directory for the runs.

    If `is_claimed`, the directory already exists and contains the workload.
    """
    from writecliff.suite.folder import SuiteFolder

    members = _members(question, plan, 0)
    if _has_runs(path):
        folder = SuiteFolder.open(path)
        if folder.kind != "choice" or _options(folder.members) != _options(members):
            raise ConfigError(
                f"{path} contains runs from another `choose` command",
                hint="choose another --output",
            )
    else:
        about = Path(question.workload).stem
        folder = _created(path, about, members, plan.devices, is_claimed=is_claimed)
    return folder


def _members(question: Question, plan: Plan, step: int) -> dict[str, Member]:
    """Return the runs of a step by name."""
    return {_name(question, *key): member for key, member in plan.steps[step].items()}


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
    """Return the properties that identify equivalent runs, in stored form."""
    import json

    keys = {name: (member.test, member.options, member.target) for name, member in members.items()}
    return dict(json.loads(json.dumps(keys)))


@dataclass(frozen=True)
class _Running:
    """Settings for executing the runs."""

    workers: int | None
    scheduler: str | None
    log: Log | None
    begin: Begin | None

    def run(
        self, folder: SuiteFolder, names: Collection[str] | None = None, with_report: bool = True
    ) -> None:
        """Run the named members that are not complete (default: all members)."""
        from writecliff.cluster import connected
        from writecliff.report import write_report
        from writecliff.suite.runner import run_suite

        left = [name for name in folder.left() if names is None or name in names]
        if not left:
            return
        if self.begin is not None:
            self.begin(left)
        with connected(self.scheduler, workers=self.workers) as cluster:
            run_suite(folder, self.log or (lambda event: None), opening={},
                      finish=write_report if with_report else _no_report, names=left,
                      workers=self.workers, cluster=cluster)  # fmt: skip


def _no_report(run: Path) -> None:
    """Skip the report of a coarse run, because drawing it takes longer than the simulation."""


def _what_if(
    question: Question, first: Sequence[Contender], path: Path
) -> tuple[list[Variant], SuiteFolder | None]:
    """Return the variants that apply to the top drives, and the folder of the variants' runs.

    A folder of earlier runs is reused if it contains the same runs. The folder is `None` if no
    variant applies.
    """
    from itertools import count

    from writecliff.choice.variants import plan_variants
    from writecliff.suite.folder import SuiteFolder

    for number in count(1):  # New limits may have changed the top-ranked drives.
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
    answer: Answer, load: LoadKinds, first: Sequence[Contender], path: Path, running: _Running
) -> tuple[Changed, ...]:
    """Rerank the top drives, applying one change at a time."""
    from writecliff.choice.answer import Changed, measure, ranking_of

    question, measured = answer.question, answer.measured
    variants, folder = _what_if(question, first, path)
    if folder is None:
        return ()
    running.run(folder, with_report=False)
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
        order = ranking_of(question, answer.weights, here, load)
        changes.append(Changed(variant.key, variant.text, order, tuple(variant.members)))
    return tuple(changes)
