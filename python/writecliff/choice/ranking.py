"""Ranking of the candidates, with the reasons why drives lose.

Drives that meet all limits rank first, in order of their scores. A score is the weighted geometric
mean of the ratios between a drive's figures and the best figures. A score of 80 % means that, on
average, a drive achieves four fifths of the best value in each figure. A factor of two has the same
effect in every figure.
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

LIFE_ENOUGH_YEARS = 10.0  # Lifetime above which more years do not improve the score.
_TAIL, _LOWER = "p99.99", ("p99.9", "p99", "mean")
_REASONS_SHOWN = 2  # Maximum number of figures that explain why a drive loses.
_TIE_THRESHOLD = 0.02  # Relative score difference below which two drives are tied.

Sure = Literal["clear", "within the model's error", "error unknown"]


@dataclass(frozen=True)
class Ranked:
    """A ranked drive in the result."""

    name: str
    drive: str
    figures: Figures
    judged: Sequence[Judged]
    error: ModelError
    score: float | None  # Score from 0 to 1; `None` if a weighted figure is unknown.
    rank: int = 0  # Rank, counted from 1.
    why: str = ""
    # Confidence in the difference from the top drive; `None` for the top drive itself.
    sure: Sure | None = None
    shares: Mapping[str, float] = field(
        default_factory=dict
    )  # Ratios to the best drive by weighted figure.

    @property
    def not_sustained(self) -> str:
        """Reason why latencies do not count ("load not sustained: 82 % of 10,000 IOPS")."""
        return not_sustained_of(self.figures)

    @property
    def passes(self) -> bool:
        """`True` if the drive sustains the load and meets all limits."""
        return not self.not_sustained and all(limit.met for limit in self.judged)


def not_sustained_of(figures: Figures) -> str:
    """Return the reason why a drive did not sustain the load, or "" if it sustained it."""
    return next((figure.not_sustained for figure in figures.values() if figure.not_sustained), "")


def weights_of(
    question: Question, *, open_loop: bool, available: Collection[str] | None = None
) -> dict[str, float]:
    """Return the figures' weights, by figure.

    If the user sets no weights, latency and life have weights. The price is added if there is a
    price list, IOPS if the load has no rate, and the flush latency if the load includes flushes. If
    a load is too short for a high percentile, the highest available percentile is used.

    Args:
        question: Question that contains the weights and prices.
        open_loop: `True` if the load has a rate.
        available: Figures that at least one drive reports, or None for all figures.
    """
    if question.weights:
        weights = {key: weight for key, weight in question.weights.items() if weight}
    else:
        weights = dict(DEFAULT_WEIGHTS)
        if not question.prices:
            del weights[PRICE]
        if not open_loop:
            weights["iops"] = 1.0
        if available is not None and _TAIL not in available:
            weight = weights.pop(_TAIL)
            weights |= dict.fromkeys([key for key in _LOWER if key in available][:1], weight)
        if available is not None:
            commits = [f"{FLUSH}/{key}" for key in _LOWER if f"{FLUSH}/{key}" in available]
            weights |= dict.fromkeys(commits[:1], 1.0)
    return weights


def rank(
    drives: Mapping[str, tuple[str, Figures, ModelError]],
    question: Question,
    weights: Mapping[str, float],
) -> list[Ranked]:
    """Return the drives in ranking order.

    Args:
        drives: Candidate, figures and model error by drive name.
        question: Question that contains the limits.
        weights: Weights by figure.

    Raises:
        ConfigError: If no drive reports any of the weighted figures.
    """
    expected = question.expectations()
    available = {
        key: figure for _, figures, _ in drives.values() for key, figure in figures.items()
    }
    for key in weights:
        if key not in available:
            raise ConfigError.unknown("figure", key, list(available), where="--weight")
    judged = {
        name: [judge(limit, list(figures.values()), _missing(figures)) for limit in expected]
        for name, (_, figures, _) in drives.items()
    }
    passing = [
        name
        for name, limits in judged.items()
        if all(limit.met for limit in limits) and not not_sustained_of(drives[name][1])
    ]
    best = _best([drives[name][1] for name in passing or drives], weights)
    rows = []
    for name, (drive, figures, error) in drives.items():
        shares = {key: _share(figures.get(key), best.get(key)) for key in weights}
        known_shares = {key: share for key, share in shares.items() if share is not None}
        score = None
        if len(known_shares) == len(weights):
            sums = sum(weights[key] * log(share) for key, share in known_shares.items())
            score = exp(sums / sum(weights.values()))
        rows.append(Ranked(name, drive, figures, judged[name], error, score, shares=known_shares))
    rows.sort(key=lambda row: (_misses(row), -(row.score or 0.0), row.name))
    return [_placed(row, number, rows, weights) for number, row in enumerate(rows, 1)]


def _missing(figures: Figures) -> Mapping[str, str]:
    """Return the reasons why figures are missing, by key."""
    why = "too few samples, or the drive does not report the figure"
    return dict.fromkeys(FIGURE_UNITS.keys() - figures.keys(), why)


def _misses(row: Ranked) -> int:
    return sum(not limit.met for limit in row.judged) + bool(row.not_sustained)


def counted_value(figure: Headline) -> float:
    """Return a figure's value for the score, which limits the drive's life to 10 years."""
    return min(figure.value, LIFE_ENOUGH_YEARS) if figure.key == LIFE else figure.value


def _best(of: Sequence[Figures], keys: Mapping[str, float]) -> dict[str, Headline]:
    best = {}
    for key in keys:
        have = [figures[key] for figures in of if key in figures]
        if have:
            higher = have[0].higher_is_better is not False
            best[key] = (max if higher else min)(have, key=counted_value)
    return best


def _share(figure: Headline | None, best: Headline | None) -> float | None:
    """Return the ratio of a figure to the best figure (above 1 only for drives that fail)."""
    if figure is None or best is None:
        return None
    value, best_value = counted_value(figure), counted_value(best)
    if min(value, best_value) <= 0:
        return 1.0 if value == best_value else 1e-9
    return value / best_value if figure.higher_is_better is not False else best_value / value


def _placed(row: Ranked, rank: int, rows: Sequence[Ranked], weights: Mapping[str, float]) -> Ranked:
    first = rows[0]
    sure = None if row.name == first.name else _sure(row, first, weights)
    return Ranked(**{**vars(row), "rank": rank, "sure": sure, "why": _why(row, rows)})


def _sure(row: Ranked, first: Ranked, weights: Mapping[str, float]) -> Sure:
    """Return the confidence that a difference from the top drive exceeds both models' errors.

    If only a lower bound on an error is known, the error can explain a difference, but the
    difference is never reported as clear.
    """
    if first.passes and not row.passes:
        return _sure_of_limits(row)
    if row.score is None or first.score is None:
        return "error unknown"
    errors = [_score_error(each, weights) for each in (row, first)]
    return _compared(
        abs(log(row.score / first.score)),
        hypot(*(error for error, _ in errors)),
        is_bound=any(is_bound for _, is_bound in errors),
    )


def _compared(difference: float, error: float, *, is_bound: bool) -> Sure:
    if difference <= error:
        return "within the model's error"
    return "error unknown" if is_bound else "clear"


def _score_error(row: Ranked, weights: Mapping[str, float]) -> tuple[float, bool]:
    """Return the error of a score's logarithm, and `True` if that error is a lower bound."""
    errors = {key: row.error.of(key) for key in weights}
    sizes = (weight * log(1 + errors[key].least_pct / 100) for key, weight in weights.items())
    return hypot(*sizes) / sum(weights.values()), any(error.is_bound for error in errors.values())


