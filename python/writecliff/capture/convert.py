"""From events to a trace: the table, and what there is to say about it."""

from __future__ import annotations

import errno
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.capture.events import Events, Flag, Op
from writecliff.capture.objects import NO_HINT, ObjectEvent, Objects, Row
from writecliff.capture.trace import OPS

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

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
# Roles that PostgreSQL's processes give themselves; all others serve somebody.
_ROLES = (
    "archiver",
    "autovacuum launcher",
    "autovacuum worker",
    "background worker",
    "background writer",
    "checkpointer",
    "logger",
    "logical replication",
    "parallel worker",
    "startup",
    "walreceiver",
    "walsender",
    "walwriter",
)


@dataclass(frozen=True)
class Converted:
    table: pa.Table
    metadata: dict[str, Any]


@dataclass(frozen=True)
class _Rows:
    """Rows before their columns of text are made: parallel arrays, one value a row."""

    event: Integers
    op: Integers
    offset: Integers
    length: Integers
    state: Integers  # index into the states of the objects


def convert(events: Events, *, root: Path | None = None, source: str = "preload") -> Converted:
    """The trace of `events`, which came from `source`.

    With `root` only files below it are kept, with paths relative to it; without, all files but
    those of kernel and memory file systems, with absolute paths unless below the present folder.
    """
    import numpy as np
    import pyarrow as pa

    objects = _objects(events)
    rows = _all_rows(events, objects)
    paths, kept_path = _shown_paths([state.path for state in objects.states], root)
    kept = kept_path[rows.state] if len(rows.state) else np.zeros(0, bool)
    rows = _Rows(*(getattr(rows, name)[kept] for name in _Rows.__dataclass_fields__))
    slots = events.slots
    time_ns = slots["time_ns"][rows.event].astype(np.int64) - events.start_ns
    time_ns = np.maximum.accumulate(np.maximum(time_ns, 0)) if len(time_ns) else time_ns
    file = np.array([state.file for state in objects.states], np.int32)
    hint = np.array([state.hint for state in objects.states], np.int8)
    numbers, file_column = np.unique(file[rows.state], return_inverse=True)
    comms, comm = np.unique(slots["comm"][rows.event], return_inverse=True)
    processes, process = _processes(events, rows.event)
    hints = hint[rows.state]
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
            "hint": pa.array(hints, mask=hints == NO_HINT),
        }
    )
    metadata = _metadata(events, objects, rows, set(numbers.tolist()))
    return Converted(table, metadata | {"sources": [source]})


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _dictionary(codes: NDArray[Any], words: list[str]) -> pa.DictionaryArray:
    """A column of text; words that are equal or not used are left out."""
    import numpy as np
    import pyarrow as pa

    used, inverse = np.unique(codes, return_inverse=True)
    distinct: dict[str, int] = {}
    numbering = np.array([distinct.setdefault(words[c], len(distinct)) for c in used], np.int32)
    indices = numbering[inverse] if len(used) else np.zeros(0, np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int32()), pa.array(list(distinct), pa.string())
    )


def _objects(events: Events) -> Objects:
    import numpy as np

    slots = events.slots
    objects = Objects()
    for index in np.flatnonzero(np.isin(slots["op"], _NAMING)).tolist():
        slot = slots[index]
        event = ObjectEvent(
            index=index,
            op=int(slot["op"]),
            flags=int(slot["flags"]),
            errno=int(slot["errno"]),
            key=(int(slot["dev"]), int(slot["ino"])),
            nlink=int(slot["nlink"]),
            a=int(slot["a"]),
            b=int(slot["b"]),
            text=os.fsdecode(events.text.get(index, b"")),
        )
        objects.take(event)
    return objects


class _Lookup:
    """From (device, inode number, event) to the state that holds by then."""

    def __init__(self, events: Events, objects: Objects) -> None:
        import numpy as np

        self._slots = events.slots
        keys = {key: code for code, key in enumerate({state.key for state in objects.states})}
        self._span = max(1, len(events.slots))
        stamps = np.array([keys[s.key] * self._span + s.since for s in objects.states], np.int64)
        # Later states of the same event stand behind earlier ones.
        self._order = np.argsort(stamps, kind="stable")
        self._stamps = stamps[self._order]
        self._keys = keys

    def states(self, event: Integers, key_event: Integers) -> Integers:
        """The state at `event` of the file that `key_event` is about; -1 if none is known."""
        import numpy as np

        if not len(self._stamps):
            return np.full(len(event), -1, np.int64)
        pairs = np.empty(len(event), [("dev", "u8"), ("ino", "u8")])
        pairs["dev"] = self._slots["dev"][key_event]
        pairs["ino"] = self._slots["ino"][key_event]
        distinct, inverse = np.unique(pairs, return_inverse=True)
        codes = np.array(
            [self._keys.get((int(p["dev"]), int(p["ino"])), -1) for p in distinct], np.int64
        )
        code = codes[inverse.reshape(-1)]
        place = np.searchsorted(self._stamps, code * self._span + event, side="right") - 1
        known = (place >= 0) & (code >= 0)
        found = self._order[np.where(known, place, 0)]
        same = self._stamps[np.where(known, place, 0)] // self._span == code
        return np.where(known & same, found, -1)


