"""Tracks the files of a program that runs under strace: descriptors, offsets, names.

strace shows the name of every descriptor, but neither inode numbers nor the offsets of `write`.
Files are therefore identified by name and tracked through renames and links, and each open file
description has an offset that `dup` and `fork` share, as in the kernel.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass, field
from pathlib import Path

_UNKNOWN = (b"/dev/", b"/proc/", b"/sys/")


@dataclass
class File:
    """A file, numbered in order of first use."""

    number: int
    path: bytes
    size_bytes: int = 0
    names: int = 1
    announced: bool = False  # an event has recorded its name
    synced: bool = False  # msync was called for a part of it
    mapped: bool = False  # for writing


@dataclass
class Description:
    """An open file description."""

    file: File
    offset_bytes: int = 0
    append: bool = False
    bypasses_cache: bool = False  # opened for direct or synchronous I/O


@dataclass
class Mapping:
    """A shared, writable mapping of a file."""

    address: int
    length_bytes: int
    file: File
    offset_bytes: int


@dataclass
class Process:
    """The state shared by the threads of a process."""

    pid: int
    folder: bytes
    descriptors: dict[int, Description] = field(default_factory=dict)
    mappings: list[Mapping] = field(default_factory=list)

    def child(self, pid: int, *, shares_files: bool) -> Process:
        files = self.descriptors if shares_files else dict(self.descriptors)
        return Process(pid, self.folder, files, list(self.mappings))

    def mapping(self, address: int) -> Mapping | None:
        """The latest shared mapping that contains an address."""
        for mapping in reversed(self.mappings):
            if mapping.address <= address < mapping.address + mapping.length_bytes:
                return mapping
        return None


class Names:
    """The files by name."""

    def __init__(self) -> None:
        self._files: dict[bytes, File] = {}
        self.folders: set[bytes] = set()
        self._next = 1

    def known(self, path: bytes) -> File | None:
        return self._files.get(path)

    def get(self, path: bytes) -> File | None:
        """The file with that name, added if unknown; None for paths that are not on a drive."""
        if not path.startswith(b"/") or path.startswith(_UNKNOWN):
            return None
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = File(self._next, path)
            self._next += 1
        return file

    def remove(self, path: bytes) -> None:
        file = self._files.pop(path, None)
        if file is not None:
            file.names -= 1

    def link(self, file: File, path: bytes) -> None:
        self._files[path] = file
        file.names += 1

    def move(self, old: bytes, new: bytes) -> None:
        file = self._files.pop(old, None)
        if file is not None:
            self._files[new] = file
            file.path = new

    def below(self, folder: bytes) -> list[bytes]:
        return [path for path in self._files if path.startswith(folder + b"/")]


def joined(folder: bytes, path: bytes) -> bytes:
    """An absolute, normalised path; symbolic links are not resolved."""
    return posixpath.normpath(posixpath.join(folder, path))


def existing(root: Path) -> frozenset[bytes]:
    """The files below a folder, which opening with O_CREAT does not create."""
    return frozenset(os.fsencode(path) for path in root.resolve().rglob("*"))
