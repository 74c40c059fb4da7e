"""First root file system of the guest: busybox, the modules for the drives, and `init.sh`.

An archive in the format of `cpio --format=newc`. Neither the archive nor the modules are
compressed: decompression on an emulated CPU takes longer than QEMU's copy.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from tests.guest.reasons import CannotRun

_FOLDERS = ("bin", "dev", "machine", "modules", "new", "proc", "sys", "writes")
_COMMANDS = ("echo", "insmod", "mkdir", "mount", "poweroff", "sh", "switch_root")
_FOLDER, _FILE, _LINK = 0o040755, 0o100755, 0o120777


def write(place: Path, *, busybox: Path, modules: Path, load: Mapping[str, str]) -> None:
    """Write the archive.

    `modules` is the kernel's folder with `modules.dep`; `load` maps module names to options, in
    loading order. Dependencies are added; modules that the kernel does not have are assumed to be
    built in.
    """
    with place.open("wb") as file:
        archive = _Archive(file)
        for folder in _FOLDERS:
            archive.add(folder, _FOLDER)
        archive.add("bin/busybox", _FILE, busybox.read_bytes())
        for name in _COMMANDS:
            archive.add(f"bin/{name}", _LINK, b"busybox")
        order = []
        for module, options in _with_dependencies(modules, load):
            order.append(f"{module.name.removesuffix('.xz')} {options}".rstrip() + "\n")
            archive.add(f"modules/{order[-1].split()[0]}", _FILE, _plain(module))
        archive.add("modules/order", _FILE, "".join(order).encode())
        archive.add("init", _FILE, Path(__file__).with_name("init.sh").read_bytes())
        archive.close()


def _plain(module: Path) -> bytes:
    packed = module.read_bytes()
    return lzma.decompress(packed) if module.suffix == ".xz" else packed


def _with_dependencies(modules: Path, load: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield module files and their options, each once and after all of its dependencies."""
    depends: dict[str, list[str]] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        name, _, needed = line.partition(":")
        depends[name] = needed.split()
    if not depends:
        raise CannotRun(f"{modules} has no list of modules (modules.dep)")
    by_name = {_name(file): file for file in depends}
    done: set[str] = set()
    for wanted, options in load.items():
        file = by_name.get(wanted)
        # modules.dep lists dependencies in reverse order of loading.
        for module in [] if file is None else [*reversed(depends[file]), file]:
            if module not in done:
                done.add(module)
                yield modules / module, options if module == file else ""


def _name(file: str) -> str:
    return Path(file).name.split(".")[0].replace("-", "_")


class _Archive:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._inode = 0

    def add(self, name: str, mode: int, content: bytes = b"") -> None:
        """Add a folder, a file, or a symbolic link to `content`."""
        self._inode += 1
        path = name.encode() + b"\0"
        # Fields: inode, mode, user, group, links, time, size, device (2), special device (2), name,
        # checksum.
        fields = [self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0]
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        for part in (header + path, content):
            self._file.write(part + b"\0" * (-len(part) % 4))

    def close(self) -> None:
        """Write the trailer of the archive."""
        self.add("TRAILER!!!", 0)
