"""Control of a drive's volatile write cache.

NVMe drives use feature 06h of the controller (`nvme.cache`), and SATA drives use `hdparm -W`. SCSI
drives use the caching mode page (08h, WCE), which the kernel exposes as `cache_type`. If hdparm is
missing or cannot reach a SATA drive (for example, behind many SAS adapters), the mode page is used,
which the adapter translates (SAT-5). A virtio disk exposes its cache mode in its configuration
(Virtual I/O Device 1.2, 5.2.6.2: `writeback`), which the disk's `cache_type` reports.
`queue/write_cache` is only the kernel's view of the cache. Writing `queue/write_cache` does not
reach the drive, so this file is only read.
"""

from __future__ import annotations

from pathlib import Path

from writecliff.engines.base import CacheReport
from writecliff.engines.blockdev import hdparm
from writecliff.engines.blockdev.identity import is_ata, is_nvme
from writecliff.engines.blockdev.nvme import cache as nvme_cache
from writecliff.engines.blockdev.scsi_commands import mode_page
from writecliff.engines.blockdev.topology import BlockDevice, System, read_text

# Caching mode page and its WCE bit (SBC-4 6.5.6: byte 2, bit 2).
_CACHING_PAGE, _WCE = (0x08, 0x00), 0x04


def set_write_cache(system: System, disk: BlockDevice, path: str, enabled: bool) -> CacheReport:
    """Enable or disable the write cache, and return the state that the drive reports afterwards."""
    if is_nvme(disk):
        return nvme_cache.set_write_cache(system, disk, enabled)
    mode_pages = sorted((disk.directory / "device/scsi_disk").glob("*/cache_type"))
    if is_ata(disk):
        report = _by_hdparm(system, path, enabled)
        if report.enabled is not None or not mode_pages:
            return report
    if mode_pages:
        return _by_mode_page(system, mode_pages[0], path, enabled)
    virtual = disk.directory / "cache_type"
    if virtual.exists():  # On virtio-blk, this file exposes the device configuration.
        failure = _write_type(virtual, enabled)
        return _report(_read_type(virtual), enabled, failure)
    state = read_text(disk.directory / "queue/write_cache")
    kernel = None if state is None else state == "write back"
    return CacheReport(kernel, "no settable write cache; state as the kernel sees it")


def _by_hdparm(system: System, path: str, wanted: bool) -> CacheReport:
    wrote = system.run(["hdparm", "-W", str(int(wanted)), path])
    answer = system.run(["hdparm", "-W", path])
    state = hdparm.write_cache_state(answer)
    failure = hdparm.doubt(wrote) or ("" if wrote.ok else f"hdparm -W: {wrote.message}")
    return _report(state, wanted, failure or ("" if answer.ok else answer.message))


def _by_mode_page(system: System, cache_type: Path, path: str, wanted: bool) -> CacheReport:
    """Set the cache through the kernel's MODE SELECT, and read the state back from the drive.

    `cache_type` itself shows the state of an earlier MODE SENSE.
    """
    failure = _write_type(cache_type, wanted)
    page = mode_page(system.scsi, Path(path), *_CACHING_PAGE)
    state = bool(page[2] & _WCE) if len(page) > 2 else _read_type(cache_type)
    return _report(state, wanted, failure and f"mode select: {failure}")


def _write_type(cache_type: Path, wanted: bool) -> str:
    """Write the file, and return the reason for a failure, or "" on success."""
    try:
        cache_type.write_text("write back\n" if wanted else "write through\n")
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _read_type(cache_type: Path) -> bool | None:
    text = read_text(cache_type)
    return None if text is None else text.startswith("write back")


def _report(state: bool | None, wanted: bool, failure: str) -> CacheReport:
    if state is None:
        return CacheReport(None, failure or "the drive does not report the state of its cache")
    note = "" if state == wanted else f"the drive kept its setting: {failure or 'no reason given'}"
    return CacheReport(state, note)
