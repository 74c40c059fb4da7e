"""Conversion of captured events to a trace table and metadata."""

from __future__ import annotations

import errno
import os
import posixpath
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from writecliff.capture.events import LONGEST_NS, TIME_MAX_NS, Events, Flag, Op
from writecliff.capture.trace import OPS

Integers = NDArray[np.int64]

_NAMING = (Op.OPEN, Op.FILE, Op.UNLINK, Op.RENAME, Op.LINK, Op.HINT)
_DATA = {
    Op.WRITE: "write",
    Op.READ: "read",
    Op.FSYNC: "fsync",
    Op.TRUNCATE: "truncate",
    Op.PUNCH: "punch",
}
_VIRTUAL = ("/proc/", "/sys/", "/dev/shm/", "/dev/pts/", "/memfd:", "/SYSV", "/[")
# Process roles in PostgreSQL's process titles; all other processes are backends.
_ROLES = (
    "archiver", "autovacuum launcher", "autovacuum worker", "background worker",
    "background writer", "checkpointer", "logger", "logical replication", "parallel worker",
    "startup", "walreceiver", "walsender", "walwriter",
)  # fmt: skip


@dataclass(frozen=True)
class Converted:
    """The table and metadata of a trace."""

    table: pa.Table
    metadata: dict[str, Any]


@dataclass(frozen=True)
class _Rows:
    """Rows, excluding text columns, as parallel arrays that have one value per row."""

    event: Integers
    op: Integers  # Index into `OPS`.
    offset: Integers
    length: Integers
    state: Integers  # Index into the state list.

    @classmethod
    def joined(cls, parts: Iterable[_Rows]) -> _Rows:
        return cls(*map(np.concatenate, zip(*(part._columns() for part in parts), strict=True)))

    def taken(self, chosen: NDArray[Any]) -> _Rows:
        """Select rows by a mask or an index array."""
        return _Rows(*(column[chosen] for column in self._columns()))

    def _columns(self) -> list[Integers]:
        return [getattr(self, field.name) for field in fields(self)]

    def of(self, *names: str) -> NDArray[np.bool_]:
        """Return a mask of the rows that have one of these operations."""
        return np.isin(self.op, [OPS.index(name) for name in names])


def convert(events: Events, *, root: Path | None = None, source: str = "preload") -> Converted:
    """Convert `events` to a trace.

    Args:
        events: The recorded events.
        root: If set, include only files below this folder, with paths relative to the folder. If
            `None`, include all files except those of kernel and memory file systems; paths below
            the current folder are relative to that folder, and all other paths are absolute.
        source: Recording method to store in the metadata.
    """
    objects = _objects(events)
    rows = _all_rows(events, objects)
    paths, shown = _shown_paths([state.path for state in objects.states], root)
    rows = rows.taken(shown[rows.state] if len(rows.state) else np.zeros(0, bool))
    slots = events.slots
    since = slots["time_ns"][rows.event]
    start_ns = min(events.start_ns, TIME_MAX_NS)
    # The trace file stores unsigned columns. Clamp times outside the capture to its start or end.
    end_ns = np.uint64(start_ns + LONGEST_NS)
    time_ns = (np.clip(since, np.uint64(start_ns), end_ns) - np.uint64(start_ns)).astype(np.int64)
    time_ns = np.maximum.accumulate(time_ns) if len(time_ns) else time_ns
    file = np.array([state.file for state in objects.states], np.int32)
    hint = np.array([state.hint for state in objects.states], np.int8)[rows.state]
    numbers, file_column = np.unique(file[rows.state], return_inverse=True)
    comms, comm = np.unique(slots["comm"][rows.event], return_inverse=True)
    processes, process = _processes(events, rows.event)
    table = pa.table(
        {
            "time_ns": time_ns,
            "op": _dictionary(rows.op, list(OPS)),
            "file": file_column.astype(np.int32),
            "path": _dictionary(rows.state, paths),
            "offset_bytes": rows.offset,
            "length_bytes": rows.length,
            "thread": _dictionary(comm, [_text(name) for name in comms.tolist()]),
            "process": _dictionary(process, processes),
            "hint": pa.array(hint, mask=hint == NO_HINT),
        }
    )
    metadata = _metadata(events, objects, rows, set(numbers.tolist()))
    return Converted(table, metadata | {"sources": [source]})


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _integers(values: Iterable[int]) -> Integers:
    return np.array(list(values), np.int64)


