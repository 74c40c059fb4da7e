"""How far the model of a drive is off: the errors of held-out figures of the load's kind.

They are those of `published/held_out.py`, over all drives of a family; of a twin, those of the
measurements that were kept aside, which its device file has. A family with fewer than three figures
of a kind has the median over the other drives of its class: current drives, or drives with a fit. A
figure that repeats another of its family, or that is a constant of the model, tests nothing and
does not count. Where fewer than three figures are left, the error is not known. Nor is that of a
user's own device file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any, Literal

from writecliff.choice.load_kinds import LoadKinds
from writecliff.devices import SCM_FAMILIES, TODAY, preset_names, read_device_file
from writecliff.published.held_out import (
    FEWEST,
    HeldOut,
    by_kind,
    cross_validated,
    current_drives,
    family_of,
    mean_kind,
    ssd_iq,
    tail_kind,
)
from writecliff.twin.device_file import KeptErrors, kept_errors

Scope = Literal["family", "other drives", "twin", ""]
_TWIN_LOADS = ("random reads", "random writes", "sequential reads", "sequential writes", "mixes")


@dataclass(frozen=True)
class KindError:
    """Median error of the held-out figures of a kind.

    `pct` is None if it is not known. `scope`: whose figures they are. `in_view`: a constant was set
    with the figures in view, so the error is a lower bound.
    """

    kind: str
    pct: float | None = None
    figures: int = 0
    scope: Scope = ""
    in_view: bool = False


@dataclass(frozen=True)
class FigureError:
    """Error of a figure of a choice: the largest of its kinds. No kinds: a rating or a list."""

    kinds: tuple[KindError, ...]

    @property
    def pct(self) -> float | None:
        """The error in percent; None if that of any kind is not known."""
        errors = [one.pct for one in self.kinds]
        known = [one for one in errors if one is not None]
        return None if len(known) < len(errors) else max(known, default=0.0)

    @property
    def least_pct(self) -> float:
        """The least that the error is, as far as its kinds are known, in percent."""
        return max((one.pct for one in self.kinds if one.pct is not None), default=0.0)

    @property
    def is_bound(self) -> bool:
        """`True` if the error is not known, or only as a lower bound."""
        return any(one.pct is None or one.in_view for one in self.kinds)

    def mapping(self) -> dict[str, Any]:
        """The error as `writecliff choose --json` prints it."""
        return {
            "error_pct": self.pct,
            "lower_bound": self.pct is not None and self.is_bound,
            "kinds": [vars(one) for one in self.kinds],
        }


_GROUPS: Mapping[str, str] = {"rates": "iops", "means": "mean", "tails": "p99.99"}


@dataclass(frozen=True)
class ModelError:
    """Errors of the model of a drive under a load. `by_kind`: the known errors by kind.
    `rated_life`: a rating of the vendor ends the life."""

    load: LoadKinds
    by_kind: Mapping[str, KindError] = field(default_factory=dict)
    rated_life: bool = False

    def of(self, key: str) -> FigureError:
        """Return the error of a figure of a choice, such as "reads/p99.99"."""
        kinds = self.load.kinds_of(key, rated_life=self.rated_life)
        return FigureError(tuple(self.by_kind.get(kind, KindError(kind)) for kind in kinds))

    def mapping(self, keys: Iterable[str]) -> dict[str, Any]:
        """The errors as `writecliff choose --json` prints them, and those of the figures `keys`."""
        found: dict[str, Any] = {f"{name}_pct": self.of(key).pct for name, key in _GROUPS.items()}
        return {**found, "by_figure": {key: self.of(key).mapping() for key in keys}}


def model_error(drive: str, load: LoadKinds, *, rated_life: bool = False) -> ModelError:
    """Return the errors of the model of a drive of the catalogue or of a twin under a load.

    Those of the user's own device files are not known.
    """
    if drive.endswith(".toml") and Path(drive).is_file():
        kept = kept_errors(read_device_file(drive)[0])
        return ModelError(load, {} if kept is None else _of_twin(kept), rated_life)
    known = _known(family_of(drive)) if drive in preset_names() else {}
    return ModelError(load, known, rated_life)


def _of_twin(kept: KeptErrors) -> dict[str, KindError]:
    """Return the errors of a twin: of rates and means of the loads that it was measured under, and
    of their 99th percentiles."""
    errors = dict.fromkeys(_TWIN_LOADS, kept.rates_pct)
    errors |= dict.fromkeys(map(mean_kind, _TWIN_LOADS), kept.means_pct)
    whose = ("reads alone", "reads beside writes", "writes")
    errors |= dict.fromkeys((tail_kind("p99", of, full_rate=True) for of in whose), kept.tails_pct)
    return {kind: KindError(kind, pct, kept.figures, "twin") for kind, pct in errors.items()}


@lru_cache(maxsize=256)
def _known(family: str) -> Mapping[str, KindError]:
    """Return the errors of the kinds of which the family or its class has figures enough."""
    figures = [one for one in _all() if not one.known]
    of_class = _errors(_class_of(family, figures), "other drives")
    return {**of_class, **_errors((one for one in figures if one.family == family), "family")}


def _errors(figures: Iterable[HeldOut], scope: Scope) -> dict[str, KindError]:
    return {
        kind: KindError(
            kind,
            median(one.error_pct for one in own),
            len(own),
            scope,
            any(one.in_view for one in own),
        )
        for kind, own in by_kind(figures).items()
        if len(own) >= FEWEST
    }


def _class_of(family: str, figures: Iterable[HeldOut]) -> list[HeldOut]:
    """Return the figures of the class of a family: of drives derived or fitted in the same way; of
    a preset that is neither, those of all drives with flash."""
    if family in SCM_FAMILIES:
        return []
    listed = [one for one in figures if one.family not in SCM_FAMILIES]
    fitted = {one.family for one in listed if one.source == "cross-validation"}
    if family in TODAY:
        return [one for one in listed if one.source != "cross-validation"]
    if family in fitted:
        return [one for one in listed if one.source == "cross-validation"]
    return listed


def _all() -> tuple[HeldOut, ...]:
    return (*cross_validated(), *current_drives(), *ssd_iq())
