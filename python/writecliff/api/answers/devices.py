"""Answers about drives, the cache of prepared drives, and this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from writecliff.api.answers.base import Answer, Item, Object
from writecliff.doctor import Check
from writecliff.engines.base import DeviceIdentity, PowerStates


class ListedDrive(Item, frozen=True):
    """A drive of the catalogue; `null`: a drive without flash."""

    name: str  # Name after `sim:`
    description: str  # The drive in a line
    capacity_bytes: int  # User capacity
    interface: str  # Interface and its speed
    nand_type: str | None  # Type of flash
    overprovision_pct: float | None  # Flash beyond the user capacity, in percent of that
    least_scale: float  # Least factor by which it must be scaled down; 1: whole


class DriveList(Answer, frozen=True, tag="writecliff/device-list/1"):
    """The catalogue of simulated drives."""

    commands = "device list"

    devices: Sequence[ListedDrive]  # The drives


class PowerLimit(Item, frozen=True):
    """A power state of a simulated drive."""

    max_active_dies: int  # Dies that may be active at once
    watts_max: float  # Largest power by the drive's model


class SourcedValue(Item, frozen=True):
    """A value of a device file."""

    key: str  # Key of the file
    value: str  # The value, as text
    source: str  # Where it is from, or the reasoning behind it
    line: int | None  # Line of the file


class SimulatedDrive(Answer, frozen=True, tag="writecliff/device/1"):
    """A simulated drive."""

    commands = "device show NAME"

    name: str  # Name after `sim:`
    kind: Literal["ssd", "disk", "scm"]  # Kind of drive
    description: str  # The drive in a line
    vendor: str  # Vendor in reports
    model: str  # Model in reports
    firmware: str  # Firmware in reports
    capacity_bytes: int  # User capacity
    raw_bytes: int | None  # Size of the flash
    mapped_bytes: int  # Capacity that the map of the flash has entries for
    least_scale: float  # Least factor by which it must be scaled down; 1: whole
    reclaim_units: int | None  # Number of reclaim units
    rated_cycles: int | None  # Rated erase cycles of the flash
    overprovision_pct: float | None  # Flash beyond the user capacity, in percent of that
    interface: str  # `"SATA 6Gb/s"`, ..
    nand_type: str | None  # `"TLC"`, ..
    rpm: int | None  # Rotational speed of a hard disk
    streams: int  # Streams that it can open
    # Its interface for data placement
    data_placement_interface: Literal["none", "nvme-streams", "scsi-streams", "nvme-fdp"]
    data_placement_reports: Mapping[str, Any]  # Reports of that interface on a new drive
    write_cache: bool  # The write cache is on after power-up
    power_loss_protection: bool  # It has capacitors
    # Power states from 0 on; empty: one, without a limit on active dies
    power_states: Sequence[PowerLimit]
    # Shortest and longest time from power-up after a power cut until it takes commands, by
    # `[recovery]`; `null`: not modelled
    rebuild_ns: Sequence[int] | None
    rated_tbw_bytes: int | None  # Bytes that the data sheet warrants
    device_hash: str  # Hash of all values that change behaviour
    path: str  # The device file
    values: Sequence[SourcedValue]  # Every value, in the order of the file


class Hint(Item, frozen=True):
    """An attempt to set a write hint."""

    call: str  # The system call
    hint: str  # The hint
    refused: str | None  # The error


class ProbedDrive(Answer, frozen=True, tag="writecliff/device-probe/1"):
    """Write hints and streams that the kernel and a real drive accept."""

    commands = "device probe"

    path: str  # The path, as given
    disk: str | None  # Name of the disk
    kernel: str  # Release of the kernel
    hints: Sequence[Hint]  # The attempts
    max_write_streams: int | None  # Write streams of the queue
    write_stream_granularity_bytes: int | None  # Granularity of the queue's write streams
    fdp_handles: Sequence[Any] | None  # Placement handles
    streams: Object | None  # Streams of the Streams directive
    # Permanent streams of a SCSI drive: `reduced_control`, `lifetimes`
    permanent_streams: Object | None
    notes: Sequence[str]  # Sentences
    verdict: Sequence[str]  # Sentences


class RealDrive(Answer, frozen=True, tag="writecliff/drive/1"):
    """A real drive."""

    commands = "device show /dev/NAME"

    device: DeviceIdentity  # The drive
    health: Object | None  # Condition that the drive reports
    power: PowerStates | None  # Power states of an NVMe drive
    data_placement: Object  # Write hints and streams, as `device probe` prints them


class SheetRow(Item, frozen=True):
    """A row of a data sheet."""

    group: str  # Group of the row
    name: str  # Name of the row
    value: str  # The value with its unit
    source: str  # Where it is from


class DataSheet(Answer, frozen=True, tag="writecliff/data-sheet/1"):
    """A simulated drive as a data sheet."""

    commands = "device show NAME --sheet"

    name: str  # Name of the drive
    description: str  # The drive in a line
    device_hash: str  # Hash of all values that change behaviour
    scale: float  # Factor by which the drive was scaled down for the measurements; 1: whole
    rows: Sequence[SheetRow]  # The rows
    not_stated: Sequence[str]  # Rows of other sheets that nobody states for this drive
    page: Path | None  # The HTML file


class DeviceFile(Answer, frozen=True, tag="writecliff/device-file/1"):
    """A device file."""

    commands = "device export"

    name: str  # Name of the drive
    output: Path | None  # The file that was written
    text: str  # Text of the device file


class SheetFigure(Item, frozen=True):
    """A figure of a data sheet beside that of the drive made from it."""

    load: str  # The load
    metric: str  # The figure
    sheet: float  # The sheet's value
    simulated: float | None  # The drive's value
    unit: str  # Unit of the values
    error_pct: float | None  # Error of the drive


class NewDrive(Answer, frozen=True, tag="writecliff/device-new/1"):
    """A simulated drive made from a data sheet."""

    commands = "device new"

    device_file: Path  # The drive
    figures_file: Path  # Figures of the sheet, for `fit` and `reproduce`
    fit_file: Path  # A specification for `fit`
    figures: Sequence[SheetFigure]  # Figures of the sheet; empty with `--no-check`


class CachedDrive(Item, frozen=True):
    """A prepared drive."""

    file: str  # Name of the file
    drive: str  # The drive
    steps: Sequence[str]  # Preparation
    size_bytes: int  # Size of the file
    used: str  # Last use (ISO 8601)
    current: bool  # This build of the simulator made it


class CacheList(Answer, frozen=True, tag="writecliff/cache-list/1"):
    """The cache of prepared drives."""

    commands = "device cache list"
    more = "cache-of-prepared-drives"

    folder: Path  # Folder of the cache
    limit_bytes: int  # `WRITECLIFF_CACHE_LIMIT`, or 20 GB
    size_bytes: int  # Size of all states
    states: Sequence[CachedDrive]  # The states, the least recently used first


class CachePruned(Answer, frozen=True, tag="writecliff/cache-prune/1"):
    """Prepared drives that were removed."""

    commands = "device cache prune"
    more = "cache-of-prepared-drives"

    folder: Path  # Folder of the cache
    limit_bytes: int  # `WRITECLIFF_CACHE_LIMIT`, or 20 GB
    size_bytes: int  # Size of the states that are left
    removed: Sequence[CachedDrive]  # The states that were removed


class Checks(Answer, frozen=True, tag="writecliff/doctor/1"):
    """What this machine can do."""

    commands = "doctor"

    # Each check: `name`, `purpose` (what needs it), `state` (`ok`, `limited` or `missing`),
    # `found`, and `remedy` (empty if there is nothing to do)
    checks: Sequence[Check]


class Completion(Answer, frozen=True, tag="writecliff/completion/1"):
    """Completion of a shell."""

    commands = "completion"

    shell: str  # The shell
    script: str  # Script to put where the shell finds it
