"""Finds out whether writes to a drive can be steered to streams or placement handles through fio.

Owns: the conditions. fio (3.38 and later) does so only with its io_uring_cmd engine on the NVMe
generic device, and only the drive knows whether it has directives or flexible data placement. If
any condition does not hold, the reason is handed back, to be shown with the results.
"""

from __future__ import annotations

import re
from pathlib import Path

from writecliff.engines.blockdev.topology import BlockDevice, System
from writecliff.engines.fio.capability import PLACEMENT_SINCE, Fio, Placement

_CTRATT_FDP = 1 << 19  # NVMe Base 2.1, Identify Controller: CTRATT
_GENERIC = re.compile(r"^nvme(\d+)n(\d+)$")
_FDP_HANDLES = re.compile(r"^Placement Identifier\s+(\d+);", re.MULTILINE)


def find_placement(
    system: System, fio: Fio, disk: BlockDevice | None, path: str
) -> Placement | str:
    """How to steer writes on this drive; a string says why it is not possible."""
    if disk is None:
        return "a file has no streams"
    match = _GENERIC.match(disk.name)
    if match is None:
        return f"{disk.name} is not an NVMe drive"
    if fio.version < PLACEMENT_SINCE:
        wanted = ".".join(map(str, PLACEMENT_SINCE))
        return f"{fio.version_text} cannot place writes; {wanted} or later can"
    generic = system.dev / f"ng{match.group(1)}n{match.group(2)}"
    if not Path(generic).exists():
        return f"the kernel offers no generic device {generic}"
    controller = system.run(["nvme", "id-ctrl", path, "-o", "json"]).json()
    if not int(controller.get("ctratt", 0)) & _CTRATT_FDP:
        return "the drive has no flexible data placement"
    status = system.run(["nvme", "fdp", "status", path])
    handles = len(_FDP_HANDLES.findall(status.stdout)) if status.ok else 0
    if handles == 0:
        return "flexible data placement is not enabled on this namespace"
    return Placement("fdp", str(generic), handles)
