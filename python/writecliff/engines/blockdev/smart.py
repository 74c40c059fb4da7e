"""The drive's own counters, from its SMART data.

Sources: NVMe Base Specification (SMART log 02h: data units of 1000 x 512 bytes), the logs that
`nvme.media` reads and, for SATA, the attribute names of smartmontools' drive database, because
vendors reuse the numbers. An attribute whose unit the database does not give (251 NAND_Writes) is
not converted to bytes; it stays None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.nvme.media import MediaWrites, media_writes
from writecliff.engines.blockdev.tools import Runner
from writecliff.engines.blockdev.topology import BlockDevice, System
from writecliff.engines.counters import Counters
from writecliff.engines.data_placement_status import DataPlacementStatus

NVME_DATA_UNIT = 512_000
SATA_LBA = 512
_UNIT_BYTES = {"1GIB": 1 << 30, "GIB": 1 << 30, "32MIB": 32 << 20, "MIB": 1 << 20}

# Attribute id -> (field, names under which the id means it). Names end in their unit, if any.
_HOST_WRITES = re.compile(r"^(?:Total_LBAs_Written|Host_Writes(?:_(\w+))?|Lifetime_Writes_(GiB))$")
_HOST_READS = re.compile(r"^(?:Total_LBAs_Read|Host_Reads(?:_(\w+))?|Lifetime_Reads_(GiB))$")
_NAND_WRITES = re.compile(r"^NAND_Writes_(\w+)$")
_WEAR = re.compile(r"^(?:Wear_Leveling_Count|Media_Wearout_Indicator|SSD_Life_Left)$")


def integer(value: object) -> int | None:
    """A count, or None. Some versions of nvme-cli print 128-bit counters as text."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value)
    text = str(value).replace(",", "")
    return int(text) if text.isdigit() else None


def _scaled(value: object, unit: int) -> int | None:
    count = integer(value)
    return None if count is None else count * unit


def nvme_log(system: System, disk: BlockDevice, path: str) -> Mapping[str, Any]:
    """The SMART log (02h) as read through nvme-cli, else by smartctl; empty if neither reads it."""
    try:
        return NvmeDrive(system, disk).smart()
    except Refused:
        answer = system.run(["smartctl", "-j", "-A", path]).json()
        found = answer.get("nvme_smart_health_information_log", {})
        return found if isinstance(found, dict) else {}


def ata_answer(run: Runner, path: str) -> Mapping[str, Any]:
    """Attributes and device statistics of a SATA or SAS drive, as smartctl's JSON."""
    return run(["smartctl", "-j", "-A", "-l", "devstat", path]).json()


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
    system: System,
    disk: BlockDevice,
    log: Mapping[str, Any],
    placement: DataPlacementStatus | None,
) -> MediaWrites | None:
    """What the drive has written to its flash, from the best log that it has beside its SMART log
    `log` and its FDP statistics in `placement`; None without one."""
    drive = NvmeDrive(system, disk)
    try:
        counted = None if placement is None else placement.statistics
        units = integer(log.get("data_units_written"))
        return media_writes(drive, drive.controller(), units, counted)
    except Refused:
        return None


def ata_attributes(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    table = answer.get("ata_smart_attributes", {}).get("table")
    return [row for row in table or [] if isinstance(row, dict)]


def ata_counters(answer: Mapping[str, Any]) -> Counters:
    """Counters from attributes 241/242 (host), 249 and the like (NAND), 177 and the like."""
    found: dict[str, float | None] = {}
    for row in ata_attributes(answer):
        name, raw = str(row.get("name", "")), integer(row.get("raw", {}).get("value"))
        if raw is None:
            continue
        if match := _HOST_WRITES.match(name):
            found["host_write_bytes"] = _in_bytes(raw, match)
        elif match := _HOST_READS.match(name):
            found["host_read_bytes"] = _in_bytes(raw, match)
        elif match := _NAND_WRITES.match(name):
            found["nand_write_bytes"] = _in_bytes(raw, match)
        elif _WEAR.match(name) and isinstance(row.get("value"), int):
            # The normalised value falls from 100 as the rated cycles are used up.
            found["percentage_used"] = float(max(0, 100 - row["value"]))
    return Counters(**found)


def _in_bytes(raw: int, match: re.Match[str]) -> int | None:
    unit = next((group for group in match.groups() if group), None)
    if unit is None:
        return raw * SATA_LBA if "LBAs" in match.group(0) else None
    size = _UNIT_BYTES.get(unit.upper())
    return None if size is None else raw * size
