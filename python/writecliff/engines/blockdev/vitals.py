"""Drive health: temperature, throttling, errors and link.

`read_vitals` is fast enough to call before and after every step. `health_report` is meant for the
start and end of a run. Sources are the NVMe SMART log (NVMe Base Specification, log 02h), and ATA
device statistics, attributes and SCSI log pages through smartctl. hwmon (nvme, drivetemp) provides
the temperature if no tool is installed, and sysfs provides PCIe error counters and SCSI timeouts.
`MARKS` lists counters that only increase. An increase during a step is reported as a disturbance.

NVMe error log entries and SCSI `ioerr_cnt` are not used, because the tools' commands increase both
counters on drives that do not support these commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from writecliff.engines.blockdev.identity import is_ata, is_nvme
from writecliff.engines.blockdev.nvme import fdp, streams
from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.nvme.media import MediaWrites, media_writes
from writecliff.engines.blockdev.nvme.topology import controllers_of
from writecliff.engines.blockdev.pcie import pcie_link
from writecliff.engines.blockdev.tools import Runner
from writecliff.engines.blockdev.topology import BlockDevice, System, read_int, read_text
from writecliff.engines.counters import Counters
from writecliff.engines.data_placement_status import DataPlacementStatus

_KELVIN = 273
_HEALTH_COUNTERS = ("percentage_used", "host_write_bytes", "host_read_bytes", "nand_write_bytes")

# Message text by counter name; {n} is the increase.
MARKS = {
    "warning_temp_time": "the drive was {n} min above its warning temperature",
    "critical_comp_time": "the drive was {n} min above its critical temperature",
    "thm_temp1_trans_count": "the drive throttled lightly {n} times for its temperature",
    "thm_temp2_trans_count": "the drive throttled heavily {n} times for its temperature",
    "thm_temp1_total_time": "the drive throttled lightly for {n} s for its temperature",
    "thm_temp2_total_time": "the drive throttled heavily for {n} s for its temperature",
    "media_errors": "the drive counted {n} media errors",
    "unsafe_shutdowns": "the drive lost power or was reset {n} times",
    "Time in Over-Temperature": "the drive was {n} min above its highest temperature",
    "Number of Hardware Resets": "the link reset the drive {n} times",
    "Number of ASR Events": "the link dropped and recovered {n} times",
    "Number of Interface CRC Errors": "the link lost {n} transfers to CRC errors",
    "total_uncorrected_errors": "the drive counted {n} errors that it could not correct",
    "scsi_grown_defect_list": "the drive took {n} blocks out of use",
    "UDMA_CRC_Error_Count": "the link lost {n} transfers to CRC errors",
    "CRC_Error_Count": "the link lost {n} transfers to CRC errors",
    "iotmo_cnt": "{n} commands to the drive timed out",
    "aer_dev_correctable": "the drive's PCIe link corrected {n} errors",
    "aer_dev_nonfatal": "the drive's PCIe link had {n} errors that it could not correct",
    "aer_dev_fatal": "the drive's PCIe link had {n} fatal errors",
}


@dataclass(frozen=True)
class Vitals:
    """A sample of drive counters and state."""

    counters: Counters = field(default_factory=Counters)
    temperature_c: float | None = None
    limit_c: float | None = None  # Upper temperature limit that the drive reports, in °C.
    # Values of those `MARKS` counters that the drive has.
    marks: Mapping[str, int] = field(default_factory=dict)
    link: str | None = None
    media_source: str | None = None  # Log that provides the bytes written to flash.
    # Data placement status; `None` for drives that have neither FDP nor streams.
    data_placement: DataPlacementStatus | None = None


def _speaks_smart(disk: BlockDevice) -> bool:
    return is_nvme(disk) or disk.name.startswith("sd")


def read_vitals(
    system: System, disk: BlockDevice, path: str, drive: NvmeDrive | None = None
) -> Vitals:
    """Read a drive's vitals, which are all unknown for virtual devices (loop, virtio).

    On NVMe and SATA drives, reading the temperature sends a command. Use `read_under_load` during a
    measurement. If `drive` is given, its cached constant properties are reused.
    """
    if is_nvme(disk):
        drive = drive or NvmeDrive(system, disk)
        return _nvme_vitals(drive, nvme_log(drive, path))
    marks = dict(_kernel_marks(disk))
    temperature, limit = _hwmon(disk)
    if not _speaks_smart(disk):
        return Vitals(Counters(), temperature, limit, marks)
    answer = disk_answer(system.run, path, ata=is_ata(disk))
    counters = disk_counters(answer, _sector_bytes(disk))
    marks |= _known_marks(dict(disk_marks(answer)))
    reported, trip = disk_temperature(answer)
    heat = temperature if reported is None else reported
    return Vitals(counters, heat, trip if limit is None else limit, marks, _link(disk))


def _nvme_vitals(drive: NvmeDrive, log: Mapping[str, Any]) -> Vitals:
    """Return a drive's vitals, given the drive's SMART log."""
    disk = drive.disk
    placement = fdp.read_status(drive) or streams.read_status(drive)
    media = nvme_media_writes(drive, log, placement)
    temperature, limit = _hwmon(disk)
    reported = _nvme_temperature(log)
    return Vitals(
        counters=nvme_counters(log, media),
        temperature_c=temperature if reported is None else reported,
        limit_c=limit,
        marks=dict(_kernel_marks(disk)) | _known_marks(log),
        link=_link(disk),
        media_source=None if media is None else media.source,
        data_placement=placement,
    )


def _known_marks(log: Mapping[str, object]) -> dict[str, int]:
    return {name: count for name in MARKS if (count := integer(log.get(name))) is not None}


def _sector_bytes(disk: BlockDevice) -> int:
    return read_int(disk.directory / "queue/logical_block_size") or SATA_LBA


def read_under_load(
    system: System, disk: BlockDevice, path: str, drive: NvmeDrive | None = None
) -> Vitals:
    """Read a drive's vitals under load.

    NVMe drives have a separate admin queue. ATA drives drain their queue for each SMART command. On
    ATA drives, and on SCSI drives, which may be ATA drives behind an adapter, only the kernel's
    counters are read.
    """
    if is_nvme(disk):
        return read_vitals(system, disk, path, drive)
    return Vitals(marks=dict(_kernel_marks(disk)), link=_link(disk))


def _nvme_temperature(log: Mapping[str, object]) -> float | None:
    """Return the temperature in °C, converted from the value in K that nvme-cli prints."""
    value = integer(log.get("temperature"))
    if value is None:
        return None
    return float(value - _KELVIN) if value >= _KELVIN - 60 else float(value)


def _hwmon(disk: BlockDevice) -> tuple[float | None, float | None]:
    """Return the (temperature, limit) of the drive's sensor in °C."""
    for pattern in ("hwmon*", "hwmon/hwmon*"):
        for sensor in sorted(_device(disk).glob(pattern)):
            value = read_int(sensor / "temp1_input")
            if value is not None:
                limit = read_int(sensor / "temp1_max")
                return value / 1000, limit / 1000 if limit else None
    return None, None


