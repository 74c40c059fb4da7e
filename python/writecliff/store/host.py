"""The machine that a run is made on, as the report's column "Test Platform" shows it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from writecliff import version

_BOARD = Path("/sys/class/dmi/id")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_VERSION_TIMEOUT_S = 5


def host_platform() -> dict[str, str | None]:
    """Make of the machine, motherboard, CPU and its governor, memory and operating system, and
    whether the machine is virtual; None if unknown."""
    return {
        "platform": _named("sys_vendor", "product_name"),
        "motherboard": _named("board_vendor", "board_name"),
        "cpu": _cpu(),
        "memory": _memory(),
        "operating_system": _operating_system(),
        "machine": platform.machine() or None,
        "cpu_governor": _line(_GOVERNOR),
        "virtual_machine": _virtual(),
    }


def versions() -> dict[str, str | None]:
    """Versions of the programs that take part in a run; None: not installed."""
    return {
        "writecliff": version(),
        "fio": _fio(),
        "python": platform.python_version(),
        "kernel": f"{platform.system()} {platform.release()}",
    }


def _named(vendor: str, product: str) -> str | None:
    """From the firmware (DMI), which boards without a name of their own fill with placeholders."""
    words = [_line(_BOARD / name) or "" for name in (vendor, product)]
    known = [word for word in words if not re.search(r"(?i)o\.?e\.?m\.?$|default string", word)]
    return " ".join(filter(None, known)) or None


def _line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _field(path: str, name: str) -> str | None:
    for line in (_line(Path(path)) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _cpu() -> str | None:
    model = _field("/proc/cpuinfo", "model name") or platform.processor() or None
    count = os.cpu_count()
    return f"{model}, {count} threads" if model and count else model


def _virtual() -> str | None:
    """ "yes" in a virtual machine that says so, as x86 ones do; None elsewhere."""
    flags = _field("/proc/cpuinfo", "flags")
    return None if flags is None else "yes" if "hypervisor" in flags.split() else "no"


def _memory() -> str | None:
    total = (_field("/proc/meminfo", "MemTotal") or "").split()
    return f"{int(total[0]) / 2**20:.1f} GiB" if total else None


def _operating_system() -> str | None:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        name = None
    return name or platform.system() or None


def _fio() -> str | None:
    path = shutil.which("fio")
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
