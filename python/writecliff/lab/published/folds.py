"""Folds: figures that are left out together.

All figures under one load are in the same fold, whatever they measure and whichever drives they are
of: the mean latency of a load tells its IOPS, and the improvement of one drive that of the other.
So a fold depends on the loads of the whole table alone, not on what a fit uses of it. Each source
has its loads in as many folds as it can, so that no fit loses all it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from writecliff.errors import ConfigError
from writecliff.published.conditions import condition, parts_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.kinds import ENDURANCE, OTHER, POWER, kind_of

_SEED = 1
_LoadKey = tuple[object, ...]


def is_predicted(figure: PublishedFigure) -> bool:
    """Whether the figure is of a load, and depends on times: endurance and power do not, or on none
    that a fit varies."""
    one = condition(figure)
    measured = one is not None and one.load is not None
    return measured and kind_of(figure) not in (ENDURANCE, POWER, OTHER)


def folds_of(figures: Sequence[PublishedFigure], count: int) -> dict[PublishedFigure, int]:
    """The fold, from 1, of each figure that can be predicted.

    Raises ConfigError: fewer than two folds, or fewer loads than folds."""
    loads = {figure: _loads(figure) for figure in figures if is_predicted(figure)}
    groups = _joined(list(loads.values()))
    if not 2 <= count <= len(groups):
        raise ConfigError(
            f"{count} folds: there must be at least 2, and no more than loads ({len(groups)})"
        )
    dealt: list[list[_LoadKey]] = []
    for _, same in groupby(groups, key=lambda group: group[0][0]):
        own = list(same)
        dealt += [own[n] for n in np.random.default_rng(_SEED).permutation(len(own))]
    fold_of = {key: 1 + n % count for n, group in enumerate(dealt) for key in group}
    return {figure: fold_of[keys[0]] for figure, keys in loads.items()}


def _loads(figure: PublishedFigure) -> list[_LoadKey]:
    """The loads of a figure, several for a range of outstanding I/Os, without the state that a
    drive begins in and how long it is measured. The source is the first part."""
    found: list[_LoadKey] = []
    for part in parts_of(figure):
        one = condition(part)
        assert one is not None and one.load is not None
        load = one.load
        found.append(
            (figure.source, load.pattern, load.profile, load.block_bytes, load.read_pct,
             load.outstanding, load.compressible_pct)
        )  # fmt: skip
    return found


def _joined(figures: Sequence[Sequence[_LoadKey]]) -> list[list[_LoadKey]]:
    """All loads in groups, those of one figure in the same, in an order of their own."""
    group_of: dict[_LoadKey, list[_LoadKey]] = {}
    for keys in figures:
        together = {other for key in keys for other in group_of.get(key, [key])}
        group = sorted(together, key=str)
        group_of |= dict.fromkeys(group, group)
    groups = {id(group): group for group in group_of.values()}
    return sorted(groups.values(), key=str)
