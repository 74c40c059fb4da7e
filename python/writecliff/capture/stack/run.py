"""Capture a command's I/O at each layer down to the drive.

The preload library captures system calls, and the kernel reports the other layers. Both traces are
written to memory (/dev/shm) and moved after the capture, because the capture would otherwise
include its own I/O. The file system is synced before the command, to exclude earlier writes by
other programs, and after the command, to include writes that the command left in the page cache.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from writecliff.capture import events
from writecliff.capture.block.run import BlockCapture, OtherEvent
from writecliff.capture.events import Events, Op
from writecliff.capture.run import Options, execute, program_of, session
from writecliff.capture.stack.extents import Extent, Waits, extents, waits
from writecliff.capture.stack.file_system import FileSystem, file_system_of, sync
from writecliff.capture.stack.origins import (
    DATA,
    JOURNAL,
    METADATA,
    NAMES,
    OTHERS,
    WRITTEN_BACK,
    origins,
)
from writecliff.capture.stack.result import Journal, OriginRow, PageCache, Stack
from writecliff.capture.stack.steps import Step, Traffic, traffic
from writecliff.capture.trace import Trace, codes, read_trace
from writecliff.capture.watch import is_static
from writecliff.engines.blockdev.topology import SECTOR
from writecliff.store.files import claim_directory, store_error

CALLS, DEVICE = "calls.parquet", "device.parquet"
_MEMORY = Path("/dev/shm")


def capture_stack(
    command: Sequence[str], folder: Path, *, root: Path, stdout: int | None = None
) -> Stack:
    """Run `command`, and capture its I/O to the files below `root` at each layer.

    Args:
        command: The command.
        folder: Folder for the traces `calls.parquet` and `device.parquet`, which must not exist or
            must be empty.
        root: Folder that contains the files to capture.
        stdout: File descriptor for the command's output.

    Raises:
        TargetError: If the program or folder does not exist, the folder is not on a block device,
            the process is not root, or the kernel has no tracefs.
        ConfigError: If `folder` is already in use.
        EngineError: If the kernel rejects the capture.
        StoreError: If a trace cannot be written.
    """
    program = program_of(command)
    file_system = file_system_of(root)
    memory = _MEMORY if _MEMORY.is_dir() else None
    claim_directory(folder)
    with tempfile.TemporaryDirectory(prefix="writecliff-", dir=memory) as text:
        place = Path(text)
        place.chmod(0o755)  # Programs that drop root privileges write their events to this folder.
        stack = _captured(command, program, file_system, root, place, stdout)
        for name in (CALLS, DEVICE):
            try:
                shutil.move(place / name, folder / name)
            except OSError as error:
                raise store_error(error, folder / name) from error
    return stack


def _captured(
    command: Sequence[str],
    program: str,
    file_system: FileSystem,
    root: Path,
    place: Path,
    stdout: int | None,
) -> Stack:
    sync(root)
    collected = Collected()
    capture = BlockCapture(
        file_system.device,
        place / DEVICE,
        others=wanted(file_system),
        on_events=collected.add,
    )
    try:
        options = Options(place / CALLS, root, reads=True)
        with session(options, public=place) as calls:
            if is_static(Path(program)):
                calls.notes.append(
                    f"{program} is statically linked: its system calls are not captured"
                )
            capture.start()
            code, watch = execute(command, calls.environment(), stdout, None, executable=program)
            ended_ns = time.monotonic_ns() - capture.began_ns
            sync(root)
            capture.stop()
            calls.notes += watch.notes()
            noted = events.read(calls.events)
            done = calls.finish(command, Path(program).name, code)
        metadata = capture.finish({"command": list(command), "notes": []})
    finally:
        capture.close()
    account = Account(
        file_system=file_system,
        root=root.resolve(),
        calls=read_trace(place / CALLS),
        drive=DriveRows.of(
            read_trace(place / DEVICE),
            kind=file_system.kind,
            program=processes(noted),
            capturing_pid=os.getpid(),
        ),
        events=collected,
        captured_events=capture.others,
        shift_ns=noted.start_ns - capture.began_ns,
    )
    notes = (*done.metadata["notes"], *metadata["notes"])
    return _summed_up(account, command, ended_ns, metadata, notes, code)


def processes(noted: Events) -> set[int]:
    """Return the captured processes."""
    mine = noted.slots["op"] == Op.PROCESS
    return set(np.unique(noted.slots["pid"][mine]).tolist())


def _summed_up(
    account: Account,
    command: Sequence[str],
    ended_ns: int,
    metadata: dict[str, object],
    notes: Sequence[str],
    code: int,
) -> Stack:
    calls = account.call_step()
    missing = {event.name for event in wanted(account.file_system)} - {
        event.name for event in account.captured_events
    }
    missing_notes = [f"this kernel has no event {name}" for name in sorted(missing)]
    return Stack(
        command=tuple(command),
        root=str(account.root),
        file_system=account.file_system.describe(),
        program_ns=ended_ns,
        duration_ns=int(str(metadata["duration_ns"])),
        calls=calls,
        bios=account.bio_step(),
        requests=account.request_step(),
        origins=tuple(account.origin_rows()),
        cache=account.page_cache(calls.reads.bytes),
        journal=account.journal(),
        waits=account.waits(),
        written=account.written(),
        lost_events=int(str(metadata["lost_events"])),
        exit_code=code,
        notes=(*notes, *missing_notes),
    )


# -- account ---------------------------------------------------------------------------------------

# Summarise the trace and the events of a capture by layer, origin, page cache and journal.

Numbers = NDArray[Any]
_OPS = ("read", "write", "punch", "fsync")
_POINTS = 400  # Maximum number of points per line in a time chart.
_NS_PER_S = 1e9


@dataclass(frozen=True)
class DriveRows:
    """Columns of requests to the drive, where unknown times are -1."""

    origin: Numbers  # Request origins (see `origins`).
    op: Numbers  # Indices into `_OPS`.
    offset: Numbers
    length: Numbers
    time_ns: Numbers
    issue_ns: Numbers
    complete_ns: Numbers
    readahead: Numbers

    @classmethod
    def of(
        cls, device: Trace, *, kind: str, program: Collection[int], capturing_pid: int
    ) -> DriveRows:
        """Return the requests in a trace, given the same other arguments as `origins`."""
        requests = device.requests
        assert requests is not None, "a trace of a block device has the columns of one"
        op, words = codes(device.table, "op")
        numbers = np.array([_OPS.index(word) for word in words], np.int8)
        flag, flags = codes(requests, "flags")
        readahead = np.array(["readahead" in text for text in flags], bool)
        return cls(
            origin=origins(
                device.table, requests, kind=kind, program=program, capturing_pid=capturing_pid
            ),
            op=numbers[op],
            offset=device.table["offset_bytes"].to_numpy(),
            length=device.table["length_bytes"].to_numpy(),
            time_ns=device.table["time_ns"].to_numpy(),
            issue_ns=requests["issue_ns"].fill_null(-1).to_numpy(),
            complete_ns=requests["complete_ns"].fill_null(-1).to_numpy(),
            readahead=readahead[flag],
        )

    def are(self, op: str, *origins: int) -> NDArray[np.bool_]:
        """Return a mask of the rows with this operation and one of the given origins.

        If no origins are given, all origins except other programs match.
        """
        ours = np.isin(self.origin, origins) if origins else self.origin != OTHERS
        mask: NDArray[np.bool_] = ours & (self.op == _OPS.index(op))
        return mask

    def traffic(self, mine: Numbers) -> Traffic:
        """Return the traffic in the selected rows."""
        return traffic(self.offset[mine], self.length[mine])


@dataclass(frozen=True)
class Account:
    """Captured data, where `shift_ns` is the difference between device times and call times."""

    file_system: FileSystem
    root: Path
    calls: Trace
    drive: DriveRows
    events: Collected
    captured_events: Sequence[OtherEvent]
    shift_ns: int

    def call_step(self) -> Step:
        """Return the system calls that access files below the root folder."""
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
        """Return the I/O from file system to block layer, or `None` if it was not captured."""
        _, values = self.events.of(BIO, self.captured_events)
        if BIO not in [event.name for event in self.captured_events]:
            return None
        device = self.file_system.device
        sector, sectors = values[:, 0] - device.first_sector, values[:, 1]
        words, number = np.unique(values[:, 2], return_inverse=True)
        flags = [letters(word) for word in words.tolist()]
        kinds = np.array([_bio_kind(text) for text in flags], np.int8)[number]
        asks = np.array([text[:1] == "F" for text in flags], bool)[number]
        inside = (sector >= 0) & (sector < device.end_sector - device.first_sector)
        kinds = np.where(inside | (sectors == 0), kinds, -1)

        def of(op: str) -> Traffic:
            mine = (kinds == _OPS.index(op)) & (sectors > 0)
            return traffic(sector[mine] * SECTOR, sectors[mine] * SECTOR)

        flushes = int((asks & (kinds >= 0)).sum())
        return Step("bios", of("read"), of("write"), of("punch"), flushes)

    def request_step(self) -> Step:
        """Return the requests to the driver, excluding other programs' requests."""
        drive = self.drive
        read, write, punch = (drive.traffic(drive.are(op)) for op in _OPS[:3])
        return Step("requests", read, write, punch, int(drive.are("fsync").sum()))

    def origin_rows(self) -> Iterator[OriginRow]:
        """Yield a row for each origin and operation that has requests."""
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
        """Return the page cache activity."""
        drive = self.drive
        read_in = drive.are("read", DATA, WRITTEN_BACK)

        def pages(name: str) -> int:
            _, values = self.events.of(name, self.captured_events)
            return int((1 << values[:, 2]).sum())

        return PageCache(
            asked_bytes=asked_bytes,
            read_in_bytes=int(drive.length[read_in].sum()),
            readahead_bytes=int(drive.length[read_in & drive.readahead].sum()),
            added_pages=pages(ADDED),
            removed_pages=pages(REMOVED),
            dirtied_folios=len(self.events.of(DIRTIED, self.captured_events)[0]),
        )

    def journal(self) -> Journal | None:
        """Return the jbd2 commits, or `None` if the file system does not use jbd2."""
        if self.file_system.kind not in ("ext3", "ext4", "ocfs2"):
            return None
        _, values = self.events.of(COMMITTED, self.captured_events)
        return Journal(len(values), int(values[:, 0].sum()), int(values[:, 1].sum()))

    def waits(self) -> Waits | None:
        """Return the waiting times of written data, if the files' blocks can be located."""
        drive = self.drive
        mine = drive.are("write", DATA, WRITTEN_BACK) & (drive.issue_ns >= 0)
        requests = (drive.offset[mine], drive.length[mine], drive.issue_ns[mine])
        return waits(self.calls.table, requests, self._places(), self.shift_ns)

    def _places(self) -> dict[int, list[Extent]]:
        if self.file_system.number != self.file_system.device.device.number:
            return {}  # On btrfs, file system addresses differ from device addresses.
        table = self.calls.table
        path, words = codes(table, "path")
        last = dict(zip(table["file"].to_pylist(), path.tolist(), strict=True))
        places = {}
        for number, name in last.items():
            try:
                places[number] = list(extents(self.root / words[name]))
            except (OSError, ValueError):
                # The file was deleted, or the file system does not support FIEMAP.
                continue
        return places

    def written(self) -> dict[str, tuple[list[float], list[float]]]:
        """Return the cumulative bytes written over time."""
        op, words = codes(self.calls.table, "op")
        table = self.calls.table
        mine = op == words.index("write") if "write" in words else np.zeros(len(op), bool)
        called = table["time_ns"].to_numpy()[mine] + self.shift_ns
        written = {"calls": _summed(called, table["length_bytes"].to_numpy()[mine])}
        kinds = {"data": (DATA, WRITTEN_BACK), "metadata": (METADATA,), "journal": (JOURNAL,)}
        for name, numbers in kinds.items():
            mine = self.drive.are("write", *numbers)
            written[name] = _summed(self.drive.time_ns[mine], self.drive.length[mine])
        return written


