"""The kernel's events between system calls and requests: page cache, journal, bios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from writecliff.capture.block.run import OtherEvent
from writecliff.capture.stack.file_system import FileSystem

ADDED = "filemap/mm_filemap_add_to_page_cache"
REMOVED = "filemap/mm_filemap_delete_from_page_cache"
DIRTIED = "writeback/writeback_dirty_folio"
COMMITTED = "jbd2/jbd2_run_stats"
BIO = "block/block_bio_queue"


def wanted(file_system: FileSystem) -> list[OtherEvent]:
    """The events that tell of `file_system`. A kernel may lack some of them."""
    number, device = file_system.kernel_number, file_system.device
    major, minor = device.disk.number
    journal = device.device.number[0] << 20 | device.device.number[1]
    found = [
        OtherEvent(ADDED, f"s_dev == {number}", ("i_ino", "index", "order")),
        OtherEvent(REMOVED, f"s_dev == {number}", ("i_ino", "index", "order")),
        OtherEvent(DIRTIED, f'name == "{major}:{minor}"', ("ino", "index")),
        OtherEvent(COMMITTED, f"dev == {journal}", ("handle_count", "blocks_logged", "logging")),
    ]
    if device.has_requests:
        found.append(OtherEvent(BIO, device.bio_filter, ("sector", "nr_sector", "rwbs")))
    return found


class Collected:
    """Keeps events as they come."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []

    def add(self, drained: Mapping[str, Any]) -> None:
        """Take what `KernelTrace.drain` gave."""
        count = len(drained["event_kind"])
        if count:
            values = drained["event_values"].reshape(count, -1)
            self._parts.append((drained["event_kind"], drained["event_time_ns"], values))

    def of(self, name: str, events: Sequence[OtherEvent]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Times and fields of the events of one name; empty if the kernel has none such."""
        names = [event.name for event in events]
        if name not in names or not self._parts:
            return np.zeros(0, np.int64), np.zeros((0, 3), np.int64)
        kind, time_ns, values = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        mine = kind == names.index(name)
        return time_ns[mine].astype(np.int64), values[mine]


def letters(rwbs: int) -> str:
    """The letters of a bio, which the kernel's event has as bytes."""
    raw = int(rwbs).to_bytes(8, "little", signed=True)
    return raw.partition(b"\0")[0].decode("ascii", "replace")
