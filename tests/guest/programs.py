"""Programs of another Debian release, run from their unpacked tree with their own C library.

A program and its libraries are in one tree. Their dynamic loader is started explicitly with the
library path, so this machine's release and packages do not matter.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

_LIBRARIES = (
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib",  # multipath-tools installs its libraries in this folder.
    # fio's Ceph engines refer to this library by an absolute path.
    "usr/lib/x86_64-linux-gnu/ceph",
    "usr/lib/x86_64-linux-gnu/systemd",
)
STUBS = "stubs"  # Folder of the libraries that `stubs` builds, which is searched first.
_ELF, _LOADER = b"\x7fELF", b"ld-linux"


def command(tree: Path, program: str, name: str | None = None) -> list[str]:
    """Return the command line that runs `program`, a path in `tree`, with `name` as argv[0]."""
    loader = next(
        tree / place / "ld-linux-x86-64.so.2"
        for place in ("usr/lib64", "lib64", "usr/lib/x86_64-linux-gnu")
        if (tree / place / "ld-linux-x86-64.so.2").exists()
    )
    places = ([STUBS] if (tree / STUBS).is_dir() else []) + list(_LIBRARIES)
    libraries = ":".join(str(tree / place) for place in places)
    named = ["--argv0", name] if name else []
    path = str(tree / program)
    return [str(loader), "--inhibit-cache", "--library-path", libraries, *named, path]


def wrap(tree: Path, programs: Iterable[str], folder: Path, final: Path) -> None:
    """Create a folder for PATH with a wrapper script for each of `programs` (paths in `tree`).

    `final` is the path of the tree when the scripts are used. Static programs and scripts need no
    loader and are linked.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        real = _within(tree, program)
        name = Path(program).name
        if real is None or (folder / name).exists():
            continue
        with real.open("rb") as file:
            head = file.read(4096)
        inside = str(real.relative_to(tree))
        if not head.startswith(_ELF) or _LOADER not in head:
            os.symlink(final / inside, folder / name)
            continue
        words = [word.replace(str(tree), str(final)) for word in command(tree, inside, name)]
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)


def _within(tree: Path, program: str) -> Path | None:
    """Resolve `program` with `tree` as the root; return `None` if the file does not exist."""
    path = tree / program
    for _ in range(8):
        if not path.is_symlink():
            return path if path.is_file() else None
        leads_to = os.readlink(path)
        path = tree / leads_to[1:] if leads_to.startswith("/") else path.parent / leads_to
    return None