def _device(disk: BlockDevice) -> Path:
    """Return the sysfs directory of the drive or, for NVMe, of its first live controller."""
    return controllers_of(disk)[0].directory if is_nvme(disk) else disk.directory / "device"


def _kernel_marks(disk: BlockDevice) -> Iterator[tuple[str, int]]:
    timeouts = read_text(disk.directory / "device/iotmo_cnt")
    if timeouts is not None:
        yield "iotmo_cnt", int(timeouts, 16)
    for name in ("aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"):
        lines = (read_text(_device(disk) / "device" / name) or "").splitlines()
        for line in lines:
            if line.startswith("TOTAL_") and line.split()[-1].isdigit():
                yield name, int(line.split()[-1])


def _link(disk: BlockDevice) -> str | None:
    """Return the PCIe link's current speed and width, for example "16.0 GT/s PCIe x4"."""
    link = pcie_link(_device(disk) / "device")
    return None if link is None else str(link)


def health_report(system: System, disk: BlockDevice, path: str) -> dict[str, Any] | None:
    """Return SMART data as plain values for a run's manifest, or None if none can be read.

    Keys: "source", "passed", "temperature_c", "power_on_hours", "power_cycles", "firmware",
        "percentage_used", "host_write_bytes", "host_read_bytes", "nand_write_bytes",
        "nand_write_source" (the log that counts the NAND writes), "marks", and "attributes" (the
        drive's native list:
    ATA attributes or SAS error counters as printed by smartctl, or the NVMe log under nvme-cli's
    field names).
    """
    if not _speaks_smart(disk):
        return None
    # Option -a is used rather than -x, because some drives reject the logs that -x requests.
    answer = system.run(["smartctl", "-j", "-a", path]).json()
    nvme: Mapping[str, Any] = {}
    if is_nvme(disk):
        drive = NvmeDrive(system, disk)
        nvme = nvme_log(drive, path)
        vitals = _nvme_vitals(drive, nvme)
    else:
        vitals = read_vitals(system, disk, path)
    attributes = disk_attributes(answer)
    if not (nvme or attributes) and "smart_status" not in answer:
        return None
    hours = answer.get("power_on_time", {}).get("hours")
    return {
        "source": "nvme get-log" if "critical_warning" in nvme else "smartctl",
        "passed": answer.get("smart_status", {}).get("passed", _without_warning(nvme)),
        "firmware": answer.get("firmware_version"),
        "temperature_c": vitals.temperature_c,
        "power_on_hours": integer(hours if hours is not None else nvme.get("power_on_hours")),
        "power_cycles": integer(answer.get("power_cycle_count", nvme.get("power_cycles"))),
        **{name: getattr(vitals.counters, name) for name in _HEALTH_COUNTERS},
        "nand_write_source": vitals.media_source,
        "marks": dict(vitals.marks),
        "attributes": dict(nvme) if nvme else attributes,
    }


