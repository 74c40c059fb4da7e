"""Sums a capture up: from traces and events to steps, origins, page cache and journal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from writecliff.capture.block.run import OtherEvent
from writecliff.capture.stack import kernel_events
from writecliff.capture.stack.extents import Extent, Waits, extents, waits
from writecliff.capture.stack.file_system import FileSystem
from writecliff.capture.stack.kernel_events import Collected, letters
from writecliff.capture.stack.origins import (
    DATA,
    JOURNAL,
    METADATA,
    NAMES,
    OTHERS,
    WRITTEN_BACK,
    origins,
)
from writecliff.capture.stack.result import Journal, OriginRow, PageCache
from writecliff.capture.stack.steps import Step, Traffic, traffic
from writecliff.capture.trace import Trace, codes
from writecliff.engines.blockdev.topology import SECTOR

Numbers = NDArray[Any]
_OPS = ("read", "write", "punch", "fsync")
_POINTS = 400  # of a line over time
_NS_PER_S = 1e9


@dataclass(frozen=True)
class DriveRows:
    """The requests to the drive as columns; times that are not known are -1."""

    origin: Numbers  # see `origins`
    op: Numbers  # index into `_OPS`
    offset: Numbers
    length: Numbers
    time_ns: Numbers
    issue_ns: Numbers
    complete_ns: Numbers
    readahead: Numbers

    @classmethod
    def of(cls, device: Trace, *, kind: str, program: Collection[int], own: int) -> DriveRows:
        """Those of a trace; the rest is as in `origins`."""
        requests = device.requests
        assert requests is not None, "a trace of a block device has the columns of one"
        op, words = codes(device.table, "op")
        numbers = np.array([_OPS.index(word) for word in words], np.int8)
        flag, flags = codes(requests, "flags")
        readahead = np.array(["readahead" in text for text in flags], bool)
        return cls(
            origin=origins(device.table, requests, kind=kind, program=program, own=own),
            op=numbers[op],
            offset=device.table["offset_bytes"].to_numpy(),
            length=device.table["length_bytes"].to_numpy(),
            time_ns=device.table["time_ns"].to_numpy(),
            issue_ns=requests["issue_ns"].fill_null(-1).to_numpy(),
            complete_ns=requests["complete_ns"].fill_null(-1).to_numpy(),
            readahead=readahead[flag],
        )

    def are(self, op: str, *origins: int) -> NDArray[np.bool_]:
        """Which rows are of this operation and one of these origins; of all but other programs
        if none are given."""
        ours = np.isin(self.origin, origins) if origins else self.origin != OTHERS
        found: NDArray[np.bool_] = ours & (self.op == _OPS.index(op))
        return found

    def traffic(self, mine: Numbers) -> Traffic:
        return traffic(self.offset[mine], self.length[mine])


@dataclass(frozen=True)
class Account:
    """What was captured; `shift_ns`: from the times of the calls to those of the device."""

    file_system: FileSystem
    root: Path
    calls: Trace
    drive: DriveRows
    events: Collected
    known: Sequence[OtherEvent]
    shift_ns: int

    def call_step(self) -> Step:
        """The system calls on files below the root."""
        table = self.calls.table
        op, words = codes(table, "op")
        columns = [table[name].to_numpy() for name in ("offset_bytes", "length_bytes", "file")]

        def of(name: str) -> Traffic:
            mine = op == words.index(name) if name in words else np.zeros(len(op), bool)
            return traffic(*(column[mine] for column in columns))

        syncs = int((op == words.index("fsync")).sum()) if "fsync" in words else 0
        syncs -= self.calls.metadata.get("implied_syncs", 0)
        return Step("calls", of("read"), of("write"), of("punch"), syncs)

    def bio_step(self) -> Step | None:
        """What the file system asks the block layer for; None if that was not captured."""
        _, values = self.events.of(kernel_events.BIO, self.known)
        if kernel_events.BIO not in [event.name for event in self.known]:
            return None
        device = self.file_system.device
        sector, sectors = values[:, 0] - device.first_sector, values[:, 1]
        words, number = np.unique(values[:, 2], return_inverse=True)
        said = [letters(word) for word in words.tolist()]
        kinds = np.array([_bio_kind(text) for text in said], np.int8)[number]
        asks = np.array([text[:1] == "F" for text in said], bool)[number]
        inside = (sector >= 0) & (sector < device.end_sector - device.first_sector)
        kinds = np.where(inside | (sectors == 0), kinds, -1)

        def of(op: str) -> Traffic:
            mine = (kinds == _OPS.index(op)) & (sectors > 0)
            return traffic(sector[mine] * SECTOR, sectors[mine] * SECTOR)

        flushes = int((asks & (kinds >= 0)).sum())
        return Step("bios", of("read"), of("write"), of("punch"), flushes)

    def request_step(self) -> Step:
        """What the driver gets, without requests of other programs."""
        drive = self.drive
        read, write, punch = (drive.traffic(drive.are(op)) for op in _OPS[:3])
        return Step("requests", read, write, punch, int(drive.are("fsync").sum()))

    def origin_rows(self) -> Iterator[OriginRow]:
        """A row for each origin and operation that there are requests of."""
        drive = self.drive
        for origin, name in enumerate(NAMES):
            for op in _OPS:
                mine = drive.are(op, origin)
                if not mine.any():
                    continue
                issued = mine & (drive.issue_ns >= 0)
                done = issued & (drive.complete_ns >= 0)
                service = (drive.complete_ns - drive.issue_ns)[done]
                moved = Traffic(int(mine.sum())) if op == "fsync" else drive.traffic(mine)
                yield OriginRow(
                    origin,
                    name,
                    op,
                    moved,
                    _quantile((drive.issue_ns - drive.time_ns)[issued], 50),
                    _quantile(service, 50),
                    _quantile(service, 99),
                )

    def page_cache(self, asked_bytes: int) -> PageCache:
        """What the page cache did."""
        drive = self.drive
        read_in = drive.are("read", DATA, WRITTEN_BACK)

        def pages(name: str) -> int:
            _, values = self.events.of(name, self.known)
            return int((1 << values[:, 2]).sum())

        return PageCache(
            asked_bytes=asked_bytes,
            read_in_bytes=int(drive.length[read_in].sum()),
            readahead_bytes=int(drive.length[read_in & drive.readahead].sum()),
            added_pages=pages(kernel_events.ADDED),
            removed_pages=pages(kernel_events.REMOVED),
            dirtied_folios=len(self.events.of(kernel_events.DIRTIED, self.known)[0]),
        )

    def journal(self) -> Journal | None:
        """The commits of jbd2; None on other file systems."""
        if self.file_system.kind not in ("ext3", "ext4", "ocfs2"):
            return None
        _, values = self.events.of(kernel_events.COMMITTED, self.known)
        return Journal(len(values), int(values[:, 0].sum()), int(values[:, 1].sum()))

    def waits(self) -> Waits | None:
        """How long written data waited, where files can be located."""
        drive = self.drive
        mine = drive.are("write", DATA, WRITTEN_BACK) & (drive.issue_ns >= 0)
        requests = (drive.offset[mine], drive.length[mine], drive.issue_ns[mine])
        return waits(self.calls.table, requests, self._places(), self.shift_ns)

    def _places(self) -> dict[int, list[Extent]]:
        if self.file_system.number != self.file_system.device.device.number:
            return {}  # its addresses are not those of the device (btrfs)
        table = self.calls.table
        path, words = codes(table, "path")
        last = dict(zip(table["file"].to_pylist(), path.tolist(), strict=True))
        found = {}
        for number, name in last.items():
            try:
                found[number] = list(extents(self.root / words[name]))
            except (OSError, ValueError):  # removed meanwhile, or no such answer
                continue
        return found

    def written(self) -> dict[str, tuple[list[float], list[float]]]:
        """Bytes written over time."""
        op, words = codes(self.calls.table, "op")
        table = self.calls.table
        mine = op == words.index("write") if "write" in words else np.zeros(len(op), bool)
        called = table["time_ns"].to_numpy()[mine] + self.shift_ns
        found = {"calls": _summed(called, table["length_bytes"].to_numpy()[mine])}
        kinds = {"data": (DATA, WRITTEN_BACK), "metadata": (METADATA,), "journal": (JOURNAL,)}
        for name, numbers in kinds.items():
            mine = self.drive.are("write", *numbers)
            found[name] = _summed(self.drive.time_ns[mine], self.drive.length[mine])
        return found


def _bio_kind(text: str) -> int:
    """The operation of a bio by its letters; -1 for commands that move no data."""
    rest = text[1:] if text[:1] == "F" and text[1:2] in set("WRDFN") else text
    return {"R": 0, "W": 2 if rest[1:2] == "Z" else 1, "D": 2, "N": 2, "F": 3}.get(rest[:1], -1)


def _quantile(values: Numbers, percent: int) -> int | None:
    if not len(values):
        return None
    return int(np.percentile(values, percent, method="inverted_cdf"))


def _summed(time_ns: Numbers, length: Numbers) -> tuple[list[float], list[float]]:
    """Seconds and bytes until then, at so many points that a line shows them all."""
    if not len(time_ns):
        return [], []
    total = np.cumsum(length)
    at = np.unique(np.linspace(0, len(total) - 1, _POINTS).astype(np.int64))
    return (time_ns[at] / _NS_PER_S).tolist(), total[at].astype(float).tolist()
