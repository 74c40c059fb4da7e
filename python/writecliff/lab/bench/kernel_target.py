"""The kernel's own NVMe/TCP target on a null block device, to compare a served drive with.

The null block device completes at once and copies nothing, so a client sees what the kernel's
target, the socket and the client cost: the least that NVMe/TCP takes on this machine.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from writecliff.errors import EngineError

NAME = "nqn.2026-01.writecliff:bench-serve"
_MODULES = ("null_blk", "nvmet", "nvmet-tcp")
_CONFIG = Path("/sys/kernel/config")
_SIZE_MIB = 1024


@contextmanager
def kernel_target() -> Iterator[str]:
    """The target's `HOST:PORT` on loopback, removed at the end.

    Raises EngineError: not root, or a kernel without the modules."""
    if os.geteuid() != 0:
        raise EngineError("the kernel's NVMe/TCP target needs root", hint="run it with sudo")
    _load_modules()
    with ExitStack() as undo:
        try:
            device = _null_device(undo)
            subsystem = _subsystem(undo, device)
            address = _port(undo, subsystem)
        except OSError as error:
            raise EngineError(f"the kernel's NVMe/TCP target cannot be set up: {error}") from None
        yield address


def _load_modules() -> None:
    for module in _MODULES:
        options = ["nr_devices=0"] if module == "null_blk" else []
        if why := _modprobe(module, *options):
            raise EngineError(
                f"the kernel's NVMe/TCP target needs the module {module}: {why}",
                hint="leave out --kernel-target, or run it in the drive bench (make drives-shell)",
            )


def _modprobe(*words: str) -> str:
    """What was wrong, if anything."""
    program = shutil.which("modprobe")
    if program is None:
        return "there is no modprobe"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip() or f"code {done.returncode}"


def _null_device(undo: ExitStack) -> Path:
    folder = _made(undo, _CONFIG / "nullb" / "writecliff")
    # Requests complete where they are submitted: no interrupt, no timer.
    for name, value in (("size", _SIZE_MIB), ("blocksize", 4096), ("irqmode", 0)):
        (folder / name).write_text(str(value))
    (folder / "power").write_text("1")
    undo.callback((folder / "power").write_text, "0")
    number = (folder / "index").read_text().strip()
    # Named after its folder since Linux 6.14, after its number before.
    names = (Path("/dev/writecliff"), Path(f"/dev/nullb{number}"))
    found = next((path for path in names if path.exists()), None)
    if found is None:
        raise EngineError(f"the null block device is neither of {names[0]}, {names[1]}")
    return found


def _subsystem(undo: ExitStack, device: Path) -> Path:
    subsystem = _made(undo, _CONFIG / "nvmet/subsystems" / NAME)
    (subsystem / "attr_allow_any_host").write_text("1")
    namespace = _made(undo, subsystem / "namespaces/1")
    (namespace / "device_path").write_text(str(device))
    (namespace / "enable").write_text("1")
    undo.callback((namespace / "enable").write_text, "0")
    return subsystem


def _port(undo: ExitStack, subsystem: Path) -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
    numbers = {int(path.name) for path in (_CONFIG / "nvmet/ports").iterdir()}
    port = _made(undo, _CONFIG / f"nvmet/ports/{max(numbers, default=0) + 1}")
    wanted = {"trtype": "tcp", "adrfam": "ipv4", "traddr": "127.0.0.1", "trsvcid": str(number)}
    for name, value in wanted.items():
        (port / f"addr_{name}").write_text(value)
    link = port / "subsystems" / NAME
    link.symlink_to(subsystem)
    undo.callback(link.unlink)
    return f"127.0.0.1:{number}"


def _made(undo: ExitStack, folder: Path) -> Path:
    folder.mkdir()
    undo.callback(folder.rmdir)
    return folder
