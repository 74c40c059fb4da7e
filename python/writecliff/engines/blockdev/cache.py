"""Sets and reads the volatile write cache of a drive, and reports what the drive itself says.

NVMe feature 06h of the controller (`nvme.cache`), SATA through hdparm -W, SCSI through the caching
mode page (08h, WCE) that the kernel offers as `cache_type`. A SATA drive that hdparm does not
reach, as behind many SAS adapters, is asked through the mode page too, which the adapter translates
(SAT-5), and so is a drive where hdparm is not installed. A virtio disk has its cache in its
configuration (Virtual I/O Device 1.2, 5.2.6.2: `writeback`), `cache_type` of the disk.
`queue/write_cache` is only the kernel's own belief (writing it does not reach the drive), so it is
reported as such and never written.
"""

from __future__ import annotations

from pathlib import Path

from writecliff.engines.base import CacheReport
from writecliff.engines.blockdev import hdparm
from writecliff.engines.blockdev.identity import is_ata, is_nvme
from writecliff.engines.blockdev.nvme import cache as nvme_cache
from writecliff.engines.blockdev.scsi_commands import mode_page
from writecliff.engines.blockdev.topology import BlockDevice, System, read_text

_CACHING_PAGE, _WCE = (0x08, 0x00), 0x04  # SBC-4 6.5.6: byte 2, bit 2


def set_write_cache(system: System, disk: BlockDevice, path: str, enabled: bool) -> CacheReport:
    """Ask the drive for a cache state; the report holds what it says afterwards."""
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
    if virtual.exists():  # virtio-blk: the file is the device's own configuration
        failure = _write_type(virtual, enabled)
        return _report(_read_type(virtual), enabled, failure)
    state = read_text(disk.directory / "queue/write_cache")
    kernel = None if state is None else state == "write back"
    return CacheReport(kernel, "no settable write cache; state as the kernel sees it")


def _by_hdparm(system: System, path: str, wanted: bool) -> CacheReport:
    wrote = system.run(["hdparm", "-W", str(int(wanted)), path])
    told = system.run(["hdparm", "-W", path])
    state = hdparm.write_cache_state(told)
    failure = hdparm.doubt(wrote) or ("" if wrote.ok else f"hdparm -W: {wrote.message}")
    return _report(state, wanted, failure or ("" if told.ok else told.message))


def _by_mode_page(system: System, cache_type: Path, path: str, wanted: bool) -> CacheReport:
    """The kernel sends MODE SELECT. The state is read from the drive itself, because the file keeps
    what an earlier MODE SENSE said.
    """
    failure = _write_type(cache_type, wanted)
    page = mode_page(system.scsi, Path(path), *_CACHING_PAGE)
    state = bool(page[2] & _WCE) if len(page) > 2 else _read_type(cache_type)
    return _report(state, wanted, failure and f"mode select: {failure}")


def _write_type(cache_type: Path, wanted: bool) -> str:
    """Returns why it failed, "" if it did not."""
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
