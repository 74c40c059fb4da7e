"""Capture with strace, for programs that the preload library does not support.

The preload library does not support static programs, or programs that write to mapped files and
sync them. strace stops the program at every call, so the program is several times slower. strace
also provides less information: hints have no values, and files are identified by name. The strace
output is converted to the events that the preload library records.

Neither io_uring writes nor the times of writes to mapped pages are captured. A range passed to
msync counts as completely written; without msync, nothing is recorded. The sizes of files that
existed before the capture are unknown, so appends to such files start at the largest offset seen so
far.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from writecliff.capture.convert import some_of
from writecliff.capture.events import Events, Flag, Op, slot_type
from writecliff.capture.rules import HINTS
from writecliff.capture.watch import uring_notes
from writecliff.errors import TargetError
from writecliff.output_files import check_kind

if TYPE_CHECKING:
    from writecliff.capture.run import Captured, Options

# System calls that name files, change file offsets or transfer data.
_CALLS = (
    "open,openat,openat2,creat,close,dup,dup2,dup3,fcntl,lseek,write,pwrite64,writev,pwritev,"
    "pwritev2,read,pread64,readv,preadv,preadv2,sendfile,copy_file_range,fsync,fdatasync,"
    "sync_file_range,truncate,ftruncate,fallocate,mkdir,mkdirat,unlink,unlinkat,rename,renameat,"
    "renameat2,link,linkat,clone,clone3,fork,vfork,execve,chdir,fchdir,mmap,msync,io_uring_setup"
)
_OPTIONS = ("-f", "-y", "-Y", "-ttt", "-qq", "-s", "0", "--seccomp-bpf")


def capture(command: Sequence[str], options: Options, *, stdout: int | None = None) -> Captured:
    """Run `command` under strace, and write its trace.

    Raises:
        TargetError: If strace is not installed or not permitted, or the command cannot be started.
    """
    from writecliff.capture.run import execute, program_of, write_converted

    program = program_of(command)
    strace = shutil.which("strace")
    if strace is None:
        raise TargetError("strace is not installed", hint="on Debian: apt-get install strace")
    check_kind(options.output)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    log = options.output.absolute().with_name(options.output.name + ".strace")
    traced = [strace, *_OPTIONS, "-e", f"trace={_CALLS}", "-o", str(log), "--"]
    if options.output.exists():
        options.output.unlink()
    try:
        before = existing(options.root) if options.root else frozenset()
        begun_ns = time.monotonic_ns()
        code, _ = execute([*traced, program, *command[1:]], os.environ, stdout, None)
        duration_ns = time.monotonic_ns() - begun_ns
        if not log.exists() or not log.stat().st_size:
            raise TargetError(
                "strace recorded no system calls",
                hint="check that tracing is permitted (kernel.yama.ptrace_scope, containers)",
            )
        with log.open(encoding="latin-1") as lines:
            read = events_of(lines, folder=Path.cwd(), before=before, reads=options.reads)
        metadata = {"command": list(command), "program": Path(program).name, "exit_code": code}
        return write_converted(
            options, read.events, metadata, duration_ns, read.notes, source="strace"
        )
    finally:
        log.unlink(missing_ok=True)


# -- strace events ---------------------------------------------------------------------------------

# Convert the system calls in the strace output to capture events.

_DEVICE = 1  # Device number for all files, whose inode numbers are assigned here.
_HINT_COMMANDS = ("F_SET_RW_HINT", "F_SET_FILE_RW_HINT", "0x40c", "0x40e")
_UNCACHED = re.compile(r"O_DIRECT\b|O_D?SYNC\b")
_HINT = re.compile(r"RWH_WRITE_LIFE_(\w+)|RWF_WRITE_LIFE_(NOT_SET)")


@dataclass(frozen=True)
class ReadEvents:
    """Captured events, and notes on gaps in the events."""

    events: Events
    notes: list[str]


def events_of(
    lines: Iterable[str], *, folder: Path, before: Set[bytes] = frozenset(), reads: bool = False
) -> ReadEvents:
    """Convert the system calls of a program that was started in `folder`.

    Args:
        lines: Output of strace.
        folder: Program's current folder.
        before: Paths of files that exist at the start.
        reads: `True` to include reads.
    """
    all_calls = list(calls(lines))
    reader = _Reader(all_calls, os.fsencode(folder), before, reads)
    for call in all_calls:
        reader.take(call)
    return ReadEvents(reader.events(), reader.notes())


class _Reader:
    def __init__(
        self, all_calls: list[Call], folder: bytes, before: Set[bytes], reads: bool
    ) -> None:
        self._folder, self._before, self._reads = folder, before, reads
        self._names = Names()
        self._processes: dict[int, Process] = {}
        self._born = {
            call.result: (call.tid, call.args)
            for call in all_calls
            if call.name in ("clone", "clone3", "fork", "vfork") and call.result > 0
        }
        self._slots: list[tuple[int, ...]] = []
        self._comms: list[bytes] = []
        self._text: dict[int, bytes] = {}
        self._uring: set[str] = set()
        self._lost_hints = 0
        self._start_ns = all_calls[0].time_ns if all_calls else 0
        self._mapped_files: list[File] = []

    def take(self, call: Call) -> None:
        process = self._process(call)
        if call.name == "fcntl" and len(call.args) > 1:
            self._control(call, process)
        elif call.result != -1 and call.name in _HANDLERS:
            _HANDLERS[call.name](self, call, process)

    # Processes ------------------------------------------------------------------------------

    def _process(self, call: Call) -> Process:
        process = self._processes.get(call.tid)
        if process is None:
            process = self._new_process(call.tid)
            self._processes[call.tid] = process
            if process.pid == call.tid:
                self._put(call, process, Op.PROCESS, None)
        return process

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
        # strace shows the previous process name, but the kernel uses the name of the executed file.
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
        existing_file = self._names.lookup(path)
        file = existing_file or self._names.get(path)
        if file is None:
            return
        created = existing_file is None and path not in self._before and "O_CREAT" in flags
        if "O_TMPFILE" in flags:
            created, file.names = True, 0
        truncated = "O_TRUNC" in flags and not created
        if created or truncated:
            file.size_bytes = 0
            flag = Flag.CREATED if created else Flag.TRUNCATED
            self._put(call, process, Op.OPEN, file, flags=flag, text=path)
            file.announced = True
        process.descriptors[call.result] = Description(
            file, append="O_APPEND" in flags, bypasses_cache=bool(_UNCACHED.search(flags))
        )

    def _closed(self, call: Call, process: Process) -> None:
        gone = process.descriptors.pop(call.descriptor(0)[0], None)
        if gone is not None and gone.file.announced:
            self._put(call, process, Op.CLOSE, gone.file)

    def _copied(self, call: Call, process: Process) -> None:
        description = process.descriptors.get(call.descriptor(0)[0])
        if description is not None:
            process.descriptors[call.result] = description

    def _description(self, call: Call, process: Process, at: int = 0) -> Description | None:
        """Return a descriptor's open file, found by name if the open call was not captured."""
        number, path = call.descriptor(at)
        description = process.descriptors.get(number)
        if description is not None or path is None:
            return description
        file = self._names.get(path)
        if file is None:
            return None
        description = Description(file)
        process.descriptors[number] = description
        return description

    def _sought(self, call: Call, process: Process) -> None:
        description = self._description(call, process)
        if description is not None:
            description.offset_bytes = call.result
            if call.args[2:] == ("SEEK_END",) and call.number(1) == 0:
                description.file.size_bytes = call.result

    def _control(self, call: Call, process: Process) -> None:
        what = call.args[1].split()[0]
        if what.startswith("F_DUPFD") and call.result >= 0:
            self._copied(call, process)
        if what not in _HINT_COMMANDS:
            return
        description = self._description(call, process)
        shown = _HINT.search(call.args[2]) if len(call.args) > 2 else None
        if description is None:
            return
        if shown is None:
            self._lost_hints += 1
            return
        hint = HINTS.get((shown[1] or shown[2]).lower().replace("_", " "), 0)
        failed = getattr(errno, call.error, 0) if call.error else 0
        self._about(call, process, Op.HINT, description.file, a=hint, error=failed)

    # Data -----------------------------------------------------------------------------------

    def _wrote(self, call: Call, process: Process) -> None:
        description = self._description(call, process)
        if description is not None and call.result:
            start = description.file.size_bytes if description.append else description.offset_bytes
            at = self._moved(description, _position(call), start, call.result)
            self._data(call, process, description.file, at, call.result)
            if description.bypasses_cache or "SYNC" in "".join(call.args[4:]):
                self._about(call, process, Op.FSYNC, description.file)

    def _data(self, call: Call, process: Process, file: File, at: int, length: int) -> None:
        self._about(call, process, Op.WRITE, file, a=at, b=length)
        file.size_bytes = max(file.size_bytes, at + length)

    def _read(self, call: Call, process: Process) -> None:
        description = self._description(call, process)
        if description is not None and call.result:
            at = self._moved(description, _position(call), description.offset_bytes, call.result)
            if self._reads:
                self._about(call, process, Op.READ, description.file, a=at, b=call.result)

    def _moved(self, description: Description, named: int | None, start: int, length: int) -> int:
        """Return a transfer's start, `named` or else the descriptor's offset, which advances."""
        if named is not None:
            return named
        description.offset_bytes = start + length
        return start

    def _copied_data(self, call: Call, process: Process) -> None:
        """Process sendfile(out, in, ...) and copy_file_range(in, at, out, at, ...)."""
        sends = call.name == "sendfile"
        source, target = (1, 0) if sends else (0, 2)
        into = self._description(call, process, target)
        out_of = self._description(call, process, source)
        if into is not None and call.result > 0:
            named = None if sends else call.number(3)
            at = self._moved(into, named, into.offset_bytes, call.result)
            self._data(call, process, into.file, at, call.result)
        if out_of is not None and call.number(2 if sends else 1) is None:
            out_of.offset_bytes += call.result

    def _synced(self, call: Call, process: Process) -> None:
        description = self._description(call, process)
        if description is not None:
            self._about(call, process, Op.FSYNC, description.file)

    def _truncated(self, call: Call, process: Process) -> None:
        size = call.number(1)
        if call.name == "truncate":
            file = self._names.get(joined(process.folder, call.text(0)))
        else:
            description = self._description(call, process)
            file = description.file if description else None
        if file is not None and size is not None:
            file.size_bytes = size
            self._about(call, process, Op.TRUNCATE, file, a=size)

    def _allocated(self, call: Call, process: Process) -> None:
        description, at, length = self._description(call, process), call.number(2), call.number(3)
        if description is None or at is None or length is None:
            return
        if "PUNCH_HOLE" in call.args[1]:
            self._about(call, process, Op.PUNCH, description.file, a=at, b=length)
        elif "KEEP_SIZE" not in call.args[1]:
            description.file.size_bytes = max(description.file.size_bytes, at + length)

    def _mapped(self, call: Call, process: Process) -> None:
        length = call.number(1)
        if "MAP_SHARED" not in call.args[3] or "PROT_WRITE" not in call.args[2] or not length:
            return
        description = self._description(call, process, 4)
        if description is not None:
            mapping = Mapping(call.result, length, description.file, call.number(5) or 0)
            process.mappings.append(mapping)
            description.file.mapped = True
            self._announce(call, process, description.file)

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

    def _path(self, call: Call, process: Process, at: int) -> bytes:
        """Return the path in argument `at`, relative to the folder argument of `...at` calls."""
        beside = call.name.rstrip("2").endswith("at")
        base = (call.descriptor(at - 1)[1] if beside else None) or process.folder
        return joined(base, call.text(at))

    def _first_path(self, call: Call, process: Process) -> bytes:
        return self._path(call, process, 1 if call.name.endswith("at") else 0)

    def _both_paths(self, call: Call, process: Process) -> tuple[bytes, bytes]:
        first, second = (0, 1) if call.name in ("rename", "link") else (1, 3)
        return self._path(call, process, first), self._path(call, process, second)

    def _made_folder(self, call: Call, process: Process) -> None:
        self._names.folders.add(self._first_path(call, process))

    def _unlinked(self, call: Call, process: Process) -> None:
        if call.name == "unlink" or "AT_REMOVEDIR" not in call.args[-1]:
            self._gone(call, process, self._first_path(call, process))

    def _gone(self, call: Call, process: Process, path: bytes) -> None:
        file = self._names.get(path)
        if file is not None:
            self._about(call, process, Op.UNLINK, file, text=path)
            self._names.remove(path)

    def _renamed(self, call: Call, process: Process) -> None:
        old, new = self._both_paths(call, process)
        below = self._names.below(old)
        if self._names.lookup(old) is None and below:
            for path in below:
                self._names.move(path, new + path[len(old) :])
            first = self._names.lookup(new + below[0][len(old) :])
            self._put(call, process, Op.RENAME, first, flags=Flag.DIRECTORY, text=old + b"\0" + new)
            return
        if old in self._names.folders or Path(os.fsdecode(new)).is_dir():
            self._names.folders.add(new)
            return
        if self._names.lookup(new) is not None and old != new:
            self._gone(call, process, new)
        file = self._names.get(old)
        if file is not None:
            self._announce(call, process, file)
            self._names.move(old, new)
            self._put(call, process, Op.RENAME, file, text=old + b"\0" + new)

    def _linked(self, call: Call, process: Process) -> None:
        old, new = self._both_paths(call, process)
        file = self._names.get(old)
        if file is not None:
            self._announce(call, process, file)
            self._names.link(file, new)
            self._put(call, process, Op.LINK, file, text=new)

    # Events ---------------------------------------------------------------------------------

    def _announce(self, call: Call, process: Process, file: File) -> None:
        """Record, on first use, a file that existed before the capture."""
        if not file.announced:
            file.announced = True
            self._put(call, process, Op.FILE, file, b=file.size_bytes, text=file.path)

    def _about(self, call: Call, process: Process, op: Op, file: File, **more: Any) -> None:
        """Record a file event, preceded by an event that introduces the file if necessary."""
        self._announce(call, process, file)
        self._put(call, process, op, file, **more)

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
        if file is not None and file.mapped and file not in self._mapped_files:
            self._mapped_files.append(file)

    def events(self) -> Events:
        """Return all events recorded so far."""
        slots: NDArray[np.void] = np.zeros(len(self._slots), slot_type())
        names = ("op", "flags", "errno", "pid", "time_ns", "ino", "dev", "nlink", "a", "b")
        for name, column in zip(names, zip(*self._slots, strict=True), strict=False):
            slots[name] = column
        slots["comm"] = self._comms
        return Events(slots, self._text, self._start_ns, 0, self._reads)

    def notes(self) -> list[str]:
        """Return notes about gaps and approximations in the events."""
        notes = []
        synced, silent = (
            sorted(
                os.fsdecode(file.path) for file in self._mapped_files if file.synced == is_synced
            )
            for is_synced in (True, False)
        )
        if synced:
            notes.append(
                "programs wrote to mapped files; ranges passed to msync count as completely "
                f"written: {some_of(synced)}"
            )
        if silent:
            notes.append(
                f"writes to mapped memory without msync are not in the trace: {some_of(silent)}"
            )
        notes += uring_notes(self._uring)
        if self._lost_hints:
            notes.append(
                f"{self._lost_hints} write hints have unknown values, because strace does not show "
                "them"
            )
        return notes


