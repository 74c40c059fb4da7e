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

from writecliff.errors import ConfigError
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.suite.folder import Member


@dataclass(frozen=True)
class Preset:
    """A sweep with a name: what is varied, over which values unless others are given."""

    option: str
    values: tuple[str, ...]
    summary: str


OVERPROVISION = "overprovision_pct"  # of the drive, not an option of a test
PRESETS: Mapping[str, Preset] = {
    "active-range": Preset("active_range_pct", ("100", "75", "50"), "share of the addresses used"),
    "over-provisioning": Preset(
        OVERPROVISION, ("7", "14", "28"), "spare flash of a simulated drive, by its user capacity"
    ),
    "write-cache": Preset("write_cache", ("on", "off"), "volatile write cache on and off"),
    "data-pattern": Preset("compressible_pct", ("0", "50"), "random and compressible data"),
    "queue-depth": Preset("queue_depth", ("1", "8", "32"), "outstanding I/Os of a thread"),
    "threads": Preset("threads", ("1", "4", "16"), "threads issuing I/O"),
}


def plan_sweep(
    test: str,
    target: str,
    option: str,
    values: Sequence[Any],
    common: Mapping[str, Any],
    *,
    folder: Path,
) -> dict[str, Member]:
    """A member for every value, named "OPTION-VALUE".

    For a sweep of over-provisioning, device files are made in `folder` when it is started, see
    `write_devices`. Raises ConfigError: fewer than two values, or one that is not allowed.
    """
    if len(values) < 2:
        raise ConfigError(f"a sweep of {option} needs at least two values")
    members = {}
    for value in values:
        name = f"{option.replace('_', '-')}-{_word(value)}"
        if option == OVERPROVISION:
            if not target.startswith("sim:"):
                raise ConfigError(
                    f"the over-provisioning of {target} cannot be changed",
                    hint="vary active_range_pct: what is never written serves as spare space",
                )
            members[name] = Member(test, dict(common), f"sim:{folder / f'{name}.toml'}")
        else:
            members[name] = Member(test, {**common, option: value}, target)
        procedure_from_mapping(test, members[name].options)
    return members


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def write_devices(members: Mapping[str, Member], source: str) -> None:
    """The device files of a sweep of over-provisioning: the drive `source` ("sim:NAME") with the
    user capacity that leaves the wanted share of it spare.

    Over-provisioning is (flash - user capacity) / user capacity. Raises ConfigError for a share
    that leaves nothing or more than the flash holds.
    """
    from writecliff.devices import device_path, show_device
    from writecliff.store.files import write_atomically

    name = source.removeprefix("sim:")
    text = device_path(name).read_text(encoding="utf-8")
    raw_bytes = show_device(name).raw_bytes
    for member_name, member in members.items():
        percent = float(member_name.rpartition("-")[2])
        capacity = int(raw_bytes / (1 + percent / 100)) // 1_000_000
        lines = [
            f'user_capacity = "{capacity} MB"  # {percent:g} % over-provisioning'
            if line.split("=")[0].strip() == "user_capacity"
            else line
            for line in text.splitlines()
        ]
        path = Path(member.target.removeprefix("sim:"))
        write_atomically(path, ("\n".join(lines) + "\n").encode())
        show_device(str(path))  # refuses what cannot be a drive
