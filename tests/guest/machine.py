"""QEMU processes: command line, start, and end.

The CPU is emulated, because build machines rarely offer nested virtualisation;
WRITECLIFF_GUEST_ACCELERATOR=kvm uses it if available. WRITECLIFF_GUEST_PROCESSORS=1 creates a guest
with one CPU, which takes a third less of the machine's CPU time, because no lock is contended and
atomic operations are plain operations. QEMU ends with the process that started it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.guest import drives, first_root, programs
from tests.guest.fetch import Parts

MEMORY = "3G"
# On an emulated CPU, hardening and page faults cost most.
_KERNEL_OPTIONS = (
    "console=ttyS0 panic=-1 mitigations=off audit=0 cryptomgr.notests nvme_core.io_timeout=255 "
    "init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off transparent_hugepage=always"
)
# The CPU emulates string instructions byte by byte. Without these two features, the C library and
# the kernel copy words.
_PROCESSOR = "max,la57=off,erms=off,fsrm=off"
_START = Path(__file__).with_name("start.sh")


class Machine:
    """A virtual machine that has not been started yet.

    `run` is a folder for the machine's temporary files, `images` a folder for the contents of its
    drives, and `out` the folder that the guest sees as /run/out and writes to.
    """

    def __init__(self, parts: Parts, *, run: Path, images: Path, out: Path) -> None:
        self.console = out / "console"
        self._parts, self._run, self._images, self._out = parts, run, images, out

    def start(self, *, terminal: bool = False) -> subprocess.Popen[str]:
        """Start the machine; its output is that of the job. With `terminal` it uses our terminal.

        The environment of the job must already be in `out`.
        """
        root = self._run / "first-root"
        kernel = self._parts.kernel
        first_root.write(
            root, busybox=self._parts.busybox, modules=kernel.modules, load=drives.MODULES
        )
        words = ["setpriv", "--pdeathsig", "KILL", "--", *self._qemu(root, terminal)]
        if terminal:
            return subprocess.Popen(words, text=True)
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # The parent process handles Ctrl-C.
        )

    def _qemu(self, root: Path, terminal: bool) -> list[str]:
        emulator, kernel = self._parts.emulator, self._parts.kernel
        accelerator = os.environ.get("WRITECLIFF_GUEST_ACCELERATOR", "tcg,thread=multi")
        processors = os.environ.get("WRITECLIFF_GUEST_PROCESSORS", "2")
        words = programs.command(emulator, "usr/bin/qemu-system-x86_64")
        for place in ("qemu", "seabios"):
            words += ["-L", str(emulator / "usr/share" / place)]
        words += ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
        words += ["-machine", "q35,smm=off,vmport=off", "-accel", accelerator]
        words += ["-cpu", _PROCESSOR, "-smp", processors, "-m", MEMORY]
        words += ["-kernel", str(kernel.image), "-initrd", str(root)]
        words += ["-append", f"{_KERNEL_OPTIONS} START={_START}"]
        words += ["-serial", f"file:{self.console}"]
        words += _share("root", Path("/"), "readonly=on,") + _share("out", self._out)
        words += self._channels(terminal)
        return words + drives.options(self._images)

    def _channels(self, terminal: bool) -> list[str]:
        """Return options that connect the job's output, and QEMU's monitor to the guest."""
        monitor = self._run / "qmp"
        words = ["-device", "virtio-serial-pci"]
        if terminal:
            words += ["-chardev", "stdio,id=output,signal=off"]
            words += ["-device", "virtconsole,chardev=output"]
        else:
            words += ["-chardev", "file,id=output,path=/proc/self/fd/1"]  # `Job` reads this pipe.
            words += ["-device", "virtserialport,name=output,chardev=output"]
        # QEMU is both client and server of this socket, so the socket uses no host network port.
        words += ["-chardev", f"socket,id=monitor,path={monitor},server=on,wait=off"]
        words += ["-mon", "chardev=monitor,mode=control"]
        words += ["-chardev", f"socket,id=qmp,path={monitor},server=off"]
        return [*words, "-device", "virtserialport,name=qmp,chardev=qmp"]


def _share(name: str, folder: Path, options: str = "") -> list[str]:
    device = f"virtio-9p-pci,fsdev={name},mount_tag={name}"
    local = f"local,id={name},path={folder},{options}security_model=none,multidevs=remap"
    return ["-fsdev", local, "-device", device]


def environment(parts: Parts, *, images: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of start.sh and of the job."""
    return {
        "WRITECLIFF_GUEST": "1",
        "WRITECLIFF_GUEST_IMAGES": str(images),
        "BUSYBOX": str(parts.busybox),
        "MODULES": str(parts.kernel.modules),
        **{f"TOOLS_{name.upper()}": str(folder) for name, folder in parts.tools.items()},
        **more,
    }
