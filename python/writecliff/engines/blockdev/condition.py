"""Whether the kernel still has a drive and lets I/O through to it.

Only sysfs is read: no command is sent to a drive that may not answer any more.
"""

from __future__ import annotations

from writecliff.engines.blockdev.topology import BlockDevice, read_int, read_text

# A controller that is being set up again ("resetting", "connecting") answers before long.
_ANSWERS = ("running", "live", "new", "created", "resetting", "connecting")


def trouble(disk: BlockDevice) -> str | None:
    """Why a whole disk does not answer, in one phrase; None if nothing speaks against it."""
    if not disk.directory.is_dir():
        return "the drive vanished: the kernel has removed the device"
    if read_int(disk.directory / "dm/suspended") == 1:
        return "suspended by device mapper: no I/O gets through"
    states = {
        path.parent.name: state
        for path in (disk.directory / "device/state", *disk.directory.glob("device/nvme*/state"))
        if (state := read_text(path)) is not None
    }
    if states and all(state not in _ANSWERS for state in states.values()):
        return f"the kernel cannot reach the drive: its state is {', '.join(states.values())}"
    return None
