"""Sweeps, which repeat a test or load with different options or drive properties.

The workload tests that accompany the standard are write saturation sweeps over active range,
over-provisioning, write cache, data pattern and demand (SNIA, "Solid State Storage Performance: a
primer", 2013: two settings side by side, IOPS over volume written and over time).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff.engines.target import is_simulated
from writecliff.errors import ConfigError
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.store.files import write_atomically
from writecliff.suite.folder import Member, SuiteFolder


@dataclass(frozen=True)
class Preset:
    """A named sweep, with the option that it varies and the option's default values."""

    option: str
    values: tuple[str, ...]
    summary: str


OVERPROVISION = "overprovision_pct"  # Drive property rather than a test option.
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


DEVICE, LOAD = "device.", "load."  # Key prefixes for the device file and for the jobs of a load.


@dataclass(frozen=True)
class Sweep:
    """The runs in a sweep, and the device files required by the runs, by path."""

    members: Mapping[str, Member]
    devices: Mapping[Path, str]

    def create(self, path: Path, about: str) -> SuiteFolder:
        """Create the sweep directory and its device files. Raises as `SuiteFolder`."""
        folder = SuiteFolder.create(path, "sweep", about, self.members)
        for device, text in self.devices.items():
            write_atomically(device, text.encode())
        return folder


def plan_sweep(
    test: str,
    target: str,
    cells: Sequence[Mapping[str, Any]],
    common: Mapping[str, Any],
    *,
    folder: Path,
) -> Sweep:
    """Return a member for each distinct cell in `cells`, without writing any files.

    A cell holds a value for each varied key. A key is a test option, `OVERPROVISION`, or
    "device.KEY" for a key in the simulated drive's file (with a TOML value). For the test
    "workload", whose options are in `common`, a key may also be "load.KEY" for all jobs or
    "load.JOB.KEY" for a single job. A cell's run is named "KEY-VALUE", and its device file is in
    `folder`.

    Raises:
        ConfigError: If there are fewer than two distinct cells or a value is not allowed.
    """
    different = [cell for number, cell in enumerate(cells) if cell not in cells[:number]]
    if len(different) < 2:
        varied = ", ".join(dict.fromkeys(key for cell in cells for key in cell))
        if not varied:
            raise ConfigError(
                "a sweep requires at least one setting to vary",
                hint="for example --vary write_cache=on,off",
            )
        raise ConfigError(f"a sweep of {varied} requires at least two different values")
    members: dict[str, Member] = {}
    devices: dict[Path, str] = {}
    drives: dict[tuple[tuple[str, Any], ...], Path] = {}
    for number, cell in enumerate(different, 1):
        settings = {key: _word(value) for key, value in cell.items()}
        of_drive = {key: value for key, value in cell.items() if is_of_drive(key)}
        on = target
        if of_drive:
            made_of = tuple(of_drive.items())
            if made_of not in drives:
                name = _name({key: settings[key] for key in of_drive}, len(drives) + 1, "drive")
                drives[made_of] = folder.resolve() / f"{name}.toml"
                devices[drives[made_of]] = changed_device(target, of_drive)
            on = f"sim:{drives[made_of]}"
        of_load = {k.removeprefix(LOAD): v for k, v in cell.items() if k.startswith(LOAD)}
        options = {k: v for k, v in cell.items() if k not in of_drive and not k.startswith(LOAD)}
        made = {**(_with_load(common, of_load) if of_load else common), **options}
        procedure_from_mapping(test, made, simulated=is_simulated(target))
        members[_name(settings, number, "cell")] = Member(test, made, on, settings)
    return Sweep(members, devices)


def is_of_drive(key: str) -> bool:
    """Return `True` if a key changes the simulated drive instead of the test or load."""
    return key == OVERPROVISION or key.startswith(DEVICE)


def _name(settings: Mapping[str, str], number: int, numbered: str) -> str:
    if len(settings) > 1:
        return f"{numbered}-{number:03}"
    ((key, value),) = settings.items()
    return re.sub(r"[^\w,+.-]+", "-", f"{key.replace('_', '-').replace('.', '-')}-{value}")


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    # Shorten a path to its file name.
    return Path(value).name if isinstance(value, str) else str(value)


def changed_device(target: str, changes: Mapping[str, Any]) -> str:
    """Return the device file for `target` with modified values.

    Over-provisioning is (flash - user capacity) / user capacity, with the flash size after all
    other changes.

    Raises:
        ConfigError: If the drive is not simulated or cannot be built with these values.
    """
    from writecliff.devices import describe_device, read_device_file
    from writecliff.devices.edit import toml_word, with_values

    if not is_simulated(target):
        hint = "vary active_range_pct: addresses that are never written serve as spare space"
        what = "over-provisioning" if OVERPROVISION in changes else "device file"
        raise ConfigError(f"a sweep cannot change the {what} of {target}", hint=hint)
    made, name = read_device_file(target.removeprefix("sim:"))
    keys = {
        key.removeprefix(DEVICE): value for key, value in changes.items() if key != OVERPROVISION
    }
    for key, value in keys.items():
        made = with_values(made, {key: (toml_word(made, key, value), "set by a sweep")})
    about = [f"{key} = {value}" for key, value in keys.items()]
    if OVERPROVISION in changes:
        percent = changes[OVERPROVISION]
        raw_bytes = describe_device(made, name).flash_bytes("over-provisioning")
        capacity_mb = int(raw_bytes / (1 + percent / 100)) // 1_000_000
        about.append(f"{percent:g} % over-provisioning")
        made = with_values(made, {"user_capacity": (f'"{capacity_mb} MB"', about[-1])})
    describe_device(made, f"{name} with {', '.join(about)}")
    return made


def _with_load(options: Mapping[str, object], changes: Mapping[str, Any]) -> dict[str, object]:
    """Return a load's options, with modified values in its jobs. Raises ConfigError."""
    from writecliff.procedures.workload import WorkloadRun

    procedure = WorkloadRun.from_mapping(options)
    for key, value in changes.items():
        procedure = procedure.changed(key, value)
    return procedure.options_mapping()
