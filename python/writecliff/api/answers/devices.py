"""JSON output about drives, the prepared-drive cache and this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from writecliff.api.answers.base import Answer, Item, Object
from writecliff.doctor import Check
from writecliff.engines.base import DeviceIdentity, PowerStates


class ListedDrive(Item, frozen=True):
    """A catalogue drive; flash values are `null` if the drive has no flash."""

    name: str  # Drive name, as used in `sim:NAME`
    description: str  # One-line drive description
    capacity_bytes: int  # User capacity
    interface: str  # Host interface type and speed
    nand_type: str | None  # Flash type
    overprovision_pct: float | None  # Spare flash, as a percentage of the user capacity
    least_scale: float  # Smallest usable scale-down factor; 1 if the whole drive fits


class DriveList(Answer, frozen=True, tag="writecliff/device-list/1"):
    """The catalogue of simulated drives."""

    commands = "device list"

    devices: Sequence[ListedDrive]  # Drives in the catalogue


class PowerLimit(Item, frozen=True):
    """A power state of a simulated drive."""

    max_active_dies: int  # Maximum number of concurrently active dies
    watts_max: float  # Maximum power (W) according to the drive's power model


class SourcedValue(Item, frozen=True):
    """A value in a device file, with its source."""

    key: str  # Key in the device file
    value: str  # Parameter value, as text
    source: str  # Source of the value, or the reasoning behind it
    line: int | None  # Line number in the device file


class SimulatedDrive(Answer, frozen=True, tag="writecliff/device/1"):
    """A simulated drive."""

    commands = "device show NAME"

    name: str  # Drive name, as used in `sim:NAME`
    kind: Literal["ssd", "disk", "scm"]  # Drive type
    description: str  # One-line drive description
    vendor: str  # Vendor name shown in reports
    model: str  # Model name shown in reports
    firmware: str  # Firmware version shown in reports
    capacity_bytes: int  # User capacity
    raw_bytes: int | None  # Raw flash capacity, in bytes
    mapped_bytes: int  # Capacity covered by the mapping table, in bytes
    least_scale: float  # Smallest usable scale-down factor; 1 if the whole drive fits
    reclaim_units: int | None  # Number of reclaim units
    rated_cycles: int | None  # Rated program/erase cycles of the flash
    overprovision_pct: float | None  # Spare flash, as a percentage of the user capacity
    interface: str  # `"SATA 6Gb/s"`, ..
    nand_type: str | None  # `"TLC"`, ..
    rpm: int | None  # Rotational speed of a hard disk, in revolutions per minute
    streams: int  # Number of streams that the drive can open
    # Data placement interface
    data_placement_interface: Literal["none", "nvme-streams", "scsi-streams", "nvme-fdp"]
    # Initial status reports of the data placement interface
    data_placement_reports: Mapping[str, Any]
    write_cache: bool  # `true` if the write cache is enabled at power-up
    power_loss_protection: bool  # `true` if the drive has power-loss capacitors
    # Power states, starting with state 0; empty if the only state has no limit on active dies
    power_states: Sequence[PowerLimit]
    # Shortest and longest time from power-up after a power cut until the drive accepts commands,
    # according to `[recovery]`; `null` if not modelled
    rebuild_ns: Sequence[int] | None
    rated_tbw_bytes: int | None  # Rated write volume (TBW) from the data sheet
    device_hash: str  # Hash of all values that affect the drive's behaviour
    path: str  # Path of the device file
    values: Sequence[SourcedValue]  # Values with their sources, in file order


class Hint(Item, frozen=True):
    """An attempt to set a write hint."""

    call: str  # Name of the system call
    hint: str  # Name of the write hint
    refused: str | None  # Error that the call returned; `null` if the kernel accepted the hint


class ProbedDrive(Answer, frozen=True, tag="writecliff/device-probe/1"):
    """Write hints and streams that the kernel and a real drive accept."""

    commands = "device probe"

    path: str  # Path as given
    disk: str | None  # Disk name
    kernel: str  # Kernel release
    hints: Sequence[Hint]  # Attempts
    max_write_streams: int | None  # Maximum number of write streams of the block queue
    # Write stream granularity of the block queue, in bytes
    write_stream_granularity_bytes: int | None
    fdp_handles: Sequence[Any] | None  # Placement handles
    streams: Object | None  # Stream counts of the NVMe Streams directive
    # Permanent streams of a SCSI drive: `reduced_control`, `lifetimes`
    permanent_streams: Object | None
    notes: Sequence[str]  # Remarks
    verdict: Sequence[str]  # Findings as full sentences


class RealDrive(Answer, frozen=True, tag="writecliff/drive/1"):
    """A real drive."""

    commands = "device show /dev/NAME"

    device: DeviceIdentity  # Drive identity
    health: Object | None  # Health data reported by the drive
    power: PowerStates | None  # Power states of an NVMe drive
    data_placement: Object  # Write hints and streams, as in `device probe`


class SheetRow(Item, frozen=True):
    """A row of a data sheet."""

    group: str  # Name of the group that contains the row
    name: str  # Row name
    value: str  # Value, including its unit
    source: str  # Source of the value


class DataSheet(Answer, frozen=True, tag="writecliff/data-sheet/1"):
    """A simulated drive presented as a data sheet."""

    commands = "device show NAME --sheet"

    name: str  # Drive name
    description: str  # One-line drive description
    device_hash: str  # Hash of all values that affect the drive's behaviour
    scale: float  # Factor by which the measured drive was scaled down; 1 if it was not scaled
    rows: Sequence[SheetRow]  # Rows of the data sheet
    # Names of rows that other sheets have but that have no value for this drive
    not_stated: Sequence[str]
    page: Path | None  # HTML file


class DeviceFile(Answer, frozen=True, tag="writecliff/device-file/1"):
    """A device file."""

    commands = "device export"

    name: str  # Drive name
    output: Path | None  # Output file
    text: str  # Contents of the device file


class SheetFigure(Item, frozen=True):
    """A data sheet figure and the corresponding figure of the derived drive."""

    load: str  # Load name
    metric: str  # Figure name
    sheet: float  # Value on the data sheet
    simulated: float | None  # Simulated value
    unit: str  # Unit of the values
    error_pct: float | None  # Relative error of the simulated value, in percent


class NewDrive(Answer, frozen=True, tag="writecliff/device-new/1"):
    """A simulated drive derived from a data sheet."""

    commands = "device new"

    device_file: Path  # Path of the device file
    figures_file: Path  # Path of a file with the data sheet figures, for `fit` and `reproduce`
    fit_file: Path  # Specification for `fit`
    figures: Sequence[SheetFigure]  # Data sheet figures; empty with `--no-check`


class CachedDrive(Item, frozen=True):
    """A prepared drive."""

    file: str  # File name
    drive: str  # Name of the prepared drive
    steps: Sequence[str]  # Preparation steps
    size_bytes: int  # File size
    used: str  # Time of the last use (ISO 8601)
    current: bool  # `true` if the current build of the simulator prepared the state


class CacheList(Answer, frozen=True, tag="writecliff/cache-list/1"):
    """The cache of prepared drives."""

    commands = "device cache list"
    more = "cache-of-prepared-drives"

    folder: Path  # Cache folder
    limit_bytes: int  # `WRITECLIFF_CACHE_LIMIT`, or 20 GB
    size_bytes: int  # Total size of the prepared states, in bytes
    states: Sequence[CachedDrive]  # Prepared states, least recently used first


class CachePruned(Answer, frozen=True, tag="writecliff/cache-prune/1"):
    """Prepared states that were removed."""

    commands = "device cache prune"
    more = "cache-of-prepared-drives"

    folder: Path  # Cache folder
    limit_bytes: int  # `WRITECLIFF_CACHE_LIMIT`, or 20 GB
    size_bytes: int  # Total size of the remaining states, in bytes
    removed: Sequence[CachedDrive]  # Removed states


class Checks(Answer, frozen=True, tag="writecliff/doctor/1"):
    """Features of writecliff that this machine supports."""

    commands = "doctor"

    # Each check: Checks, each with `name`, `purpose` (feature that requires it), `state` (`ok`,
    # `limited` or `missing`), `found`, and `remedy` (empty if no action is required)
    checks: Sequence[Check]


class Completion(Answer, frozen=True, tag="writecliff/completion/1"):
    """A shell completion script."""

    commands = "completion"

    shell: str  # Shell name
    script: str  # Completion script for the shell
