"""Which drive: one load on many simulated drives, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.api.runs import PathLike, new_path
from writecliff.shown import Grid, Shown, Shows

if TYPE_CHECKING:
    from writecliff.choice.answer import Answer, Changed, Measured
    from writecliff.choice.plan import Contender, Plan
    from writecliff.choice.question import Question
    from writecliff.choice.variants import Variant
    from writecliff.suite.children import ChildEvent
    from writecliff.suite.folder import Member, SuiteFolder

Begin = Callable[[Sequence[str]], None]
Log = Callable[["ChildEvent"], None]
WHAT_IF = "what-if"  # folder of the runs that show what would change the answer


@dataclass(frozen=True)
class Choice(Shows):
    """The answer of `choose_drive`: `answer.ranked`, `answer.verdict`."""

    path: Path
    """The directory of its runs."""

    page: Path
    """The page about it."""

    answer: Answer
    """Ranking, figures, reasons, and what would change them."""

    def _shown(self) -> Shown:
        from writecliff.choice.answer import lines_of

        head = ("rank", "drive", "passes", "score", *self.answer.weights, "why")
        align = "rllr" + "r" * len(self.answer.weights) + "l"
        grid = Grid(head, list(lines_of(self.answer)), align)
        return Shown(self.answer.verdict, [f"page: {self.page}"], [grid])


def choose_drive(
    question: Question,
    *,
    output: PathLike | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    log: Log | None = None,
    begin: Begin | None = None,
) -> Choice:
    """Run the load of `question` on its candidates, rank them, and write the page.

    `output`: a directory that is empty, does not exist, or has the runs of the same question,
    which are kept (default: choices/LOAD-TIME). `begin` gets the names of the runs that each part
    still has to make. Raises ConfigError, EngineError, StoreError, SuiteStopped (resumable).
    """
    from writecliff.choice.answer import Answer, measure, ranking_of, runs_of
    from writecliff.choice.page import write_choice_page
    from writecliff.choice.plan import is_open_loop, plan_choice
    from writecliff.choice.ranking import weights_of
    from writecliff.choice.variants import FIRST

    path = Path(output or new_path("choices", Path(question.workload).stem))
    plan = plan_choice(question, path)
    names = {key: _name(question, *key) for key in plan.members}
    folder = _folder(question, path, plan, names)
    running = _Running(workers, scheduler, log, begin)
    running.run(folder)
    measured = measure(question, plan.contenders, runs_of(folder, names))
    measurable = {key for one in measured.values() for key in one.figures}
    weights = weights_of(question, open_loop=is_open_loop(question), known=measurable)
    ranked = ranking_of(question, weights, measured)
    changed: tuple[Changed, ...] = ()
    if question.what_if:
        known = {one.name: one for one in plan.contenders}
        first = [known[one.name] for one in ranked[:FIRST]]
        changed = _changed(question, weights, first, measured, path, running)
    answer = Answer(question, weights, measured, ranked, changed)
    return Choice(path, write_choice_page(answer, path), answer)


def _name(question: Question, contender: str, seed: int) -> str:
    return contender if question.seeds == 1 else f"{contender}-seed{seed}"


def _folder(
    question: Question, path: Path, plan: Plan, names: Mapping[tuple[str, int], str]
) -> SuiteFolder:
    """The folder of the runs: as it is if it is there, with the question as it is asked now."""
    from writecliff.errors import ConfigError
    from writecliff.store.manifest import SUITE_NAME
    from writecliff.suite.folder import SuiteFolder

    members = {names[key]: member for key, member in plan.members.items()}
    if (path / SUITE_NAME).exists():
        folder = SuiteFolder.open(path)
        if folder.kind != "choice" or _options(folder.members) != _options(members):
            raise ConfigError(f"{path} has other runs", hint="give another --output")
    else:
        folder = _created(path, Path(question.workload).stem, members, plan.devices)
    question.write(path)
    return folder


def _created(
    path: Path, about: str, members: Mapping[str, Member], devices: Mapping[Path, str]
) -> SuiteFolder:
    from writecliff.store.files import write_atomically
    from writecliff.suite.folder import SuiteFolder

    folder = SuiteFolder.create(path, "choice", about, members)
    for device, text in devices.items():
        write_atomically(device, text.encode())
    return folder


def _options(members: Mapping[str, Member]) -> dict[str, Any]:
    """What makes runs the same ones, as it is stored."""
    import json

    found = {name: (one.test, one.options, one.target) for name, one in members.items()}
    return dict(json.loads(json.dumps(found)))


@dataclass(frozen=True)
class _Running:
    """How runs are made."""

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
    """The changes that apply to the first drives, and the folder of their runs: that of earlier
    ones if they are the same. None if nothing applies."""
    from itertools import count

    from writecliff.choice.variants import plan_variants
    from writecliff.store.manifest import SUITE_NAME
    from writecliff.suite.folder import SuiteFolder

    for number in count(1):  # other limits may have made other drives the first ones
        below = path / (WHAT_IF if number == 1 else f"{WHAT_IF}-{number}")
        variants = list(plan_variants(question, first, below))
        members = {
            f"{variant.key}-{name}": member
            for variant in variants
            for name, member in variant.members.items()
        }
        if not members:
            return [], None
        if not (below / SUITE_NAME).exists():
            devices = {file: text for one in variants for file, text in one.devices.items()}
            return variants, _created(below, Path(question.workload).stem, members, devices)
        folder = SuiteFolder.open(below)
        if _options(folder.members) == _options(members):
            return variants, folder
    raise AssertionError("unreachable")


def _changed(
    question: Question,
    weights: Mapping[str, float],
    first: Sequence[Contender],
    measured: Mapping[str, Measured],
    path: Path,
    running: _Running,
) -> tuple[Changed, ...]:
    """The first drives again, one thing changed at a time."""
    from writecliff.choice.answer import Changed, measure, ranking_of

    variants, folder = _what_if(question, first, path)
    if folder is None:
        return ()
    running.run(folder)
    found = []
    for variant in variants:
        applied = [one for one in first if one.name in variant.members]
        runs = {one.name: [folder.run_directory(f"{variant.key}-{one.name}")] for one in applied}
        again = measure(question, applied, runs)
        here = {one.name: again.get(one.name, measured[one.name]) for one in first}
        order = ranking_of(question, weights, here)
        found.append(Changed(variant.key, variant.text, order, tuple(variant.members)))
    return tuple(found)
