"""Finds out whether writes to a drive can be steered to streams or placement handles through fio.

Owns: the conditions. There are two ways. fio 3.38 and later places writes with its io_uring_cmd
engine on the NVMe generic device, on drives with flexible data placement or an enabled Streams
directive. Where the kernel's queue has write streams (Linux 6.16), it takes the write hint of a
block device for the number of the stream; fio sets it since 3.37. If neither is possible, the
reason is handed back.
"""

from __future__ import annotations

import re
from pathlib import Path

from writecliff.engines.blockdev.placement_probe import (
    CTRATT_FDP,
    OACS_DIRECTIVES,
    fdp_handles,
    stream_parameters,
)
from writecliff.engines.blockdev.topology import BlockDevice, System, read_int, whole_disk
from writecliff.engines.fio.capability import HINT_SINCE, PLACEMENT_SINCE, Fio, Placement, Version

HINT_STREAMS = 5  # RWH_WRITE_LIFE_NONE to _EXTREME are streams 1 to 5
_GENERIC = re.compile(r"^nvme(\d+)n(\d+)$")


def find_placement(
    system: System, fio: Fio, disk: BlockDevice | None, path: str
) -> Placement | str:
    """How to steer writes on this drive; a string says why it is not possible."""
    if disk is None:
        return "a file has no streams"
    found = _passthrough(system, fio, disk, path)
    if isinstance(found, Placement):
        return found
    streams = read_int(whole_disk(system, disk).directory / "queue/max_write_streams") or 0
    if not streams:
        return found
    if fio.version < HINT_SINCE:
        return f"{fio.version_text} cannot set hints; {_text(HINT_SINCE)} or later can"
    return Placement("hint", "", min(streams, HINT_STREAMS) + 1)


def _passthrough(system: System, fio: Fio, disk: BlockDevice, path: str) -> Placement | str:
    match = _GENERIC.match(disk.name)
    if match is None:
        return f"{disk.name} is not an NVMe drive"
    if fio.version < PLACEMENT_SINCE:
        return f"{fio.version_text} cannot place writes; {_text(PLACEMENT_SINCE)} or later can"
    generic = system.dev / f"ng{match.group(1)}n{match.group(2)}"
    if not Path(generic).exists():
        return f"the kernel offers no generic device {generic}"
    controller = system.run(["nvme", "id-ctrl", path, "-o", "json"]).json()
    has_fdp = int(controller.get("ctratt", 0)) & CTRATT_FDP
    if has_fdp and (handles := fdp_handles(system, path)):
        return Placement("fdp", str(generic), handles)
    if int(controller.get("oacs", 0)) & OACS_DIRECTIVES:
        streams = stream_parameters(system, disk, path)
        available = streams.get("nsa") or streams.get("nssa", 0)
        if available:
            return Placement("streams", str(generic), available + 1)
        if not has_fdp:
            return "the Streams directive is not enabled on this namespace"
    if has_fdp:
        return "flexible data placement is not enabled on this namespace"
    return "the drive has neither flexible data placement nor streams"


def _text(version: Version) -> str:
    return ".".join(map(str, version))