def _dictionary(codes: NDArray[Any], words: list[str]) -> pa.DictionaryArray:
    """Return a dictionary-encoded text column whose dictionary has no duplicate or unused words."""
    used, inverse = np.unique(codes, return_inverse=True)
    distinct: dict[str, int] = {}
    numbering = np.array([distinct.setdefault(words[c], len(distinct)) for c in used], np.int32)
    indices = numbering[inverse] if len(used) else np.zeros(0, np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int32()), pa.array(list(distinct), pa.string())
    )


def _objects(events: Events) -> Objects:
    slots = events.slots
    objects = Objects()
    for index in np.flatnonzero(np.isin(slots["op"], _NAMING)).tolist():
        slot = slots[index]
        objects.take(
            ObjectEvent(
                index=index,
                key=(int(slot["dev"]), int(slot["ino"])),
                text=os.fsdecode(events.text.get(index, b"")),
                **{name: int(slot[name]) for name in ("op", "flags", "errno", "nlink", "a", "b")},
            )
        )
    return objects


class _Lookup:
    """Lookup of a file's state by device, inode number and event."""

    def __init__(self, events: Events, objects: Objects) -> None:
        """Build an index of the file states in `objects`."""
        self._slots = events.slots
        keys = {key: code for code, key in enumerate({state.key for state in objects.states})}
        self._span = max(1, len(events.slots))
        stamps = _integers(keys[s.key] * self._span + s.since for s in objects.states)
        # A stable sort preserves the order of states from the same event.
        self._order = np.argsort(stamps, kind="stable")
        self._stamps = stamps[self._order]
        self._keys = keys

    def states(self, event: Integers) -> Integers:
        """Return the index of each file's state at an event, or -1 for an unknown file."""
        if not len(self._stamps):
            return np.full(len(event), -1, np.int64)
        pairs = np.empty(len(event), [("dev", "u8"), ("ino", "u8")])
        for name in ("dev", "ino"):
            pairs[name] = self._slots[name][event]
        distinct, inverse = np.unique(pairs, return_inverse=True)
        codes = _integers(self._keys.get((int(p["dev"]), int(p["ino"])), -1) for p in distinct)
        code = codes[inverse.reshape(-1)]
        index = np.searchsorted(self._stamps, code * self._span + event, side="right") - 1
        is_known = (index >= 0) & (code >= 0)
        index = np.where(is_known, index, 0)
        same = self._stamps[index] // self._span == code
        return np.where(is_known & same, self._order[index], -1)


def _all_rows(events: Events, objects: Objects) -> _Rows:
    """Return all rows in event order, moving each removal to the last use of the removed file."""
    slots = events.slots
    lookup = _Lookup(events, objects)
    at = np.flatnonzero(np.isin(slots["op"], list(_DATA)))
    codes = np.zeros(256, np.int64)
    for op, name in _DATA.items():
        codes[op] = OPS.index(name)
    offset, length = (slots[name][at].astype(np.int64) for name in ("a", "b"))
    data = _Rows(at, codes[slots["op"][at]], offset, length, lookup.states(at))
    data = data.taken(data.state >= 0)
    data.length[data.of("fsync", "truncate")] = 0
    named = objects.rows + _unseen_births(objects, data)
    at = _integers(row.event for row in named)
    naming = _Rows(
        at,
        _integers(OPS.index(row.op) for row in named),
        _integers(row.offset_bytes for row in named),
        _integers(row.length_bytes for row in named),
        lookup.states(at),
    )
    rows = _Rows.joined((data, naming, _removals(events, objects, lookup, data)))
    rank = np.where(rows.of("create"), 0, np.where(rows.of("unlink"), 2, 1))
    return rows.taken(np.lexsort((rank, rows.event)))


def _file_of(objects: Objects, state: Integers) -> Integers:
    return _integers(s.file for s in objects.states)[state]


def _unseen_births(objects: Objects, data: _Rows) -> list[NamingRow]:
    """Return `create` rows for files whose creation is inferred from the first write."""
    if not len(data.state):
        return []
    files, first = np.unique(_file_of(objects, data.state), return_index=True)
    writes = data.of("write")
    rows = []
    for number, row in zip(files.tolist(), first.tolist(), strict=True):
        file = objects.files[number]
        whole = file.sized_bytes == data.length[row] and data.offset[row] == 0
        if whole and writes[row]:
            rows.append(NamingRow(int(data.event[row]), "create", file.key))
    return rows


