"""Download the bench's components into the cache: emulator, kernel, tools of two generations.

The cache is the folder `writecliff/guest` under XDG_CACHE_HOME. A component is assembled in a
temporary folder and renamed when complete, under a lock. No bench therefore sees a partial
component, even if two benches start at once. A complete cache needs no network.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.guest import programs, stubs
from tests.guest.debian import Suite, unpack
from tests.guest.reasons import CannotRun

# Debian 12's QEMU does not support flexible data placement; Debian 13's does.
EMULATOR_SUITE = "trixie"
EMULATOR = ("qemu-system-x86",)
# Newest kernel of each suite. Kernels from backports support write streams in the block layer
# (Linux 6.16 and later), but Debian 13's own 6.12 kernel does not.
KERNEL_SUITES = {"6.12": "trixie", "newest": "trixie-backports"}

# Tool output differs between versions: nvme-cli 2.3 with fio 3.33, and nvme-cli 2.16 with fio 3.41.
_DRIVE_TOOLS = ("fio", "hdparm", "nvme-cli", "sg3-utils", "smartmontools")
_OTHER_TOOLS = (
    *("bcache-tools", "blktrace", "btrfs-progs", "busybox-static", "cryptsetup-bin", "dmsetup"),
    *(
        "e2fsprogs",
        "fdisk",
        "kmod",
        "kpartx",
        "lvm2",
        "mdadm",
        "mount",
        "multipath-tools",
        "nbd-client",
        "xfsprogs",
    ),
)
TOOLS = {
    "older": ("bookworm", (*_DRIVE_TOOLS, *_OTHER_TOOLS)),
    "newer": ("forky", _DRIVE_TOOLS),
}

_NO_PROGRAM_NEEDS = ("./usr/share/doc", "./usr/share/locale", "./usr/share/man", "./usr/share/perl")
_NO_DRIVE_NEEDS = ("*/sound", *(f"*/drivers/{name}" for name in ("gpu", "media", "iio", "staging")))
_NO_DRIVE_NEEDS += ("*/drivers/net/wireless", "*/drivers/net/ethernet", "./usr/share/doc")


@dataclass(frozen=True, slots=True)
class Kernel:
    """An unpacked kernel: `tree/lib/modules/VERSION` contains its modules."""

    tree: Path
    version: str
    image: Path

    @property
    def modules(self) -> Path:
        """Folder with `modules.dep`."""
        return self.tree / "lib/modules" / self.version


@dataclass(frozen=True, slots=True)
class Parts:
    """Components of a guest; `tools` maps each generation to a folder for PATH."""

    emulator: Path
    kernel: Kernel
    tools: dict[str, Path]

    @property
    def busybox(self) -> Path:
        """Statically linked busybox."""
        return (self.tools["older"] / "busybox").resolve()


def cache() -> Path:
    """Return the download folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "writecliff" / "guest"


def default_kernel() -> str:
    """Return the name of the default kernel."""
    return os.environ.get("WRITECLIFF_GUEST_KERNEL", "newest")


def fetch(kernel: str | None = None) -> Parts:
    """Download missing components into the cache and return the paths of all components.

    `kernel` is a key of KERNEL_SUITES.

    Raises:
        CannotRun: a component cannot be downloaded or built on this machine.
    """
    _needs()
    tools = {name: _tools(name) for name in TOOLS}
    emulator = _part("emulator", f"{EMULATOR_SUITE} {EMULATOR}", _make_emulator)
    suite = KERNEL_SUITES[kernel or default_kernel()]

    def make(folder: Path, state: Path, final: Path) -> None:
        _make_kernel(folder, state, suite, tools["older"] / "depmod")

    tree = _part(f"kernel-{suite}", f"{suite} {_NO_DRIVE_NEEDS}", make)
    version = next((tree / "lib/modules").iterdir()).name
    return Parts(emulator, Kernel(tree, version, tree / "vmlinuz"), tools)


def _needs() -> None:
    machine = os.uname()
    if (machine.sysname, machine.machine) != ("Linux", "x86_64"):
        raise CannotRun(
            f"the guest needs Linux on x86-64; this is {machine.sysname} on {machine.machine}"
        )
    for tool in ("apt-get", "dpkg-deb", "tar", "setpriv"):
        if shutil.which(tool) is None:
            raise CannotRun(f"{tool} is not installed; the guest is made of Debian packages")


def _tools(name: str) -> Path:
    suite, packages = TOOLS[name]

    def make(folder: Path, state: Path, final: Path) -> None:
        commands: list[str] = []
        for package in Suite(suite, state).with_dependencies(packages):
            unpacked = unpack(package, folder, _NO_PROGRAM_NEEDS)
            commands += unpacked if package.name.split("_")[0] in packages else []
        stubs.make(folder / "usr/bin/fio", folder / programs.STUBS)
        programs.wrap(folder, commands, folder / "commands", final)

    return _part(f"tools-{name}", f"{suite} {packages} {programs.STUBS}", make) / "commands"


def _make_emulator(folder: Path, state: Path, final: Path) -> None:
    for package in Suite(EMULATOR_SUITE, state).with_dependencies(EMULATOR):
        unpack(package, folder, _NO_PROGRAM_NEEDS)


def _make_kernel(folder: Path, state: Path, suite: str, depmod: Path) -> None:
    for package in Suite(suite, state).kernel():
        unpack(package, folder, _NO_DRIVE_NEEDS)
    if not (folder / "lib").exists():
        os.symlink("usr/lib", folder / "lib")
    versions = list((folder / "lib/modules").iterdir())
    images = [path for path in folder.rglob("vmlinuz*") if path.is_file()]
    if len(versions) != 1 or len(images) != 1:
        raise CannotRun(f"Debian {suite}: {len(images)} kernels, {len(versions)} sets of modules")
    os.symlink(images[0].relative_to(folder), folder / "vmlinuz")
    subprocess.run([depmod, "--basedir", folder, versions[0].name], check=True, capture_output=True)


def _part(name: str, recipe: str, make: Callable[[Path, Path, Path], None]) -> Path:
    """Return a component's folder; `make(folder, APT state, final folder)` creates it."""
    final = cache() / name
    final.parent.mkdir(parents=True, exist_ok=True)
    with _locked(final.with_suffix(".lock")):
        stamp = final / "recipe"
        if stamp.is_file() and stamp.read_text() == recipe:
            return final
        print(f"fetching {name} (once)", file=sys.stderr, flush=True)
        new, state = final.with_suffix(".new"), final.with_suffix(".apt")
        try:
            for folder in (new, state, final):
                shutil.rmtree(folder, ignore_errors=True)
            new.mkdir()
            make(new, state, final)
            (new / "recipe").write_text(recipe)
            os.rename(new, final)
        except OSError as error:
            raise CannotRun(f"{name} cannot be stored in {final.parent}: {error}") from error
        finally:
            shutil.rmtree(new, ignore_errors=True)
            shutil.rmtree(state, ignore_errors=True)
    return final


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
