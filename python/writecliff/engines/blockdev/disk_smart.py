"""Counters of SATA and SAS drives, from what smartctl prints as JSON.

SATA: the device statistics log (ACS-4 9.5: page 1, logical sectors; page 7, percentage used), which
has a unit, before the attributes of smartmontools' drive database, whose names have one in most
cases, because vendors reuse the numbers. An attribute whose unit the database does not give (251
NAND_Writes) is not converted to bytes; it stays None. SAS: the error counter log pages (SPC-5 7.3,
SBC-4 6.4: bytes processed, which smartctl prints as 10^9) and the solid state media log page
(percentage used). No standard page counts what a drive writes to its flash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from writecliff.engines.blockdev.tools import Runner
from writecliff.engines.counters import Counters

SATA_LBA = 512
_GIGABYTE = 10**9
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


def disk_answer(run: Runner, path: str, *, ata: bool) -> Mapping[str, object]:
    """Attributes and device statistics of a SATA drive, error counters and solid state media log of
    a SAS drive, temperature of both."""
    logs = ("-l", "devstat") if ata else ("-l", "error", "-l", "ssd")
    return run(["smartctl", "-j", "-A", *logs, path]).json()


def disk_counters(answer: Mapping[str, object], sector_bytes: int = SATA_LBA) -> Counters:
    """Counters of either kind of drive; what it does not count is None. A count of flash writes
    that is zero while the host has written is one that the drive does not keep."""
    found = _by_attributes(answer) | _by_statistics(answer, sector_bytes) | _by_log_pages(answer)
    if not found.get("nand_write_bytes") and found.get("host_write_bytes"):
        found.pop("nand_write_bytes", None)
    return Counters(**found)


def ata_attributes(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows of smartctl's table of attributes."""
    table = answer.get("ata_smart_attributes", {}).get("table")
    return [row for row in table or [] if isinstance(row, dict)]


def device_statistics(answer: Mapping[str, Any]) -> Iterator[tuple[int, str, int]]:
    """(page, name, value) of the valid device statistics of a SATA drive."""
    for page in answer.get("ata_device_statistics", {}).get("pages", ()):
        for row in page.get("table", ()):
            value = integer(row.get("value"))
            if value is not None and row.get("flags", {}).get("valid", True):
                yield int(page.get("number", 0)), str(row.get("name")), value


def _by_attributes(answer: Mapping[str, object]) -> dict[str, float | None]:
    """Attributes 241/242 (host), 249 and the like (NAND), 177 and the like (wear)."""
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
    return found


def _in_bytes(raw: int, match: re.Match[str]) -> int | None:
    unit = next((group for group in match.groups() if group), None)
    if unit is None:
        return raw * SATA_LBA if "LBAs" in match.group(0) else None
    size = _UNIT_BYTES.get(unit.upper())
    return None if size is None else raw * size


def _by_statistics(answer: Mapping[str, object], sector_bytes: int) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for page, name, value in device_statistics(answer):
        if (page, name) == (1, "Logical Sectors Written"):
            found["host_write_bytes"] = value * sector_bytes
        elif (page, name) == (1, "Logical Sectors Read"):
            found["host_read_bytes"] = value * sector_bytes
        elif (page, name) == (7, "Percentage Used Endurance Indicator"):
            found["percentage_used"] = float(value)
    return found


def _by_log_pages(answer: Mapping[str, Any]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for operation, field in (("write", "host_write_bytes"), ("read", "host_read_bytes")):
        row = answer.get("scsi_error_counter_log", {}).get(operation, {})
        try:
            found[field] = round(float(row["gigabytes_processed"]) * _GIGABYTE)
        except (KeyError, TypeError, ValueError):
            continue
    used = integer(answer.get("scsi_percentage_used_endurance_indicator"))
    if used is not None:
        found["percentage_used"] = float(used)
    return found


def disk_marks(answer: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Names and values of all that only rises; `vitals.MARKS` says which of them matter."""
    for row in ata_attributes(answer):
        yield str(row.get("name")), row.get("raw", {}).get("value")
    for _, name, value in device_statistics(answer):
        yield name, value
    rows = answer.get("scsi_error_counter_log", {})
    failed = [integer(row.get("total_uncorrected_errors")) for row in rows.values()]
    if failed:
        yield "total_uncorrected_errors", sum(count or 0 for count in failed)
    yield "scsi_grown_defect_list", answer.get("scsi_grown_defect_list")


def disk_temperature(answer: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """(temperature, the limit that the drive names) in degrees Celsius."""
    heat = answer.get("temperature", {})
    now, limit = integer(heat.get("current")), integer(heat.get("drive_trip"))
    return None if now is None else float(now), float(limit) if limit else None


def disk_attributes(answer: Mapping[str, Any]) -> list[dict[str, Any]] | dict[str, Any]:
    """The drive's own list: ATA attributes without smartctl's decorations, or a SAS drive's error
    counters by operation and name."""
    rows = answer.get("scsi_error_counter_log")
    if rows:
        return {
            f"{kind} {name}": value for kind, row in rows.items() for name, value in row.items()
        }
    return [_attribute(row) for row in ata_attributes(answer)]


def _attribute(row: Mapping[str, Any]) -> dict[str, Any]:
    raw = row.get("raw", {})
    kept = {name: row.get(name) for name in ("id", "name", "value", "worst")}
    more = {"threshold": row.get("thresh"), "raw": raw.get("value"), "raw_text": raw.get("string")}
    return kept | more
