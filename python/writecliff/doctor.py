"""A check of the writecliff features that work on this machine, with hints for the others."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from writecliff import units
from writecliff.engines.blockdev.tools import find_tool
from writecliff.engines.fio.capability import find_fio, kernel_has_io_uring
from writecliff.engines.state_cache import StateCache
from writecliff.errors import WritecliffError
from writecliff.parallel import MAP_BYTES_PER_SLOT, SLOT_BYTES, available_memory_bytes

State = Literal["ok", "limited", "missing"]

# External programs, the features that require them, and their Debian packages.
_PROGRAMS = (
    ("nvme", "purge, identity, FDP and streams of NVMe drives; `attach`", "nvme-cli"),
    ("smartctl", "health and temperature of drives", "smartmontools"),
    ("hdparm", "secure erase and write cache of SATA drives", "hdparm"),
    ("sg_format", "purge of SAS drives", "sg3-utils"),
    ("blkdiscard", "purge by TRIM", "util-linux"),
    ("blkid", "signatures of data on a drive, before it is written", "util-linux"),
    ("nbdfuse", "served drives as files: `torture`, live experiments", "nbdfuse"),
    ("strace", "`capture --via strace`", "strace"),
    ("db_bench", "`capture --app rocksdb`", "rocksdb-tools"),
    ("mvn", "`capture --app cassandra`", "maven"),
)
_EXTRAS = (
    ("weasyprint", "pdf", "reports as PDF"),
    ("distributed", "dask", "`--scheduler`"),
    ("pandas", "pandas", "tables as its frames, in Python"),
    ("polars", "polars", "tables as its frames, in Python"),
    ("rocksdict", "rocksdb", "`torture` of RocksDB"),
    ("bokeh", "ui", "the dashboard"),
)
# Kernel features, the writecliff features that require them, their paths, and the steps that enable
# them.
_NODES = (
    ("FUSE", "served drives as files", ("/dev/fuse",), "modprobe fuse"),
    ("loop devices", "file systems on served drives", ("/dev/loop-control",), "modprobe loop"),
    ("tracefs", "block traces and the I/O stack",
     ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"), "a kernel with CONFIG_FTRACE"),
)  # fmt: skip
_HINTS_KERNEL = (6, 16)  # First kernel version with write streams in the block layer.


@dataclass(frozen=True)
class Check:
    """The check of a feature, with the feature's purpose and state, and a remedy if needed."""

    name: str
    purpose: str
    state: State
    found: str
    remedy: str = ""


def checks() -> list[Check]:
    """Run the checks of program, tools, rights, kernel and extras, which change nothing."""
    tools = [_fio(), _preload(), *_programs()]
    return [*_program(), *tools, _rights(), *_kernel(), *map(_extra, _EXTRAS)]


def _program() -> Iterator[Check]:
    python = platform.python_version()
    yield Check(
        "writecliff", "", "ok", f"{version('writecliff')}, Python {python}, {platform.machine()}"
    )
    memory_bytes = available_memory_bytes()
    largest_bytes = memory_bytes / (2.2 * MAP_BYTES_PER_SLOT) * SLOT_BYTES
    yield Check(
        "memory",
        "simulated drives: 2 GB for each TB of flash",
        "ok" if memory_bytes > 4e9 else "limited",
        f"{units.size(memory_bytes)} free, for a drive of up to {units.size(largest_bytes)}",
        "" if memory_bytes > 4e9 else "use --quick, smaller drives, or --jobs 1",
    )
    yield Check("cores", "parallel runs", "ok", f"{os.cpu_count() or 1}")
    yield _cache()


