"""Empty libraries in place of those that a program is linked to and that no test uses.

Debian's fio is linked to the clients of Ceph, Gluster, NFS and others, more than sixty libraries that are
relocated at each start: seconds on an interpreted processor, for each step of a test. The program itself
stays as it is distributed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

# Libraries that give their functions no version: how the names of those begin.
_BY_PREFIX = {"libnfs": "nfs_", "librados": "rados_", "librbd": "rbd_"}
_BY_VERSION = ("libgfapi", "libibverbs", "libnbd", "libpmem", "libpmemblk", "librdmacm")
_FUNCTION = re.compile(r" FUNC +GLOBAL +DEFAULT +UND (\w+)(?:@(\S+))?")
_NEEDED = re.compile(r"\(NEEDED\).*\[(.*)\]")
_VERSIONS = re.compile(r"File: (\S+)|Name: (\S+)")


def make(program: Path, folder: Path) -> None:
    """Makes the libraries that `program` asks for. Where there is no compiler, it keeps the real ones."""
    folder.mkdir(exist_ok=True)
    if not all(map(shutil.which, ("cc", "readelf"))):
        return
    said = _run("readelf", "--wide", "--dynamic", "--dyn-syms", "--version-info", str(program))
    used = _FUNCTION.findall(said)
    versions = _versions(said)
    for library in _NEEDED.findall(said):
        name = library.split(".")[0]
        if name in _BY_PREFIX:
            functions = [one for one, _ in used if one.startswith(_BY_PREFIX[name])]
            _link(folder / library, {"": functions})
        elif name in _BY_VERSION:
            own = {
                version: [one for one, its in used if its == version]
                for version in versions.get(library, ())
            }
            _link(folder / library, own)


def _versions(said: str) -> dict[str, list[str]]:
    """The versions that are asked for, by library."""
    found: dict[str, list[str]] = {}
    library = ""
    for file, version in _VERSIONS.findall(said.partition(".gnu.version_r")[2]):
        library = file or library
        if version:
            found.setdefault(library, []).append(version)
    return found


def _link(library: Path, functions: Mapping[str, list[str]]) -> None:
    """A library with functions that do nothing, by version; "": they have none."""
    source, script = library.with_suffix(".c"), library.with_suffix(".map")
    names = [name for several in functions.values() for name in several]
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in names))
    words = ["-shared", "-nostdlib", "-fPIC", "-w", f"-Wl,-soname,{library.name}"]
    if "" not in functions:
        script.write_text("".join(f"{v} {{ {'; '.join(n)}; }};\n" for v, n in functions.items()))
        words.append(f"-Wl,--version-script={script}")
    _run("cc", *words, "-o", str(library), str(source))


def _run(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
