"""Answers about drives, the cache of prepared drives, and this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from writecliff.api.answers.base import Answer, Item, Object
from writecliff.doctor import Check
from writecliff.engines.base import DeviceIdentity, PowerStates


class ListedDrive(Item, frozen=True):
    """A drive of the catalogue; values of flash are `null` if the drive has none."""

    name: str  # Name, used as `sim:NAME`
    description: str  # One-line description
    capacity_bytes: int  # User capacity
    interface: str  # Interface and its speed
    nand_type: str | None  # Type of the flash
    overprovision_pct: float | None  # Spare flash, in percent of the user capacity
    least_scale: float  # Smallest factor by which it must be scaled down; 1: not scaled


class DriveList(Answer, frozen=True, tag="writecliff/device-list/1"):
    """The catalogue of simulated drives."""

    commands = "device list"

    devices: Sequence[ListedDrive]  # Drives of the catalogue


class PowerLimit(Item, frozen=True):
    """A power state of a simulated drive."""

    max_active_dies: int  # Maximum number of active dies
    watts_max: float  # Maximum power by the drive's model (W)


class SourcedValue(Item, frozen=True):
    """A value of a device file, with its source."""

    key: str  # Key of the file
    value: str  # Value as text
    source: str  # Source of the value, or the reasoning behind it
    line: int | None  # Line number in the file


class SimulatedDrive(Answer, frozen=True, tag="writecliff/device/1"):
    """A simulated drive."""

    commands = "device show NAME"

    name: str  # Name, used as `sim:NAME`
    kind: Literal["ssd", "disk", "scm"]  # Kind of drive
    description: str  # One-line description
    vendor: str  # Vendor in reports
    model: str  # Model in reports
    firmware: str  # Firmware in reports
    capacity_bytes: int  # User capacity
    raw_bytes: int | None  # Size of the flash
    mapped_bytes: int  # Capacity with entries in the mapping table
    least_scale: float  # Smallest factor by which it must be scaled down; 1: not scaled
    reclaim_units: int | None  # Number of reclaim units
    rated_cycles: int | None  # Rated erase cycles of the flash
    overprovision_pct: float | None  # Spare flash, in percent of the user capacity
    interface: str  # `"SATA 6Gb/s"`, ..
    nand_type: str | None  # `"TLC"`, ..
    rpm: int | None  # Rotational speed of a hard disk
    streams: int  # Streams that the drive can open
    # Data placement interface
    data_placement_interface: Literal["none", "nvme-streams", "scsi-streams", "nvme-fdp"]
    data_placement_reports: Mapping[str, Any]  # Reports of that interface on a new drive
    write_cache: bool  # `true` if the write cache is on after power-up
    power_loss_protection: bool  # `true` if the drive has capacitors
    # Power states from 0; empty: a single state without a limit on active dies
    power_states: Sequence[PowerLimit]
    # Shortest and longest time from power-up after a power cut until the drive accepts commands,
    # by `[recovery]`; `null`: not modelled
    rebuild_ns: Sequence[int] | None
    rated_tbw_bytes: int | None  # Rated writes (TBW) of the data sheet
    device_hash: str  # Hash of all values that change behaviour
    path: str  # Path of the device file
    values: Sequence[SourcedValue]  # All values, in the order of the file


class Hint(Item, frozen=True):
    """An attempt to set a write hint."""

    call: str  # System call
    hint: str  # Name of the hint
    refused: str | None  # Error of the call; `null`: accepted


class ProbedDrive(Answer, frozen=True, tag="writecliff/device-probe/1"):
    """Write hints and streams that the kernel and a real drive accept."""

    commands = "device probe"

    path: str  # Path as given
    disk: str | None  # Name of the disk
    kernel: str  # Release of the kernel
    hints: Sequence[Hint]  # Attempts
    max_write_streams: int | None  # Write streams of the queue
    write_stream_granularity_bytes: int | None  # Granularity of the queue's write streams
    fdp_handles: Sequence[Any] | None  # Placement handles
    streams: Object | None  # Streams of the Streams directive
    # Permanent streams of a SCSI drive: `reduced_control`, `lifetimes`
    permanent_streams: Object | None
    notes: Sequence[str]  # Remarks
    verdict: Sequence[str]  # Result in sentences


class RealDrive(Answer, frozen=True, tag="writecliff/drive/1"):
    """A real drive."""

    commands = "device show /dev/NAME"

    device: DeviceIdentity  # Identity of the drive
    health: Object | None  # Health that the drive reports
    power: PowerStates | None  # Power states of an NVMe drive
    data_placement: Object  # Write hints and streams, as in `device probe`


class SheetRow(Item, frozen=True):
    """A row of a data sheet."""

    group: str  # Group of the row
    name: str  # Name of the row
    value: str  # Value with its unit
    source: str  # Source of the value


class DataSheet(Answer, frozen=True, tag="writecliff/data-sheet/1"):
    """A simulated drive as a data sheet."""

    commands = "device show NAME --sheet"

    name: str  # Name of the drive
    description: str  # One-line description
    device_hash: str  # Hash of all values that change behaviour
    scale: float  # Factor by which the measured drive was scaled down; 1: not scaled
    rows: Sequence[SheetRow]  # Rows of the sheet
    not_stated: Sequence[str]  # Rows of other sheets without a value for this drive
    page: Path | None  # HTML file


class DeviceFile(Answer, frozen=True, tag="writecliff/device-file/1"):
    """A device file."""

    commands = "device export"

    name: str  # Name of the drive
    output: Path | None  # File that was written
    text: str  # Text of the device file


class SheetFigure(Item, frozen=True):
    """A figure of a data sheet and of the drive made from it."""

    load: str  # Name of the load
    metric: str  # Name of the figure
    sheet: float  # Value of the sheet
    simulated: float | None  # Value of the simulated drive
    unit: str  # Unit of the values
    error_pct: float | None  # Error of the simulated drive


class NewDrive(Answer, frozen=True, tag="writecliff/device-new/1"):
    """A simulated drive made from a data sheet."""

    commands = "device new"

    device_file: Path  # Device file of the drive
    figures_file: Path  # Figures of the sheet, for `fit` and `reproduce`
    fit_file: Path  # Specification for `fit`
    figures: Sequence[SheetFigure]  # Figures of the sheet; empty with `--no-check`


class CachedDrive(Item, frozen=True):
    """A prepared drive."""

    file: str  # Name of the file
    drive: str  # Name of the prepared drive
    steps: Sequence[str]  # Steps of the preparation
    size_bytes: int  # Size of the file
    used: str  # Last use (ISO 8601)
    current: bool  # `true` if this build of the simulator prepared it


class CacheList(Answer, frozen=True, tag="writecliff/cache-list/1"):
    """The cache of prepared drives."""

    commands = "device cache list"
    more = "cache-of-prepared-drives"

    folder: Path  # Folder of the cache
    limit_bytes: int  # `WRITECLIFF_CACHE_LIMIT`, or 20 GB
    size_bytes: int  # Size of all prepared states
    states: Sequence[CachedDrive]  # Prepared states, least recently used first


class CachePruned(Answer, frozen=True, tag="writecliff/cache-prune/1"):
    """Prepared drives that were removed."""

    commands = "device cache prune"
    more = "cache-of-prepared-drives"

    folder: Path  # Folder of the cache
    limit_bytes: int  # `WRITECLIFF_CACHE_LIMIT`, or 20 GB
    size_bytes: int  # Size of the remaining states
    removed: Sequence[CachedDrive]  # Removed states


class Checks(Answer, frozen=True, tag="writecliff/doctor/1"):
    """Features of writecliff that this machine supports."""

    commands = "doctor"

    # Each check: `name`, `purpose` (feature that needs it), `state` (`ok`, `limited` or `missing`),
    # `found`, and `remedy` (empty if there is nothing to do)
    checks: Sequence[Check]


class Completion(Answer, frozen=True, tag="writecliff/completion/1"):
    """Completion of a shell."""

    commands = "completion"

    shell: str  # Name of the shell
    script: str  # Completion script for the shell
