"""Finds a drive again that the kernel has named anew.

The kernel numbers drives in the order in which they answer, so that after a restart `/dev/nvme0n1`
may be what was `/dev/nvme1n1`. A run that is resumed then must go on with its own drive.
"""

from __future__ import annotations

import re
from pathlib import Path

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.blockdev.identity import is_nvme, namespace_of
from writecliff.engines.blockdev.topology import (
    BlockDevice,
    System,
    label_of,
    parse_number,
    read_text,
)

# A partition keeps its name: as large as its disk is in no list, it could be taken for that.
_WHOLE_DISK = re.compile(r"nvme\d+n\d+|sd[a-z]+|vd[a-z]+")


def node_now(before: DeviceIdentity, system: System | None = None) -> str:
    """The node of a drive that was identified earlier, by its serial number and size.

    It is `before.target` for a drive that has still that name, and for one that is not found: what
    is opened is checked in any case. Reads sysfs only.
    """
    system = system or System()
    path = Path(before.target)
    if before.serial is None or path.parent != system.dev or not _WHOLE_DISK.fullmatch(path.name):
        return before.target
    disks = _disks(system)
    same = [disk for disk in disks if _is(disk, before)]
    if len(same) != 1 or same[0].name == path.name:
        return before.target
    return str(same[0].node(system))


def _is(disk: BlockDevice, before: DeviceIdentity) -> bool:
    if label_of(disk).serial != before.serial or disk.size_bytes != before.capacity_bytes:
        return False
    return not is_nvme(disk) or before.backing in (None, namespace_of(disk))


def _disks(system: System) -> list[BlockDevice]:
    names = [path.name for path in sorted((system.sys / "block").iterdir())]
    found = []
    for name in filter(_WHOLE_DISK.fullmatch, names):
        directory = (system.sys / "block" / name).resolve()
        number = read_text(directory / "dev")
        if number is not None:
            found.append(BlockDevice(name, parse_number(number), directory, name))
    return found
