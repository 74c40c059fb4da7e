"""The result of a choice, with its ranking, verdict, and the effect of variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
from writecliff.choice.ranking import Ranked, figure_text, rank
from writecliff.devices import show_device
from writecliff.engines.target import SIMULATED
from writecliff.errors import ConfigError
from writecliff.report import report_of
from writecliff.report.headline import value_text
from writecliff.report.workload import WorkloadRunReport
from writecliff.shown import Grid
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from writecliff.choice.plan import Contender

SCHEMA = "writecliff/choose/1"
# Figures for the verdict, most important first.
_VERDICT_FIGURES = ("p99.99", LIFE, PRICE, "iops", "flush/p99.9")
_MOST_FIGURES = 3  # Maximum number of figures in the verdict.
_LIFE_ENDS = {"rated cycles": "cycles", "rated bytes (TBW)": "TBW", None: units.UNKNOWN}
_PROTECTION = {True: "yes", False: "no", None: "-"}
Ended = Literal["decided", "budget", "interrupted"]
"""Reason why a choice ended: no other drive can become the first, its time was spent, or the user
interrupted it."""
SCALED_TEXT = "the errors are in 'Errors of smaller drives' in the guide to choose"


@dataclass(frozen=True)
class Measured:
    """A drive, and the figures measured in its runs."""

    contender: Contender
    figures: Figures
    runs: tuple[Path, ...]
    scale: float  # Factor by which the simulated drive was scaled down.
    # `True` if capacitors protect the write buffer; `None` if the drive has no volatile buffer.
    power_loss_protection: bool | None = None
    life_end: LifeEnd | None = None  # Rating that the drive reaches first.


@dataclass(frozen=True)
class Changed:
    """Ranking and figures of the top drives after a single change."""

    key: str
    text: str
    ranked: tuple[Ranked, ...]
    applied: tuple[str, ...]  # Names of the drives that the change affects.

    @property
    def first(self) -> Ranked:
        """Top-ranked drive after the change."""
        return self.ranked[0]


@dataclass(frozen=True)
class Answer:
    """Result of a choice."""

    question: Question
    weights: Mapping[str, float]
    measured: Mapping[str, Measured]  # Measurements by contender name.
    ranked: tuple[Ranked, ...]
    changed: tuple[Changed, ...] = ()
    levels: Mapping[str, str] = field(default_factory=dict)  # Simulation levels by contender name.
    ended: Ended = "decided"
    open: tuple[str, ...] = ()  # Drives that finer simulation could move to the top rank.

    @property
    def undecided(self) -> str:
        """Reason why the top rank is undecided, or "" if the top rank is decided."""
        others = [name for name in self.open if name != self.first.name]
        if self.ended == "decided" or not others:
            return ""
        spent = self.ended == "budget"
        why = "the time budget was spent" if spent else "the choice was interrupted"
        return f"not decided, because {why}: {', '.join(others)} could still be first"

    @property
    def first(self) -> Ranked:
        """Drive at rank 1."""
        return self.ranked[0]

    @property
    def answered(self) -> bool:
        """`True` if at least one drive meets all limits."""
        return self.first.passes

    @property
    def verdict(self) -> str:
        """The result, in one or two sentences."""
        first, passing = self.first, sum(row.passes for row in self.ranked)
        many = len(self.ranked)
        if not self.answered:
            if many == 1:
                return f"{first.name} does not meet the limits: {first.why}."
            return f"None of {many} drives meets all limits; {first.name} is nearest: {first.why}."
        measured = [key for key in _VERDICT_FIGURES if key in first.figures]
        figures = ", ".join(figure_text(first.figures[key]) for key in measured[:_MOST_FIGURES])
        if many == 1:
            return f"{first.name} meets the limits: {figures}."
        of = f"the {passing} of {many} drives that meet the limits" if passing < many else many
        sentence = f"{first.name} is first of {of}: {figures}."
        second = self._second
        if second is None or second.score is None or first.score is None:
            return sentence
        behind = 100 * (1 - second.score / first.score)
        sure = {
            "clear": "more than the model's error",
            "error unknown": "with a model error that is not fully known",
        }.get(second.sure or "", second.sure or "")
        sentence = f"{sentence} {second.name} is {behind:.0f} % behind, {sure}."
        return f"{sentence} {self.undecided.capitalize()}." if self.undecided else sentence

    @property
    def _second(self) -> Ranked | None:
        """The second-best drive that meets all limits."""
        return next((row for row in self.ranked[1:] if row.passes), None)

    @property
    def uncertainty(self) -> str:
        """Sentence that names the top two drives' weighted figures whose model errors are unknown.

        If all errors are known, the sentence names the figures for which only a lower bound of the
        error is known. The text is "" if the errors decide the ranking.
        """
        second = self._second
        if second is None or second.sure != "error unknown":
            return ""
        rows = (self.first, second)
        errors = {key: [row.error.of(key) for row in rows] for key in self.weights}
        unknown = [key for key, of_key in errors.items() if any(e.pct is None for e in of_key)]
        bounds = [key for key, of_key in errors.items() if any(e.is_bound for e in of_key)]
        state = "not known" if unknown else "known only as a lower bound"
        return f"The model's error of {' and '.join(unknown or bounds)} is {state}."

    @property
    def pareto(self) -> frozenset[str]:
        """Names of the drives that no other drive beats in every weighted figure."""
        scored = [row for row in self.ranked if row.score is not None]
        return frozenset(
            row.name
            for row in scored
            if not any(_dominates(other, row) for other in scored if other is not row)
        )

    def mapping(self) -> dict[str, Any]:
        """Return the result in the format of `writecliff choose --json`."""
        return {
            "workload": self.question.workload,
            "limits": list(self.question.limits),
            "weights": dict(self.weights),
            "ranking": [self._ranked(row) for row in self.ranked],
            "what_if": [
                {
                    "change": change.text,
                    "first": change.first.name,
                    "changes_answer": change.first.name != self.first.name,
                    "ranking": [
                        {"device": row.name, "applied": row.name in change.applied,
                         "passes": row.passes, "metrics": metrics_of(row.figures)}
                        for row in change.ranked
                    ],
                }
                for change in self.changed
            ],
            "ended": self.ended,
            "open": list(self.open),
            "left_out": dict(self.question.left_out),
            "verdict": self.verdict,
        }  # fmt: skip

    @property
    def axes(self) -> tuple[str, ...]:
        """Figures that have a weight or a limit."""
        limited = (limit.figure for row in self.ranked for limit in row.judged)
        return tuple(dict.fromkeys((*self.weights, *limited)))

    @property
    def smaller(self) -> str:
        """Sentence about drives that were simulated at reduced scale, or "" if there are none."""
        smaller = [drive for drive in self.measured.values() if drive.scale != 1]
        if not smaller:
            return ""
        by_level: dict[str, list[float]] = {}
        for drive in smaller:
            level = self.levels.get(drive.contender.name, "fine")
            by_level.setdefault(level, []).append(drive.scale)
        parts = [
            f"{len(scales)} at the {level} level ({_range(scales)})"
            for level, scales in by_level.items()
        ]
        return (
            f"{len(smaller)} of {len(self.measured)} drives were simulated smaller: "
            f"{', '.join(parts)}; {SCALED_TEXT}."
        )

    def _ranked(self, row: Ranked) -> dict[str, object]:
        measured = self.measured[row.name]
        return {
            "device": row.name,
            "candidate": row.drive,
            "rank": row.rank,
            "passes": row.passes,
            "score": row.score,
            "why": row.why,
            "not_sustained": row.not_sustained or None,
            "sure": row.sure,
            "best_of_its_kind": row.name in self.pareto,
            "metrics": metrics_of(row.figures),
            "intervals": {
                key: [figure.interval.low, figure.interval.high]
                for key, figure in row.figures.items()
                if figure.interval is not None
            },
            "limits": [vars(limit) for limit in row.judged],
            "model_error": row.error.mapping(self.axes),
            "scale": measured.scale,
            "level": self.levels.get(row.name, "fine"),
            "power_loss_protection": measured.power_loss_protection,
            "life_end": measured.life_end,
            "runs": list(measured.runs),
        }


def _range(scales: Sequence[float]) -> str:
    low, high = min(scales), max(scales)
    return f"1/{low:g}" if low == high else f"1/{low:g} to 1/{high:g}"


def _dominates(row: Ranked, other: Ranked) -> bool:
    better = [row.shares[key] >= other.shares[key] for key in other.shares]
    return all(better) and any(row.shares[key] > other.shares[key] for key in other.shares)


def measure(
    question: Question, contenders: Sequence[Contender], runs: Mapping[str, Sequence[Path]]
) -> dict[str, Measured]:
    """Return each contender's figures, by name, from its runs (one run per seed).

    Raises:
        StoreError: If a run cannot be read.
    """
    measured = {}
    for contender in contenders:
        device = show_device(contender.target.removeprefix(SIMULATED))
        reports = [_report(path) for path in runs[contender.name]]
        price = question.price_of(contender.drive)
        figures = [figures_of(report.loads, device, question, price) for report in reports]
        scale = reports[0].data.manifest.device.scale
        means = over_seeds(figures)
        protected = None if device.kind == "scm" else device.power_loss_protection
        paths, end = tuple(runs[contender.name]), life_end(means, device)
        measured[contender.name] = Measured(contender, means, paths, scale, protected, end)
    return measured


def _report(path: Path) -> WorkloadRunReport:
    report = report_of(RunDirectory.open(path))
    if not isinstance(report, WorkloadRunReport):
        raise ConfigError(f"{path} is not a workload run")
    return report


def ranking_of(
    question: Question,
    weights: Mapping[str, float],
    measured: Mapping[str, Measured],
    load: LoadKinds,
) -> tuple[Ranked, ...]:
    """Return the drives in ranking order, using the model errors for the load's kinds."""
    drives = {
        name: (
            drive.contender.drive,
            drive.figures,
            model_error(drive.contender.drive, load, rated_life=drive.life_end != "rated cycles"),
        )
        for name, drive in measured.items()
    }
    return tuple(rank(drives, question, weights))


