"""Vendors' own counts of what was written to the flash.

Where a plugin of nvme-cli shows a log page of known layout, the page itself is read; else the JSON
that the plugin prints. Sources: nvme-cli 2.3 and 2.16, plugins intel, solidigm, micron and wdc.
Samsung's data centre drives, and newer ones of all others, have OCP's log C0h instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from writecliff.engines.blockdev.nvme import pages
from writecliff.engines.blockdev.nvme.drive import NvmeDrive
from writecliff.engines.blockdev.nvme.pages import Controller, Written

_ADDITIONAL_SMART, _ADDITIONAL_SMART_BYTES = 0xCA, 512
_NAND_BYTES_WRITTEN, _HOST_BYTES_WRITTEN = 0xF4, 0xF5
_UNIT = 32 << 20  # Intel's product specifications (DC P4510 and others): raw values of 32 MiB

_MICRON_KEYS = (
    "NAND Writes (Bytes Written)",  # log D0h
    "Physical Media Units Written - TLC",  # log FBh
    "Physical Media Units Written - SLC",
)
_WDC_KEYS = ("NAND Writes TLC (Bytes)", "NAND Writes SLC (Bytes)")


@dataclass(frozen=True)
class VendorLog:
    """`read` returns None if the log has no such figure, and raises `Refused`."""

    name: str
    read: Callable[[NvmeDrive], Written | None]


def log_of(controller: Controller) -> VendorLog | None:
    """The log of the drive's vendor, by its PCI number; None for vendors without one."""
    return _LOGS.get(controller.vendor_id)


def _additional_smart(drive: NvmeDrive) -> Written | None:
    """Log CAh of Intel and Solidigm (`nvme intel smart-log-add`, `nvme solidigm smart-log-add`)."""
    items = pages.vendor_items(drive.log(_ADDITIONAL_SMART, _ADDITIONAL_SMART_BYTES))
    if _NAND_BYTES_WRITTEN not in items:
        return None
    host = items.get(_HOST_BYTES_WRITTEN)
    return Written(None if host is None else host * _UNIT, items[_NAND_BYTES_WRITTEN] * _UNIT)


def _by_json(
    words: tuple[str, ...], keys: tuple[str, ...]
) -> Callable[[NvmeDrive], Written | None]:
    def read(drive: NvmeDrive) -> Written | None:
        answer = drive.command(*words[:2], drive.node, *words[2:])
        media = pages.json_number(answer.json(), keys)
        return None if media is None else Written(None, media)

    return read


_INTEL = VendorLog("Intel SMART log (CAh)", _additional_smart)
_SOLIDIGM = VendorLog("Solidigm SMART log (CAh)", _additional_smart)
_MICRON = VendorLog(
    "Micron NAND statistics", _by_json(("micron", "vs-nand-stats", "--format=json"), _MICRON_KEYS)
)
_WDC = VendorLog(
    "Western Digital NAND statistics",
    _by_json(("wdc", "vs-nand-stats", "--output-format=json"), _WDC_KEYS),
)
_LOGS = {
    0x8086: _INTEL,
    0x025E: _SOLIDIGM,
    0x1344: _MICRON,
    0x1C58: _WDC,
    0x1B96: _WDC,
    0x15B7: _WDC,
}
