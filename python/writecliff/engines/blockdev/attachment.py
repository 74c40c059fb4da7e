"""How a disk is attached, as its path in sysfs shows it: which commands it can be trusted to get.

A SATA drive on a port of libata gets every ATA command unchanged. Behind a SAS adapter or a USB
bridge the translation (SAT-5) decides what arrives, and what it hands back of the drive's registers
is often nothing, which hdparm takes for zeros. So commands that erase are sent only where they
arrive.
"""

from __future__ import annotations

import re
from typing import Literal

from writecliff.engines.blockdev.topology import BlockDevice

Attachment = Literal["libata", "SAS", "USB", "other"]

_PARTS: tuple[tuple[str, Attachment], ...] = (
    (r"ata\d+", "libata"),
    (r"usb\d+", "USB"),
    (r"(?:port|end_device|expander)-\d+.*", "SAS"),
)


def attachment_of(disk: BlockDevice) -> Attachment:
    """The kind of the nearest bridge above a disk; "other" for adapters that do not tell (RAID,
    virtio-scsi, a target of the kernel)."""
    for part in reversed(disk.whole_directory.parts):
        for pattern, kind in _PARTS:
            if re.fullmatch(pattern, part):
                return kind
    return "other"


def bridge_text(kind: Attachment) -> str:
    """What stands between the machine and the drive, for messages."""
    words = {"SAS": "a SAS adapter", "USB": "a USB bridge", "libata": "an ATA port"}
    return words.get(kind, "an adapter that translates commands")
