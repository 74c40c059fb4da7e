"""Resolves the file object of each event, its path at that time, and its write-lifetime hint.

The kernel identifies files by device and inode number and reuses the numbers of removed files. This
module processes the events that create, name and remove files in order and records from which event
on a (device, inode) refers to which object. Transfers are then looked up column by column.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass, field
from functools import cache

from writecliff.capture.events import Flag, Op

_DELETED = " (deleted)"
NO_HINT = -1
Key = tuple[int, int]  # device, inode number


@dataclass
class FileObject:
    """A file from its creation, or first sight, to its removal."""

    number: int
    key: Key
    path: str
    names: set[str] = field(default_factory=set)
    hint: int = NO_HINT
    unlinked_at: int | None = None  # the event that removed its last name
    sized_bytes: int | None = None  # size when first seen, if its creation was not captured


@dataclass(frozen=True)
class State:
    """From event `since` on, `key` refers to this object, with this path and hint."""

    key: Key
    since: int
    file: int
    path: str
    hint: int


@dataclass(frozen=True)
class Row:
    """A row of the trace from an event that creates, names or removes a file."""

    event: int
    op: str
    key: Key
    offset_bytes: int = 0
    length_bytes: int = 0


@dataclass(frozen=True)
class ObjectEvent:
    """An event that creates, names or removes a file, or gives it a hint."""

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
    """The path as the kernel reports it: without `..`, symbolic links of the folder resolved."""
    path = posixpath.normpath(path)
    folder, name = posixpath.split(path)
    return posixpath.join(_real_folder(folder), name)


class Objects:
    """The files of a capture: their states by event, and the rows of naming events."""

    def __init__(self) -> None:
        self.files: list[FileObject] = []
        self.states: list[State] = []
        self.rows: list[Row] = []
        self._current: dict[Key, FileObject] = {}
        self._former: dict[Key, FileObject] = {}

    def take(self, event: ObjectEvent) -> None:
        """Process the next event."""
        if event.op in (Op.OPEN, Op.FILE):
            self._opened(event)
        elif event.op == Op.UNLINK:
            self._unlinked(event)
        elif event.op == Op.RENAME:
            self._renamed(event)
        elif event.op == Op.LINK:
            found = self._current.get(event.key) or self._new(event, canonical(event.text))
            found.names.add(canonical(event.text))
            self._revive(found, event)
        elif event.op == Op.HINT:
            self._hinted(event)

    def _new(self, event: ObjectEvent, path: str, *, seen: bool = False) -> FileObject:
        """Add an object; `seen` if it existed before, with the size in the event."""
        if event.key in self._current:
            self._former[event.key] = self._current[event.key]
        found = FileObject(len(self.files), event.key, path, {path})
        found.sized_bytes = event.b if seen else None
        self.files.append(found)
        self._current[event.key] = found
        self._state(found, event.index)
        return found

    def _state(self, file: FileObject, since: int) -> None:
        if self._current.get(file.key) is file:
            self.states.append(State(file.key, since, file.number, file.path, file.hint))

    def _opened(self, event: ObjectEvent) -> None:
        path = event.text.removesuffix(_DELETED)
        created = event.op == Op.OPEN and bool(event.flags & Flag.CREATED)
        found = self._current.get(event.key)
        if found is None or created or (found.unlinked_at is not None and event.nlink > 0):
            found = self._new(event, path, seen=not created)
            if event.nlink == 0:
                found.unlinked_at = event.index
        elif path == event.text and path not in found.names and event.nlink > 0:
            # The rename was not captured; trust the kernel's path.
            found.names = {path}
            found.path = path
            self._state(found, event.index)
        if created:
            self.rows.append(Row(event.index, "create", event.key))
        elif event.op == Op.OPEN and event.flags & Flag.TRUNCATED:
            self.rows.append(Row(event.index, "truncate", event.key))

    def _unlinked(self, event: ObjectEvent) -> None:
        path = canonical(event.text)
        found = self._current.get(event.key)
        former = self._former.get(event.key)
        if former is not None and former.unlinked_at is None and path in former.names:
            # The inode number was reused before this event was recorded.
            former.unlinked_at = event.index
            return
        if found is None:
            found = self._new(event, path, seen=True)
        if event.nlink <= 1:
            found.unlinked_at = event.index
            return
        found.names.discard(path)
        if path == found.path and found.names:
            found.path = min(found.names)
            self._state(found, event.index)

    def _revive(self, file: FileObject, event: ObjectEvent) -> None:
        """Process a new name of an unlinked file (linkat on an open file)."""
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
        found = self._current.get(event.key)
        found = found or self._new(event, old, seen=True)
        found.names.discard(old)
        found.names.add(new)
        found.path = new
        self._state(found, event.index)
        self.rows.append(Row(event.index, "rename", event.key))

    def _folder_renamed(self, old: str, new: str, index: int) -> None:
        _real_folder.cache_clear()
        for file in self._current.values():
            if file.unlinked_at is None and file.path.startswith(old + "/"):
                file.path = new + file.path[len(old) :]
                file.names = {file.path}
                self._state(file, index)

    def _hinted(self, event: ObjectEvent) -> None:
        found = self._current.get(event.key)
        if found is None:
            return
        if event.a <= 5:
            found.hint = event.a
            self._state(found, event.index)
        self.rows.append(Row(event.index, "hint", event.key, event.a, event.errno))
