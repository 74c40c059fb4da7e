"""Drive identity in the report header, read from sysfs, `nvme id-ctrl` and `smartctl -i`.

Unknown fields of the `DeviceIdentity` are `None`. No standard command reports the flash type and
the rated endurance, but the user can specify both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.blockdev.file_identity import creation_id, path_id
from writecliff.engines.blockdev.loops import attached_loops
from writecliff.engines.blockdev.nvme.topology import controllers_of
from writecliff.engines.blockdev.pcie import (
    adapter_of,
    function_name,
    pcie_link,
    vendor_name,
)
from writecliff.engines.blockdev.topology import (
    BlockDevice,
    System,
    label_of,
    read_int,
    read_text,
)


def is_nvme(disk: BlockDevice) -> bool:
    """Return True for an NVMe namespace."""
    return disk.name.startswith("nvme")


def is_ata(disk: BlockDevice) -> bool:
    """Return True for a SATA drive attached through libata (a SCSI disk with vendor "ATA")."""
    return disk.name.startswith("sd") and read_text(disk.directory / "device/vendor") == "ATA"


def is_scsi(disk: BlockDevice) -> bool:
    """Return True for a SCSI disk that is not a SATA drive attached through libata."""
    return disk.name.startswith("sd") and not is_ata(disk)


@dataclass(frozen=True)
class _Answers:
    """Tool output, which is empty if a tool is missing or does not apply."""

    nvme: Mapping[str, Any]
    smart: Mapping[str, Any]

    def text(self, nvme_key: str, smart_key: str) -> str | None:
        value = str(self.nvme.get(nvme_key) or self.smart.get(smart_key) or "").strip()
        return value or None


def _ask(system: System, disk: BlockDevice, path: str) -> _Answers:
    nvme = ["nvme", "id-ctrl", path, "-o", "json"]
    smart = ["smartctl", "-j", "-i", path]
    answers_smart = is_nvme(disk) or disk.name.startswith("sd")
    return _Answers(
        system.run(nvme).json() if is_nvme(disk) else {},
        system.run(smart).json() if answers_smart else {},
    )


def identify_device(system: System, disk: BlockDevice, path: str) -> DeviceIdentity:
    """Return the identity of a whole disk, or of the disk that contains a partition."""
    label, answers = label_of(disk), _ask(system, disk, path)
    serial = label.serial or answers.text("sn", "serial_number")
    place = place_of(disk)
    fallback = "loop device" if disk.name.startswith("loop") else disk.name
    return DeviceIdentity(
        target=path,
        vendor=label.vendor
        or answers.text("", "vendor")
        or answers.text("", "scsi_vendor")
        or place.vendor,
        # smartctl first: The SCSI inquiry truncates a SATA drive's model to 16 characters.
        model=answers.text("mn", "model_name") or label.model or fallback,
        serial=serial,
        firmware=answers.text("fr", "firmware_version") or label.firmware,
        capacity_bytes=disk.size_bytes,
        sector_bytes=read_int(disk.directory / "queue/logical_block_size") or 512,
        interface=_interface(disk, answers),
        simulated=False,
        rotational=_rotational(disk),
        backing=backing_of(system, disk) if serial is None else namespace_of(disk),
        form_factor=_form_factor(answers),
        adapter=place.adapter,
        pcie=place.pcie,
    )


@dataclass(frozen=True)
class Place:
    """A disk's connection to the machine, where unknown fields are `None`."""

    vendor: str | None = None  # NVMe drive vendor, derived from the PCI vendor ID.
    adapter: str | None = None  # Host adapter, for drives that are not a PCI function.
    pcie: str | None = None  # PCIe link of the drive or of its adapter.


def place_of(disk: BlockDevice) -> Place:
    """Return a disk's host adapter, and the PCIe link of the disk or its adapter."""
    if is_nvme(disk):
        controller = controllers_of(disk)[0]
        if controller.transport not in (None, "pcie"):
            return Place()
        link = pcie_link(controller.function)
        return Place(vendor_name(controller.function), None, link.short if link else None)
    function = adapter_of(disk.directory)
    if function is None:
        return Place()
    link = pcie_link(function)
    return Place(None, function_name(function), link.short if link else None)


def _form_factor(answers: _Answers) -> str | None:
    """Return a SATA or SAS drive's form factor, for example "2.5 inches", or None for NVMe."""
    field = answers.smart.get("form_factor", {})
    return str(field["name"]) if isinstance(field, dict) and field.get("name") else None


def namespace_of(disk: BlockDevice) -> str | None:
    """Return an NVMe disk's namespace, because all namespaces share a serial number."""
    number = read_text(disk.directory / "nsid")
    return f"namespace {number}" if number is not None else None


def backing_of(system: System, disk: BlockDevice) -> str | None:
    """Return an identifier for a disk that has no serial number, or None.

    The identifier is a loop device's backing file, a dm or md device's UUID, or a hardware disk's
    slot, which does not change if disks are swapped.
    """
    if disk.name.startswith("loop"):
        loop = next((loop for loop in attached_loops(system) if loop.number == disk.number), None)
        if loop is None or (loop.file is None and loop.device is None):
            return None
        backing = f"{loop.file or loop.device}"
        if loop.file is not None and path_id(loop.path) == loop.file:
            backing = creation_id(loop.path)
        return f"loop on {backing} at {loop.offset}"
    for name in ("dm/uuid", "md/uuid", "wwid", "device/wwid"):
        if uuid := read_text(disk.directory / name):
            return uuid
    try:
        slot = str(disk.directory.resolve().relative_to(system.sys.resolve() / "devices"))
    except ValueError:
        return None
    return None if slot.startswith("virtual/") else slot


def _rotational(disk: BlockDevice) -> bool | None:
    """Return the rotational flag that the drive reports, or None for virtual devices."""
    if not (is_nvme(disk) or disk.name.startswith("sd")):
        return None
    value = read_int(disk.directory / "queue/rotational")
    return None if value is None else bool(value)


def _interface(disk: BlockDevice, answers: _Answers) -> str | None:
    if is_nvme(disk):
        controller = controllers_of(disk)[0]
        if controller.transport not in (None, "pcie"):
            return f"NVMe over {controller.transport.upper()}"
        link = pcie_link(controller.function)
        return f"NVMe ({link.rate})" if link else "NVMe"
    if is_ata(disk):
        speed = answers.smart.get("interface_speed", {}).get("current", {}).get("string")
        return f"SATA {speed}" if speed else "SATA"
    if is_scsi(disk):
        return "USB" if "/usb" in str(disk.directory) else "SCSI/SAS"
    kinds = {"vd": "virtio", "mmcblk": "MMC", "loop": "loop", "zram": "zram", "pmem": "NVDIMM"}
    return next((kind for prefix, kind in kinds.items() if disk.name.startswith(prefix)), None)


def identify_file(path: str, size_bytes: int, sector_bytes: int) -> DeviceIdentity:
    """Return the identity of a regular file, using the file name as the model."""
    return DeviceIdentity(
        target=f"file:{path}",
        model=f"file {Path(path).name}",
        capacity_bytes=size_bytes,
        sector_bytes=sector_bytes,
        interface="file system",
        simulated=False,
    )