def _position(call: Call) -> int | None:
    """Return a call's offset argument, or `None` if the call uses the descriptor's offset."""
    at = call.number(3) if call.name.startswith("p") else None
    return None if at is None or at < 0 else at


_HANDLERS: dict[str, Callable[[_Reader, Call, Process], None]] = {
    name: handler
    for names, handler in (
        ("execve", _Reader._executed),
        ("io_uring_setup", _Reader._rung),
        ("close", _Reader._closed),
        ("lseek", _Reader._sought),
        ("fallocate", _Reader._allocated),
        ("mmap", _Reader._mapped),
        ("msync", _Reader._flushed),
        ("mkdir mkdirat", _Reader._made_folder),
        ("chdir fchdir", _Reader._moved_folder),
        ("open openat openat2 creat", _Reader._opened),
        ("dup dup2 dup3", _Reader._copied),
        ("write pwrite64 writev pwritev pwritev2", _Reader._wrote),
        ("read pread64 readv preadv preadv2", _Reader._read),
        ("sendfile copy_file_range", _Reader._copied_data),
        ("fsync fdatasync sync_file_range", _Reader._synced),
        ("truncate ftruncate", _Reader._truncated),
        ("unlink unlinkat", _Reader._unlinked),
        ("rename renameat renameat2", _Reader._renamed),
        ("link linkat", _Reader._linked),
    )
    for name in names.split()
}


