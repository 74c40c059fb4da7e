"""What to measure next: loads that tell apart what the figures of a fit leave open.

For a combination of parameters that changes hardly any figure, the loads of a menu are simulated
around the fitted values. The one whose figure the combination changes most helps most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from writecliff.published.conditions import condition
from writecliff.published.figures import PublishedFigure, unit_of
from writecliff.published.fit.coordinates import Vector
from writecliff.published.fit.problem import Problem
from writecliff.published.fit.residuals import deviations

_KIB = 1024
# Access, block size, share of reads, outstanding I/Os, metric: loads that most drives can be given.
_MENU = (
    ("random", 4 * _KIB, 100.0, 1, "latency_avg"),
    ("random", 128 * _KIB, 100.0, 1, "latency_avg"),
    ("random", 4 * _KIB, 0.0, 1, "latency_avg_burst"),
    ("random", 4 * _KIB, 100.0, 128, "iops"),
    ("random", 4 * _KIB, 0.0, 32, "iops"),
    ("random", 4 * _KIB, 0.0, 32, "iops_burst"),
    ("random", 4 * _KIB, 70.0, 32, "iops"),
    ("random", 64 * _KIB, 0.0, 32, "throughput"),
    ("sequential", 128 * _KIB, 100.0, 32, "throughput"),
    ("sequential", 128 * _KIB, 0.0, 32, "throughput"),
    ("sequential", 128 * _KIB, 0.0, 32, "throughput_burst"),
)
_LEAST = 0.1  # change of a figure's logarithm for one of the combination's that is worth measuring
COMBINATIONS_MAX = 3


@dataclass(frozen=True)
class Suggestion:
    """A figure to measure. `combination`: which of those that are not determined it bounds;
    `change_pct`: of the figure, if that combination changes by 10 %."""

    combination: int
    figure: PublishedFigure
    change_pct: float


def suggestions(
    problem: Problem, at: Vector, directions: Sequence[Vector]
) -> tuple[Suggestion, ...]:
    """The most telling figure for each of the first `directions`; none where no load of the menu
    changes with it."""
    menu = _menu(problem)
    if not directions or not menu:
        return ()
    loads = Problem(problem.spec, menu, problem.simulations)
    rows = loads.rows(at)
    here = deviations(rows)
    steps, neighbours = loads.neighbours(at)
    slopes = np.array(
        [(deviations(there) - here) / step for step, there in zip(steps, neighbours, strict=True)]
    ).T
    found = []
    for number, direction in enumerate(directions[:COMBINATIONS_MAX]):
        changes = np.abs(slopes @ direction)
        best = int(np.argmax(changes))
        if changes[best] > _LEAST:
            change_pct = 100 * float(1.1 ** changes[best] - 1)
            found.append(Suggestion(number, rows[best].figure, change_pct))
    return tuple(found)


def _menu(problem: Problem) -> list[PublishedFigure]:
    """The figures of the menu that the fit does not have yet."""
    have = {(one.device, one.load, one.metric) for f in problem.figures if (one := condition(f))}
    figures = [
        PublishedFigure(
            source="next", item="", device=drive, baseline="", access=access, block_bytes=block,
            read_pct=read, outstanding=depth, metric=metric, value=1.0, unit=unit_of(metric),
            note="",
        )
        for drive in problem.spec.drives
        for access, block, read, depth, metric in _MENU
    ]  # fmt: skip
    return [
        f for f in figures
        if (one := condition(f)) and (one.device, one.load, one.metric) not in have
    ]  # fmt: skip
