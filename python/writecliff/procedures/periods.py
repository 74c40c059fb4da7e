"""Convert test periods to whole numbers of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from writecliff.errors import ConfigError
from writecliff.procedures.model import Step


def whole_steps(what: str, seconds: float, step_seconds: float) -> int:
    """Return the number of steps in `seconds`, at least one.

    Raises:
        ConfigError: If the number is not whole. The message names the period `what`.
    """
    steps = seconds / step_seconds
    whole = max(1, round(steps))
    if abs(steps - whole) > 1e-6:
        nearest = whole * step_seconds
        raise ConfigError(
            f"{what} of {seconds:g} s is not a whole number of steps of {step_seconds:g} s",
            hint=f"the nearest is {nearest:g} s ({nearest / 60:g} min)",
        )
    return whole


def unit_name(step_seconds: float) -> str:
    """Return the name for steps of this length ("minute", or "sample" for other lengths)."""
    return "minute" if step_seconds == 60 else "sample"


def round_steps(
    round_number: int,
    minutes: float,
    step_seconds: float,
    sample: str,
    step: Callable[[str, int], Step],
) -> Sequence[Step]:
    """Return the steps of a round of `minutes`, whose "first" or "last" step is the `sample`.

    `step` creates a step, given the step's name, which is counted through all rounds ("minute 32"),
    and the step's number in the round, counted from 1.
    """
    count = whole_steps("a round", minutes * 60, step_seconds)
    unit, before = unit_name(step_seconds), (round_number - 1) * count
    steps = numbered(count, lambda number: step(f"{unit} {before + number}", number))
    position = 0 if sample == "first" else -1
    steps[position] = replace(steps[position], sample=True)
    return steps


def numbered(count: int, step: Callable[[int], Step]) -> list[Step]:
    """Return steps 1 to `count`."""
    return [step(number) for number in range(1, count + 1)]
