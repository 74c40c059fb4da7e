"""The event file of the preload library; `crates/preload/src/events.rs` defines its layout."""

from __future__ import annotations

import os
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from writecliff.errors import StoreError
from writecliff.store.files import store_error

MAGIC = b"WCEVENT1"
HEADER_BYTES = 4096
NAMED_WORDS = 8192
SLOTS_AT = HEADER_BYTES + 8 * NAMED_WORDS
SLOT_BYTES = 64
CAPACITY_SLOTS = 1 << 29  # 32 GiB; the file grows as needed.
CONTINUED = 255  # Operation code for a slot that continues the text of the previous slot.
STOPPED, WITH_READS, REPAIR_HINTS = 1, 2, 4
# Fields: magic, capacity, cursor, allocated, dropped, start, flags.
_HEADER = struct.Struct("=8sQQQQQI")
_FLAGS_AT = _HEADER.size - 4
NUMBER_MAX = 1 << 61  # Maximum offset or length, so that the sum of two values fits in 64 bits.
TIME_MAX_NS = 1 << 62  # Maximum monotonic time, which corresponds to a century of uptime.
LONGEST_NS = 366 * 86_400 * 10**9  # Maximum capture duration (one year).


Op = IntEnum(
    "Op",
    "PROCESS TITLE OPEN FILE WRITE READ FSYNC TRUNCATE UNLINK RENAME LINK PUNCH HINT MMAP CLOSE",
)


class Flag(IntEnum):
    """Flags of an event."""

    CREATED = 1
    TRUNCATED = 2
    DIRECTORY = 4
    EXCHANGED = 8
    REPAIRED = 16
    IMPLIED = 32  # Flag for a sync that a write implied.


@dataclass(frozen=True)
class Events:
    """Events in recorded order, where `text[i]` is the text of event `i`, if any."""

    slots: NDArray[np.void]  # Structured array with the fields of `slot_type`.
    text: dict[int, bytes]
    start_ns: int
    dropped: int
    with_reads: bool
    impossible: int = 0  # Number of omitted events that no program can cause.
    untimely: int = 0  # Number of events with times outside the capture.


def slot_type() -> np.dtype[Any]:
    """Return the layout of an event file slot."""
    numbers = "op:u1 flags:u1 errno:u2 pid:u4 time_ns:u8 ino:u8 dev:u4 nlink:u4 a:u8 b:u8"
    fields = [tuple(field.split(":")) for field in numbers.split()]
    return np.dtype([*fields, ("comm", "S16")])


def create(path: Path, *, reads: bool = False, repair_hints: bool = False) -> None:
    """Create an empty event file that is writable by every user.

    Raises:
        StoreError: If the file cannot be created.
    """
    flags = (WITH_READS if reads else 0) | (REPAIR_HINTS if repair_hints else 0)
    header = _HEADER.pack(MAGIC, CAPACITY_SLOTS, 0, 0, 0, time.monotonic_ns(), flags)
    try:
        with open(path, "wb") as file:
            file.write(
                header.ljust(SLOTS_AT, b"\0")
            )  # Allocate the first page now, because the disk might be full later.
            os.fchmod(file.fileno(), 0o666)  # Servers drop root privileges before they write.
    except OSError as error:
        with suppress(OSError):  # An empty file would block the next capture.
            path.unlink(missing_ok=True)
        raise store_error(error, path) from error


def stop(path: Path) -> None:
    """Stop recording in all running programs."""
    with open(path, "r+b") as file:
        if file.read(len(MAGIC)) != MAGIC:
            # The file is not an event file, so do not write to it. `read` reports the error.
            return
        file.seek(_FLAGS_AT)
        (flags,) = struct.unpack("=I", file.read(4))
        file.seek(_FLAGS_AT)
        file.write(struct.pack("=I", flags | STOPPED))


def read(path: Path) -> Events:
    """Read the events recorded so far.

    Raises:
        StoreError: If the file cannot be read, or is not an event file.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size or not head.startswith(MAGIC):
                raise StoreError(f"{path} is not an event file of `writecliff capture`")
            _, capacity, cursor, allocated, dropped, start_ns, flags = _HEADER.unpack(head)
            count = min(cursor, capacity, allocated)
            # A killed capture may have reserved slots that it did not fill.
            count = min(count, max(0, os.fstat(file.fileno()).st_size - SLOTS_AT) // SLOT_BYTES)
            file.seek(SLOTS_AT)
            slots = np.fromfile(file, dtype=slot_type(), count=count)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    impossible = _leave_out_impossible(slots)
    text = _texts(slots)
    times = slots["time_ns"][(slots["op"] > 0) & (slots["op"] != CONTINUED)]
    untimely = (times < min(start_ns, TIME_MAX_NS)) | (times > start_ns + LONGEST_NS)
    return Events(
        slots, text, start_ns, dropped, bool(flags & WITH_READS), impossible, int(untimely.sum())
    )


def _leave_out_impossible(slots: NDArray[np.void]) -> int:
    """Remove events that are invalid or contain impossible numbers, and return the count."""
    op = slots["op"]
    given = (op > 0) & (op != CONTINUED)
    large = (slots["a"] > NUMBER_MAX) | (slots["b"] > NUMBER_MAX)
    bad = given & ((op > max(Op)) | (large & (op != Op.HINT)))
    op[bad] = 0
    hints = slots["a"][op == Op.HINT]  # The program chooses the hint, so any number is possible.
    slots["a"][op == Op.HINT] = np.minimum(hints, np.uint64(NUMBER_MAX))
    slots["b"][op == Op.HINT] = np.minimum(slots["b"][op == Op.HINT], np.uint64(NUMBER_MAX))
    return int(bad.sum())


def _texts(slots: NDArray[np.void]) -> dict[int, bytes]:
    """Return event texts by index, assembled from continuation slots of up to 62 bytes."""
    raw = slots.view(np.uint8).reshape(-1, SLOT_BYTES)
    continued = slots["op"] == CONTINUED
    firsts = np.flatnonzero(continued & ~np.concatenate(([False], continued[:-1])))
    texts = {}
    for first in firsts.tolist():
        parts = []
        at = first
        while at < len(slots) and continued[at]:
            parts.append(raw[at, 2 : 2 + int(raw[at, 1])].tobytes())
            at += 1
        if first and slots["op"][first - 1]:
            texts[first - 1] = b"".join(parts)
    return texts
