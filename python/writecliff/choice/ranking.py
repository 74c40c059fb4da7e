"""Who passes, in which order, and why the others lose.

Drives that meet all limits come first. Among them the score decides: the weighted geometric mean of
how near a drive comes, in each figure that counts, to the best of them. So 80 % means four fifths
of the best drive of each figure, on average; a factor of two counts the same in every figure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, hypot, log
from typing import Literal

from writecliff.choice.certainty import ModelError
from writecliff.choice.measured import Figures
from writecliff.choice.question import DEFAULT_WEIGHTS, FIGURE_UNITS, LIFE, PRICE, Question
from writecliff.errors import ConfigError
from writecliff.operation_names import FLUSH
from writecliff.report.expectations import Judged, judge
from writecliff.report.headline import Headline, value_text

LIFE_ENOUGH_YEARS = 10.0  # a longer life counts as this one
_TAIL, _LESS = "p99.99", ("p99.9", "p99", "mean")
_SAID = 2  # figures that say why a drive loses
_TOLD = 0.02  # a smaller difference of scores is none

Sure = Literal["clear", "within the model's error", "error unknown"]


@dataclass(frozen=True)
class Ranked:
    """A drive in the answer. `score` from 0 to 1; None if a figure that counts is unknown."""

    name: str
    drive: str
    figures: Figures
    judged: Sequence[Judged]
    error: ModelError
    score: float | None
    rank: int = 0  # from 1
    why: str = ""
    sure: Sure | None = None  # of the difference to the first; None: of the first itself
    shares: Mapping[str, float] = field(default_factory=dict)  # of the best, by figure that counts

    @property
    def not_sustained(self) -> str:
        """Reason why its latencies do not count: "load not sustained: 82 % of 10,000 IOPS"."""
        return not_sustained_of(self.figures)

    @property
    def passes(self) -> bool:
        """The drive keeps up with the load and meets all limits."""
        return not self.not_sustained and all(one.met for one in self.judged)


def not_sustained_of(figures: Figures) -> str:
    """Return the reason why a drive did not keep up with the load; "" if it did."""
    return next((one.not_sustained for one in figures.values() if one.not_sustained), "")


def weights_of(
    question: Question, *, open_loop: bool, known: Collection[str] | None = None
) -> dict[str, float]:
    """The figures that count, and how much: as asked, else latency, life, the price if there is a
    price list, IOPS if drives run as fast as they can, and the latency of flushes if the load has
    some. Of a load too short for its slowest I/Os or flushes the highest percentile counts that is
    among those `known`, the figures of any drive.
    """
    if question.weights:
        found = {key: weight for key, weight in question.weights.items() if weight}
    else:
        found = dict(DEFAULT_WEIGHTS)
        if not question.prices:
            del found[PRICE]
        if not open_loop:
            found["iops"] = 1.0
        if known is not None and _TAIL not in known:
            weight = found.pop(_TAIL)
            found |= dict.fromkeys([key for key in _LESS if key in known][:1], weight)
        if known is not None:
            commits = [f"{FLUSH}/{key}" for key in _LESS if f"{FLUSH}/{key}" in known]
            found |= dict.fromkeys(commits[:1], 1.0)
    return found


def rank(
    drives: Mapping[str, tuple[str, Figures, ModelError]],
    question: Question,
    weights: Mapping[str, float],
) -> list[Ranked]:
    """The drives in order; `drives` by name: the candidate, its figures, and the error of its
    model. Raises ConfigError: a weight of a figure that no drive has.
    """
    expected = question.expectations()
    known = {key: one for _, figures, _ in drives.values() for key, one in figures.items()}
    for key in weights:
        if key not in known:
            raise ConfigError.unknown("figure", key, list(known), where="--weight")
    judged = {
        name: [judge(one, list(figures.values()), _missing(figures)) for one in expected]
        for name, (_, figures, _) in drives.items()
    }
    passing = [
        name
        for name, found in judged.items()
        if all(one.met for one in found) and not not_sustained_of(drives[name][1])
    ]
    best = _best([drives[name][1] for name in passing or drives], weights)
    rows = []
    for name, (drive, figures, error) in drives.items():
        shares = {key: _share(figures.get(key), best.get(key)) for key in weights}
        told = {key: share for key, share in shares.items() if share is not None}
        score = None
        if len(told) == len(weights):
            sums = sum(weights[key] * log(share) for key, share in told.items())
            score = exp(sums / sum(weights.values()))
        rows.append(Ranked(name, drive, figures, judged[name], error, score, shares=told))
    rows.sort(key=lambda one: (_misses(one), -(one.score or 0.0), one.name))
    return [_placed(one, number, rows, weights) for number, one in enumerate(rows, 1)]


def _missing(figures: Figures) -> Mapping[str, str]:
    """Return the reason why each missing figure is unknown, by key."""
    why = "not enough samples, or the drive does not report it"
    return dict.fromkeys(FIGURE_UNITS.keys() - figures.keys(), why)


def _misses(one: Ranked) -> int:
    return sum(not limit.met for limit in one.judged) + bool(one.not_sustained)


def counted_value(one: Headline) -> float:
    """The value of a figure as it counts."""
    return min(one.value, LIFE_ENOUGH_YEARS) if one.key == LIFE else one.value


def _best(of: Sequence[Figures], keys: Mapping[str, float]) -> dict[str, Headline]:
    found = {}
    for key in keys:
        have = [figures[key] for figures in of if key in figures]
        if have:
            higher = have[0].higher_is_better is not False
            found[key] = (max if higher else min)(have, key=counted_value)
    return found


def _share(one: Headline | None, best: Headline | None) -> float | None:
    """How near a figure comes to the best; more than 1 only for drives that do not pass."""
    if one is None or best is None:
        return None
    value, best_value = counted_value(one), counted_value(best)
    if min(value, best_value) <= 0:
        return 1.0 if value == best_value else 1e-9
    return value / best_value if one.higher_is_better is not False else best_value / value


def _placed(one: Ranked, rank: int, rows: Sequence[Ranked], weights: Mapping[str, float]) -> Ranked:
    first = rows[0]
    sure = None if one.name == first.name else _sure(one, first, weights)
    return Ranked(**{**vars(one), "rank": rank, "sure": sure, "why": _why(one, rows)})


def _sure(one: Ranked, first: Ranked, weights: Mapping[str, float]) -> Sure:
    """Return how the difference to the first compares with the errors of both models.

    If only a lower bound of an error is known, the error can explain a difference, but the
    difference cannot be clear.
    """
    if first.passes and not one.passes:
        return _sure_of_limits(one)
    if one.score is None or first.score is None:
        return "error unknown"
    errors = [_score_error(each, weights) for each in (one, first)]
    return _compared(
        abs(log(one.score / first.score)),
        hypot(*(error for error, _ in errors)),
        is_bound=any(is_bound for _, is_bound in errors),
    )


def _compared(difference: float, error: float, *, is_bound: bool) -> Sure:
    if difference <= error:
        return "within the model's error"
    return "error unknown" if is_bound else "clear"


def _score_error(one: Ranked, weights: Mapping[str, float]) -> tuple[float, bool]:
    """Return the error of the logarithm of a score, and whether it is only a lower bound."""
    errors = {key: one.error.of(key) for key in weights}
    sizes = (weight * log(1 + errors[key].least_pct / 100) for key, weight in weights.items())
    return hypot(*sizes) / sum(weights.values()), any(error.is_bound for error in errors.values())


def _sure_of_limits(one: Ranked) -> Sure:
    """Return how the clearest miss of a limit compares with the model's error."""
    if one.not_sustained:
        return "within the model's error"
    misses: set[Sure] = set()
    for limit in one.judged:
        if limit.met or limit.value is None or not limit.value or not limit.limit:
            continue
        error = one.error.of(limit.figure)
        difference = abs(log(limit.value / limit.limit))
        misses.add(_compared(difference, log(1 + error.least_pct / 100), is_bound=error.is_bound))
    order: tuple[Sure, ...] = ("clear", "error unknown", "within the model's error")
    return next((sure for sure in order if sure in misses), "within the model's error")


