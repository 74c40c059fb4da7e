"""Controllers of an NVMe namespace, as listed in sysfs.

With multipath (the Linux default for controllers that may share namespaces), `/dev/nvme0n1` is a
device of the subsystem `nvme-subsys0`, whose `nvme1c1n1` paths and controllers are numbered
separately: `/dev/nvme0` may not be the namespace's controller. Without multipath, a namespace's
    controller is its parent device.
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
    """An NVMe controller, with its kernel name ("nvme0") and sysfs directory."""

    name: str
    directory: Path

    @property
    def is_live(self) -> bool:
        """True unless the kernel reports a state other than "live"."""
        return read_text(self.directory / "state") in (None, "live")

    @property
    def transport(self) -> str | None:
        """Controller transport: "pcie", "tcp", "rdma", "fc" or "loop", or `None` if unknown."""
        return read_text(self.directory / "transport")

    @property
    def function(self) -> Path:
        """Sysfs directory of the controller's PCI function (missing for network controllers)."""
        return self.directory / "device"


def controllers_of(disk: BlockDevice) -> tuple[ControllerDevice, ...]:
    """Return a namespace's controllers (at least one), with live controllers first."""
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
    """Return True if a controller has a path to the namespace or lists no paths."""
    paths = [path.name for path in controller.glob("nvme*c*n*")]
    wanted = re.compile(rf"nvme{match[1]}c\d+n{match[2]}")
    return not paths or any(wanted.fullmatch(name) for name in paths)


def namespace_id(disk: BlockDevice) -> int | None:
    """Return a namespace's NSID, which may differ from the number in its device name."""
    shown = read_int(disk.directory / "nsid")
    if shown is not None:
        return shown
    match = _NAMESPACE.fullmatch(disk.name)
    return int(match[2]) if match else None


def generic_device(system: System, disk: BlockDevice) -> Path | None:
    """Return the passthrough node `/dev/ng0n1` of `/dev/nvme0n1`, or None if it does not exist."""
    path = system.dev / disk.name.replace("nvme", "ng", 1)
    return path if _NAMESPACE.fullmatch(disk.name) and path.exists() else None


def shown_namespaces(system: System, disk: BlockDevice) -> frozenset[int]:
    """Return the NSIDs that the kernel lists for any controller of the disk's subsystem."""
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
    """Return all controllers of the subsystem, including those that have no namespace path."""
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
