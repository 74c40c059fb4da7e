"""Errors of drive models, which are median errors of held-out figures by load kind.

The figures are defined in `published/held_out.py`, and cover all drives in a family. A family that
has fewer than three figures of a kind uses the median of its class, which is current drives or
fitted drives. A figure is not counted if it repeats another figure in its family or is a model
constant, because it tests nothing. If fewer than three figures remain, the error is unknown. A
twin's errors are those of the twin's own held-out measurements, which are stored in the device
file. The error of a user-defined device file is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any, Literal

from writecliff.choice.load_kinds import LoadKinds
from writecliff.devices import SCM_FAMILIES, TODAY, preset_names, read_device_file, show_device
from writecliff.devices.families import variants
from writecliff.published.held_out import (
    ENDURANCE,
    FEWEST,
    HeldOut,
    by_kind,
    cross_validated,
    current_drives,
    endurance,
    family_of,
    mean_kind,
    measured,
    ssd_iq,
    tail_kind,
)
from writecliff.twin.device_file import HeldOutErrors, held_out_errors

Scope = Literal["family", "other drives", "twin", ""]
_TWIN_LOADS = ("random reads", "random writes", "sequential reads", "sequential writes", "mixes")


@dataclass(frozen=True)
class KindError:
    """Median error of the held-out figures for a load kind."""

    kind: str
    pct: float | None = None  # Error in percent; `None` if unknown.
    figures: int = 0  # Number of figures behind the error.
    scope: Scope = ""  # Drives that the figures belong to.
    # `True` if a constant was chosen after seeing the figures, so `pct` is a lower bound.
    in_view: bool = False


@dataclass(frozen=True)
class FigureError:
    """Error of a figure in a choice, which is the largest error of the figure's kinds.

    A figure that has no kinds has no error, because it is derived from a rating or a price list.
    """

    kinds: tuple[KindError, ...]

    @property
    def pct(self) -> float | None:
        """Error in percent, or `None` if the error for any kind is unknown."""
        return None if any(kind.pct is None for kind in self.kinds) else self.least_pct

    @property
    def least_pct(self) -> float:
        """Lower bound of the error in percent, which is the largest known error of any kind."""
        return max((kind.pct for kind in self.kinds if kind.pct is not None), default=0.0)

    @property
    def is_bound(self) -> bool:
        """`True` if the error is unknown or only a lower bound is known."""
        return any(kind.pct is None or kind.in_view for kind in self.kinds)

    def mapping(self) -> dict[str, Any]:
        """Return the error in the format of `writecliff choose --json`."""
        return {
            "error_pct": self.pct,
            "lower_bound": self.pct is not None and self.is_bound,
            "kinds": [vars(kind) for kind in self.kinds],
        }


# Figure whose error `--json` shows for a group of figures.
_GROUPS: Mapping[str, str] = {"rates": "iops", "means": "mean", "tails": "p99.99"}


@dataclass(frozen=True)
class ModelError:
    """Errors of a drive model under a load."""

    load: LoadKinds
    by_kind: Mapping[str, KindError] = field(default_factory=dict)  # Known errors by kind.
    rated_life: bool = False  # `False` if the rated erase cycles limit the drive life.

    def of(self, key: str) -> FigureError:
        """Return the error of a figure in a choice, such as "reads/p99.99"."""
        kinds = self.load.kinds_of(key, rated_life=self.rated_life)
        return FigureError(tuple(self.by_kind.get(kind, KindError(kind)) for kind in kinds))

    def mapping(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the errors in the format of `writecliff choose --json`.

        `keys` are the figures to list under `by_figure`.
        """
        groups: dict[str, Any] = {f"{name}_pct": self.of(key).pct for name, key in _GROUPS.items()}
        return {**groups, "by_figure": {key: self.of(key).mapping() for key in keys}}


def model_error(drive: str, load: LoadKinds, *, rated_life: bool = False) -> ModelError:
    """Return the errors of a drive's model under a load.

    Args:
        drive: Preset in the catalogue, or path of a device file. Only the device files of twins
            have known errors.
        load: Load kinds.
        rated_life: `False` if the rated erase cycles limit the drive's lifetime.
    """
    if drive.endswith(".toml") and Path(drive).is_file():
        twin = held_out_errors(read_device_file(drive)[0])
        return ModelError(load, {} if twin is None else _of_twin(twin), rated_life)
    in_catalogue = drive in preset_names() or family_of(drive) != drive
    errors = _of_family(family_of(drive)) if in_catalogue else {}
    return ModelError(load, errors, rated_life)


def _of_twin(twin: HeldOutErrors) -> dict[str, KindError]:
    """Return a twin's errors in rates, mean latencies and 99th percentiles, by measured load."""
    errors = dict.fromkeys(_TWIN_LOADS, twin.rates_pct)
    errors |= dict.fromkeys(map(mean_kind, _TWIN_LOADS), twin.means_pct)
    operations = ("reads alone", "reads beside writes", "writes")
    tails = (tail_kind("p99", operation, full_rate=True) for operation in operations)
    errors |= dict.fromkeys(tails, twin.tails_pct)
    return {kind: KindError(kind, pct, twin.figures, "twin") for kind, pct in errors.items()}


@lru_cache(maxsize=256)
def _of_family(family: str) -> Mapping[str, KindError]:
    """Return the errors for the kinds that the family or its class has enough figures for."""
    figures = [figure for figure in _all() if not figure.exclusion]
    of_class = _errors(_class_of(family, figures), "other drives")
    if not _is_rated_for_random_writes(family):
        of_class.pop(ENDURANCE, None)
    of_family = _errors((figure for figure in figures if figure.family == family), "family")
    return {**of_class, **of_family}


def _errors(figures: Iterable[HeldOut], scope: Scope) -> dict[str, KindError]:
    """Return the median errors for the kinds that have at least `FEWEST` figures."""
    return {
        kind: KindError(
            kind,
            median(figure.error_pct for figure in of_kind),
            len(of_kind),
            scope,
            any(figure.in_view for figure in of_kind),
        )
        for kind, of_kind in by_kind(figures).items()
        if len(of_kind) >= FEWEST
    }


def _class_of(family: str, figures: Iterable[HeldOut]) -> list[HeldOut]:
    """Return the held-out figures for a family's class.

    The class of a current drive contains all current drives, and the class of a fitted drive
    contains all fitted drives. The class of any other preset contains all flash drives.
    Storage-class memory does not belong to a class.
    """
    if family in SCM_FAMILIES:
        return []
    flash = [figure for figure in figures if figure.family not in SCM_FAMILIES]
    fitted = {figure.family for figure in flash if figure.source == "cross-validation"}
    if family in TODAY:
        return [figure for figure in flash if figure.source != "cross-validation"]
    if family in fitted:
        return [figure for figure in flash if figure.source == "cross-validation"]
    return flash


def _is_rated_for_random_writes(family: str) -> bool:
    """Return `True` for data-centre drives, which have capacitor-protected buffers."""
    drives = (name for name, variant in variants().items() if variant.family.stem == family)
    return any(show_device(name).power_loss_protection for name in drives)


def _all() -> tuple[HeldOut, ...]:
    return (*cross_validated(), *current_drives(), *measured(), *endurance(), *ssd_iq())