# -- strace lines ----------------------------------------------------------------------------------

# Parse the output of `strace -f -y -Y -ttt -s 0`, which has one line per call, or two lines for a
# split call.

# Line format: pid<name> seconds.microseconds rest.
_LINE = re.compile(r"(\d+)(?:<((?:[^<>\\]|\\.)*)>)?\s+(\d+)\.(\d+) (.*)")
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>\s?(.*)")
_UNFINISHED = " <unfinished ...>"
_CALL = re.compile(r"(\w+)\((.*)\)\s+= (0x[0-9a-f]+|-?\d+)(.*)")
# Call argument. Quoted text, brackets and descriptor names in the argument may contain commas.
_ARGUMENT = re.compile(r'(?:[^,"<\[{(]|"(?:[^"\\]|\\.)*"|<[^>]*>|\[[^\]]*\]|\{[^}]*\}|\([^)]*\))+')
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a"}
_DESCRIPTOR = re.compile(r"(-?\d+|AT_FDCWD)(?:<(.*)>(\(deleted\))?)?")
_ERROR = re.compile(r" (E[A-Z0-9]+)")


@dataclass(frozen=True)
class Call:
    """A completed call. `time_ns` is the return time, so that calls are ordered by effect."""

    tid: int
    comm: bytes
    time_ns: int
    name: str
    args: tuple[str, ...]
    result: int
    shown: str  # Text after the result: a descriptor name or an error.

    @property
    def error(self) -> str | None:
        """Error name such as "ENOENT", or `None` if the call succeeded."""
        match = _ERROR.match(self.shown) if self.result == -1 else None
        return match[1] if match else None

    def number(self, at: int) -> int | None:
        """Return argument `at` as a number, or the first number in the memory it points to."""
        match = (
            re.match(r"\[?(-?0x[0-9a-f]+|-?\d+)", self.args[at]) if at < len(self.args) else None
        )
        return int(match[1], 0) if match else None

    def text(self, at: int) -> bytes:
        """Return argument `at` without its quotes."""
        return unescaped(self.args[at].rpartition('"')[0].partition('"')[2])

    def descriptor(self, at: int) -> tuple[int, bytes | None]:
        """Return argument `at` as a number (-1 for the current folder), and the file name."""
        return _descriptor(self.args[at]) if at < len(self.args) else (-1, None)

    def opened(self) -> bytes | None:
        """Return the name of the descriptor that the call returned."""
        return _descriptor(f"{self.result}{self.shown}")[1]