def table_of(answer: Answer) -> Grid:
    """Return the ranking: rank, drive, limits met, score, weighted and limited figures.

    The last columns are power-loss protection (PLP), and the rating that limits the drive's life:
    the flash's rated erase cycles, or the vendor's TBW. There is no column of limits if none were
    set.
    """
    limited = bool(answer.question.limits)
    axes = answer.axes
    heads = [f"{key} ({_unit(answer, key)})" if _unit(answer, key) else key for key in axes]
    lives = any(LIFE in row.figures for row in answer.ranked)
    ends = ["life ends"] * lives
    head = ("rank", "drive", *["limits"] * limited, "score", *heads, "PLP", *ends)
    rows = []
    for row in answer.ranked:
        measured = answer.measured[row.name]
        cells = [
            value_text(row.figures[key].value) if key in row.figures else units.UNKNOWN
            for key in axes
        ]
        score = units.UNKNOWN if row.score is None else f"{100 * row.score:.0f} %"
        ends = [_LIFE_ENDS[measured.life_end]] * lives
        limits = ["met" if row.passes else "missed"] * limited
        protection = _PROTECTION[measured.power_loss_protection]
        rows.append((str(row.rank), row.name, *limits, score, *cells, protection, *ends))
    return Grid(head, rows, f"rl{'l' * limited}r{'r' * len(axes)}l{'l' * lives}")


def _unit(answer: Answer, key: str) -> str:
    """Return a figure's unit, or "" if the figure's name contains the unit."""
    figure = next((row.figures[key] for row in answer.ranked if key in row.figures), None)
    return "" if figure is None or figure.unit == figure.label else figure.unit