def _without_warning(log: Mapping[str, Any]) -> bool | None:
    """Return True if the Critical Warning field is 0 (smartctl's criterion), or None if unknown."""
    warning = integer(log.get("critical_warning"))
    return None if warning is None else warning == 0


# -- NVMe drive counters from the SMART log -------------------------------------------------------

# Sources: Sources: Sources: the NVMe Base Specification (SMART log 02h: data units of 1000 x 512
# bytes) and the logs that `nvme.media` reads.

NVME_DATA_UNIT = 512_000


def _scaled(value: object, unit: int) -> int | None:
    count = integer(value)
    return None if count is None else count * unit


def nvme_log(drive: NvmeDrive, path: str) -> Mapping[str, Any]:
    """Read the SMART log (02h) with nvme-cli or smartctl, or return {} if both fail."""
    try:
        return drive.smart()
    except Refused:
        answer = drive.system.run(["smartctl", "-j", "-A", path]).json()
        log = answer.get("nvme_smart_health_information_log", {})
        return log if isinstance(log, dict) else {}


def nvme_counters(log: Mapping[str, object], media: MediaWrites | None) -> Counters:
    """Return the SMART log's counters, where missing counters are `None`.

    If the log that counts flash writes also counts host writes, both figures are taken from that
    log. The ratio of two figures from the same log covers the same flash in the same unit.
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
    """Return the bytes written to flash from the most precise log, or None if no log counts them.

    `log` is the drive's SMART log, and `placement` holds the drive's FDP statistics.
    """
    try:
        counted = None if placement is None else placement.statistics
        units = integer(log.get("data_units_written"))
        return media_writes(drive, drive.controller(), units, counted)
    except Refused:
        return None


# -- SMART data of ATA and SCSI disks -------------------------------------------------------------

# The counters of SATA and SAS drives come from the JSON output of smartctl.
#
# SATA: the device statistics log (ACS-4 9.5: page 1, logical sectors; page 7, percentage used) has
# defined units and takes precedence. The attributes in smartmontools' drive database come second,
# because vendors reuse attribute numbers, but most names include a unit. An attribute that has no
# unit in the database (251 NAND_Writes) is not converted to bytes, and its counter stays `None`.
# SAS: the error counter log pages (SPC-5 7.3, SBC-4 6.4: bytes processed, which smartctl prints in
# units of 10^9) and the solid state media log page (percentage used). No standard SAS log page
# counts the bytes that a drive writes to its flash.

SATA_LBA = 512
_GIGABYTE = 10**9
_UNIT_BYTES = {"1GIB": 1 << 30, "GIB": 1 << 30, "32MIB": 32 << 20, "MIB": 1 << 20}

# Field and attribute names by attribute ID; the ID has this meaning only with these names.
# Attribute names end in their unit, if any.
_HOST_WRITES = re.compile(r"^(?:Total_LBAs_Written|Host_Writes(?:_(\w+))?|Lifetime_Writes_(GiB))$")
_HOST_READS = re.compile(r"^(?:Total_LBAs_Read|Host_Reads(?:_(\w+))?|Lifetime_Reads_(GiB))$")
_NAND_WRITES = re.compile(r"^NAND_Writes_(\w+)$")
_WEAR = re.compile(r"^(?:Wear_Leveling_Count|Media_Wearout_Indicator|SSD_Life_Left)$")


def integer(value: object) -> int | None:
    """Return a count that some nvme-cli versions print as text, or None if it is invalid."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value)
    text = str(value).replace(",", "")
    return int(text) if text.isdigit() else None


def disk_answer(run: Runner, path: str, *, ata: bool) -> Mapping[str, object]:
    """Run smartctl for a SATA or SAS drive.

    The output contains attributes and device statistics (SATA) or error counters and the solid
    state media log (SAS), plus the temperature.
    """
    logs = ("-l", "devstat") if ata else ("-l", "error", "-l", "ssd")
    return run(["smartctl", "-j", "-A", *logs, path]).json()


