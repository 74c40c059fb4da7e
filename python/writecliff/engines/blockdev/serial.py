"""Model, serial, firmware and vendor of a drive as the kernel publishes them.

Reads the sysfs attributes of NVMe, SCSI/SATA, virtio and MMC. No tool is run and no command is sent
to the drive, so the protection can rely on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from writecliff.engines.blockdev.topology import BlockDevice, read_text


@dataclass(frozen=True)
class Label:
    """What is printed on the drive. None where the kernel does not know."""

    vendor: str | None
    model: str | None
    serial: str | None
    firmware: str | None


def _scsi_serial(device: Path) -> str | None:
    """Unit serial number from the cached VPD page 80h: 4 bytes of header, then the text."""
    try:
        page = (device / "vpd_pg80").read_bytes()
    except OSError:
        return None
    length = int.from_bytes(page[2:4], "big")
    return page[4 : 4 + length].decode("ascii", "replace").strip(" \0") or None


def label_of(disk: BlockDevice) -> Label:
    """Label of a whole disk, from sysfs only."""
    device = disk.directory / "device"
    serial = (
        read_text(device / "serial") or _scsi_serial(device) or read_text(disk.directory / "serial")
    )
    firmware = read_text(device / "firmware_rev") or read_text(device / "rev")
    vendor = read_text(device / "vendor")
    if vendor is not None and (vendor == "ATA" or vendor.startswith("0x")):
        vendor = None  # libata's placeholder, or a PCI number: not a name
    return Label(vendor, read_text(device / "model"), serial, firmware)
