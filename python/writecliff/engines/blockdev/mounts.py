"""Mounts in all mount namespaces, and the disks below the root file system."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from writecliff.engines.blockdev.loops import below
from writecliff.engines.blockdev.topology import (
    DeviceNumber,
    System,
    device_by_number,
    number_at,
    parse_number,
    read_text,
)
from writecliff.errors import TargetError


@dataclass(frozen=True)
class Mount:
    """A mountinfo line, with device number, mount point and source."""

    number: DeviceNumber
    mount_point: str
    source: str


def unescape(text: str) -> str:
    """Replace the octal escapes that mountinfo and swaps use for whitespace in paths."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def _parse_mountinfo(text: str) -> Iterator[Mount]:
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        fields, rest = left.split(), right.split()
        if separator and len(fields) >= 5 and len(rest) >= 2:
            yield Mount(parse_number(fields[2]), unescape(fields[4]), unescape(rest[1]))


def all_mounts(system: System) -> frozenset[Mount]:
    """Return the mounts in every process's mount namespace."""
    mounts: set[Mount] = set()
    namespaces: set[str] = set()
    for process in ["self", *process_ids(system.proc)]:
        directory = system.proc / process
        try:
            namespace = os.readlink(directory / "ns" / "mnt")
        except OSError:
            # If the namespace is unreadable, read the mounts through the process anyway.
            namespace = process
        if namespace in namespaces:
            continue
        text = read_text(directory / "mountinfo")
        if text is not None:
            namespaces.add(namespace)
            mounts.update(_parse_mountinfo(text))
    return frozenset(mounts)


def file_system_type(system: System, number: DeviceNumber) -> str | None:
    """Return the type of the file system that has this device number, or None if not mounted.

    Some file systems, including btrfs, report different device numbers for their files.
    """
    wanted = f"{number[0]}:{number[1]}"
    for line in (read_text(system.proc / "self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        if left.split()[2:3] == [wanted] and right:
            return right.split()[0]
    return None


def process_ids(proc: Path) -> list[str]:
    """Return all process IDs in ascending order, or an empty list if `proc` is unreadable."""
    try:
        return sorted((e.name for e in proc.iterdir() if e.name.isdigit()), key=int)
    except OSError:
        return []


def root_disks(system: System) -> frozenset[DeviceNumber]:
    """Return all devices below the root file systems of init and this process."""
    disks: set[DeviceNumber] = set()
    for process in ("self", "1"):
        text = read_text(system.proc / process / "mountinfo") or ""
        for mount in _parse_mountinfo(text):
            if mount.mount_point != "/":
                continue
            for number in {mount.number, number_at(system, mount.source)} - {None}:
                assert number is not None
                try:
                    disks |= below(system, device_by_number(system, number)).all_numbers
                except TargetError:
                    continue  # overlay and tmpfs file systems have no block device.
    return frozenset(disks)