def _bio_kind(text: str) -> int:
    """Return the operation that a bio's letters encode, or -1 for commands that move no data."""
    rest = text[1:] if text[:1] == "F" and text[1:2] in set("WRDFN") else text
    return {"R": 0, "W": 2 if rest[1:2] == "Z" else 1, "D": 2, "N": 2, "F": 3}.get(rest[:1], -1)


def _quantile(values: Numbers, percent: int) -> int | None:
    if not len(values):
        return None
    return int(np.percentile(values, percent, method="inverted_cdf"))


def _summed(time_ns: Numbers, length: Numbers) -> tuple[list[float], list[float]]:
    """Return times in s and cumulative bytes, with enough points for a smooth line."""
    if not len(time_ns):
        return [], []
    total = np.cumsum(length)
    at = np.unique(np.linspace(0, len(total) - 1, _POINTS).astype(np.int64))
    return (time_ns[at] / _NS_PER_S).tolist(), total[at].astype(float).tolist()


# -- kernel events ---------------------------------------------------------------------------------

# Kernel events between system calls and requests: page cache, journal and bio events.

ADDED = "filemap/mm_filemap_add_to_page_cache"
REMOVED = "filemap/mm_filemap_delete_from_page_cache"
DIRTIED = "writeback/writeback_dirty_folio"
COMMITTED = "jbd2/jbd2_run_stats"
BIO = "block/block_bio_queue"


