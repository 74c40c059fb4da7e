"""This machine: supported features, the prepared-drive cache, and attached drives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.api.answers.devices import CachedDrive, CacheList, CachePruned, Checks
from writecliff.api.answers.served import Attached, Detached

if TYPE_CHECKING:
    from writecliff.engines.state_cache import CachedState


def check_machine() -> Checks:
    """Check which writecliff features this machine supports. Changes nothing."""
    from writecliff.doctor import checks

    return Checks(checks())


def cached_drives() -> CacheList:
    """Return the prepared drives in the cache, in least recently used order."""
    from writecliff.engines.state_cache import StateCache

    cache = StateCache.of_user()
    states = cache.states()
    return CacheList(cache.folder, cache.bytes_max, _size(states), _drives(states))


def prune_cache(size_bytes: int | None = None) -> CachePruned:
    """Remove drives prepared by other builds, then the least recently used drives.

    `size_bytes` is the target cache size (default: the cache limit).
    """
    from writecliff.engines.state_cache import StateCache

    cache = StateCache.of_user()
    removed = cache.prune(cache.bytes_max if size_bytes is None else size_bytes)
    return CachePruned(cache.folder, cache.bytes_max, _size(cache.states()), _drives(removed))


def _size(states: Sequence[CachedState]) -> int:
    return sum(state.size_bytes for state in states)


def _drives(states: Sequence[CachedState]) -> list[CachedDrive]:
    return [
        CachedDrive(
            Path(state.path).name,
            state.drive,
            state.steps,
            state.size_bytes,
            datetime.fromtimestamp(state.used_s).astimezone().isoformat(timespec="seconds"),
            state.current,
        )
        for state in states
    ]


def attach_drive(address: str, host_nqn: str | None = None) -> Attached:
    """Attach a drive served over NVMe/TCP.

    `host_nqn` is this machine's NVMe qualified name (default: the name in /etc/nvme/hostnqn).

    Raises:
        TargetError: If the drive cannot be attached.
        ConfigError: If the address is invalid.
    """
    from writecliff.engines.blockdev.nvme.fabrics import RemoteDrive, attach
    from writecliff.engines.blockdev.topology import System

    drive = attach(RemoteDrive.parse(address, host_nqn), System())
    return Attached(drive.devices[0], drive.devices, drive.nqn)


def detach_drive(name: str) -> Detached:
    """Detach a drive, given its address, block device or qualified name. Raises TargetError."""
    from writecliff.engines.blockdev.nvme.fabrics import detach
    from writecliff.engines.blockdev.topology import System

    gone = detach(name, System())
    return Detached(gone.devices, gone.nqn)