def _sure_of_limits(row: Ranked) -> Sure:
    """Return the confidence that the clearest limit violation exceeds the model error."""
    if row.not_sustained:
        return "within the model's error"
    misses: set[Sure] = set()
    for limit in row.judged:
        if limit.met or limit.value is None or not limit.value or not limit.limit:
            continue
        error = row.error.of(limit.figure)
        difference = abs(log(limit.value / limit.limit))
        misses.add(_compared(difference, log(1 + error.least_pct / 100), is_bound=error.is_bound))
    order: tuple[Sure, ...] = ("clear", "error unknown", "within the model's error")
    return next((sure for sure in order if sure in misses), "within the model's error")


def _why(row: Ranked, rows: Sequence[Ranked]) -> str:
    """Explain why a drive wins or loses. Superlatives refer to all `rows`."""
    first, late = rows[0], row.not_sustained
    limits = [limit for limit in row.judged if not limit.met]
    missed = [_missed(limit) for limit in limits if not late or limit.note != late]
    if late or missed:
        return "; ".join([*([late] if late else []), *missed])
    if row.score is None:
        gone = "too few I/Os, or the drive does not report the figure"
        return f"a weighted figure is unknown: {gone}"
    if row.name == first.name:
        best = [figure_text(row.figures[key]) for key in row.shares if _is_best(row, key, rows)]
        return f"best {', '.join(best)}" if best else "highest score"
    if abs(row.score / (first.score or row.score) - 1) < _TIE_THRESHOLD:
        return f"score within {100 * _TIE_THRESHOLD:g} % of the first"
    ratios = {key: share / first.shares[key] for key, share in row.shares.items()
              if key in first.shares}  # fmt: skip
    behind = [key for key, ratio in ratios.items() if ratio < 1 - _TIE_THRESHOLD]
    behind = behind or [key for key, ratio in ratios.items() if ratio < 1]
    worst = sorted(behind, key=lambda key: ratios[key])
    return "; ".join(
        _behind(row.figures[key], first.figures[key]) for key in worst[:_REASONS_SHOWN]
    )


def _is_best(row: Ranked, key: str, rows: Sequence[Ranked]) -> bool:
    """Return `True` if no drive in the table, including failing drives, has a better value."""
    figure = row.figures[key]
    values = [row.figures[key].value for row in rows if key in row.figures]
    return figure.value == (max if figure.higher_is_better is not False else min)(values)


def _missed(limit: Judged) -> str:
    if limit.value is None:
        return f"{limit.figure}: {limit.note}"
    unit = f" {limit.unit}".rstrip()
    return (
        f"{limit.figure} is {value_text(limit.value)}{unit}, "
        f"the limit is {limit.relation} {value_text(limit.limit)}{unit}"
    )


def _behind(figure: Headline, best: Headline) -> str:
    return f"{figure_text(figure)}, the first {best.text}"


def figure_text(figure: Headline) -> str:
    """Return a figure and its name, such as "p99.99 1.2 ms", "195,945 IOPS" or "life 7 years"."""
    return figure.text if figure.unit == figure.label else f"{figure.key} {figure.text}"