def wanted(file_system: FileSystem) -> list[OtherEvent]:
    """Return the events to capture on `file_system`. Some kernels lack some of these events."""
    number, device = file_system.kernel_number, file_system.device
    major, minor = device.disk.number
    journal = device.device.number[0] << 20 | device.device.number[1]
    events = [
        OtherEvent(ADDED, f"s_dev == {number}", ("i_ino", "index", "order")),
        OtherEvent(REMOVED, f"s_dev == {number}", ("i_ino", "index", "order")),
        OtherEvent(DIRTIED, f'name == "{major}:{minor}"', ("ino", "index")),
        OtherEvent(COMMITTED, f"dev == {journal}", ("handle_count", "blocks_logged", "logging")),
    ]
    if device.has_requests:
        events.append(OtherEvent(BIO, device.bio_filter, ("sector", "nr_sector", "rwbs")))
    return events


class Collected:
    """Collector of kernel events."""

    def __init__(self) -> None:
        """Create a collector without events."""
        self._parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []

    def add(self, drained: Mapping[str, Any]) -> None:
        """Add events from `KernelTrace.drain`."""
        count = len(drained["event_kind"])
        if count:
            values = drained["event_values"].reshape(count, -1)
            self._parts.append((drained["event_kind"], drained["event_time_ns"], values))

    def of(self, name: str, events: Sequence[OtherEvent]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the times and fields of a named event, which are empty if the kernel lacks it."""
        names = [event.name for event in events]
        if name not in names or not self._parts:
            return np.zeros(0, np.int64), np.zeros((0, 3), np.int64)
        kind, time_ns, values = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        mine = kind == names.index(name)
        return time_ns[mine].astype(np.int64), values[mine]


def letters(rwbs: int) -> str:
    """Return a bio's letters, which the kernel's event stores as bytes."""
    raw = int(rwbs).to_bytes(8, "little", signed=True)
    return raw.partition(b"\0")[0].decode("ascii", "replace")
