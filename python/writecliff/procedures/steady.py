"""The PTS steady-state rule (PTS 2.0.2 section 2.1.24; unchanged from 1.x).

The rule applies to a measurement window of five consecutive rounds, where `avg` is the average of
the tracking variable:

    data excursion    max - min                                     <= 20 % of avg
    slope excursion   max - min of the least-squares line           <= 10 % of avg

The line is a function of the round number, so the slope excursion over five rounds is |slope| * 4.
Both limits are inclusive. Five zero values are not steady, because no working drive produces zeros.
The verdict is computed in exact rational arithmetic, so that neither the round numbering nor
rounding near the limit affects the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

WINDOW_ROUNDS = 5
DATA_EXCURSION_PCT = 20.0
SLOPE_EXCURSION_PCT = 10.0
MAX_ROUNDS = 25

Verdict = Literal["undecided", "steady", "not steady", "not achieved"]


@dataclass(frozen=True)
class SteadyState:
    """A window's determination table, in the tracking variable's unit."""

    rounds: tuple[int, ...]
    values: tuple[float, ...]
    average: float
    data_excursion: float
    data_excursion_allowed: float
    slope_excursion: float
    slope_excursion_allowed: float
    slope: float  # Slope per round.
    intercept: float  # Value of the fitted line at round 0.
    r: float | None  # Correlation between value and round number; `None` if all values are equal.
    data_ok: bool
    slope_ok: bool

    @property
    def steady(self) -> bool:
        """`True` if the data and slope excursions are within their limits."""
        return self.data_ok and self.slope_ok

    @property
    def formula(self) -> str:
        """The least-squares line in the standard's notation, where R is the round number."""
        sign = "-" if self.intercept < 0 else "+"
        return f"{_number(self.slope)} * R {sign} {_number(abs(self.intercept))}"

    @property
    def data_excursion_pct(self) -> float | None:
        """Data excursion in percent of the average, or `None` if the average is 0."""
        return 100 * self.data_excursion / self.average if self.average else None

    @property
    def slope_excursion_pct(self) -> float | None:
        """Slope excursion in percent of the average, or `None` if the average is 0."""
        return 100 * self.slope_excursion / self.average if self.average else None

    def fitted(self, round_number: float) -> float:
        """Return the value of the least-squares line at a round, for plots."""
        return self.slope * round_number + self.intercept


def _number(value: float) -> str:
    """Format a number with at least six significant digits, but no trailing zeros or exponent."""
    if value == 0:
        return "0"
    digits = max(0, 6 - math.floor(math.log10(abs(value))) - 1)
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def judge(
    values: Sequence[float],
    rounds: Sequence[int],
    *,
    data_excursion_pct: float = DATA_EXCURSION_PCT,
    slope_excursion_pct: float = SLOPE_EXCURSION_PCT,
) -> SteadyState:
    """Judge a window, where `values[i]` is the tracking variable in round `rounds[i]`.

    Raises:
        ValueError: If there are fewer than two values, a value is not finite, or the rounds are not
            consecutive.
    """
    if len(values) != len(rounds):
        raise ValueError(f"there are {len(values)} values for {len(rounds)} rounds")
    if len(values) < 2:
        raise ValueError("a window must have at least two rounds")
    if any(after - before != 1 for before, after in pairwise(rounds)):
        raise ValueError(f"the rounds of a window must be consecutive, not {list(rounds)}")
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"the values of a window must be finite, not {list(values)}")
    y = [Fraction(value) for value in values]
    n = len(y)
    average = sum(y, Fraction()) / n
    round_mean = Fraction(sum(rounds), n)
    dx = [number - round_mean for number in rounds]
    dy = [value - average for value in y]
    sxx = sum((a * a for a in dx), Fraction())
    syy = sum((b * b for b in dy), Fraction())
    sxy = sum((a * b for a, b in zip(dx, dy, strict=True)), Fraction())
    slope = sxy / sxx
    data_excursion = max(y) - min(y)
    slope_excursion = abs(slope) * (rounds[-1] - rounds[0])
    # The conversion goes through str, because 20.1 must mean this decimal number instead of its
    # binary approximation.
    data_allowed = average * Fraction(str(data_excursion_pct)) / 100
    slope_allowed = average * Fraction(str(slope_excursion_pct)) / 100
    return SteadyState(
        rounds=tuple(rounds),
        values=tuple(float(value) for value in values),
        average=float(average),
        data_excursion=float(data_excursion),
        data_excursion_allowed=float(data_allowed),
        slope_excursion=float(slope_excursion),
        slope_excursion_allowed=float(slope_allowed),
        slope=float(slope),
        intercept=float(average - slope * round_mean),
        r=_correlation(sxy, sxx, syy),
        data_ok=average > 0 and data_excursion <= data_allowed,
        slope_ok=average > 0 and slope_excursion <= slope_allowed,
    )


