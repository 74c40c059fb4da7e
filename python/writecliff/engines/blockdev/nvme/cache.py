"""Volatile write cache of NVMe drives: controller feature 06h (Base 2.1, 5.1.25.1.4)."""

from __future__ import annotations

from writecliff.engines.base import CacheReport
from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.topology import BlockDevice, System

_VOLATILE_WRITE_CACHE = 0x06


def set_write_cache(system: System, disk: BlockDevice, enabled: bool) -> CacheReport:
    """Enable or disable the cache, and return the state that the drive reports afterwards.

    A drive that has no volatile cache (Identify Controller, VWC bit 0) is reported as disabled,
    because its completed writes are durable.
    """
    drive = NvmeDrive(system, disk)
    try:
        if not drive.controller().has_volatile_cache:
            note = "the drive has no volatile write cache (VWC bit 0 is 0)"
            return CacheReport(False, note)
    except Refused as reason:
        return CacheReport(None, f"nvme id-ctrl: {reason}")
    failure = ""
    try:
        drive.set_feature(_VOLATILE_WRITE_CACHE, int(enabled))
    except Refused as reason:
        failure = f"nvme set-feature: {reason}"
    try:
        state = bool(drive.feature(_VOLATILE_WRITE_CACHE) & 1)
    except Refused as reason:
        return CacheReport(None, failure or f"nvme get-feature: {reason}")
    if state == enabled:
        return CacheReport(state)
    return CacheReport(state, f"the drive kept its setting: {failure or 'no reason given'}")