def _all_rows(events: Events, objects: Objects) -> _Rows:
    """Data and naming together, in the order of events; removals moved to the last use."""
    import numpy as np

    slots = events.slots
    lookup = _Lookup(events, objects)
    data = np.flatnonzero(np.isin(slots["op"], list(_DATA)))
    codes = np.zeros(256, np.int64)
    for op, name in _DATA.items():
        codes[op] = OPS.index(name)
    state = lookup.states(data, data)
    known = state >= 0
    data, state = data[known], state[known]
    parts = [
        _Rows(
            data,
            codes[slots["op"][data]],
            slots["a"][data].astype(np.int64),
            slots["b"][data].astype(np.int64),
            state,
        )
    ]
    fsync = np.isin(parts[0].op, [OPS.index("fsync"), OPS.index("truncate")])
    parts[0].length[fsync] = 0
    named = objects.rows + _unseen_births(objects, parts[0])
    at = np.array([row.event for row in named], np.int64)
    parts.append(
        _Rows(
            at,
            np.array([OPS.index(row.op) for row in named], np.int64),
            np.array([row.offset_bytes for row in named], np.int64),
            np.array([row.length_bytes for row in named], np.int64),
            lookup.states(at, at),
        )
    )
    parts.append(_removals(events, objects, lookup, parts[0]))
    joined = _Rows(
        *(np.concatenate([getattr(p, n) for p in parts]) for n in _Rows.__dataclass_fields__)
    )
    rank = np.where(joined.op == OPS.index("create"), 0, 1)
    rank[joined.op == OPS.index("unlink")] = 2
    order = np.lexsort((rank, joined.event))
    return _Rows(*(getattr(joined, name)[order] for name in _Rows.__dataclass_fields__))


def _file_of(objects: Objects, state: Integers) -> Integers:
    import numpy as np

    return np.array([s.file for s in objects.states], np.int64)[state]


def _unseen_births(objects: Objects, data: _Rows) -> list[Row]:
    """Files made inside a library (no `open` was seen), whose first write is all that they hold."""
    import numpy as np

    if not len(data.state):
        return []
    files, first = np.unique(_file_of(objects, data.state), return_index=True)
    rows = []
    for number, row in zip(files.tolist(), first.tolist(), strict=True):
        file = objects.files[number]
        whole = file.sized_bytes == data.length[row] and data.offset[row] == 0
        if whole and data.op[row] == OPS.index("write"):
            rows.append(Row(int(data.event[row]), "create", file.key))
    return rows


def _removals(events: Events, objects: Objects, lookup: _Lookup, data: _Rows) -> _Rows:
    """A file without a name lives until it is closed: its space is free from its last use on."""
    import numpy as np

    last = np.full(len(objects.files), -1, np.int64)
    if len(data.state):
        np.maximum.at(last, _file_of(objects, data.state), data.event)
    closes = np.flatnonzero(events.slots["op"] == Op.CLOSE)
    state = lookup.states(closes, closes)
    np.maximum.at(last, _file_of(objects, state[state >= 0]), closes[state >= 0])
    first_state = {}
    for index, known in enumerate(objects.states):
        first_state[known.file] = index  # the last of each file: its final name
    gone = [file for file in objects.files if file.unlinked_at is not None]
    at = np.array([max(f.unlinked_at or 0, last[f.number]) for f in gone], np.int64)
    nothing = np.zeros(len(gone), np.int64)
    states = np.array([first_state[file.number] for file in gone], np.int64)
    unlink = np.full(len(gone), OPS.index("unlink"), np.int64)
    return _Rows(at, unlink, nothing, nothing.copy(), states)