def _removals(events: Events, objects: Objects, lookup: _Lookup, data: _Rows) -> _Rows:
    """Return `unlink` rows, because an unlinked file's space is freed only after the last use."""
    last = np.full(len(objects.files), -1, np.int64)
    if len(data.state):
        np.maximum.at(last, _file_of(objects, data.state), data.event)
    closes = np.flatnonzero(events.slots["op"] == Op.CLOSE)
    state = lookup.states(closes)
    np.maximum.at(last, _file_of(objects, state[state >= 0]), closes[state >= 0])
    final_state = {state_.file: index for index, state_ in enumerate(objects.states)}
    gone = [file for file in objects.files if file.unlinked_at is not None]
    at = _integers(max(f.unlinked_at or 0, last[f.number]) for f in gone)
    unlink, nothing = np.full(len(gone), OPS.index("unlink"), np.int64), np.zeros(len(gone), int)
    return _Rows(at, unlink, nothing, nothing, _integers(final_state[f.number] for f in gone))


def _shown_paths(paths: list[str], root: Path | None) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the paths to show in the trace, and a mask of the paths that are included."""
    base = os.path.realpath(root) if root is not None else str(Path.cwd())
    prefix = base.rstrip("/") + "/"
    if root is not None:
        shown_mask = [path.startswith(prefix) for path in paths]
    else:
        shown_mask = [not path.startswith(_VIRTUAL) for path in paths]
    # File names are bytes, so names that are not UTF-8 are escaped.
    shown = [
        os.fsencode(path.removeprefix(prefix)).decode(errors="backslashreplace") for path in paths
    ]
    return shown, np.array(shown_mask, bool)


def _processes(events: Events, at: Integers) -> tuple[list[str], Integers]:
    """Return the process names, and each event's index into these names."""
    slots = events.slots
    names: dict[int, str] = {}
    for index in np.flatnonzero(np.isin(slots["op"], (Op.PROCESS, Op.TITLE))).tolist():
        pid, comm = int(slots["pid"][index]), _text(slots["comm"][index])
        if slots["op"][index] == Op.PROCESS:
            names[pid] = comm
        else:
            names[pid] = _titled(names.get(pid, comm), events.text.get(index, b""))
    pids, inverse = np.unique(slots["pid"][at], return_inverse=True)
    return [names.get(pid, f"process {pid}") for pid in pids.tolist()], inverse.reshape(-1)


def _titled(name: str, title: bytes) -> str:
    """Return a name such as `postgres: checkpointer` if the title names a role, else `name`."""
    program = name.split(":", maxsplit=1)[0]
    head, has_title, role = _text(title.split(b"\0")[0]).partition("postgres: ")
    if program != "postgres" or not has_title or head.strip("/"):
        return name
    return f"{program}: {next((r for r in _ROLES if role.startswith(r)), 'backend')}"


def _metadata(events: Events, objects: Objects, rows: _Rows, files: set[int]) -> dict[str, object]:
    slots = events.slots
    hints = rows.length[rows.of("hint")]
    refused = Counter(errno.errorcode.get(e, str(e)) for e in hints[hints > 0].tolist())
    repaired = (slots["op"] == Op.HINT) & (slots["flags"] & Flag.REPAIRED > 0)
    return {
        "notes": _notes(events, objects, rows, files),
        "hints": {
            "delivered": int(np.count_nonzero(hints == 0)),
            "refused": int(np.count_nonzero(hints > 0)),
            "errors": dict(sorted(refused.items())),
            "repaired": int(np.count_nonzero(repaired)),
        },
        "reads": events.with_reads,
        "bytes_written": int(rows.length[rows.of("write")].sum()),
        "bytes_read": int(rows.length[rows.of("read")].sum()),
        "implied_syncs": int(
            np.count_nonzero(rows.of("fsync") & (slots["flags"][rows.event] & Flag.IMPLIED > 0))
        ),
        "files": len(files),
        "processes": len(np.unique(slots["pid"][slots["op"] == Op.PROCESS])),
        "dropped": events.dropped,
    }


