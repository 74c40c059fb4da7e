"""Sets and reads the volatile write cache of a drive, and says what the drive itself reports.

Owns: NVMe feature 06h through nvme-cli, SATA through hdparm -W, SCSI through the caching mode page
that the kernel offers as `cache_type`. `queue/write_cache` is only the kernel's own belief (writing
it does not reach the drive), so it is reported as such and never written.
"""

from __future__ import annotations

import re

from writecliff.engines.base import CacheReport
from writecliff.engines.blockdev.identity import is_ata, is_nvme
from writecliff.engines.blockdev.topology import BlockDevice, System, read_text

_HDPARM_STATE = re.compile(r"write-caching\s*=\s*(\d)")
_NVME_STATE = re.compile(r"Current value:\s*(?:0x)?([0-9a-fA-F]+)")


def set_write_cache(system: System, disk: BlockDevice, path: str, enabled: bool) -> CacheReport:
    """Ask the drive for a cache state; the report holds what it says afterwards."""
    if is_nvme(disk):
        return _set_nvme(system, path, enabled)
    if is_ata(disk):
        return _set_ata(system, disk, path, enabled)
    cache_type = _scsi_cache_type(system, disk)
    if cache_type is not None:
        return _set_scsi(system, disk, enabled)
    return CacheReport(_kernel_view(disk), "no settable write cache; state as the kernel sees it")


def _state(report: bool | None, wanted: bool, failure: str) -> CacheReport:
    if report is None:
        return CacheReport(None, failure or "the drive does not tell the state of its cache")
    note = "" if report == wanted else f"the drive kept its setting: {failure or 'no reason given'}"
    return CacheReport(report, note)


def _set_nvme(system: System, path: str, enabled: bool) -> CacheReport:
    wrote = system.run(["nvme", "set-feature", path, "-f", "6", "-v", str(int(enabled))])
    read = system.run(["nvme", "get-feature", path, "-f", "6"])
    match = _NVME_STATE.search(read.stdout) if read.ok else None
    state = bool(int(match.group(1), 16) & 1) if match else None
    return _state(state, enabled, "" if wrote.ok else f"nvme set-feature: {wrote.message}")


def _set_ata(system: System, disk: BlockDevice, path: str, enabled: bool) -> CacheReport:
    wrote = system.run(["hdparm", "-W", str(int(enabled)), path])
    if wrote.absent and _scsi_cache_type(system, disk) is not None:
        return _set_scsi(system, disk, enabled)
    read = system.run(["hdparm", "-W", path])
    match = _HDPARM_STATE.search(read.stdout)
    state = match.group(1) == "1" if match else None
    return _state(state, enabled, "" if wrote.ok else f"hdparm: {wrote.message}")


def _scsi_cache_type(system: System, disk: BlockDevice) -> str | None:
    files = sorted((disk.directory / "device/scsi_disk").glob("*/cache_type"))
    return read_text(files[0]) if files else None


def _set_scsi(system: System, disk: BlockDevice, enabled: bool) -> CacheReport:
    files = sorted((disk.directory / "device/scsi_disk").glob("*/cache_type"))
    failure = ""
    try:
        files[0].write_text("write back\n" if enabled else "write through\n")
    except OSError as error:
        failure = f"mode select: {error.strerror}"
    state = _scsi_cache_type(system, disk)
    return _state(None if state is None else state.startswith("write back"), enabled, failure)


def _kernel_view(disk: BlockDevice) -> bool | None:
    state = read_text(disk.directory / "queue/write_cache")
    return None if state is None else state == "write back"
