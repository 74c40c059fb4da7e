"""The catalogue of simulated drives, and users' device files.

A preset is either a TOML file in this folder, named after its drive, or a variant in a family
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
# Families of drives from 2020 or later that have at least three figures in `published/modern.csv`
# or `published/ssd_iq/sheets.csv` to derive the drives from.
TODAY = frozenset((
    "pm9a3", "pm9d3a", "micron-7450", "micron-7500", "micron-9550-max", "micron-7600-max",
    "d7-p5500", "cd8", "cd7", "pm1743", "micron-xtr", "fl6", "d7-p5810", "d5-p5430", "990-pro",
    "sn850x", "t500", "sn770", "990-evo", "nm790", "micron-2400", "p41-plus", "980-pro",
    "nm800-pro", "mp700-elite", "micron-6500-ion", "d5-p5336", "p5800x", "micron-7450-max",
    "pe8110", "d7-p5520", "cm7-r",
))  # fmt: skip

# Families of storage-class memory drives, whose model errors do not apply to flash.
SCM_FAMILIES = frozenset(("p5800x",))


@dataclass(frozen=True)
class DeviceSummary:
    """A line of `writecliff device list`."""

    name: str  # Drive name, which follows `sim:`.
    description: str  # One-line drive description.
    capacity_bytes: int  # User capacity in bytes.
    interface: str  # Host interface, such as "SATA 6Gb/s".
    nand_type: str | None  # NAND type; `None`, like the next field, for drives that have no flash.
    # Flash beyond the user capacity, as a percentage of that capacity.
    overprovision_pct: float | None
    # Smallest scale factor at which the drive can be simulated; 1 for full capacity.
    least_scale: float


@dataclass(frozen=True)
class DeviceValue:
    """A device file value, with its dotted key, text and source."""

    key: str  # Key in the device file, such as "flash.read".
    value: str  # Value as TOML text.
    source: str  # Source of the value, or the reasoning behind it.
    line: int  # Line number in the device file.


@dataclass(frozen=True)
class DeviceDescription:
    """Contents of a device file; `device_hash` covers all values that affect drive behaviour.

    Flash figures are `None` for drives that have no flash.
    """

    name: str  # Drive name, which follows `sim:`.
    kind: Literal["ssd", "disk", "scm"]  # Storage medium: flash, platters or storage-class memory.
    description: str  # One-line drive description.
    vendor: str  # Vendor name shown in reports.
    model: str  # Model name shown in reports.
    firmware: str  # Firmware version shown in reports.
    capacity_bytes: int  # User capacity in bytes.
    raw_bytes: int | None  # Raw flash capacity in bytes; `None` for drives that have no flash.
    # Capacity covered by the flash mapping table, at 4 KiB per entry; 0 without flash.
    mapped_bytes: int
    # Smallest scale factor at which the drive can be simulated; 1 for the whole drive. Page numbers
    # have 32 bits, so the simulator represents a drive with more than 16 TiB of flash by a
    # scaled-down drive of up to 2 TB (`engines/scaled.py`).
    least_scale: float
    reclaim_units: int | None  # Number of reclaim units.
    rated_cycles: int | None  # Rated program/erase cycles of the flash.
    # Flash beyond the user capacity, as a percentage of that capacity.
    overprovision_pct: float | None
    interface: str  # Host interface, such as "SATA 6Gb/s".
    nand_type: str | None  # NAND type, such as "TLC".
    rpm: int | None  # Rotational speed of a hard disk, in revolutions per minute.
    streams: int  # Number of streams that the drive can open.
    # Power states described by the file. For each state: maximum number of active dies, and maximum
    # power in watts according to the drive's power model.
    power_states: tuple[tuple[int, float], ...]
    # Interface: "none", "nvme-streams", "scsi-streams" or "nvme-fdp".
    data_placement_interface: str
    # Stream return parameters, VPD fields or FDP configuration; empty if the drive has no such
    # interface.
    data_placement_reports: Mapping[str, Any]
    write_cache: bool  # `True` if the write cache is enabled at power-up.
    power_loss_protection: bool  # `True` if the drive has power-loss capacitors.
    # Shortest and longest time from power-up after a power cut until the drive accepts commands;
    # `None` if power cuts are not modelled.
    rebuild_ns: tuple[int, int] | None
    rated_tbw_bytes: int | None  # Write volume under warranty, in bytes.
    device_hash: str
    path: str  # Path of the device file.
    values: tuple[DeviceValue, ...]  # Values with their sources, in file order.

    @property
    def without_flash(self) -> str | None:
        """Kind of drive, such as "a hard disk", or `None` for flash drives."""
        return {"ssd": None, "disk": A_HARD_DISK, "scm": AN_SCM_DRIVE}[self.kind]

    def flash_bytes(self, what_for: str) -> int:
        """Return the raw flash capacity in bytes.

        Raises:
            ConfigError: If the drive has no flash, which the operation `what_for` requires.
        """
        if self.raw_bytes is None:
            hint = "list the drives that have flash with `writecliff device list`"
            message = f"{self.name} is {self.without_flash}; {what_for} requires flash"
            raise ConfigError(message, hint=hint)
        return self.raw_bytes

    def has(self, key: str) -> bool:
        """Return `True` if the device file has a value for the dotted `key`."""
        return any(value.key == key for value in self.values)


def preset_names() -> list[str]:
    """Return the sorted names of all drives in the catalogue."""
    return sorted([path.stem for path in FOLDER.glob("*.toml")] + list(variants()))


def is_real_drive(name: str) -> bool:
    """Return `True` for a block device path, but not for device files in /dev/shm."""
    return name.startswith("/dev/") and not name.endswith(".toml")


def drives_of_today() -> list[str]:
    """Return the sorted names of the drives in families from 2020 or later."""
    return sorted(name for name, variant in variants().items() if variant.family.stem in TODAY)


def read_device_file(name_or_path: str) -> tuple[str, str]:
    """Return the text of a preset or user file, and a file name for messages.

    Raises:
        ConfigError: If the file or preset does not exist. The hint names the most similar preset.
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
    raise ConfigError.unknown(
        "simulated drive", name_or_path, preset_names(), otherwise="see `writecliff device list`"
    )


@lru_cache(maxsize=64)
def open_device(text: str, file_name: str) -> _native.Device:
    """Parse and validate the text of a device file.

    Raises:
        ConfigError: If the file is invalid. The message names the file and line.
    """
    with as_user_errors():
        return _native.Device(text, file_name)


def describe_device(text: str, file_name: str) -> DeviceDescription:
    """Describe the drive defined by the text of a device file.

    Raises:
        ConfigError: If the file is invalid; the message names the file and line.
    """
    return describe(open_device(text, file_name))


@lru_cache(maxsize=64)
def describe(device: _native.Device) -> DeviceDescription:
    """Describe the drive defined by a parsed device file."""
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
        ConfigError: If the file is missing or invalid. The message names the file and line.
    """
    return describe_device(*read_device_file(name_or_path))


def list_devices() -> list[DeviceSummary]:
    """Return all presets by name."""
    columns = [field.name for field in fields(DeviceSummary)]
    shown = (show_device(name) for name in preset_names())
    return [DeviceSummary(*(getattr(device, name) for name in columns)) for device in shown]
