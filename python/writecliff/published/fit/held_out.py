"""Cross-validation: each figure as predicted by a fit that has not seen it.

The figures are divided into folds by their load: all metrics and all drives of one load are in the
same fold, because the mean latency of a load tells its IOPS, and the improvement of one drive that
of the other. Each fold is simulated with values fitted to all other folds.

A fold starts from the fit of all figures and keeps its derivatives, for a few evaluations only. So
a prediction may lie nearer to the fitted value than that of an independent fit would.

What a device file has that no fit varies was set with all figures in view; the errors do not show
that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from writecliff.errors import ConfigError
from writecliff.published.figures import PublishedFigure
from writecliff.published.fit.solve import Fit
from writecliff.published.scores import Row

_EVALUATIONS_MAX = 4  # of all figures, for each fold
_SEED = 1
Log = Callable[[str], None]


def cross_validate(fit: Fit, folds: int, log: Log = lambda text: None) -> tuple[Row, ...]:
    """Every figure beside what the fit of the other folds makes of it, in the order of the figures.

    `fit` must have run. Raises ConfigError: fewer than two folds, or fewer loads than folds.
    """
    figures = fit.problem.figures
    members = folds_of(figures, folds)
    found: dict[int, Row] = {}
    for number, left_out in enumerate(members, 1):
        log(f"fold {number} of {folds}: {len(left_out)} of {len(figures)} figures left out")
        rows = fit.without(left_out, _EVALUATIONS_MAX)
        found |= {index: rows[index] for index in left_out}
    return tuple(found[index] for index in range(len(figures)))


def folds_of(figures: Sequence[PublishedFigure], folds: int) -> list[list[int]]:
    """The indices of the figures of each fold; the same figures give the same folds."""
    loads: dict[tuple[object, ...], list[int]] = {}
    for index, f in enumerate(figures):
        key = (f.source, f.access, f.block_bytes, f.read_pct, f.outstanding, f.compressible_pct)
        loads.setdefault(key, []).append(index)
    if not 2 <= folds <= len(loads):
        raise ConfigError(
            f"{folds} folds: there must be at least 2, and no more than loads ({len(loads)})"
        )
    groups = [loads[key] for key in sorted(loads, key=str)]
    order = np.random.default_rng(_SEED).permutation(len(groups))
    return [sorted(i for n in order[fold::folds] for i in groups[n]) for fold in range(folds)]
