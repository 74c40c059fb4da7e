"""Counters of an NVMe drive, from its SMART log.

Sources: NVMe Base Specification (SMART log 02h: data units of 1000 x 512 bytes) and the logs that
`nvme.media` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from writecliff.engines.blockdev.disk_smart import integer
from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.nvme.media import MediaWrites, media_writes
from writecliff.engines.counters import Counters
from writecliff.engines.data_placement_status import DataPlacementStatus

NVME_DATA_UNIT = 512_000


def _scaled(value: object, unit: int) -> int | None:
    count = integer(value)
    return None if count is None else count * unit


def nvme_log(drive: NvmeDrive, path: str) -> Mapping[str, Any]:
    """The SMART log (02h) as read through nvme-cli, else by smartctl; empty if neither reads it."""
    try:
        return drive.smart()
    except Refused:
        answer = drive.system.run(["smartctl", "-j", "-A", path]).json()
        found = answer.get("nvme_smart_health_information_log", {})
        return found if isinstance(found, dict) else {}


def nvme_counters(log: Mapping[str, Any], media: MediaWrites | None) -> Counters:
    """Counters from the SMART log; what the log does not hold is None.

    Where the log that counts writes to the flash counts the host's too, both come from it: their
    ratio is then of one group of flash, in one unit.
    """
    used = integer(log.get("percentage_used", log.get("percent_used")))
    host = media.host_bytes if media is not None else None
    if host is None:
        host = _scaled(log.get("data_units_written"), NVME_DATA_UNIT)
    return Counters(
        host_write_bytes=host,
        host_read_bytes=_scaled(log.get("data_units_read"), NVME_DATA_UNIT),
        nand_write_bytes=None if media is None else media.media_bytes,
        percentage_used=None if used is None else float(used),
    )


def nvme_media_writes(
    drive: NvmeDrive, log: Mapping[str, Any], placement: DataPlacementStatus | None
) -> MediaWrites | None:
    """What the drive has written to its flash, from the best log that it has beside its SMART log
    `log` and its FDP statistics in `placement`; None without one."""
    try:
        counted = None if placement is None else placement.statistics
        units = integer(log.get("data_units_written"))
        return media_writes(drive, drive.controller(), units, counted)
    except Refused:
        return None