def _notes(events: Events, objects: Objects, rows: _Rows, files: set[int]) -> list[str]:
    notes = []
    if not events.dropped and not (events.slots["op"] == Op.PROCESS).any():
        notes.append(
            "no program loaded the capture library: the program is statically linked, changes its "
            "user, or was started without its environment"
        )
    if events.impossible:
        notes.append(
            f"omitted {_count(events.impossible, 'event')} that no program can cause: the events "
            f"are damaged"
        )
    if events.untimely:
        notes.append(
            f"{_count(events.untimely, 'event')} outside the capture time: times and rates of "
            f"this trace are unreliable"
        )
    if events.dropped:
        notes.append(f"{events.dropped} events are missing because the disk was full")
    mapped = events.slots[events.slots["op"] == Op.MMAP]
    keys = {(int(d), int(i)) for d, i in zip(mapped["dev"], mapped["ino"], strict=True)}
    paths = sorted(f.path for f in objects.files if f.key in keys and f.number in files)
    paths = [path for path in paths if "/hsperfdata_" not in path]
    if paths:
        notes.append(
            f"{_count(len(paths), 'file')} mapped for writing; writes to mapped memory are not in "
            f"the trace: {some_of(paths)}"
        )
    grown = _grown(objects, rows)
    if grown:
        notes.append(
            f"{_count(len(grown), 'file')} grew by {sum(grown.values())} bytes that no captured "
            f"call wrote (mapped, io_uring, preallocated, or direct system calls): {some_of(grown)}"
        )
    unfinished = int(np.count_nonzero(events.slots["op"] == 0))
    if unfinished:
        notes.append(f"{unfinished} events were incomplete when their program exited")
    return notes


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def some_of(paths: Iterable[str]) -> str:
    """Return up to three of the paths, separated by commas."""
    every = list(paths)
    return ", ".join(every[:3]) + (", ..." if len(every) > 3 else "")


def _grown(objects: Objects, rows: _Rows) -> dict[str, int]:
    """Return the growth in bytes, by path, of files that are longer than their captured writes."""
    if not len(rows.state):
        return {}
    file = _file_of(objects, rows.state)
    end = np.zeros(len(objects.files), np.int64)
    sizing = rows.of("write", "truncate")
    np.maximum.at(end, file[sizing], rows.offset[sizing] + rows.length[sizing])
    grown = {}
    for number in np.unique(file[rows.of("create")]).tolist():
        file_ = objects.files[number]
        try:
            stat = Path(file_.path).stat()
        except (OSError, ValueError):
            # A ValueError indicates an invalid name from a damaged event.
            continue
        if stat.st_ino == file_.key[1] and stat.st_size > end[number]:
            grown[file_.path] = stat.st_size - int(end[number])
    return grown


# -- objects ---------------------------------------------------------------------------------------

# Determine the file object for each event, the object's path at that time, and its write-lifetime
# hint.
#
# The kernel identifies files by device and inode number, and reuses the inode numbers of deleted
# files. The module processes the events that create, name and remove files in order. For each file
# object, the module records the event from which a (device, inode) pair refers to that object.
# Transfers are looked up afterwards, one column at a time.

_DELETED = " (deleted)"
NO_HINT = -1
Key = tuple[int, int]  # Device number and inode number.


@dataclass
class FileObject:
    """A file between its creation or first use and its removal."""

    number: int
    key: Key
    path: str
    names: set[str] = field(default_factory=set)
    hint: int = NO_HINT
    unlinked_at: int | None = None  # Number of the event that removed the file's last name.
    sized_bytes: int | None = (
        None  # Initial size; `None` if the capture includes the file's creation.
    )


@dataclass(frozen=True)
class State:
    """A file's state from event `since` on: identity, path and write-lifetime hint."""

    key: Key
    since: int
    file: int
    path: str
    hint: int


@dataclass(frozen=True)
class NamingRow:
    """A trace row for an event that creates, names or removes a file."""

    event: int
    op: str
    key: Key
    offset_bytes: int = 0
    length_bytes: int = 0


@dataclass(frozen=True)
class ObjectEvent:
    """An event that creates, names or removes a file, or sets its hint."""

    index: int
    op: int
    flags: int
    errno: int
    key: Key
    nlink: int
    a: int
    b: int
    text: str


@cache
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def canonical(path: str) -> str:
    """Return the kernel's path of a file, with `..` and symbolic links of its folder resolved."""
    path = posixpath.normpath(path)
    folder, name = posixpath.split(path)
    return posixpath.join(_real_folder(folder), name)


