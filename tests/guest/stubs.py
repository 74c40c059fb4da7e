"""Stub libraries that replace libraries to which a program is linked but that no test uses.

Debian's fio is linked to the clients of Ceph, Gluster, NFS and others. These more than sixty
libraries are relocated at each start, which takes seconds on an emulated CPU for each test step.
The program itself is used as distributed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

# Libraries that have no symbol versions, with the prefix of their functions.
_BY_PREFIX = {"libnfs": "nfs_", "librados": "rados_", "librbd": "rbd_"}
_BY_VERSION = ("libgfapi", "libibverbs", "libnbd", "libpmem", "libpmemblk", "librdmacm")
_FUNCTION = re.compile(r" FUNC +GLOBAL +DEFAULT +UND (\w+)(?:@(\S+))?")
_NEEDED = re.compile(r"\(NEEDED\).*\[(.*)\]")
_VERSIONS = re.compile(r"File: (\S+)|Name: (\S+)")


def make(program: Path, folder: Path) -> None:
    """Build stubs of the libraries that `program` needs; without a compiler, use the real ones."""
    folder.mkdir(exist_ok=True)
    if not all(map(shutil.which, ("cc", "readelf"))):
        return
    output = _run("readelf", "--wide", "--dynamic", "--dyn-syms", "--version-info", str(program))
    used = _FUNCTION.findall(output)
    versions = _versions(output)
    for library in _NEEDED.findall(output):
        name = library.split(".")[0]
        if name in _BY_PREFIX:
            functions = [function for function, _ in used if function.startswith(_BY_PREFIX[name])]
            _link(folder / library, {"": functions})
        elif name in _BY_VERSION:
            functions_of = {
                version: [function for function, its in used if its == version]
                for version in versions.get(library, ())
            }
            _link(folder / library, functions_of)


def _versions(output: str) -> dict[str, list[str]]:
    """Return the symbol versions required from each library."""
    versions: dict[str, list[str]] = {}
    library = ""
    for file, version in _VERSIONS.findall(output.partition(".gnu.version_r")[2]):
        library = file or library
        if version:
            versions.setdefault(library, []).append(version)
    return versions


def _link(library: Path, functions: Mapping[str, list[str]]) -> None:
    """Build a library of empty functions by symbol version ("" for unversioned functions)."""
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
