"""Version, I/O engine and data placement support of the installed fio and the kernel.

`find_fio` is called once, when an engine is opened, and also chooses between io_uring and libaio.
"""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from typing import Literal

from writecliff.engines.blockdev.tools import Runner, find_tool, run_tool
from writecliff.errors import EngineError

Version = tuple[int, int]

OLDEST: Version = (3, 20)  # First version that reports total latency bins in JSON.
PLIDS_SINCE: Version = (3, 38)  # First version with dataplacement= and plids=.
DSYNC_SINCE: Version = (3, 24)  # First version with sync=dsync.
_SYS_IO_URING_SETUP = 425  # System call number, which is equal on all architectures.
_IO_URING_PARAMS_BYTES = 120
_INSTALL = "install fio (Debian, Ubuntu, Fedora: package 'fio'), version 3.20 or later"


@dataclass(frozen=True)
class DataPlacement:
    """Method of directing writes to a stream or placement handle.

    NVMe passthrough uses the NVMe generic device. Without passthrough, the kernel maps write hints
    to write streams or to a SCSI drive's group numbers. Stream n is written with the hint
    `hints[n]` through `nodes[n]`.
    """

    kind: Literal["fdp", "streams", "hint"]
    generic_device: str  # Generic device, such as "/dev/ng0n1"; empty if hints are used.
    handles: int  # Number of placement identifiers or streams, numbered from 0.
    nodes: tuple[str, ...] = ()
    hints: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fio:
    """An installed fio, where `version_text` is the output of `fio --version` ("fio-3.33")."""

    program: str
    version: Version
    version_text: str
    ioengine: Literal["io_uring", "libaio"]


def parse_version(text: str) -> Version | None:
    """Return (major, minor) of "fio-3.33" or "fio-3.36-12-g1a2b3c", or None for other texts."""
    match = re.match(r"fio-(\d+)\.(\d+)", text.strip())
    return (int(match.group(1)), int(match.group(2))) if match else None


def kernel_has_io_uring() -> bool:
    """Return True if the kernel, sysctl and seccomp allow this process to create an io_uring."""
    libc = ctypes.CDLL(None, use_errno=True)
    params = ctypes.create_string_buffer(_IO_URING_PARAMS_BYTES)
    libc.syscall.restype = ctypes.c_long
    fd = libc.syscall(ctypes.c_long(_SYS_IO_URING_SETUP), ctypes.c_uint(1), params)
    if fd < 0:
        return False
    os.close(fd)
    return True


def find_fio(run: Runner = run_tool) -> Fio:
    """Find and describe the installed fio.

    Raises:
        EngineError: If fio is missing, too old, or has no usable I/O engine.
    """
    program = find_tool("fio")
    answer = run(["fio", "--version"])
    if program is None or answer.absent:
        raise EngineError("fio is not installed", hint=_INSTALL)
    version = parse_version(answer.stdout)
    if not answer.ok or version is None:
        raise EngineError(f"{program} is not fio: {answer.message}", hint=_INSTALL)
    text = answer.stdout.strip()
    if version < OLDEST:
        raise EngineError(f"{program}: version {text} is too old", hint=_INSTALL)
    engines = set(run(["fio", "--enghelp"]).stdout.split())
    if "io_uring" in engines and kernel_has_io_uring():
        return Fio(program, version, text, "io_uring")
    if "libaio" in engines:
        return Fio(program, version, text, "libaio")
    raise EngineError(
        f"{program} supports neither libaio nor an io_uring that this kernel allows",
        hint="install a fio build that includes libaio",
    )
