"""This machine: its supported features, cache of prepared drives, and attached drives."""

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
    """Check which features of writecliff this machine supports. Changes nothing."""
    from writecliff.doctor import checks

    return Checks(checks())


def cached_drives() -> CacheList:
    """Return the prepared drives of the cache, least recently used first."""
    from writecliff.engines.state_cache import StateCache

    cache = StateCache.of_user()
    states = cache.states()
    return CacheList(cache.folder, cache.bytes_max, _size(states), _drives(states))


def prune_cache(size_bytes: int | None = None) -> CachePruned:
    """Remove prepared drives of other builds, then the least recently used.

    `size_bytes` is the size to which the cache is reduced (default: the limit of the cache).
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
    """Attach a drive that is served over NVMe/TCP.

    `host_nqn` is the NVMe qualified name of this machine (default: that in /etc/nvme/hostnqn).

    Raises:
        TargetError: The drive cannot be attached.
        ConfigError: The address is invalid.
    """
    from writecliff.engines.blockdev.nvme.fabrics import RemoteDrive, attach
    from writecliff.engines.blockdev.topology import System

    drive = attach(RemoteDrive.parse(address, host_nqn), System())
    return Attached(drive.devices[0], drive.devices, drive.nqn)


def detach_drive(name: str) -> Detached:
    """Detach a drive by its address, block device or qualified name. Raises TargetError."""
    from writecliff.engines.blockdev.nvme.fabrics import detach
    from writecliff.engines.blockdev.topology import System

    gone = detach(name, System())
    return Detached(gone.devices, gone.nqn)
