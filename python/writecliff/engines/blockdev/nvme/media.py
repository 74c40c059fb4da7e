"""Bytes that a drive has written to its flash, according to the drive's most precise log.

Logs in order of resolution: FDP statistics (bytes), the OCP log C0h (bytes), a vendor log, and the
Endurance Group log (10^9 bytes, which hardly changes in a short step). A log that reads zero
although the host has written is ignored, and its figure is reported as unknown instead of 0.
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
    """Bytes written to flash, as reported by a log."""

    source: str
    media_bytes: int
    host_bytes: int | None  # Host writes in the same log; `None` if not counted.


def media_writes(
    drive: NvmeDrive,
    controller: Controller,
    host_units: int | None,
    placement: FdpStatistics | None,
) -> MediaWrites | None:
    """Return the bytes written to flash, or None if no log reports them.

    `host_units` is the SMART log's Data Units Written count, and `placement` holds the namespace's
    FDP statistics. Both arguments are `None` if unknown.
    """
    if placement is not None and (placement.mbmw or not placement.hbmw):
        return MediaWrites("FDP statistics (log 22h)", placement.mbmw, placement.hbmw)
    for source, read in _sources(drive, controller):
        try:
            written = read()
        except Refused:
            continue
        if written is None:
            continue
        host = host_units if written.host is None else written.host
        if written.media or host == 0:  # The valid logs of a new drive contain zeros.
            return MediaWrites(source, written.media, written.host)
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
        # Vendor log page. An index into the UUID list selects OCP's log C0h (OCP 2.0, 4.8).
        index = drive.ocp_uuid_index()
        if not index:
            return None
        data = drive.log(_OCP_SMART, pages.OCP_BYTES, uuid=index)
    return pages.ocp_smart(data) if pages.is_ocp_smart(data) else None


def _endurance_group(drive: NvmeDrive) -> Written | None:
    """Read the log of the namespace's endurance group, which may include other namespaces."""
    group = drive.namespace().endurance_group or 1
    written = pages.endurance_group(
        drive.log(_ENDURANCE_GROUP, pages.ENDURANCE_BYTES, specific=group)
    )
    # The drive may support neither field, because both fields are optional and zero if unsupported.
    return written if written.media else None


# -- vendor-specific flash write counters ----------------------------------------------------------

# If the layout of a vendor's log page is known, the code reads the page itself. For other vendors'
# logs, the code uses the JSON output of the nvme-cli plugin. Sources: nvme-cli 2.3 and 2.16, with
# the intel, solidigm, micron and wdc plugins. Samsung data-centre drives, and newer drives from all
# vendors, provide OCP's log C0h instead.

_ADDITIONAL_SMART, _ADDITIONAL_SMART_BYTES = 0xCA, 512
_NAND_BYTES_WRITTEN, _HOST_BYTES_WRITTEN = 0xF4, 0xF5
# Intel product specifications (DC P4510 and others) count raw values in units of 32 MiB.
_UNIT = 32 << 20

_MICRON_KEYS = (
    "NAND Writes (Bytes Written)",  # Field of log D0h.
    "Physical Media Units Written - TLC",  # Field of log FBh.
    "Physical Media Units Written - SLC",
)
_WDC_KEYS = ("NAND Writes TLC (Bytes)", "NAND Writes SLC (Bytes)")


@dataclass(frozen=True)
class VendorLog:
    """A vendor log that reports the bytes written to flash."""

    name: str
    # Returns `None` if the figure is missing; raises `Refused` if the drive rejects the command.
    read: Callable[[NvmeDrive], Written | None]


def vendor_log_of(controller: Controller) -> VendorLog | None:
    """Return the vendor's log, selected by PCI vendor ID, or None for other vendors."""
    return _LOGS.get(controller.vendor_id)


def _additional_smart(drive: NvmeDrive) -> Written | None:
    """Read log CAh of an Intel or Solidigm drive, like `nvme intel smart-log-add`."""
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