def _descriptor(text: str) -> tuple[int, bytes | None]:
    match = _DESCRIPTOR.match(text)
    if match is None:
        return -1, None
    number = -1 if match[1] == "AT_FDCWD" else int(match[1])
    return number, None if match[2] is None else unescaped(match[2])


def unescaped(text: str) -> bytes:
    """Decode strace's escape sequences into bytes."""

    def decode(match: re.Match[bytes]) -> bytes:
        what = match[1]
        return bytes([int(what, 8) & 255]) if what.isdigit() else _ESCAPED.get(what, what)

    raw = text.encode("latin-1", errors="replace")
    return _ESCAPE.sub(decode, raw) if b"\\" in raw else raw


def calls(lines: Iterable[str]) -> Iterator[Call]:
    """Yield the calls in return order, and skip signals, exits and other lines."""
    begun: dict[int, str] = {}
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        tid, rest = int(match[1]), match[5].rstrip("\n")
        if rest.endswith(_UNFINISHED):
            begun[tid] = rest.removesuffix(_UNFINISHED)
            continue
        resumed = _RESUMED.match(rest)
        if resumed is not None:
            rest = begun.pop(tid, "") + resumed[2]
        call = _CALL.match(rest)
        if call is None:
            continue
        args = tuple(arg.strip() for arg in _ARGUMENT.findall(call[2]))
        time_ns = int(match[3]) * 1_000_000_000 + int(match[4].ljust(9, "0")[:9])
        comm = unescaped(match[2] or "")
        yield Call(tid, comm, time_ns, call[1], args, int(call[3], 0), call[4])