def _why(one: Ranked, rows: Sequence[Ranked]) -> str:
    """Explain why a drive wins or loses. Superlatives hold for all `rows` of the table."""
    first, late = rows[0], one.not_sustained
    limits = [limit for limit in one.judged if not limit.met]
    missed = [_missed(limit) for limit in limits if not late or limit.note != late]
    if late or missed:
        return "; ".join([*([late] if late else []), *missed])
    if one.score is None:
        gone = "too few I/Os, or the drive does not tell"
        return f"a figure that counts is unknown: {gone}"
    if one.name == first.name:
        best = [said_of(one.figures[key]) for key in one.shares if _is_best(one, key, rows)]
        return f"best {' and '.join(best)}" if best else "highest score"
    if abs(one.score / (first.score or one.score) - 1) < _TOLD:
        return f"score within {100 * _TOLD:g} % of the first"
    ratios = {key: share / first.shares[key] for key, share in one.shares.items()
              if key in first.shares}  # fmt: skip
    behind = [key for key, ratio in ratios.items() if ratio < 1 - _TOLD]
    behind = behind or [key for key, ratio in ratios.items() if ratio < 1]
    worst = sorted(behind, key=lambda key: ratios[key])
    return "; ".join(_behind(one.figures[key], first.figures[key]) for key in worst[:_SAID])


def _is_best(one: Ranked, key: str, rows: Sequence[Ranked]) -> bool:
    """`True` if no drive of the table has a better value, whether it passes or not."""
    mine = one.figures[key]
    values = [row.figures[key].value for row in rows if key in row.figures]
    return mine.value == (max if mine.higher_is_better is not False else min)(values)


def _missed(limit: Judged) -> str:
    if limit.value is None:
        return f"{limit.figure}: {limit.note}"
    unit = f" {limit.unit}".rstrip()
    return (
        f"{limit.figure} is {value_text(limit.value)}{unit}, "
        f"the limit is {limit.relation} {value_text(limit.limit)}{unit}"
    )


def _behind(mine: Headline, best: Headline) -> str:
    return f"{said_of(mine)}, the first {best.text}"


def said_of(one: Headline) -> str:
    """A figure with its name: "p99.99 1.2 ms", "195,945 IOPS", "life 7 years"."""
    return one.text if one.unit == one.label else f"{one.key} {one.text}"
