"""Finds out whether fio can steer writes to streams or placement handles of a drive.

There are two ways. fio 3.38 and later places writes with its io_uring_cmd engine on the NVMe
generic device, on drives with flexible data placement or an enabled Streams directive. Where the
kernel's queue has write streams (Linux 6.16), it takes the write hint of a block device for the
number of the stream; fio sets it since 3.37. If neither is possible, the reason is handed back. The
stream of a single I/O, which io_uring has had since Linux 6.16, is in no fio up to 3.42.
"""

from __future__ import annotations

from writecliff.engines.blockdev.data_placement_probe import ask_nvme
from writecliff.engines.blockdev.identity import is_nvme
from writecliff.engines.blockdev.nvme.topology import generic_device
from writecliff.engines.blockdev.topology import BlockDevice, System, read_int, whole_disk
from writecliff.engines.fio.capability import HINT_SINCE, PLIDS_SINCE, DataPlacement, Fio, Version

HINT_STREAMS = 5  # RWH_WRITE_LIFE_NONE to _EXTREME are streams 1 to 5


def find_data_placement(system: System, fio: Fio, disk: BlockDevice | None) -> DataPlacement | str:
    """How to steer writes on this drive; a string says why it is not possible."""
    if disk is None:
        return "a file has no streams"
    found = _passthrough(system, fio, disk)
    if isinstance(found, DataPlacement):
        return found
    streams = read_int(whole_disk(system, disk).directory / "queue/max_write_streams") or 0
    if not streams:
        return found
    if fio.version < HINT_SINCE:
        return f"{fio.version_text} cannot set hints; {_text(HINT_SINCE)} or later can"
    return DataPlacement("hint", "", min(streams, HINT_STREAMS) + 1)


def _passthrough(system: System, fio: Fio, disk: BlockDevice) -> DataPlacement | str:
    if not is_nvme(disk):
        return f"{disk.name} is not an NVMe drive"
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
    streams = found.streams or {}
    available = streams.get("nsa") or streams.get("nssa", 0)
    if available:
        return DataPlacement("streams", str(generic), available + 1)
    return "; ".join(found.notes) or "the drive has neither flexible data placement nor streams"


def _text(version: Version) -> str:
    return ".".join(map(str, version))