def disk_counters(answer: Mapping[str, object], sector_bytes: int = SATA_LBA) -> Counters:
    """Return a SATA or SAS drive's counters, where missing counters are `None`.

    A flash write count of 0 despite host writes also counts as missing.
    """
    counted = _by_attributes(answer) | _by_statistics(answer, sector_bytes) | _by_log_pages(answer)
    if not counted.get("nand_write_bytes") and counted.get("host_write_bytes"):
        counted.pop("nand_write_bytes", None)
    return Counters(**counted)


def ata_attributes(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rows of smartctl's attribute table."""
    table = answer.get("ata_smart_attributes", {}).get("table")
    return [row for row in table or [] if isinstance(row, dict)]


def device_statistics(answer: Mapping[str, Any]) -> Iterator[tuple[int, str, int]]:
    """Yield (page, name, value) for each valid device statistic of a SATA drive."""
    for page in answer.get("ata_device_statistics", {}).get("pages", ()):
        for row in page.get("table", ()):
            value = integer(row.get("value"))
            if value is not None and row.get("flags", {}).get("valid", True):
                yield int(page.get("number", 0)), str(row.get("name")), value


def _by_attributes(answer: Mapping[str, object]) -> dict[str, float | None]:
    """Return counters from attributes such as 241/242 (host), 249 (NAND) and 177 (wear)."""
    counters: dict[str, float | None] = {}
    for row in ata_attributes(answer):
        name, raw = str(row.get("name", "")), integer(row.get("raw", {}).get("value"))
        if raw is None:
            continue
        if match := _HOST_WRITES.match(name):
            counters["host_write_bytes"] = _in_bytes(raw, match)
        elif match := _HOST_READS.match(name):
            counters["host_read_bytes"] = _in_bytes(raw, match)
        elif match := _NAND_WRITES.match(name):
            counters["nand_write_bytes"] = _in_bytes(raw, match)
        elif _WEAR.match(name) and isinstance(row.get("value"), int):
            # The normalised value falls from 100 as the rated cycles are consumed.
            counters["percentage_used"] = float(max(0, 100 - row["value"]))
    return counters


def _in_bytes(raw: int, match: re.Match[str]) -> int | None:
    unit = next((group for group in match.groups() if group), None)
    if unit is None:
        return raw * SATA_LBA if "LBAs" in match.group(0) else None
    size = _UNIT_BYTES.get(unit.upper())
    return None if size is None else raw * size


def _by_statistics(answer: Mapping[str, object], sector_bytes: int) -> dict[str, float | None]:
    counters: dict[str, float | None] = {}
    for page, name, value in device_statistics(answer):
        if (page, name) == (1, "Logical Sectors Written"):
            counters["host_write_bytes"] = value * sector_bytes
        elif (page, name) == (1, "Logical Sectors Read"):
            counters["host_read_bytes"] = value * sector_bytes
        elif (page, name) == (7, "Percentage Used Endurance Indicator"):
            counters["percentage_used"] = float(value)
    return counters


def _by_log_pages(answer: Mapping[str, Any]) -> dict[str, float | None]:
    counters: dict[str, float | None] = {}
    for operation, counter in (("write", "host_write_bytes"), ("read", "host_read_bytes")):
        row = answer.get("scsi_error_counter_log", {}).get(operation, {})
        try:
            counters[counter] = round(float(row["gigabytes_processed"]) * _GIGABYTE)
        except (KeyError, TypeError, ValueError):
            continue
    used = integer(answer.get("scsi_percentage_used_endurance_indicator"))
    if used is not None:
        counters["percentage_used"] = float(used)
    return counters


def disk_marks(answer: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield the names and values of all increasing counters that `MARKS` may select."""
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
    """Return (temperature, limit) in °C, as reported by the drive."""
    heat = answer.get("temperature", {})
    now, limit = integer(heat.get("current")), integer(heat.get("drive_trip"))
    return None if now is None else float(now), float(limit) if limit else None


def disk_attributes(answer: Mapping[str, Any]) -> list[dict[str, Any]] | dict[str, Any]:
    """Return ATA attributes, or a SAS drive's error counters by operation and name."""
    rows = answer.get("scsi_error_counter_log")
    if rows:
        return {
            f"{kind} {name}": value for kind, row in rows.items() for name, value in row.items()
        }
    return [_attribute(row) for row in ata_attributes(answer)]


def _attribute(row: Mapping[str, Any]) -> dict[str, Any]:
    raw = row.get("raw", {})
    columns = {name: row.get(name) for name in ("id", "name", "value", "worst")}
    more = {"threshold": row.get("thresh"), "raw": raw.get("value"), "raw_text": raw.get("string")}
    return columns | more
