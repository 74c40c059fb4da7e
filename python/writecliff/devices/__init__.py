"""Catalogue of simulated drives, and device files of users.

A preset is a TOML file in this folder, named after the drive, or a variant of a family
(`families.py`). The native crate reads and checks device files; this module locates and describes
them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from writecliff import _native
from writecliff.devices.capacities import derived_text
from writecliff.devices.families import variant_text, variants
from writecliff.errors import A_HARD_DISK, AN_SCM_DRIVE, ConfigError, printable
from writecliff.input_files import read_text
from writecliff.native_errors import as_user_errors

FOLDER = Path(__file__).parent
# Families of drives of 2020 and later, with three figures or more to derive them from in
# `published/modern.csv` or `published/ssd_iq/sheets.csv`.
TODAY = frozenset((
    "pm9a3", "pm9d3a", "micron-7450", "micron-7500", "micron-9550-max", "micron-7600-max",
    "d7-p5500", "cd8", "cd7", "pm1743", "micron-xtr", "fl6", "d7-p5810", "d5-p5430", "990-pro",
    "sn850x", "t500", "sn770", "990-evo", "nm790", "micron-2400", "p41-plus", "980-pro",
    "nm800-pro", "mp700-elite", "micron-6500-ion", "d5-p5336", "p5800x", "micron-7450-max",
    "pe8110", "d7-p5520", "cm7-r",
))  # fmt: skip

SCM_FAMILIES = frozenset(("p5800x",))  # storage-class memory; their errors do not apply to flash


@dataclass(frozen=True)
class DeviceSummary:
    """A line of `writecliff device list`."""

    name: str  # after `sim:`
    description: str  # one line
    capacity_bytes: int  # user capacity
    interface: str  # "SATA 6Gb/s"
    nand_type: str | None  # None without flash, as is the next
    overprovision_pct: float | None  # flash beyond the user capacity, of that
    least_scale: float  # smallest scale at which it can be simulated; 1: full capacity


@dataclass(frozen=True)
class DeviceValue:
    """A value of a device file: its dotted key, its text, and its source."""

    key: str  # "flash.read"
    value: str  # TOML text
    source: str  # source of the value, or reasoning
    line: int  # line in the file


@dataclass(frozen=True)
class DeviceDescription:
    """Contents of a device file; `device_hash` covers all values that change behaviour.

    Figures of flash are None for drives without flash.
    """

    name: str  # after `sim:`
    kind: Literal["ssd", "disk", "scm"]  # flash, platters, storage-class memory
    description: str  # in a line
    vendor: str  # shown in reports
    model: str  # shown in reports
    firmware: str  # shown in reports
    capacity_bytes: int  # user capacity
    raw_bytes: int | None  # of the flash
    mapped_bytes: int  # that the map of the flash has entries for, 4 KiB each; 0 without flash
    # Least scale at which it can be simulated; 1: whole. Page numbers have 32 bits, so drives of
    # more than 16 TiB of flash are simulated as one of up to 2 TB (`engines/scaled.py`).
    least_scale: float
    reclaim_units: int | None  # how many
    rated_cycles: int | None  # of the flash
    overprovision_pct: float | None  # flash beyond the user capacity, of that
    interface: str  # "SATA 6Gb/s"
    nand_type: str | None  # "TLC"
    rpm: int | None  # of a hard disk
    streams: int  # that it can open
    # By NVMe power state, where the file describes some: dies that may be active at once, and the
    # most power that the drive draws by its model, in watts.
    power_states: tuple[tuple[int, float], ...]
    data_placement_interface: str  # "none", "nvme-streams", "scsi-streams", "nvme-fdp"
    # The interface's return parameters, VPD fields or FDP configuration; empty without one.
    data_placement_reports: Mapping[str, Any]
    write_cache: bool  # on after power-up
    power_loss_protection: bool  # capacitors
    # The shortest and the longest time from power-up after a power cut until it takes commands;
    # None where power cuts are not modelled.
    rebuild_ns: tuple[int, int] | None
    rated_tbw_bytes: int | None  # that the vendor warrants
    device_hash: str
    path: str  # of the file
    values: tuple[DeviceValue, ...]  # all, in the order of the file

    @property
    def without_flash(self) -> str | None:
        """Kind of a drive without flash, as "a hard disk"; None for drives with flash."""
        return {"ssd": None, "disk": A_HARD_DISK, "scm": AN_SCM_DRIVE}[self.kind]

    def flash_bytes(self, what_for: str) -> int:
        """Return the raw bytes of the flash.

        Raises:
            ConfigError: The drive has no flash, which `what_for` needs.
        """
        if self.raw_bytes is None:
            hint = "`writecliff device list` lists drives with flash"
            message = f"{self.name} is {self.without_flash}; {what_for} requires flash"
            raise ConfigError(message, hint=hint)
        return self.raw_bytes

    def has(self, key: str) -> bool:
        """Return True if the device file has a value for the dotted `key`."""
        return any(value.key == key for value in self.values)


def preset_names() -> list[str]:
    """Return the names of all drives of the catalogue, sorted."""
    return sorted([path.stem for path in FOLDER.glob("*.toml")] + list(variants()))


def is_real_drive(name: str) -> bool:
    """Return True for the path of a block device; device files may be in /dev/shm, for example."""
    return name.startswith("/dev/") and not name.endswith(".toml")


def drives_of_today() -> list[str]:
    """Return the names of drives of families of 2020 and later, sorted."""
    return sorted(name for name, variant in variants().items() if variant.family.stem in TODAY)


def read_device_file(name_or_path: str) -> tuple[str, str]:
    """Return (text, file name for messages) of a preset or of a user's file.

    Raises:
        ConfigError: The file or preset does not exist; the hint has the most similar preset.
    """
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        path = Path(name_or_path)
        if not path.exists():
            raise ConfigError(f"the device file {path} does not exist")
        return read_text(path), printable(str(path))
    if name_or_path in variants():
        return variant_text(variants()[name_or_path]), f"{name_or_path}.toml"
    path = FOLDER / f"{name_or_path}.toml"
    if name_or_path and path.is_file():
        return read_text(path), path.name
    if (text := derived_text(name_or_path)) is not None:
        return text, f"{name_or_path}.toml"
    raise ConfigError.unknown("simulated drive", name_or_path, preset_names())


@lru_cache(maxsize=64)
def open_device(text: str, file_name: str) -> _native.Device:
    """Parse and check the text of a device file.

    Raises:
        ConfigError: The file is invalid; the message has file and line.
    """
    with as_user_errors():
        return _native.Device(text, file_name)


def describe_device(text: str, file_name: str) -> DeviceDescription:
    """Describe the drive of a device file's text.

    Raises:
        ConfigError: The file is invalid; the message has file and line.
    """
    return describe(open_device(text, file_name))


@lru_cache(maxsize=64)
def describe(device: _native.Device) -> DeviceDescription:
    """Describe the drive of a parsed device file."""
    raw = dict(device.describe())
    rows = raw.pop("rows")
    raw["data_placement_reports"] = raw["data_placement_reports"] or {}
    spare, rebuild = raw.pop("overprovisioning"), raw.pop("rebuild_ns")
    raw_states = raw.pop("power_states")
    digest = hashlib.sha256(raw.pop("canonical").encode()).hexdigest()
    return DeviceDescription(
        **raw,
        power_states=tuple(raw_states),
        rebuild_ns=None if rebuild is None else tuple(rebuild),
        overprovision_pct=None if spare is None else round(100 * spare, 2),
        device_hash=digest,
        path=device.file_name,
        values=tuple(DeviceValue(*row) for row in rows),
    )


def show_device(name_or_path: str) -> DeviceDescription:
    """Describe a preset or a device file.

    Raises:
        ConfigError: The file is missing or invalid; the message has file and line.
    """
    return describe_device(*read_device_file(name_or_path))


def list_devices() -> list[DeviceSummary]:
    """Return all presets, by name."""
    columns = [field.name for field in fields(DeviceSummary)]
    shown = (show_device(name) for name in preset_names())
    return [DeviceSummary(*(getattr(device, name) for name in columns)) for device in shown]
