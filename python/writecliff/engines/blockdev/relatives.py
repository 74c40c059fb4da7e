"""Other devices that map a disk's bytes, such as second paths and device mapper devices.

Without multipath, a drive that has two ports or is on two networks appears to the kernel as two
disks. Device mapper claims a lower device once for all device mapper devices, so two of these may
map the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from writecliff.engines.blockdev.topology import (
    BlockDevice,
    DeviceNumber,
    System,
    device_by_number,
    parse_number,
    read_text,
)

_TABLE_LINE = re.compile(r"^(?P<name>.+): \d+ (?P<length>\d+) (?P<kind>\S+) ?(?P<rest>.*)")
_DEVICE_OFFSET = re.compile(r"(\d+:\d+) (\d+)")
# Device-mapper targets whose table lists each device and its first used sector.
_WITH_OFFSET = frozenset({"linear", "striped", "crypt", "delay", "flakey", "dust"})


def other_paths(system: System, disks: Sequence[BlockDevice]) -> tuple[BlockDevice, ...]:
    """Return other kernel disks that are the same physical drives as `disks`.

    Disks of the same physical drive have the same size and the same world wide name, which the
    drive reports.
    """
    mine = {disk.number for disk in disks}
    wanted = {(name, disk.size_bytes) for disk in disks if (name := _world_wide_name(disk))}
    others = []
    for directory in sorted((system.sys / "block").iterdir()) if wanted else ():
        # A multipath drive's hidden path has no device number.
        number = read_text(directory / "dev")
        if number is None or parse_number(number) in mine:
            continue
        disk = device_by_number(system, parse_number(number), directory.name)
        if (_world_wide_name(disk), disk.size_bytes) in wanted:
            others.append(disk)
    return tuple(others)


def _world_wide_name(disk: BlockDevice) -> str | None:
    return read_text(disk.directory / "wwid") or read_text(disk.directory / "device/wwid")


@dataclass(frozen=True)
class _Extent:
    """Lower-device sectors that a dm device maps, where an `end` of None is the device's end."""

    device: DeviceNumber
    start: int
    end: int | None

    def overlaps(self, other: _Extent) -> bool:
        return (
            self.device == other.device
            and (other.end is None or self.start < other.end)
            and (self.end is None or other.start < self.end)
        )


def mapped_twice(
    system: System, stack: Sequence[BlockDevice]
) -> Iterator[tuple[BlockDevice, BlockDevice]]:
    """Yield pairs of a lower device and a dm device outside the stack that maps the same bytes.

    `stack` consists of a target and every device below the target.
    """
    members = {device.number for device in stack}
    ours = [device for device in stack if dm_name(device)]
    tables: Mapping[str, list[_Extent] | None] | None = None
    for lower in stack:
        if not any(lower.name in device.slaves for device in ours):
            continue
        for name in lower.holders:
            number = read_text(lower.directory / "holders" / name / "dev")
            if number is None or parse_number(number) in members:
                continue
            other = device_by_number(system, parse_number(number), name)
            if dm_name(other) is None:
                continue
            tables = _tables(system) if tables is None else tables
            mine = [device for device in ours if lower.name in device.slaves]
            if any(_share(tables, device, other, lower.number) for device in mine):
                yield lower, other


def dm_name(device: BlockDevice) -> str | None:
    """Return a device mapper device's name, or None for other devices."""
    return read_text(device.directory / "dm/name")


def _share(
    tables: Mapping[str, list[_Extent] | None],
    this: BlockDevice,
    other: BlockDevice,
    lower: DeviceNumber,
) -> bool:
    """Return True if two dm devices map, or may map, overlapping sectors of `lower`."""
    first, second = (tables.get(dm_name(device) or "", None) for device in (this, other))
    if first is None or second is None:
        return True
    mine = [extent for extent in first if extent.device == lower]
    theirs = [extent for extent in second if extent.device == lower]
    return any(extent.overlaps(more) for extent in mine for more in theirs)


def _tables(system: System) -> dict[str, list[_Extent] | None]:
    """Return each dm device's extents by name, or None if the table does not list them."""
    tables: dict[str, list[_Extent] | None] = {}
    for line in system.run(["dmsetup", "table"]).stdout.splitlines():
        match = _TABLE_LINE.match(line)
        if match is None:
            continue
        earlier = tables.setdefault(match["name"], [])
        extents = _extents(match["kind"], int(match["length"]), match["rest"])
        if earlier is not None:
            tables[match["name"]] = None if extents is None else earlier + extents
    return tables


def _extents(kind: str, length: int, rest: str) -> list[_Extent] | None:
    if kind in ("thin", "zero", "error"):
        return []  # Thin volumes do not share pool blocks.
    if kind in _WITH_OFFSET:
        pairs = _DEVICE_OFFSET.findall(rest)
        starts = [(parse_number(number), int(offset)) for number, offset in pairs]
        each = length // len(starts) if kind == "striped" and starts else length
        return [_Extent(device, start, start + each) for device, start in starts]
    numbers = re.findall(r"\b\d+:\d+\b", rest)
    return [_Extent(parse_number(number), 0, None) for number in numbers] or None
