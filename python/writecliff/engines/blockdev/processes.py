"""Processes that have a device or file open, or keep it mapped after closing it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from writecliff.engines.blockdev.mounts import process_ids
from writecliff.engines.blockdev.topology import read_text

NameOf = Callable[[os.stat_result], str | None]
_FLAGS = re.compile(r"^flags:\s*([0-7]+)", re.MULTILINE)


@dataclass(frozen=True)
class Opener:
    """Another process that has one of the targets open. `name` is the target's."""

    name: str
    pid: str
    comm: str


def openers(proc: Path, name_of: NameOf, written_name_of: NameOf) -> list[Opener]:
    """Other processes that have a target open or mapped.

    `name_of` names the targets; `written_name_of` those that only an opener for writing uses.
    """
    found = []
    mapped: set[tuple[str, str]] = set()  # libraries are the same in most processes
    for process in process_ids(proc):
        if int(process) == os.getpid():
            continue
        directory = proc / process
        names = _opened(directory, name_of, written_name_of)
        name = next(names, None) or next(_mapped(directory, name_of, mapped), None)
        if name is not None:
            found.append(Opener(name, process, read_text(directory / "comm") or "?"))
    return found


def _opened(directory: Path, name_of: NameOf, written_name_of: NameOf) -> Iterator[str]:
    try:
        descriptors = list((directory / "fd").iterdir())
    except OSError:
        return  # ended meanwhile, or another user's
    for descriptor in descriptors:
        try:
            info = descriptor.stat()
        except OSError:
            continue
        name = name_of(info)
        if name is None and (name := written_name_of(info)) is not None:
            name = name if _for_writing(directory, descriptor.name) else None
        if name is not None:
            yield name


def _for_writing(directory: Path, descriptor: str) -> bool:
    match = _FLAGS.search(read_text(directory / "fdinfo" / descriptor) or "")
    return match is None or int(match[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _mapped(directory: Path, name_of: NameOf, seen: set[tuple[str, str]]) -> Iterator[str]:
    """Targets that are mapped into the process; `seen` are files that are none, by number."""
    for line in (read_text(directory / "maps") or "").splitlines():
        addresses, _, _, device, inode, *path = line.split(maxsplit=5)
        if not path or inode == "0" or (device, inode) in seen:
            continue
        try:
            name = name_of((directory / "map_files" / addresses).stat())
        except OSError:
            continue
        if name is None:
            seen.add((device, inode))
        else:
            yield name
