"""Controllers of an NVMe namespace in sysfs.

With multipath (Linux's default for controllers that may share namespaces) `/dev/nvme0n1` is a
device of the subsystem `nvme-subsys0`, whose paths `nvme1c1n1` and controllers are numbered
separately: `/dev/nvme0` may not be its controller. Without multipath its controller is its parent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from writecliff.engines.blockdev.topology import BlockDevice, System, read_int, read_text

_CONTROLLER = re.compile(r"nvme\d+")
_NAMESPACE = re.compile(r"nvme(\d+)(?:c\d+)?n(\d+)")


@dataclass(frozen=True)
class ControllerDevice:
    """A controller: kernel name ("nvme0") and directory in sysfs."""

    name: str
    directory: Path

    @property
    def is_live(self) -> bool:
        """True unless the kernel reports another state than "live"."""
        return read_text(self.directory / "state") in (None, "live")

    @property
    def transport(self) -> str | None:
        """Transport: "pcie", "tcp", "rdma", "fc" or "loop"; None if unknown."""
        return read_text(self.directory / "transport")

    @property
    def function(self) -> Path:
        """Directory of its PCI function; absent for controllers on a network."""
        return self.directory / "device"


def controllers_of(disk: BlockDevice) -> tuple[ControllerDevice, ...]:
    """Return the controllers of a namespace, live controllers first; never empty."""
    above = (disk.directory / "device").resolve()
    match = _NAMESPACE.fullmatch(disk.name)
    if _CONTROLLER.fullmatch(above.name) or match is None:
        return (ControllerDevice(above.name, above),)
    controllers = [
        ControllerDevice(entry.name, entry.resolve())
        for entry in sorted(above.glob("nvme*"))
        if _CONTROLLER.fullmatch(entry.name) and _leads_to(entry, disk, match)
    ]
    if not controllers:
        return (ControllerDevice(f"nvme{match[1]}", above),)
    return tuple(sorted(controllers, key=lambda controller: not controller.is_live))


def _leads_to(controller: Path, disk: BlockDevice, match: re.Match[str]) -> bool:
    """Return True if a controller has a path to the namespace, or shows no paths."""
    paths = [path.name for path in controller.glob("nvme*c*n*")]
    wanted = re.compile(rf"nvme{match[1]}c\d+n{match[2]}")
    return not paths or any(wanted.fullmatch(name) for name in paths)


def namespace_id(disk: BlockDevice) -> int | None:
    """Return the NSID of a namespace, which may differ from the number in its name."""
    shown = read_int(disk.directory / "nsid")
    if shown is not None:
        return shown
    match = _NAMESPACE.fullmatch(disk.name)
    return int(match[2]) if match else None


def generic_device(system: System, disk: BlockDevice) -> Path | None:
    """Return `/dev/ng0n1` for `/dev/nvme0n1`, for passthrough; None if the kernel has none."""
    path = system.dev / disk.name.replace("nvme", "ng", 1)
    return path if _NAMESPACE.fullmatch(disk.name) and path.exists() else None


def shown_namespaces(system: System, disk: BlockDevice) -> frozenset[int]:
    """Return the NSIDs that the kernel shows on any controller of the disk's subsystem."""
    directories = {controller.directory for controller in _subsystem(system, disk)}
    directories.add((disk.directory / "device").resolve())
    namespaces = {
        nsid
        for directory in directories
        for entry in directory.glob("nvme*n*")
        if _NAMESPACE.fullmatch(entry.name) and (nsid := read_int(entry / "nsid")) is not None
    }
    shown = namespace_id(disk)
    return frozenset(namespaces if shown is None else namespaces | {shown})


def _subsystem(system: System, disk: BlockDevice) -> tuple[ControllerDevice, ...]:
    """Return all controllers of the subsystem, with or without a path to the namespace."""
    paths = controllers_of(disk)
    for subsystem in sorted((system.sys / "class/nvme-subsystem").glob("nvme-subsys*")):
        inside = [
            ControllerDevice(entry.name, entry.resolve())
            for entry in sorted(subsystem.glob("nvme*"))
            if _CONTROLLER.fullmatch(entry.name)
        ]
        if {controller.name for controller in inside} & {controller.name for controller in paths}:
            return tuple(inside)
    return paths
