"""The answer to a choice, from its runs alone: ranking, verdict, and what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.choice.certainty import model_error
from writecliff.choice.load_kinds import LoadKinds
from writecliff.choice.measured import (
    Figures,
    LifeEnd,
    figures_of,
    life_end,
    metrics_of,
    over_seeds,
)
from writecliff.choice.question import LIFE, PRICE, Question
from writecliff.choice.ranking import Ranked, rank, said_of
from writecliff.devices import show_device
from writecliff.engines.target import SIMULATED
from writecliff.errors import ConfigError
from writecliff.report import report_of
from writecliff.report.headline import interval_text, value_text
from writecliff.report.workload import WorkloadRunReport
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from writecliff.choice.plan import Contender
    from writecliff.suite.folder import SuiteFolder

SCHEMA = "writecliff/choose/1"
_SAID = ("p99.99", "iops", "flush/p99.9", LIFE, PRICE)  # figures in the verdict
SCALED_TEXT = (
    "rates are close to those of the whole drive; its slowest I/Os may be slower or faster, see "
    "'Tails of smaller drives' in the guide to choose"
)


@dataclass(frozen=True)
class Measured:
    """A drive and what its runs measured. `scale`: how many times smaller it was simulated."""

    contender: Contender
    figures: Figures
    runs: tuple[Path, ...]
    scale: float
    power_loss_protection: bool | None = None  # None: the drive has no volatile buffer
    life_end: LifeEnd | None = None  # the rating that its life reaches first

    @property
    def protection_text(self) -> str:
        """Power-loss protection in words: "with power-loss protection"."""
        if self.power_loss_protection is None:
            return "without a volatile buffer"
        return f"{'with' if self.power_loss_protection else 'without'} power-loss protection"


@dataclass(frozen=True)
class Changed:
    """What one change does to the first drives: their order with it, and their figures."""

    key: str
    text: str
    ranked: tuple[Ranked, ...]
    applied: tuple[str, ...]  # the drives that it applies to

    @property
    def first(self) -> Ranked:
        return self.ranked[0]


@dataclass(frozen=True)
class Answer:
    """All that is answered."""

    question: Question
    weights: Mapping[str, float]
    measured: Mapping[str, Measured]  # by contender
    ranked: tuple[Ranked, ...]
    changed: tuple[Changed, ...] = ()

    @property
    def first(self) -> Ranked:
        return self.ranked[0]

    @property
    def answered(self) -> bool:
        """Whether a drive meets all limits."""
        return self.first.passes

    @property
    def verdict(self) -> str:
        """The answer in one or two sentences."""
        first, passing = self.first, sum(one.passes for one in self.ranked)
        many = len(self.ranked)
        if not self.answered:
            if many == 1:
                return f"{first.name} does not meet the limits: {first.why}"
            return f"None of {many} drives meets all limits; {first.name} is nearest: {first.why}"
        said = ", ".join(said_of(first.figures[key]) for key in _SAID if key in first.figures)
        said += f", {self.measured[first.name].protection_text}"
        if many == 1:
            return f"{first.name} meets the limits: {said}"
        begin = f"{first.name} is first of {many}: {said}"
        if self.question.limits:
            begin += f"; {passing} of {many} meet the limits"
        second = next((one for one in self.ranked[1:] if one.passes), None)
        if second is None or second.score is None or first.score is None:
            return begin
        behind = 100 * (1 - second.score / first.score)
        sure = {
            "clear": "more than the model's error",
            "error unknown": self._uncertainty(first, second),
        }.get(second.sure or "", second.sure or "")
        return f"{begin}. {second.name} is {behind:.0f} % behind, {sure}"

    def _uncertainty(self, *rows: Ranked) -> str:
        """Name the weighted figures whose error is not known; if there are none, those with a
        lower bound.
        """
        errors = {key: [row.error.of(key) for row in rows] for key in self.weights}
        unknown = [key for key, of_key in errors.items() if any(e.pct is None for e in of_key)]
        bounds = [key for key, of_key in errors.items() if any(e.is_bound for e in of_key)]
        state = "not known" if unknown else "known only as a lower bound"
        return f"the model's error of {' and '.join(unknown or bounds)} is {state}"

    @property
    def pareto(self) -> frozenset[str]:
        """The drives that no other drive is better than in every figure that counts."""
        have = [one for one in self.ranked if one.score is not None]
        return frozenset(
            one.name
            for one in have
            if not any(_dominates(other, one) for other in have if other is not one)
        )

    def mapping(self) -> dict[str, Any]:
        """The answer as `writecliff choose --json` prints it."""
        return {
            "workload": self.question.workload,
            "limits": list(self.question.limits),
            "weights": dict(self.weights),
            "ranking": [self._ranked(one) for one in self.ranked],
            "what_if": [
                {
                    "change": one.text,
                    "first": one.first.name,
                    "changes_answer": one.first.name != self.first.name,
                    "ranking": [
                        {"device": each.name, "applied": each.name in one.applied,
                         "passes": each.passes, "metrics": metrics_of(each.figures)}
                        for each in one.ranked
                    ],
                }
                for one in self.changed
            ],
            "left_out": dict(self.question.left_out),
            "verdict": self.verdict,
        }  # fmt: skip

    @property
    def axes(self) -> tuple[str, ...]:
        """Figures that count or have a limit."""
        limited = (limit.figure for row in self.ranked for limit in row.judged)
        return tuple(dict.fromkeys((*self.weights, *limited)))

    @property
    def smaller(self) -> str:
        """What to say of drives that were simulated smaller; "" if all were whole."""
        smaller = [one for one in self.measured.values() if one.scale != 1]
        if not smaller:
            return ""
        most = max(one.scale for one in smaller)
        said = (
            f"{len(smaller)} of {len(self.measured)} drives were simulated smaller, at 1/{most:g}"
            f" at most: {SCALED_TEXT}."
        )
        least = [one for one in smaller if one.scale > self.question.scale]
        if not least:
            return said
        names = ", ".join(f"{one.contender.name} at 1/{one.scale:g}" for one in least)
        return f"{said} More cannot be simulated of drives beyond page numbers: {names}."

    def _ranked(self, one: Ranked) -> dict[str, object]:
        measured = self.measured[one.name]
        return {
            "device": one.name,
            "candidate": one.drive,
            "rank": one.rank,
            "passes": one.passes,
            "score": one.score,
            "why": one.why,
            "not_sustained": one.not_sustained or None,
            "sure": one.sure,
            "best_of_its_kind": one.name in self.pareto,
            "metrics": metrics_of(one.figures),
            "intervals": {
                key: [figure.interval.low, figure.interval.high]
                for key, figure in one.figures.items()
                if figure.interval is not None
            },
            "limits": [vars(limit) for limit in one.judged],
            "model_error": one.error.mapping(self.axes),
            "scale": measured.scale,
            "power_loss_protection": measured.power_loss_protection,
            "life_end": measured.life_end,
            "runs": list(measured.runs),
        }


def _dominates(one: Ranked, other: Ranked) -> bool:
    better = [one.shares[key] >= other.shares[key] for key in other.shares]
    return all(better) and any(one.shares[key] > other.shares[key] for key in other.shares)


def measure(
    question: Question, contenders: Sequence[Contender], runs: Mapping[str, Sequence[Path]]
) -> dict[str, Measured]:
    """The figures of each contender from its runs, one for each seed. Raises StoreError."""
    found = {}
    for one in contenders:
        device = show_device(one.target.removeprefix(SIMULATED))
        reports = [_report(path) for path in runs[one.name]]
        price = question.price_of(one.drive)
        figures = [figures_of(report.loads, device, question, price) for report in reports]
        scale = reports[0].data.manifest.device.scale
        means = over_seeds(figures)
        protected = None if device.kind == "scm" else device.power_loss_protection
        found[one.name] = Measured(one, means, tuple(runs[one.name]), scale, protected,
                                   life_end(means, device))  # fmt: skip
    return found


def _report(path: Path) -> WorkloadRunReport:
    report = report_of(RunDirectory.open(path))
    if not isinstance(report, WorkloadRunReport):
        raise ConfigError(f"{path} is no run of a load")
    return report


def ranking_of(
    question: Question,
    weights: Mapping[str, float],
    measured: Mapping[str, Measured],
    load: LoadKinds,
) -> tuple[Ranked, ...]:
    """Return the drives in order. `load`: kinds of the load, which determine the model errors."""
    drives = {
        name: (
            one.contender.drive,
            one.figures,
            model_error(one.contender.drive, load, rated_life=one.life_end != "rated cycles"),
        )
        for name, one in measured.items()
    }
    return tuple(rank(drives, question, weights))


def runs_of(folder: SuiteFolder, members: Mapping[tuple[str, int], str]) -> dict[str, list[Path]]:
    """The run directories of each contender, by name, in the order of their seeds; `members` are
    the members of the folder by contender and seed.
    """
    found: dict[str, list[Path]] = {}
    for (name, _), member in sorted(members.items(), key=lambda item: item[0][1]):
        found.setdefault(name, []).append(folder.run_directory(member))
    return found


def lines_of(answer: Answer) -> Iterator[tuple[str, ...]]:
    """The ranking as rows of text: rank, drive, limits met, score, and the figures that count."""
    for one in answer.ranked:
        cells = [
            f"{value_text(one.figures[key].value)}{interval_text(one.figures[key].interval)}"
            if key in one.figures
            else units.UNKNOWN
            for key in answer.weights
        ]
        score = units.UNKNOWN if one.score is None else f"{100 * one.score:.0f} %"
        yield str(one.rank), one.name, "yes" if one.passes else "no", score, *cells, one.why