def _correlation(sxy: Fraction, sxx: Fraction, syy: Fraction) -> float | None:
    if syy == 0:
        return None
    r = math.sqrt(sxy * sxy / (sxx * syy))
    return math.copysign(min(r, 1.0), sxy) if sxy else 0.0


@dataclass(frozen=True)
class Decision:
    """The verdict after a complete round, with a `SteadyState` per tracking variable.

    `fresh` is `True` if the window starts while the drive is fresh out of the box. The speed of a
    fresh drive may be constant, although the drive has not reached its final state.
    """

    round: int
    states: Mapping[str, SteadyState]
    fresh: bool = False

    @property
    def met(self) -> bool:
        """`True` if all variables meet the rule in this window."""
        return all(state.steady for state in self.states.values())

    @property
    def steady(self) -> bool:
        """`True` if the rule is met, and the drive is no longer fresh."""
        return self.met and not self.fresh

    @property
    def rounds(self) -> tuple[int, ...]:
        """The rounds of the window."""
        return next(iter(self.states.values())).rounds


class SteadyStateTracker:
    """A tracker that judges the steady state of a run, round by round.

    The tracker judges and stores every complete window, even after the first steady window, so that
    allowed and measured excursions can be shown at any time.
    """

    def __init__(
        self,
        variables: Sequence[str] = ("IOPS",),
        *,
        window_rounds: int = WINDOW_ROUNDS,
        data_excursion_pct: float = DATA_EXCURSION_PCT,
        slope_excursion_pct: float = SLOPE_EXCURSION_PCT,
        max_rounds: int | None = MAX_ROUNDS,
    ) -> None:
        """Create a tracker that reports "not achieved" after `max_rounds` (`None` for never).

        Raises:
            ValueError: If there is no variable, the window has fewer than two rounds, or
                `max_rounds` is less than the window.
        """
        if not variables:
            raise ValueError("at least one tracking variable is required")
        if window_rounds < 2:
            raise ValueError(f"window_rounds must be at least 2, not {window_rounds}")
        if max_rounds is not None and max_rounds < window_rounds:
            raise ValueError(f"max_rounds ({max_rounds}) is less than the window ({window_rounds})")
        self.variables = tuple(variables)
        self.window_rounds = window_rounds
        self.data_excursion_pct = data_excursion_pct
        self.slope_excursion_pct = slope_excursion_pct
        self.max_rounds = max_rounds
        self.rounds: list[int] = []
        self.fresh: list[bool] = []
        self.values: dict[str, list[float]] = {name: [] for name in self.variables}
        self.decisions: list[Decision] = []

    def add(
        self,
        value: float | Mapping[str, float],
        round_number: int | None = None,
        *,
        fresh: bool = False,
    ) -> Verdict:
        """Add the next round, and return the verdict.

        Args:
            value: Values by variable, or a number if there is only one variable.
            round_number: Number of the round; by default rounds count from 1.
            fresh: True if the drive is fresh, so that no steady window can start at this round.

        Raises:
            ValueError: If a variable is missing or unknown, or there is a gap between rounds.
        """
        given = value if isinstance(value, Mapping) else {self.variables[0]: value}
        if set(given) != set(self.variables):
            raise ValueError(f"expected a value for each of {self.variables}, got {sorted(given)}")
        expected = self.rounds[-1] + 1 if self.rounds else round_number or 1
        if round_number is not None and round_number != expected:
            raise ValueError(f"expected round {expected}, not {round_number}")
        for name, number in given.items():
            if not math.isfinite(number):
                raise ValueError(f"{name} in round {expected} is not finite: {number}")
        self.rounds.append(expected)
        self.fresh.append(fresh)
        for name, number in given.items():
            self.values[name].append(float(number))
        if len(self.rounds) >= self.window_rounds:
            self.decisions.append(self._decide())
        return self.verdict

    def _decide(self) -> Decision:
        window = self.rounds[-self.window_rounds :]
        states = {
            name: judge(
                self.values[name][-self.window_rounds :],
                window,
                data_excursion_pct=self.data_excursion_pct,
                slope_excursion_pct=self.slope_excursion_pct,
            )
            for name in self.variables
        }
        return Decision(window[-1], states, self.fresh[-self.window_rounds])

    @property
    def current(self) -> Decision | None:
        """The decision on the last window, or `None` before a window is complete."""
        return self.decisions[-1] if self.decisions else None

    @property
    def first_steady(self) -> Decision | None:
        """The first steady window, at which the standard stops, or `None` if there is none yet."""
        return next((decision for decision in self.decisions if decision.steady), None)

    @property
    def last_steady(self) -> Decision | None:
        """The last steady window, or `None` if there is none."""
        return next((decision for decision in reversed(self.decisions) if decision.steady), None)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the last window, or "not achieved" if unsteady after `max_rounds`."""
        if self.current is None:
            return "undecided"
        if self.current.steady:
            return "steady"
        exhausted = self.max_rounds is not None and len(self.rounds) >= self.max_rounds
        return "not achieved" if exhausted and self.first_steady is None else "not steady"
