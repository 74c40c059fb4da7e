"""How much a drive has written to its flash, from whichever of its logs counts that.

In order of resolution: FDP statistics (bytes), OCP's log C0h (bytes), a log of the vendor, and the
Endurance Group log (10^9 bytes, so that it hardly moves in a short step). A log that stays at zero
while the host has written does not count: its figure is unknown, not 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from writecliff.engines.blockdev.nvme import pages
from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.nvme.pages import Controller, Written
from writecliff.engines.data_placement_status import FdpStatistics

_ENDURANCE_GROUP, _OCP_SMART = 0x09, 0xC0


@dataclass(frozen=True)
class MediaWrites:
    """`host_bytes` is the host's share as the same log counts it, None if it does not."""

    source: str
    media_bytes: int
    host_bytes: int | None


def media_writes(
    drive: NvmeDrive,
    controller: Controller,
    host_units: int | None,
    placement: FdpStatistics | None,
) -> MediaWrites | None:
    """What the drive has written to its flash; None if no log of it tells.

    `host_units` are the Data Units Written of the SMART log, None if that is unknown, and
    `placement` the FDP statistics, where the namespace has them.
    """
    if placement is not None and (placement.mbmw or not placement.hbmw):
        return MediaWrites("FDP statistics (log 22h)", placement.mbmw, placement.hbmw)
    for source, read in _sources(drive, controller):
        try:
            found = read()
        except Refused:
            continue
        if found is None:
            continue
        host = host_units if found.host is None else found.host
        if found.media or host == 0:  # a drive that is new has zeros in logs that it keeps
            return MediaWrites(source, found.media, found.host)
    return None


def _sources(
    drive: NvmeDrive, controller: Controller
) -> list[tuple[str, Callable[[], Written | None]]]:
    sources: list[tuple[str, Callable[[], Written | None]]] = []
    sources.append(("OCP SMART log (C0h)", lambda: _ocp(drive)))
    vendor = vendor_log_of(controller)
    if vendor is not None:
        sources.append((vendor.name, lambda: vendor.read(drive)))
    if controller.has_endurance_groups:
        sources.append(("endurance group log (09h)", lambda: _endurance_group(drive)))
    return sources


def _ocp(drive: NvmeDrive) -> Written | None:
    data = drive.log(_OCP_SMART, pages.OCP_BYTES)
    if not pages.is_ocp_smart(data):
        # The vendor's own log C0h; OCP's is behind an index of the UUID list (OCP 2.0, 4.8).
        index = drive.ocp_uuid_index()
        if not index:
            return None
        data = drive.log(_OCP_SMART, pages.OCP_BYTES, uuid=index)
    return pages.ocp_smart(data) if pages.is_ocp_smart(data) else None


def _endurance_group(drive: NvmeDrive) -> Written | None:
    """Of the namespace's group: valid for the namespace where the group holds nothing else."""
    group = drive.namespace().endurance_group or 1
    found = pages.endurance_group(
        drive.log(_ENDURANCE_GROUP, pages.ENDURANCE_BYTES, specific=group)
    )
    # Both fields are optional: where neither moves, nothing says that they are kept.
    return found if found.media else None


# -- vendor counters of flash writes ---------------------------------------------------------------

# If the layout of a vendor's log page is known, the page itself is read, else the JSON output of
# the nvme-cli plugin. Sources: nvme-cli 2.3 and 2.16, plugins intel, solidigm, micron and wdc.
# Samsung's data-centre drives, and newer drives of all vendors, have OCP's log C0h instead.

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


def vendor_log_of(controller: Controller) -> VendorLog | None:
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