# -- strace files ----------------------------------------------------------------------------------

# Descriptors, file offsets and file names of a program that runs under strace.
#
# strace shows the name of every descriptor, but shows neither inode numbers nor the offsets of
# `write` calls. Therefore, this module identifies files by name and follows them through renames
# and links. Each open file description has an offset that `dup` and `fork` share, as in the kernel.

_UNKNOWN = (b"/dev/", b"/proc/", b"/sys/")


@dataclass
class File:
    """A file, numbered in order of first use."""

    number: int
    path: bytes
    size_bytes: int = 0
    names: int = 1
    announced: bool = False  # `True` if an event has recorded the file name.
    synced: bool = False  # `True` if msync was called for a portion of the file.
    mapped: bool = False  # `True` if the file is mapped for writing.


@dataclass
class Description:
    """An open file description of a process."""

    file: File
    offset_bytes: int = 0
    append: bool = False
    bypasses_cache: bool = False  # `True` if opened for direct or synchronous I/O.


@dataclass
class Mapping:
    """A shared, writable mapping of a file."""

    address: int
    length_bytes: int
    file: File
    offset_bytes: int


@dataclass
class Process:
    """State that the threads of a process share."""

    pid: int
    folder: bytes
    descriptors: dict[int, Description] = field(default_factory=dict)
    mappings: list[Mapping] = field(default_factory=list)

    def child(self, pid: int, *, shares_files: bool) -> Process:
        """Return the state for a new child process."""
        files = self.descriptors if shares_files else dict(self.descriptors)
        return Process(pid, self.folder, files, list(self.mappings))

    def mapping(self, address: int) -> Mapping | None:
        """Return the most recent shared mapping that contains an address."""
        for mapping in reversed(self.mappings):
            if mapping.address <= address < mapping.address + mapping.length_bytes:
                return mapping
        return None