def _shown_paths(paths: list[str], root: Path | None) -> tuple[list[str], NDArray[np.bool_]]:
    """Paths as they stand in the trace, and which of them belong in it."""
    import numpy as np

    base = os.path.realpath(root) if root is not None else str(Path.cwd())
    prefix = base.rstrip("/") + "/"
    shown = [path.removeprefix(prefix) for path in paths]
    if root is not None:
        kept = [path.startswith(prefix) for path in paths]
    else:
        kept = [not path.startswith(_VIRTUAL) for path in paths]
    # Names are bytes; what is no UTF-8 of them is shown as such.
    shown = [os.fsencode(path).decode(errors="backslashreplace") for path in shown]
    return shown, np.array(kept, bool)


def _processes(events: Events, at: Integers) -> tuple[list[str], Integers]:
    """The name of the process behind each event."""
    import numpy as np

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
    """`postgres: checkpointer` for a process that has changed its title so."""
    program = name.split(":", maxsplit=1)[0]
    shown = title.split(b"\0")[0].decode(errors="replace")
    head, found, role = shown.partition("postgres: ")
    if program != "postgres" or not found or head.strip("/"):
        return name
    return f"{program}: {next((r for r in _ROLES if role.startswith(r)), 'backend')}"


def _metadata(events: Events, objects: Objects, rows: _Rows, files: set[int]) -> dict[str, Any]:
    import numpy as np

    slots = events.slots
    written = rows.op == OPS.index("write")
    hints = rows.length[rows.op == OPS.index("hint")]
    refused = Counter(errno.errorcode.get(e, str(e)) for e in hints[hints > 0].tolist())
    repaired = int(
        np.count_nonzero((slots["op"] == Op.HINT) & (slots["flags"] & Flag.REPAIRED > 0))
    )
    return {
        "notes": _notes(events, objects, rows, files),
        "hints": {
            "delivered": int(np.count_nonzero(hints == 0)),
            "refused": int(np.count_nonzero(hints > 0)),
            "errors": dict(sorted(refused.items())),
            "repaired": repaired,
        },
        "reads": events.with_reads,
        "bytes_written": int(rows.length[written].sum()),
        "bytes_read": int(rows.length[rows.op == OPS.index("read")].sum()),
        "files": len(files),
        "processes": len(np.unique(slots["pid"][slots["op"] == Op.PROCESS])),
        "dropped": events.dropped,
    }


def _notes(events: Events, objects: Objects, rows: _Rows, files: set[int]) -> list[str]:
    import numpy as np

    notes = []
    if not events.dropped and not (events.slots["op"] == Op.PROCESS).any():
        notes.append(
            "no program loaded the library: it is linked statically, changes its user, or was "
            "started without its environment"
        )
    if events.dropped:
        notes.append(f"{events.dropped} events are missing: there was no room for them on disk")
    mapped = events.slots[events.slots["op"] == Op.MMAP]
    keys = {(int(d), int(i)) for d, i in zip(mapped["dev"], mapped["ino"], strict=True)}
    paths = sorted(f.path for f in objects.files if f.key in keys and f.number in files)
    paths = [path for path in paths if "/hsperfdata_" not in path]
    if paths:
        notes.append(
            f"{_count(len(paths), 'file')} mapped for writing; what is written through memory is "
            f"not in the trace: {_some(paths)}"
        )
    grown = _grown(objects, rows)
    if grown:
        notes.append(
            f"{_count(len(grown), 'file')} grew by {sum(grown.values())} bytes that no call seen "
            f"wrote (mapped, io_uring, preallocated, or system calls of its own): {_some(grown)}"
        )
    unfinished = int(np.count_nonzero(events.slots["op"] == 0))
    if unfinished:
        notes.append(f"{unfinished} events were not finished when their program ended")
    return notes


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _some(paths: list[str] | dict[str, int]) -> str:
    shown = list(paths)[:3]
    return ", ".join(shown) + (", ..." if len(paths) > len(shown) else "")


def _grown(objects: Objects, rows: _Rows) -> dict[str, int]:
    """Files made in the capture that are longer on disk than anything written to them."""
    import numpy as np

    if not len(rows.state):
        return {}
    file = _file_of(objects, rows.state)
    end = np.zeros(len(objects.files), np.int64)
    sizing = np.isin(rows.op, [OPS.index("write"), OPS.index("truncate")])
    np.maximum.at(end, file[sizing], rows.offset[sizing] + rows.length[sizing])
    born = {int(number) for number in file[rows.op == OPS.index("create")]}
    grown = {}
    for number in sorted(born):
        found = objects.files[number]
        try:
            stat = Path(found.path).stat()
        except OSError:
            continue
        if stat.st_ino == found.key[1] and stat.st_size > end[number]:
            grown[found.path] = stat.st_size - int(end[number])
    return grown
