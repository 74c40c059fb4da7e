"""Users of a device inside the kernel that leave no entry among its holders.

* bcache registers a device before (or without) building one on it.
* btrfs and bcachefs mount several devices, of which mountinfo names only one.
* The kernel's NVMe and SCSI targets export devices and files to other machines. The NVMe target
  does not even claim them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from writecliff.engines.blockdev.topology import BlockDevice, System, read_text

_FILE_SYSTEMS = (("btrfs", "devices/{name}"), ("bcachefs", "dev-*/block"))


def bcache_use(device: BlockDevice) -> str | None:
    """What bcache does with the device; None if nothing."""
    if not (device.directory / "bcache").is_dir() or device.holders:
        return None
    return "is registered with bcache"


def file_system_use(system: System, device: BlockDevice) -> str | None:
    """The mounted file system of several devices that this one is part of; None if there is none.

    These directories exist in sysfs only while the file system is mounted.
    """
    for kind, pattern in _FILE_SYSTEMS:
        for member in (system.sys / "fs" / kind).glob(f"*/{pattern.format(name=device.name)}"):
            if member.resolve() == device.directory.resolve():
                directory = member.parents[len(Path(pattern).parts) - 1]
                return f"is part of the mounted {kind} file system {directory.name}"
    return None


def exports(system: System) -> Iterator[tuple[str, str]]:
    """Path of each device or file that this kernel exports, and under which name it does."""
    config = system.sys / "kernel/config"
    for path in sorted(config.glob("nvmet/subsystems/*/namespaces/*/device_path")):
        exported = read_text(path)
        if exported and read_text(path.with_name("enable")) == "1":
            yield exported, f"NVMe subsystem {path.parents[2].name}"
    for path in sorted(config.glob("target/core/*/*/udev_path")):
        exported = read_text(path)
        if exported and read_text(path.with_name("enable")) == "1":
            yield exported, f"SCSI target {path.parent.name}"