class Names:
    """Files, indexed by name."""

    def __init__(self) -> None:
        """Create an index that contains no files."""
        self._files: dict[bytes, File] = {}
        self.folders: set[bytes] = set()
        self._next = 1

    def lookup(self, path: bytes) -> File | None:
        """Return the file with this name, or `None` if the name is unknown."""
        return self._files.get(path)

    def get(self, path: bytes) -> File | None:
        """Return (or add) the file with this name, or `None` if it is not on a drive."""
        if not path.startswith(b"/") or path.startswith(_UNKNOWN):
            return None
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = File(self._next, path)
            self._next += 1
        return file

    def remove(self, path: bytes) -> None:
        """Remove a name."""
        file = self._files.pop(path, None)
        if file is not None:
            file.names -= 1

    def link(self, file: File, path: bytes) -> None:
        """Add a name for a file."""
        self._files[path] = file
        file.names += 1

    def move(self, old: bytes, new: bytes) -> None:
        """Rename a file."""
        file = self._files.pop(old, None)
        if file is not None:
            self._files[new] = file
            file.path = new

    def below(self, folder: bytes) -> list[bytes]:
        """Return the names of the files below a folder."""
        return [path for path in self._files if path.startswith(folder + b"/")]


def joined(folder: bytes, path: bytes) -> bytes:
    """Return an absolute, normalised path, without resolving symbolic links."""
    return posixpath.normpath(posixpath.join(folder, path))


def existing(root: Path) -> frozenset[bytes]:
    """Return the existing files below a folder, which open calls with O_CREAT do not create."""
    return frozenset(os.fsencode(path) for path in root.resolve().rglob("*"))
