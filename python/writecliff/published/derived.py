"""Figures that no single load shows: rated writes, and what streams do for a drive's life.

TBW and DWPD follow from rated cycles and from the write amplification of the sustained 4 KiB random
writes; the lifetime with streams is an experiment of its own (`experiments.fms_fio`). What cannot
be had is named with its reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from writecliff.devices import describe_device
from writecliff.errors import ConfigError
from writecliff.experiments import fms_fio
from writecliff.experiments.lifetimes import READINGS
from writecliff.parallel import SLOT_BYTES, Task, drive_memory_bytes, run_side_by_side
from writecliff.published.conditions import Condition
from writecliff.published.measure import Drive, Tell, idle_watts, rated_bytes
from writecliff.published.scores import Results

_TB = 1e12
# JESD218 counts over the warranty: five years for drives of data centres, three for the PM853T
# (the figure's own note; AnandTech gives it three years).
_WARRANTY_YEARS = 5.0
_WARRANTY_YEARS_OF = {"pm853t": 3.0}
_LIFETIME = "lifetime_ratio_streams_vs_none"


@dataclass
class Derived:
    """By "device metric", as `scores.row_of` looks for them; `why` for those that are missing."""

    values: dict[str, float] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)


def warranty_years(device: str) -> float:
    family = device.rpartition("-")[0]
    return _WARRANTY_YEARS_OF.get(family, _WARRANTY_YEARS)


def derive(
    drives: Mapping[str, Drive],
    conditions: Iterable[Condition],
    results: Results,
    *,
    tell: Tell = lambda text: None,
) -> Derived:
    """All that the conditions ask for and `results` allow; `drives` by the names in both."""
    found = Derived()
    for one in dict.fromkeys(conditions):
        key, drive = f"{one.device} {one.metric}", drives[one.device]
        if one.metric in ("tbw", "dwpd"):
            value, why = _rated(drive, one, results)
        elif one.metric.startswith("power_"):
            value, why = _power(drive, one, results)
        elif one.metric == _LIFETIME:
            tell(f"{one.device}: write amplification without and with streams")
            value, why = lifetime_ratio(drive), ""
        else:
            continue
        if value is None:
            found.why[key] = why
        else:
            found.values[key] = value
    return found


def _rated(drive: Drive, one: Condition, results: Results) -> tuple[float | None, str]:
    if "flash" not in tomllib.loads(drive.text):
        return None, "a hard disk wears no flash"
    waf = _metric(one, results, "waf")
    if waf is None:
        return None, "nothing was written, so there is no write amplification"
    total = rated_bytes(drive.text, drive.file_name, waf)
    if one.metric == "tbw":
        return total / _TB, ""
    capacity = describe_device(drive.text, drive.file_name).capacity_bytes
    return total / (capacity * 365 * warranty_years(one.device)), ""


def _power(drive: Drive, one: Condition, results: Results) -> tuple[float | None, str]:
    if "power" not in tomllib.loads(drive.text):
        return None, "its device file says nothing of power"
    if one.load is None:
        return idle_watts(drive), "it was not measured idle"
    return _metric(one, results, "power"), "its power was not measured under this load"


def _metric(one: Condition, results: Results, name: str) -> float | None:
    found: Mapping[str, float] = {}
    if one.load is not None:
        found = results.get(one.device, {}).get(one.load, {})
    return found.get(name)


def lifetime_ratio(drive: Drive) -> float:
    """How many times as much a host can write with a stream a writer as without.

    Write amplification alone decides it. The slide can be read in two ways; the smaller of both
    ratios is taken, at the over-provisioning of the drive."""
    spare = describe_device(drive.text, drive.file_name).overprovision_pct
    if spare is None:
        raise ConfigError(f"{drive.name} is a hard disk; lifetimes by streams need flash")
    flat_bytes = fms_fio.UNITS * fms_fio.SLOTS_PER_UNIT * SLOT_BYTES
    tasks = [
        Task(
            f"{drive.name}, {reading}",
            drive_memory_bytes(flat_bytes, flat_bytes),
            partial(fms_fio.amplification, reading, spare / 100),
        )
        for reading in READINGS
    ]
    return min(row.lifetime_ratio for row in run_side_by_side(tasks))