def _cache() -> Check:
    purpose = "stores prepared drives"
    try:
        cache = StateCache.of_user()
    except WritecliffError as error:
        return Check("cache", purpose, "limited", str(error), error.hint or "")
    there = next(path for path in (cache.folder, *cache.folder.parents) if path.exists())
    free_bytes = shutil.disk_usage(there).free
    state_text = f"{cache.folder}, {units.size(free_bytes)} free"
    if not os.access(there, os.W_OK):
        remedy = "set WRITECLIFF_CACHE to a writable folder"
        return Check("cache", purpose, "limited", f"{state_text}, not writable", remedy)
    return Check("cache", purpose, "ok" if free_bytes > 5e9 else "limited", state_text)


def _fio() -> Check:
    purpose = "everything on real drives"
    try:
        fio = find_fio()
    except WritecliffError as error:
        return Check("fio", purpose, "missing", str(error), error.hint or "")
    return Check("fio", purpose, "ok", f"{fio.version_text}, {fio.ioengine}, {fio.program}")


def _preload() -> Check:
    from writecliff.capture.run import BUILD_HINT, LIBRARY

    there = LIBRARY.is_file()
    return Check(
        "preload library",
        "`capture` of a command",
        "ok" if there else "missing",
        str(LIBRARY) if there else "not built",
        "" if there else BUILD_HINT,
    )


def _programs() -> Iterator[Check]:
    for name, purpose, package in _PROGRAMS:
        path = find_tool(name)
        remedy = "" if path else f"Debian, Ubuntu: apt install {package}"
        yield Check(name, purpose, "ok" if path else "missing", path or "not installed", remedy)


def _rights() -> Check:
    purpose = "tests on real drives, block traces, `attach`"
    if os.geteuid() == 0:
        return Check("rights", purpose, "ok", "root")
    return Check("rights", purpose, "limited", f"user {os.geteuid()}", "run these with sudo")


def _kernel() -> Iterator[Check]:
    release = platform.release()
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    purpose, release_text = "write hints that reach FDP and stream drives", f"Linux {release}"
    if numbers >= _HINTS_KERNEL:
        yield Check("kernel", purpose, "ok", release_text)
    else:
        remedy = "Linux 6.16 or later; NVMe passthrough works with older kernels"
        yield Check("kernel", purpose, "limited", release_text, remedy)
    remedy = "sysctl kernel.io_uring_disabled=0; a container may forbid it too"
    yield _seen("io_uring", "fio's faster engine; passthrough", kernel_has_io_uring(), remedy)
    for name, purpose, paths, remedy in _NODES:
        yield _seen(name, purpose, any(Path(path).exists() for path in paths), remedy)
    remedy = "modprobe nvme-tcp; cloud kernels of Debian lack it: apt install linux-image-amd64"
    yield _seen("NVMe/TCP", "`attach` of served drives", _has_module("nvme_tcp"), remedy)


def _seen(name: str, purpose: str, there: bool, remedy: str) -> Check:
    state_text = "available" if there else "not available"
    return Check(name, purpose, "ok" if there else "missing", state_text, "" if there else remedy)


def _has_module(name: str) -> bool:
    """Return `True` if a kernel module is loaded or can be loaded."""
    if Path(f"/sys/module/{name}").exists():
        return True
    folder = Path("/lib/modules") / platform.release()
    for listing in ("modules.dep", "modules.builtin"):
        try:
            text = (folder / listing).read_text()
        except OSError:
            continue
        if f"/{name.replace('_', '-')}.ko" in text:
            return True
    return False


def _extra(extra: tuple[str, str, str]) -> Check:
    module, name, purpose = extra
    remedy = f"pip install 'writecliff[{name}]'"
    reason = _imported(lambda: importlib.import_module(module))
    if reason is None:
        return Check(module, purpose, "ok", version(module))
    if module in sys.modules or "No module named" not in reason:
        return Check(
            module, purpose, "missing", reason, "install Pango: apt install libpango-1.0-0"
        )
    return Check(module, purpose, "missing", "not installed", remedy)


def _imported(load: Callable[[], object]) -> str | None:
    """Return the reason why a module cannot be imported, or `None` if it can."""
    try:
        load()
    except (ImportError, OSError) as error:
        return str(error).splitlines()[0]
    return None