class Objects:
    """Files in a capture, with their states by event, and rows for naming events."""

    def __init__(self) -> None:
        """Create a set that contains no files."""
        self.files: list[FileObject] = []
        self.states: list[State] = []
        self.rows: list[NamingRow] = []
        self._current: dict[Key, FileObject] = {}
        self._former: dict[Key, FileObject] = {}

    def take(self, event: ObjectEvent) -> None:
        """Process an event, which must follow the previously processed event."""
        if event.op in (Op.OPEN, Op.FILE):
            self._opened(event)
        elif event.op == Op.UNLINK:
            self._unlinked(event)
        elif event.op == Op.RENAME:
            self._renamed(event)
        elif event.op == Op.LINK:
            file = self._current.get(event.key) or self._new(event, canonical(event.text))
            file.names.add(canonical(event.text))
            self._revive(file, event)
        elif event.op == Op.HINT:
            self._hinted(event)

    def _new(self, event: ObjectEvent, path: str, *, seen: bool = False) -> FileObject:
        """Add an object, which existed before the capture with the event's size if `seen`."""
        if event.key in self._current:
            self._former[event.key] = self._current[event.key]
        file = FileObject(len(self.files), event.key, path, {path})
        file.sized_bytes = event.b if seen else None
        self.files.append(file)
        self._current[event.key] = file
        self._state(file, event.index)
        return file

    def _state(self, file: FileObject, since: int) -> None:
        if self._current.get(file.key) is file:
            self.states.append(State(file.key, since, file.number, file.path, file.hint))

    def _opened(self, event: ObjectEvent) -> None:
        path = event.text.removesuffix(_DELETED)
        created = event.op == Op.OPEN and bool(event.flags & Flag.CREATED)
        file = self._current.get(event.key)
        if file is None or created or (file.unlinked_at is not None and event.nlink > 0):
            file = self._new(event, path, seen=not created)
            if event.nlink == 0:
                file.unlinked_at = event.index
        elif path == event.text and path not in file.names and event.nlink > 0:
            # If the capture missed the rename, use the kernel's path.
            file.names = {path}
            file.path = path
            self._state(file, event.index)
        if created:
            self.rows.append(NamingRow(event.index, "create", event.key))
        elif event.op == Op.OPEN and event.flags & Flag.TRUNCATED:
            self.rows.append(NamingRow(event.index, "truncate", event.key))

    def _unlinked(self, event: ObjectEvent) -> None:
        path = canonical(event.text)
        file = self._current.get(event.key)
        former = self._former.get(event.key)
        if former is not None and former.unlinked_at is None and path in former.names:
            # The kernel reused the inode number before it recorded this event.
            former.unlinked_at = event.index
            return
        if file is None:
            file = self._new(event, path, seen=True)
        if event.nlink <= 1:
            file.unlinked_at = event.index
            return
        file.names.discard(path)
        if path == file.path and file.names:
            file.path = min(file.names)
            self._state(file, event.index)

    def _revive(self, file: FileObject, event: ObjectEvent) -> None:
        """Process the new name of an unlinked file (`linkat` called on an open file)."""
        if file.unlinked_at is not None and event.nlink > 0:
            file.unlinked_at = None
            file.path = canonical(event.text)
            self._state(file, event.index)

    def _renamed(self, event: ObjectEvent) -> None:
        old, _, new = event.text.partition("\0")
        old, new = canonical(old), canonical(new)
        if event.flags & Flag.DIRECTORY:
            self._folder_renamed(old, new, event.index)
            return
        file = self._current.get(event.key)
        file = file or self._new(event, old, seen=True)
        file.names.discard(old)
        file.names.add(new)
        file.path = new
        self._state(file, event.index)
        self.rows.append(NamingRow(event.index, "rename", event.key))

    def _folder_renamed(self, old: str, new: str, index: int) -> None:
        _real_folder.cache_clear()
        for file in self._current.values():
            if file.unlinked_at is None and file.path.startswith(old + "/"):
                file.path = new + file.path[len(old) :]
                file.names = {file.path}
                self._state(file, index)

    def _hinted(self, event: ObjectEvent) -> None:
        file = self._current.get(event.key)
        if file is None:
            return
        if event.a <= 5:
            file.hint = event.a
            self._state(file, event.index)
        self.rows.append(NamingRow(event.index, "hint", event.key, event.a, event.errno))
