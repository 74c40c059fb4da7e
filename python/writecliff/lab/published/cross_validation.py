"""Cross-validation, where each figure is predicted by fits that did not use the figure.

The figures are divided into folds by their loads. For each fold, the fits estimate values from the
other figures (`fold_fits.py`). Drives that have these values are measured under the fold's loads at
full size and for the full times, as in `reproduce`. All kinds of figures are predicted in this way,
including kinds that no fit uses.

A figure is predicted only if fits vary all drives in the figure. The other values of device files,
and the parameter bounds, were set with all figures in view, which the errors do not show.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from writecliff.engines.state_cache import StateCache
from writecliff.errors import ConfigError
from writecliff.lab.published.fold_fits import DriveValues, FoldFits, Values, owners_of
from writecliff.parallel import Task, run_side_by_side
from writecliff.published.conditions import Load, baseline_condition, condition, parts_of, preset_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.fit.device_text import with_numbers
from writecliff.published.fit.specification import Specification
from writecliff.published.kinds import ENDURANCE, OTHER, POWER, kind_of
from writecliff.published.measure import (
    ComparedDrive,
    Log,
    MeasurementObserver,
    Results,
    drive_memory,
    measure_variants,
)
from writecliff.published.scores import Row, row_of


@dataclass(frozen=True)
class Prediction:
    """A figure predicted by fits that did not use the figure's fold."""

    row: Row
    fold: int
    fits: tuple[str, ...]  # Fits for the drive and, if different, for the baseline.


class CrossValidation:
    """The figures to predict, and their folds."""

    def __init__(
        self,
        specs: Mapping[str, Specification],
        figures: Sequence[PublishedFigure],
        folds: int,
        chosen: Collection[str] | None = None,
    ) -> None:
        """Select the figures to predict.

        Args:
            specs: All fits that predictions may require.
            figures: Figure table.
            folds: Number of folds.
            chosen: Fits whose drives' figures are predicted (default: all fits).

        Raises:
            ConfigError: If there are no figures to predict, or too few loads.
        """
        self.specs = specs
        self.folds = folds
        self.fold_of = folds_of(figures, folds)
        self._table = figures
        self._owners = owners_of(specs)
        wanted = set(specs if chosen is None else chosen)
        self.figures = tuple(
            f
            for f in self.fold_of
            if all(d in self._owners for d in _drives(f)) and wanted & set(self.fits_of(f))
        )
        if not self.figures:
            raise ConfigError(
                f"the table contains no figures for {', '.join(sorted(wanted))} to predict"
            )

    def fits_of(self, figure: PublishedFigure) -> tuple[str, ...]:
        """Return the fits of a figure's drives."""
        return tuple(dict.fromkeys(self._owners[d] for d in _drives(figure) if d in self._owners))

    def fold_fits(self, observer: MeasurementObserver | None = None) -> FoldFits:
        """Return the fits that the predictions require."""
        needed = {(fit, self.fold_of[f]) for f in self.figures for fit in self.fits_of(f)}
        return FoldFits(self.specs, self._table, self.fold_of, needed, observer)

    def loads(self) -> dict[str, set[Load]]:
        """Return the loads that are measured on each drive."""
        return {
            drive: {load for loads in by_fold.values() for load in loads}
            for drive, by_fold in self._loads().items()
        }

    def measure(
        self,
        values: DriveValues,
        *,
        cache: StateCache | None = None,
        time_share: float = 1.0,
        log: Log = lambda text: None,
        observer: MeasurementObserver | None = None,
    ) -> tuple[Prediction, ...]:
        """Measure the figures with values from fits that did not use these figures.

        `values` come from `FoldFits.run`. All measurement times are multiplied by `time_share`.
        """
        observer = observer or MeasurementObserver()
        loads = self._loads()
        drives = {name: ComparedDrive.preset(name) for name in loads}
        order = sorted(drives, key=lambda name: (-drive_memory(drives[name]), name))

        def measure_drive(name: str) -> dict[int, Results]:
            origin, folds = drives[name], list(loads[name])
            variants = [(_with(origin, values[name, fold]), loads[name][fold]) for fold in folds]
            measured = measure_variants(
                origin, variants, cache, log, observer, time_share=time_share
            )
            return dict(zip(folds, measured, strict=True))

        tasks = [
            Task(name, 2 * drive_memory(drives[name]), partial(measure_drive, name))
            for name in order
        ]
        results = dict(zip(order, run_side_by_side(tasks, stop=observer.stop), strict=True))
        return tuple(self._prediction(figure, results) for figure in self.figures)

    def _loads(self) -> dict[str, dict[int, set[Load]]]:
        """The loads of each drive, by fold."""
        by_drive: dict[str, dict[int, set[Load]]] = {}
        for figure in self.figures:
            for part in parts_of(figure):
                for c in (condition(part), baseline_condition(part)):
                    if c is not None and c.load is not None:
                        by_fold = by_drive.setdefault(c.device, {})
                        by_fold.setdefault(self.fold_of[figure], set()).add(c.load)
        return {drive: dict(sorted(by_fold.items())) for drive, by_fold in sorted(by_drive.items())}

    def _prediction(
        self, figure: PublishedFigure, results: Mapping[str, Mapping[int, Results]]
    ) -> Prediction:
        fold = self.fold_of[figure]
        fold_results = {drive: results[drive][fold] for drive in _drives(figure)}
        return Prediction(row_of(figure, fold_results, {}), fold, self.fits_of(figure))


