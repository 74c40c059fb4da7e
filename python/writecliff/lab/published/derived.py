"""Figures that no single load gives: rated writes, power, the phases of a drive that is filled, and
the lifetime gained by streams.

TBW and DWPD follow from rated cycles and from the write amplification of sustained 4 KiB random
writes; the lifetime with streams is the experiment `experiments.fms_fio`. A figure that cannot be
derived is named with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from writecliff.errors import ConfigError
from writecliff.lab.experiments import fms_fio
from writecliff.lab.experiments.lifetimes import READINGS
from writecliff.lab.published.filling import fill_metrics
from writecliff.parallel import SLOT_BYTES, drive_memory_bytes, map_side_by_side
from writecliff.published.conditions import FILL, Condition
from writecliff.published.measure import ComparedDrive, Log, idle_watts, rated_bytes
from writecliff.published.scores import Results, value_of

_TB = 1e12
# JESD218 counts over the warranty: five years for drives of data centres, three for the PM853T
# (the figure's own note; AnandTech gives it three years).
_WARRANTY_YEARS = 5.0
_WARRANTY_YEARS_OF = {"pm853t": 3.0}
_LIFETIME = "lifetime_ratio_streams_vs_none"


@dataclass
class Derived:
    """Values by "device metric", as `scores.row_of` looks for them; `why` for missing ones."""

    values: dict[str, float] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)


def warranty_years(device: str) -> float:
    family = device.rpartition("-")[0]
    return _WARRANTY_YEARS_OF.get(family, _WARRANTY_YEARS)


def derive(
    drives: Mapping[str, ComparedDrive],
    conditions: Iterable[Condition],
    results: Results,
    *,
    log: Log = lambda text: None,
) -> Derived:
    """All derived figures of the conditions; `drives` by the device names in them."""
    found = Derived()
    filled: dict[str, Mapping[str, float]] = {}
    for one in dict.fromkeys(conditions):
        key, drive = f"{one.device} {one.metric}", drives[one.device]
        if one.metric in ("tbw", "dwpd"):
            value, why = _rated(drive, one, results)
        elif one.metric.startswith("power_"):
            value, why = _power(drive, one, results)
        elif one.metric.startswith(FILL):
            if one.device not in filled:
                log(f"{one.device}: written from end to end")
                filled[one.device] = fill_metrics(drive)
            value, why = filled[one.device].get(one.metric), "the simulated drive has no such phase"
        elif one.metric == _LIFETIME:
            log(f"{one.device}: write amplification without and with streams")
            value, why = lifetime_ratio(drive), ""
        else:
            continue
        if value is None:
            found.why[key] = why
        else:
            found.values[key] = value
    return found


def _rated(drive: ComparedDrive, one: Condition, results: Results) -> tuple[float | None, str]:
    if what := drive.describe().without_flash:
        return None, f"{what} has no flash that wears"
    waf = _metric(one, results, "waf")
    if waf is None:
        return None, "nothing was written, so there is no write amplification"
    total = rated_bytes(drive, waf)
    if one.metric == "tbw":
        return total * drive.scale / _TB, ""
    capacity = drive.describe().capacity_bytes
    return total / (capacity * 365 * warranty_years(one.device)), ""


def _power(drive: ComparedDrive, one: Condition, results: Results) -> tuple[float | None, str]:
    if not drive.describe().has("power.idle"):
        return None, "the device file has no power model"
    if one.load is None:
        return idle_watts(drive), "idle power was not measured"
    return _metric(one, results, "power"), "power was not measured under this load"


def _metric(one: Condition, results: Results, name: str) -> float | None:
    return value_of(replace(one, metric=name), results)


def lifetime_ratio(drive: ComparedDrive) -> float:
    """Ratio of the host writes in a drive's life, with a stream for each writer and without.

    Write amplification alone decides it. The slide can be read in two ways; the smaller of both
    ratios is taken, at the over-provisioning of the drive."""
    spare = drive.describe().overprovision_pct
    if spare is None:
        what = drive.describe().without_flash
        raise ConfigError(f"{drive.name} is {what}; streams require flash")
    flat_bytes = fms_fio.UNITS * fms_fio.SLOTS_PER_RECLAIM_UNIT * SLOT_BYTES
    cases = [(reading, spare / 100) for reading in READINGS]
    memory_bytes = drive_memory_bytes(flat_bytes, flat_bytes)
    rows = map_side_by_side(fms_fio.amplification, cases, memory_bytes)
    return min(row.lifetime_ratio for row in rows)
