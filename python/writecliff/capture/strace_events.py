"""From what strace shows to the events of a capture: who did what to which file, and where."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.capture.events import Events, Flag, Op, slot_type
from writecliff.capture.rules import HINTS
from writecliff.capture.strace_files import (
    Description,
    File,
    Mapping,
    Names,
    Process,
    joined,
)
from writecliff.capture.strace_lines import Call, calls

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DEVICE = 1  # of all files: their numbers are ours
_HINT_COMMANDS = ("F_SET_RW_HINT", "F_SET_FILE_RW_HINT", "0x40c", "0x40e")
_HINT = re.compile(r"RWH_WRITE_LIFE_(\w+)|RWF_WRITE_LIFE_(NOT_SET)")


@dataclass(frozen=True)
class Read:
    events: Events
    notes: list[str]


def events_of(
    lines: Iterable[str], *, folder: Path, before: Set[bytes] = frozenset(), reads: bool = False
) -> Read:
    """The events of a program that was started in `folder`. `before`: the files that there were
    then, as far as known. `reads`: those too."""
    known = list(calls(lines))
    reader = _Reader(known, os.fsencode(folder), before, reads)
    for call in known:
        reader.take(call)
    return Read(reader.events(), reader.notes())


class _Reader:
    def __init__(self, known: list[Call], folder: bytes, before: Set[bytes], reads: bool) -> None:
        self._folder, self._before, self._reads = folder, before, reads
        self._names = Names()
        self._processes: dict[int, Process] = {}
        self._born = {
            call.result: (call.tid, call.args)
            for call in known
            if call.name in ("clone", "clone3", "fork", "vfork") and call.result > 0
        }
        self._slots: list[tuple[int, ...]] = []
        self._comms: list[bytes] = []
        self._text: dict[int, bytes] = {}
        self._uring: set[str] = set()
        self._lost_hints = 0
        self._start_ns = known[0].time_ns if known else 0
        self._files: list[File] = []

    def take(self, call: Call) -> None:
        process = self._process(call)
        if call.name == "fcntl" and len(call.args) > 1:
            self._control(call, process)
            return
        if call.result == -1:
            return
        handler = _HANDLERS.get(call.name)
        if handler is not None:
            handler(self, call, process)

    # Processes ------------------------------------------------------------------------------

    def _process(self, call: Call) -> Process:
        found = self._processes.get(call.tid)
        if found is None:
            found = self._new_process(call.tid)
            self._processes[call.tid] = found
            if found.pid == call.tid:
                self._put(call, found, Op.PROCESS, None)
        return found

    def _new_process(self, tid: int) -> Process:
        parent_tid, args = self._born.get(tid, (0, ()))
        parent = self._processes.get(parent_tid)
        if parent is None:
            return Process(tid, self._folder)
        flags = " ".join(args)
        if "CLONE_THREAD" in flags:
            return parent
        return parent.child(tid, shares_files="CLONE_FILES" in flags)

    def _executed(self, call: Call, process: Process) -> None:
        # strace shows the name of before; the kernel's is that of the file.
        name = call.text(0).rpartition(b"/")[2][:15]
        process.mappings.clear()
        self._put(call, process, Op.PROCESS, None, comm=name)

    def _moved_folder(self, call: Call, process: Process) -> None:
        path = call.descriptor(0)[1] if call.name == "fchdir" else call.text(0)
        if path:
            process.folder = joined(process.folder, path)

    # Descriptors ----------------------------------------------------------------------------

    def _opened(self, call: Call, process: Process) -> None:
        path = call.opened()
        flags = next((arg for arg in call.args if "O_" in arg), "")
        if call.name == "creat":
            flags = "O_WRONLY|O_CREAT|O_TRUNC"
        if path is None or ("O_DIRECTORY" in flags and "O_TMPFILE" not in flags):
            return
        known = self._names.known(path)
        file = known or self._names.get(path)
        if file is None:
            return
        created = known is None and path not in self._before and "O_CREAT" in flags
        if "O_TMPFILE" in flags:
            created, file.names = True, 0
        truncated = "O_TRUNC" in flags and not created
        if created or truncated:
            file.size_bytes = 0
            flag = Flag.CREATED if created else Flag.TRUNCATED
            self._put(call, process, Op.OPEN, file, flags=flag, text=path)
            file.announced = True
        process.descriptors[call.result] = Description(file, append="O_APPEND" in flags)

    def _closed(self, call: Call, process: Process) -> None:
        gone = process.descriptors.pop(call.descriptor(0)[0], None)
        if gone is not None and gone.file.announced:
            self._put(call, process, Op.CLOSE, gone.file)

    def _copied(self, call: Call, process: Process) -> None:
        found = process.descriptors.get(call.descriptor(0)[0])
        if found is not None:
            process.descriptors[call.result] = found

    def _description(self, call: Call, process: Process, at: int = 0) -> Description | None:
        """What a descriptor stands for; one whose opening was not seen goes by its name."""
        number, path = call.descriptor(at)
        found = process.descriptors.get(number)
        if found is not None or path is None:
            return found
        file = self._names.get(path)
        if file is None:
            return None
        found = Description(file)
        process.descriptors[number] = found
        return found

    def _sought(self, call: Call, process: Process) -> None:
        found = self._description(call, process)
        if found is not None:
            found.offset_bytes = call.result
            if call.args[2:] == ("SEEK_END",) and call.number(1) == 0:
                found.file.size_bytes = call.result

    def _control(self, call: Call, process: Process) -> None:
        what = call.args[1].split()[0]
        if what.startswith("F_DUPFD") and call.result >= 0:
            self._copied(call, process)
        if what not in _HINT_COMMANDS:
            return
        found = self._description(call, process)
        shown = _HINT.search(call.args[2]) if len(call.args) > 2 else None
        if found is None:
            return
        if shown is None:
            self._lost_hints += 1
            return
        hint = HINTS.get((shown[1] or shown[2]).lower().replace("_", " "), 0)
        failed = getattr(errno, call.error, 0) if call.error else 0
        self._about(call, process, Op.HINT, found.file, a=hint, error=failed)

    # Data -----------------------------------------------------------------------------------

    def _wrote(self, call: Call, process: Process) -> None:
        found = self._description(call, process)
        if found is None or call.result == 0:
            return
        place = _place(call)
        at = found.offset_bytes if place is None else place
        if place is None and found.append:
            at = found.file.size_bytes
        self._data(call, process, found.file, at, call.result)
        if place is None:
            found.offset_bytes = at + call.result

    def _data(self, call: Call, process: Process, file: File, at: int, length: int) -> None:
        self._about(call, process, Op.WRITE, file, a=at, b=length)
        file.size_bytes = max(file.size_bytes, at + length)

    def _read(self, call: Call, process: Process) -> None:
        found = self._description(call, process)
        if found is None or call.result == 0:
            return
        place = _place(call)
        if self._reads:
            at = found.offset_bytes if place is None else place
            self._about(call, process, Op.READ, found.file, a=at, b=call.result)
        if place is None:
            found.offset_bytes += call.result

    def _copied_data(self, call: Call, process: Process) -> None:
        """sendfile(out, in, ...) and copy_file_range(in, at, out, at, ...)."""
        sends = call.name == "sendfile"
        source, target = (1, 0) if sends else (0, 2)
        into, out_of = (
            self._description(call, process, target),
            self._description(call, process, source),
        )
        if into is not None and call.result > 0:
            place = None if sends else call.number(3)
            at = into.offset_bytes if place is None else place
            if place is None:
                into.offset_bytes += call.result
            self._data(call, process, into.file, at, call.result)
        if out_of is not None and call.number(2 if sends else 1) is None:
            out_of.offset_bytes += call.result

    def _synced(self, call: Call, process: Process) -> None:
        found = self._description(call, process)
        if found is not None:
            self._about(call, process, Op.FSYNC, found.file)

    def _truncated(self, call: Call, process: Process) -> None:
        size = call.number(1)
        if call.name == "truncate":
            file = self._names.get(joined(process.folder, call.text(0)))
        else:
            found = self._description(call, process)
            file = found.file if found else None
        if file is not None and size is not None:
            file.size_bytes = size
            self._about(call, process, Op.TRUNCATE, file, a=size)

    def _allocated(self, call: Call, process: Process) -> None:
        found, at, length = self._description(call, process), call.number(2), call.number(3)
        if found is None or at is None or length is None:
            return
        if "PUNCH_HOLE" in call.args[1]:
            self._about(call, process, Op.PUNCH, found.file, a=at, b=length)
        elif "KEEP_SIZE" not in call.args[1]:
            found.file.size_bytes = max(found.file.size_bytes, at + length)

    def _mapped(self, call: Call, process: Process) -> None:
        length = call.number(1)
        if "MAP_SHARED" not in call.args[3] or "PROT_WRITE" not in call.args[2] or not length:
            return
        found = self._description(call, process, 4)
        if found is not None:
            mapping = Mapping(call.result, length, found.file, call.number(5) or 0)
            process.mappings.append(mapping)
            found.file.mapped = True
            self._announce(call, process, found.file)

    def _flushed(self, call: Call, process: Process) -> None:
        address, length = call.number(0), call.number(1)
        mapping = process.mapping(address) if address is not None else None
        if mapping is None or address is None or not length:
            return
        into = address - mapping.address
        at = mapping.offset_bytes + into
        file = mapping.file
        whole = min(length, mapping.length_bytes - into)
        size = min(whole, file.size_bytes - at) if file.size_bytes > at else whole
        file.synced = True
        self._data(call, process, file, at, size)
        self._about(call, process, Op.FSYNC, file)

    def _rung(self, call: Call, process: Process) -> None:
        self._uring.add(call.comm.decode(errors="replace"))

    # Names ----------------------------------------------------------------------------------

    def _path(self, call: Call, process: Process, at: int, folder_at: int | None) -> bytes:
        base = process.folder
        if folder_at is not None:
            base = call.descriptor(folder_at)[1] or base
        return joined(base, call.text(at))

    def _made_folder(self, call: Call, process: Process) -> None:
        beside = call.name == "mkdirat"
        path = self._path(call, process, 1 if beside else 0, 0 if beside else None)
        self._names.folders.add(path)

    def _unlinked(self, call: Call, process: Process) -> None:
        beside = call.name == "unlinkat"
        if beside and "AT_REMOVEDIR" in call.args[-1]:
            return
        path = self._path(call, process, 1 if beside else 0, 0 if beside else None)
        self._gone(call, process, path)

    def _gone(self, call: Call, process: Process, path: bytes) -> None:
        file = self._names.get(path)
        if file is not None:
            self._announce(call, process, file)
            self._put(call, process, Op.UNLINK, file, text=path)
            self._names.remove(path)

    def _renamed(self, call: Call, process: Process) -> None:
        at = (0, 1) if call.name == "rename" else (1, 3)
        old, new = (
            self._path(call, process, n, None if call.name == "rename" else n - 1) for n in at
        )
        below = self._names.below(old)
        if self._names.known(old) is None and below:
            for path in below:
                self._names.move(path, new + path[len(old) :])
            first = self._names.known(new + below[0][len(old) :])
            self._put(call, process, Op.RENAME, first, flags=Flag.DIRECTORY, text=old + b"\0" + new)
            return
        if old in self._names.folders or Path(os.fsdecode(new)).is_dir():
            self._names.folders.add(new)
            return
        if self._names.known(new) is not None and old != new:
            self._gone(call, process, new)
        file = self._names.get(old)
        if file is not None:
            self._announce(call, process, file)
            self._names.move(old, new)
            self._put(call, process, Op.RENAME, file, text=old + b"\0" + new)

    def _linked(self, call: Call, process: Process) -> None:
        at = (0, 1) if call.name == "link" else (1, 3)
        old, new = (
            self._path(call, process, n, None if call.name == "link" else n - 1) for n in at
        )
        file = self._names.get(old)
        if file is not None:
            self._announce(call, process, file)
            self._names.link(file, new)
            self._put(call, process, Op.LINK, file, text=new)

    # Events ---------------------------------------------------------------------------------

    def _announce(self, call: Call, process: Process, file: File) -> None:
        """A file that was there before, when it is first met."""
        if not file.announced:
            file.announced = True
            self._put(call, process, Op.FILE, file, b=file.size_bytes, text=file.path)

    def _about(
        self,
        call: Call,
        process: Process,
        op: Op,
        file: File,
        *,
        a: int = 0,
        b: int = 0,
        error: int = 0,
    ) -> None:
        self._announce(call, process, file)
        self._put(call, process, op, file, a=a, b=b, error=error)

    def _put(
        self,
        call: Call,
        process: Process,
        op: Op,
        file: File | None,
        *,
        flags: int = 0,
        error: int = 0,
        a: int = 0,
        b: int = 0,
        text: bytes | None = None,
        comm: bytes | None = None,
    ) -> None:
        number, names = (file.number, file.names) if file is not None else (0, 0)
        if text is not None:
            self._text[len(self._slots)] = text
        self._slots.append(
            (op, flags, error, process.pid, call.time_ns, number, _DEVICE, max(names, 0), a, b)
        )
        self._comms.append((call.comm if comm is None else comm)[:15])
        if file is not None and file.mapped and file not in self._files:
            self._files.append(file)

    def events(self) -> Events:
        """All of them. Files that were mapped and never synced are told of at the end."""
        import numpy as np

        slots: NDArray[np.void] = np.zeros(len(self._slots), slot_type())
        names = ("op", "flags", "errno", "pid", "time_ns", "ino", "dev", "nlink", "a", "b")
        for name, column in zip(names, zip(*self._slots, strict=True), strict=False):
            slots[name] = column
        slots["comm"] = self._comms
        return Events(slots, self._text, self._start_ns, 0, self._reads)

    def notes(self) -> list[str]:
        notes = []
        synced = sorted(os.fsdecode(file.path) for file in self._files if file.synced)
        silent = sorted(os.fsdecode(file.path) for file in self._files if not file.synced)
        if synced:
            notes.append(
                f"mapped files were written: what msync asked for counts as written as a whole: "
                f"{_some(synced)}"
            )
        if silent:
            notes.append(
                f"what was written through memory is not in the trace, as msync was not called: "
                f"{_some(silent)}"
            )
        if self._uring:
            names = ", ".join(sorted(self._uring))
            notes.append(f"{names} used io_uring: what is written through it is not in the trace")
        if self._lost_hints:
            notes.append(f"{self._lost_hints} write hints were given; strace does not show which")
        return notes


def _some(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")


def _place(call: Call) -> int | None:
    """The offset that a call names; None where it goes on at that of the descriptor."""
    if not call.name.startswith("p"):
        return None
    at = call.number(3)
    return None if at is None or at < 0 else at


_HANDLERS = {
    "execve": _Reader._executed,
    "io_uring_setup": _Reader._rung,
    "close": _Reader._closed,
    "lseek": _Reader._sought,
    "fallocate": _Reader._allocated,
    "mmap": _Reader._mapped,
    "msync": _Reader._flushed,
    **dict.fromkeys(("mkdir", "mkdirat"), _Reader._made_folder),
    **dict.fromkeys(("chdir", "fchdir"), _Reader._moved_folder),
    **dict.fromkeys(("open", "openat", "openat2", "creat"), _Reader._opened),
    **dict.fromkeys(("dup", "dup2", "dup3"), _Reader._copied),
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "pwritev2"), _Reader._wrote),
    **dict.fromkeys(("read", "pread64", "readv", "preadv", "preadv2"), _Reader._read),
    **dict.fromkeys(("sendfile", "copy_file_range"), _Reader._copied_data),
    **dict.fromkeys(("fsync", "fdatasync"), _Reader._synced),
    **dict.fromkeys(("truncate", "ftruncate"), _Reader._truncated),
    **dict.fromkeys(("unlink", "unlinkat"), _Reader._unlinked),
    **dict.fromkeys(("rename", "renameat", "renameat2"), _Reader._renamed),
    **dict.fromkeys(("link", "linkat"), _Reader._linked),
}