def _drives(figure: PublishedFigure) -> tuple[str, ...]:
    return tuple(preset_of(name) for name in (figure.device, figure.baseline) if name)


def _with(drive: ComparedDrive, values: Values) -> ComparedDrive:
    return ComparedDrive(drive.name, with_numbers(drive.text, values), drive.file_name)


# -- folds: figures that are held out together -----------------------------------------------------

# All figures under a load belong to the same fold, regardless of metric and drive. A load's mean
# latency determines its IOPS, and one drive's improvement determines the other drive's. A fold
# therefore depends only on the loads in the whole table, not on the figures that a fit uses. The
# loads of each source are spread over as many folds as possible, so that no fit loses all figures
# from a source.

_SEED = 1
_LoadKey = tuple[object, ...]


def is_predicted(figure: PublishedFigure) -> bool:
    """Return `True` if a figure belongs to a load, and depends on fitted times.

    Endurance and power figures do not depend on fitted times.
    """
    measured = condition(figure)
    if measured is None or measured.load is None:
        return False
    return kind_of(figure) not in (ENDURANCE, POWER, OTHER)


def folds_of(figures: Sequence[PublishedFigure], count: int) -> dict[PublishedFigure, int]:
    """Return the fold number, starting at 1, of each figure that can be predicted.

    Raises:
        ConfigError: If `count` is below 2 or above the number of loads.
    """
    loads = {figure: _loads(figure) for figure in figures if is_predicted(figure)}
    groups = _joined(list(loads.values()))
    if not 2 <= count <= len(groups):
        raise ConfigError(
            f"--cross-validate is {count}; it must be 2 to {len(groups)}, the number of loads"
        )
    dealt: list[list[_LoadKey]] = []
    for _, same in groupby(groups, key=lambda group: group[0][0]):
        source_groups = list(same)
        dealt += [
            source_groups[n] for n in np.random.default_rng(_SEED).permutation(len(source_groups))
        ]
    fold_of = {key: 1 + n % count for n, group in enumerate(dealt) for key in group}
    return {figure: fold_of[keys[0]] for figure, keys in loads.items()}


def _loads(figure: PublishedFigure) -> list[_LoadKey]:
    """A figure's loads, excluding state and time, with one load per queue depth.

    The first element of each key is the source.
    """
    keys: list[_LoadKey] = []
    for part in parts_of(figure):
        part_condition = condition(part)
        assert part_condition is not None and part_condition.load is not None
        load = part_condition.load
        keys.append(
            (figure.source, load.pattern, load.profile, load.block_bytes, load.read_pct,
             load.outstanding, load.compressible_pct)
        )  # fmt: skip
    return keys


def _joined(figures: Sequence[Sequence[_LoadKey]]) -> list[list[_LoadKey]]:
    """Groups of loads in a fixed order, where each figure's loads are in the same group."""
    group_of: dict[_LoadKey, list[_LoadKey]] = {}
    for keys in figures:
        together = {other for key in keys for other in group_of.get(key, [key])}
        group = sorted(together, key=str)
        group_of |= dict.fromkeys(group, group)
    groups = {id(group): group for group in group_of.values()}
    return sorted(groups.values(), key=str)
