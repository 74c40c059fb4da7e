"""How far the model of a drive is off: the errors of figures that its fit had not seen.

They are the cross-validation of the shipped fits (`published/predictions.py`), over all drives of a
family; of a twin, the measurements that were kept aside, which its device file has. Of a drive
without such figures nothing is known, and that is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Literal

from writecliff.devices import read_device_file
from writecliff.devices.families import variants
from writecliff.published.conditions import preset_of
from writecliff.published.kinds import MEAN, MIXED, PURE, TAILS, Kind
from writecliff.published.predictions import predicted_rows, read_predictions
from writecliff.published.scores import Row
from writecliff.twin.device_file import kept_errors

Group = Literal["rates", "means", "tails"]
_GROUPS: Mapping[str, Group] = {
    PURE.name: "rates", MIXED.name: "rates", MEAN.name: "means", TAILS.name: "tails",
}  # fmt: skip


@dataclass(frozen=True)
class ModelError:
    """Median errors in % of the figures of a family, each predicted by fits of others; None where
    there is no such figure. `figures`: how many there are."""

    rates_pct: float | None = None
    means_pct: float | None = None
    tails_pct: float | None = None
    figures: int = 0

    def of(self, key: str) -> float | None:
        """The error in % of a figure of a choice, such as "p99.99". Life and prices have none: they
        follow from ratings and lists."""
        name = key.rpartition("/")[2]
        if name in ("iops", "mb_per_s"):
            return self.rates_pct
        if name == "mean":
            return self.means_pct
        return self.tails_pct if name == "max" or name.startswith("p9") else None


@lru_cache(maxsize=1)
def _by_family() -> Mapping[str, Mapping[Group, list[float]]]:
    """Errors in % by family, or by drive where there is no family."""
    rows = predicted_rows([Row(figure, None) for figure in read_predictions()])
    found: dict[str, dict[Group, list[float]]] = {}
    for row in rows:
        group, error = _GROUPS.get(row.kind.name), _error_pct(row, row.kind)
        if group is not None and error is not None:
            family = found.setdefault(family_of(preset_of(row.figure.device)), {})
            family.setdefault(group, []).append(error)
    return found


def _error_pct(row: Row, kind: Kind) -> float | None:
    error = row.error
    if error is None or error <= 0 < (kind is TAILS):
        return None
    return 100 * (exp(abs(log(error))) - 1) if kind.unit == "x" else abs(error)


def family_of(drive: str) -> str:
    """The family of a drive of the catalogue; its own name if it has none."""
    variant = variants().get(drive)
    return drive if variant is None else variant.family.stem


def model_error(drive: str) -> ModelError:
    """The errors of the model of a drive of the catalogue or of a twin; of others, nothing."""
    if drive.endswith(".toml") and Path(drive).is_file():
        own = kept_errors(read_device_file(drive)[0])
        return ModelError() if own is None else ModelError(**vars(own))
    groups = _by_family().get(family_of(drive), {})
    medians = {f"{group}_pct": median(errors) for group, errors in groups.items()}
    return ModelError(figures=sum(map(len, groups.values())), **medians)
