"""Sweeps: one test several times, one option or property of the drive varied.

The workload tests that surround the standard are sweeps of write saturation: active range,
over-provisioning, write cache, data pattern, demand (SNIA, "Solid State Storage Performance: a
primer", 2013: two settings side by side, IOPS v volume written and v time).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff.engines.target import is_simulated
from writecliff.errors import ConfigError
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.suite.folder import Member


@dataclass(frozen=True)
class Preset:
    """A named sweep: the option that is varied, and its values unless others are given."""

    option: str
    values: tuple[str, ...]
    summary: str


OVERPROVISION = "overprovision_pct"  # of the drive, not an option of a test
PRESETS: Mapping[str, Preset] = {
    "active-range": Preset(
        "active_range_pct", ("100", "75", "50", "25"), "share of the addresses used"
    ),
    "over-provisioning": Preset(
        OVERPROVISION, ("7", "14", "28"), "spare flash of a simulated drive, by its user capacity"
    ),
    "write-cache": Preset("write_cache", ("on", "off"), "volatile write cache on and off"),
    "data-pattern": Preset("compressible_pct", ("0", "50"), "random and compressible data"),
    "queue-depth": Preset("queue_depth", ("1", "8", "32"), "outstanding I/Os of a thread"),
    "threads": Preset("threads", ("1", "4", "16"), "threads issuing I/O"),
}


@dataclass(frozen=True)
class Sweep:
    """The runs of a sweep, and the device files that they need, by path."""

    members: Mapping[str, Member]
    devices: Mapping[Path, str]


def plan_sweep(
    test: str,
    target: str,
    option: str,
    values: Sequence[Any],
    common: Mapping[str, Any],
    *,
    folder: Path,
) -> Sweep:
    """A member for every value, named "OPTION-VALUE"; writes nothing.

    A sweep of over-provisioning needs a device file per value, in `folder`. Raises ConfigError:
    fewer than two different values, or one that is not allowed.
    """
    different = list(dict.fromkeys(values))
    if len(different) < 2:
        raise ConfigError(f"a sweep of {option} needs at least two different values")
    members, devices = {}, {}
    for value in different:
        name = f"{option.replace('_', '-')}-{_word(value)}"
        if option == OVERPROVISION:
            path = folder.resolve() / f"{name}.toml"
            devices[path] = _device(target, value)
            members[name] = Member(test, dict(common), f"sim:{path}")
        else:
            members[name] = Member(test, {**common, option: value}, target)
        procedure_from_mapping(test, members[name].options, simulated=is_simulated(target))
    return Sweep(members, devices)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    return Path(value).name if isinstance(value, str) else str(value)  # of a file, its name


def _device(target: str, percent: float) -> str:
    """The device file of `target` with the user capacity that leaves `percent` of it spare.

    Over-provisioning is (flash - user capacity) / user capacity. Raises ConfigError for a share
    with which garbage collection cannot work, and for a drive that is not simulated.
    """
    from writecliff.devices import describe_device, read_device_file
    from writecliff.devices.edit import with_values

    if not is_simulated(target):
        raise ConfigError(
            f"the over-provisioning of {target} cannot be changed",
            hint="vary active_range_pct: what is never written serves as spare space",
        )
    text, name = read_device_file(target.removeprefix("sim:"))
    raw_bytes = describe_device(text, name).flash_bytes("over-provisioning")
    capacity_mb = int(raw_bytes / (1 + percent / 100)) // 1_000_000
    source = f"{percent:g} % over-provisioning"
    made = with_values(text, {"user_capacity": (f'"{capacity_mb} MB"', source)})
    describe_device(made, f"{name} with {percent:g} % over-provisioning")
    return made
