"""Finds out whether fio can steer writes to streams or placement handles of a drive.

There are three ways. fio 3.38 and later places writes with its io_uring_cmd engine on the NVMe
generic device, on drives with flexible data placement or an enabled Streams directive. Where the
kernel's queue has write streams (Linux 6.16), it takes the write hint of a block device for the
number of the stream; the stream of a single I/O, which io_uring has had since then, is in no fio
up to 3.42. Of a SCSI drive with permanent streams, the kernel puts the hint into the group number
of the write (Linux 6.10). If none of them is possible, the reason is handed back.
"""

from __future__ import annotations

import os
import re

from writecliff.engines.blockdev.data_placement_probe import ask_nvme
from writecliff.engines.blockdev.identity import is_nvme, is_scsi
from writecliff.engines.blockdev.nvme.streams import usable_streams
from writecliff.engines.blockdev.nvme.topology import generic_device
from writecliff.engines.blockdev.scsi_streams import KERNEL_SINCE, read_streams
from writecliff.engines.blockdev.topology import BlockDevice, System, read_int, whole_disk
from writecliff.engines.fio.capability import PLIDS_SINCE, DataPlacement, Fio, Version

HINT_STREAMS = 5  # RWH_WRITE_LIFE_NONE to _EXTREME are hints 1 to 5


def find_data_placement(system: System, fio: Fio, disk: BlockDevice | None) -> DataPlacement | str:
    """How to steer writes on this drive; a string says why it is not possible."""
    if disk is None:
        return "a file has no streams"
    whole = whole_disk(system, disk)
    found = _passthrough(system, fio, disk) if is_nvme(whole) else ""
    if isinstance(found, DataPlacement):
        return found
    streams = read_int(whole.directory / "queue/max_write_streams") or 0
    if streams:
        return _by_hints((0, *range(2, min(streams, HINT_STREAMS) + 1)))
    if is_scsi(whole):
        return _scsi(system, whole)
    return found or f"{disk.name} is neither an NVMe nor a SCSI drive"


def _scsi(system: System, disk: BlockDevice) -> DataPlacement | str:
    """Streams n = 1 to 5 are the hints of Linux, which become group numbers n."""
    found = read_streams(system.scsi, disk.node(system))
    if not found.steered:
        return f"{disk.name} has no permanent streams that writes could be given to"
    release = os.uname().release
    if _version(release) < KERNEL_SINCE:
        return f"Linux {release} gives SCSI writes no group number; {_text(KERNEL_SINCE)} does"
    return _by_hints(tuple(range(min(found.steered, HINT_STREAMS) + 1)))


def _by_hints(hints: tuple[int, ...]) -> DataPlacement:
    """Streams by their hints. Write stream n of the kernel's is placement handle n - 1 of an NVMe
    drive (`nvme_setup_rw`, Linux 6.16), and handle 0 takes what names no stream: so stream 1, which
    passthrough gives to handle 1, is hint 2."""
    return DataPlacement("hint", "", len(hints), hints=hints)


def _version(release: str) -> Version:
    major, minor = (int(word) for word in re.findall(r"\d+", release)[:2])
    return major, minor


def _passthrough(system: System, fio: Fio, disk: BlockDevice) -> DataPlacement | str:
    if fio.version < PLIDS_SINCE:
        return f"{fio.version_text} cannot place writes; {_text(PLIDS_SINCE)} or later can"
    if fio.ioengine != "io_uring":
        return f"passthrough needs io_uring, which {fio.version_text} or this kernel does not allow"
    generic = generic_device(system, disk)
    if generic is None:
        return f"the kernel offers no generic device for {disk.name}"
    found = ask_nvme(system, disk)
    if found.fdp_handles:
        return DataPlacement("fdp", str(generic), found.fdp_handles)
    available = usable_streams(found.streams) if found.streams else 0
    if available:
        return DataPlacement("streams", str(generic), available + 1)
    return "; ".join(found.notes) or "the drive has neither flexible data placement nor streams"


def _text(version: Version) -> str:
    return ".".join(map(str, version))
