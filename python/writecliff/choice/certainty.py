"""How far the model of a drive is off: the errors of figures that its fit had not seen.

They are the cross-validation of the shipped fits and, of drives of today, the figures that were
kept aside (`published/predictions.py`), over all drives of a family; of a twin, the measurements
that were kept aside, which its device file has. A family without a figure of a kind has the median
of all families for it, drives of today that of drives of today alone, and that is said. A
prediction that is the same for drives of several families is a constant of the model, which a
drive's figures do not test, so it does not count. Of a user's own device file nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Literal

from writecliff.devices import SCM_FAMILIES, TODAY, preset_names, read_device_file
from writecliff.devices.families import variants
from writecliff.operation_names import FLUSH
from writecliff.published.conditions import preset_of
from writecliff.published.kinds import MEAN, MIXED, PURE, TAILS, Kind
from writecliff.published.predictions import (
    MODERN_PREDICTIONS,
    predicted_rows,
    read_predictions,
)
from writecliff.published.scores import Row
from writecliff.twin.device_file import kept_errors

Group = Literal["rates", "means", "tails"]
_NAMES: tuple[Group, ...] = ("rates", "means", "tails")
_SAME = 0.005  # relative difference up to which predictions count as a constant
_GROUPS: Mapping[str, Group] = {
    PURE.name: "rates", MIXED.name: "rates", MEAN.name: "means", TAILS.name: "tails",
}  # fmt: skip


@dataclass(frozen=True)
class ModelError:
    """Median errors in % of the figures of a family, each predicted by fits of others; None where
    nothing is known. `figures`: how many there are. `of_all`: the kinds of which the family has no
    figure, whose error is the median of all families. `counts`: figures behind each error."""

    rates_pct: float | None = None
    means_pct: float | None = None
    tails_pct: float | None = None
    figures: int = 0
    of_all: tuple[Group, ...] = ()
    counts: Mapping[Group, int] = field(default_factory=dict)

    def of(self, key: str) -> float | None:
        """The error in % of a figure of a choice, such as "p99.99". Life and prices have none: they
        follow from ratings and lists."""
        *parts, name = key.split("/")
        if FLUSH in parts:  # no source publishes figures of flushes
            return None
        if name in ("iops", "mb_per_s"):
            return self.rates_pct
        if name == "mean":
            return self.means_pct
        return self.tails_pct if name == "max" or name.startswith("p9") else None


@lru_cache(maxsize=1)
def _by_family() -> Mapping[str, Mapping[Group, list[float]]]:
    """Errors in % by family, or by drive where there is no family."""
    fitted, today = read_predictions(), read_predictions(MODERN_PREDICTIONS)
    rows = predicted_rows([Row(figure, None) for figure in fitted])
    rows += without_constants(predicted_rows([Row(figure, None) for figure in today], today))
    found: dict[str, dict[Group, list[float]]] = {}
    for row in rows:
        group, error = _GROUPS.get(row.kind.name), _error_pct(row, row.kind)
        if group is not None and error is not None:
            family = found.setdefault(family_of(preset_of(row.figure.device)), {})
            family.setdefault(group, []).append(error)
    return found


def without_constants(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose prediction differs between drive families."""

    def load(row: Row) -> tuple[object, ...]:
        figure = row.figure
        return (figure.metric, figure.access, figure.block_bytes, figure.read_pct, figure.oio)

    def is_constant(row: Row) -> bool:
        return any(
            load(other) == load(row)
            and family_of(preset_of(other.figure.device)) != family_of(preset_of(row.figure.device))
            and row.simulated is not None
            and other.simulated is not None
            and abs(other.simulated - row.simulated) <= _SAME * abs(row.simulated)
            for other in rows
        )

    return [row for row in rows if row.kind is not MEAN or not is_constant(row)]


def _error_pct(row: Row, kind: Kind) -> float | None:
    error = row.error
    if error is None or error <= 0 < (kind is TAILS):
        return None
    return 100 * (exp(abs(log(error))) - 1) if kind.unit == "x" else abs(error)


def family_of(drive: str) -> str:
    """The family of a drive of the catalogue; its own name if it has none."""
    variant = variants().get(drive)
    return drive if variant is None else variant.family.stem


@lru_cache(maxsize=2)
def _of_all(families: frozenset[str] | None) -> Mapping[Group, tuple[float, int]]:
    """Return the median of the families' median errors, and the number of figures, by group.

    Only the given families count (default: all with flash).
    """
    by_group: dict[Group, list[list[float]]] = {}
    for family, groups in _by_family().items():
        if family not in SCM_FAMILIES and (families is None or family in families):
            for group, errors in groups.items():
                by_group.setdefault(group, []).append(errors)
    return {
        group: (median(map(median, each)), sum(map(len, each))) for group, each in by_group.items()
    }


def model_error(drive: str) -> ModelError:
    """The errors of the model of a drive of the catalogue or of a twin; of others, nothing."""
    if drive.endswith(".toml") and Path(drive).is_file():
        kept = kept_errors(read_device_file(drive)[0])
        return ModelError() if kept is None else ModelError(**vars(kept))
    if drive not in preset_names():
        return ModelError()
    groups = _by_family().get(family_of(drive), {})
    own = {group: (median(errors), len(errors)) for group, errors in groups.items()}
    of_all = _of_all(TODAY if family_of(drive) in TODAY else None)  # derived ones are not fitted
    known = {**of_all, **own}
    return ModelError(
        figures=sum(map(len, groups.values())),
        of_all=tuple(group for group in _NAMES if group not in own and group in of_all),
        counts={group: count for group, (_, count) in known.items()},
        rates_pct=known["rates"][0] if "rates" in known else None,
        means_pct=known["means"][0] if "means" in known else None,
        tails_pct=known["tails"][0] if "tails" in known else None,
    )
