"""Times of a procedure as whole numbers of its steps, and minutes as steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from writecliff.errors import ConfigError
from writecliff.procedures.model import Step


def whole_steps(what: str, seconds: float, step_seconds: float) -> int:
    """How many steps fill `seconds`; at least one. Raises ConfigError if they do not fit."""
    steps = seconds / step_seconds
    whole = max(1, round(steps))
    if abs(steps - whole) > 1e-6:
        raise ConfigError(
            f"{what} of {seconds:g} s is no whole number of steps of {step_seconds:g} s",
            hint=f"the nearest is {whole * step_seconds:g} s",
        )
    return whole


def unit_name(step_seconds: float) -> str:
    """What steps of this length are called."""
    return "minute" if step_seconds == 60 else "sample"


def round_steps(
    round_number: int, count: int, step_seconds: float, step: Callable[[str, int], Step]
) -> Sequence[Step]:
    """The `count` steps of a round from their names, which count through all rounds ("minute 32"),
    and their numbers in the round, from 1."""
    unit, before = unit_name(step_seconds), (round_number - 1) * count
    return numbered(count, lambda number: step(f"{unit} {before + number}", number))


def numbered(count: int, step: Callable[[int], Step]) -> Sequence[Step]:
    """Steps 1 to `count`."""
    return [step(number) for number in range(1, count + 1)]
