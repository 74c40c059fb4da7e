"""`manifest.json`, which holds a run's description and status in the schema "writecliff/run/1".

The file is replaced atomically at every state change. Unknown keys in the file are ignored.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from writecliff import version
from writecliff.engines.base import (
    NOT_PURGED,
    CacheReport,
    DeviceIdentity,
    PowerStates,
    PurgeReport,
)
from writecliff.errors import ConfigError
from writecliff.store.checksums import damaged, parse_document, read_document, write_document
from writecliff.store.files import is_locked
from writecliff.store.typed import typed

# -- host ------------------------------------------------------------------------------------------

# Machine that issued the I/O, for the "Test Platform" column in reports.

_BOARD = Path("/sys/class/dmi/id")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_VERSION_TIMEOUT_S = 5


def host_platform() -> dict[str, str | None]:
    """Return a description of the machine; unknown values are None.

    The description covers maker, motherboard, CPU and governor, memory, operating system and
    virtualisation.
    """
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
    """Return the versions of the programs involved in a run, with None if not installed."""
    return {
        "writecliff": version(),
        "fio": _fio(),
        "python": platform.python_version(),
        "kernel": f"{platform.system()} {platform.release()}",
    }


def _named(vendor: str, product: str) -> str | None:
    """Return a name from the firmware (DMI), ignoring placeholders of unnamed boards."""
    words = [_line(_BOARD / name) or "" for name in (vendor, product)]
    names = [word for word in words if not re.search(r"(?i)o\.?e\.?m\.?$|default string", word)]
    return " ".join(filter(None, names)) or None


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
    """Return "yes" or "no" for a virtual machine, or None on machines that do not report it."""
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


# -- manifest --------------------------------------------------------------------------------------

SCHEMA = "writecliff/run/1"
MANIFEST_NAME = "manifest.json"
SUITE_NAME = "suite.json"  # Manifest name in the folder of a suite or sweep.

Status = Literal["planned", "running", "complete", "interrupted", "failed"]
# Keys that are set to an empty value rather than the default if they are missing.
_NO_DEFAULT = ("command",)


def now() -> str:
    """Return the current time in the manifest format.

    The format is ISO 8601 with a time zone, in whole seconds.
    """
    return datetime.now().astimezone().isoformat(timespec="seconds")


def command_line() -> tuple[str, ...]:
    """Return this process's command as typed by a user, without the program path.

    `python -m writecliff` becomes `writecliff`.
    """
    name = Path(sys.argv[0])
    program = "writecliff" if name.name == "__main__.py" else name.name
    return (program, *sys.argv[1:])


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Description and status of a run. Times are ISO 8601 with zone, and mappings hold JSON values.

    setup          header-block parameters, from `Procedure.setup`
    deviations     options that deviate from the standard: option, standard, used, level, clause,
                   text
    phases         phases that have started: name, detail, started
    interruptions  interruptions of the run: after_steps, resumed, exact (a simulated drive resumes
                   from its exact state)
    health         drive health (SMART) "before" and "after" the run
    expectations   limits on headline figures, with their outcomes (see report/expectations.py)
    extra          private data of the procedures' driver
    """

    procedure: str  # Procedure name, such as "wsat".
    edition: str  # Edition, such as "PTS-E 1.1".
    device: DeviceIdentity
    options: Mapping[str, Any]
    seed: int
    title: str = ""  # Test title, such as "Write Saturation Test".
    command: tuple[str, ...] = field(default_factory=command_line)
    setup: Mapping[str, str] = field(default_factory=dict)
    deviations: tuple[Mapping[str, Any], ...] = ()
    purge: PurgeReport | None = None
    write_cache: CacheReport | None = None
    write_cache_required: bool | None = None
    # Power states of an NVMe drive at the start of the latest session.
    power: PowerStates | None = None
    versions: Mapping[str, str | None] = field(default_factory=versions)
    host: Mapping[str, str | None] = field(default_factory=host_platform)
    status: Status = "planned"
    reason: str = ""  # Reason why the run ended: a rule's text, an error, or "stopped by the user".
    ended_by: str = ""  # Name of the rule that ended the run.
    created: str = field(default_factory=now)
    updated: str = field(default_factory=now)
    phases: tuple[Mapping[str, Any], ...] = ()
    interruptions: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    health: Mapping[str, Any] = field(default_factory=dict)
    expectations: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def not_purged(self) -> bool:
        """`True` if the user requested a run without a purge."""
        return self.purge == NOT_PURGED

    def changed(self, **changes: Any) -> Manifest:
        """Return a copy with `changes`, where `updated` is the current time."""
        return replace(self, **{"updated": now(), **changes})


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace a run directory's manifest atomically.

    Raises:
        StoreError: If the file cannot be written.
    """
    write_document(folder / MANIFEST_NAME, SCHEMA, asdict(manifest))


def read_manifest(folder: Path) -> Manifest:
    """Return a run directory's manifest.

    Raises:
        ConfigError: If the folder is not a run directory.
        StoreError: If the manifest is damaged.
    """
    path = folder / MANIFEST_NAME
    try:
        return _from_document(read_document(path, SCHEMA), path)
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(
            f"{folder} is not a run directory: it does not contain {MANIFEST_NAME}",
            hint="specify the directory that `writecliff test` printed",
        ) from None


def parse_manifest(data: bytes, path: Path) -> Manifest:
    """Return the manifest in `data`, the content of `path`.

    Raises:
        StoreError: If the manifest is damaged.
    """
    return _from_document(parse_document(data, path, SCHEMA), path)


def _from_document(document: Mapping[str, object], path: Path) -> Manifest:
    absent = {name: () for name in _NO_DEFAULT if name not in document}
    manifest = typed({**document, **absent}, Manifest, path)
    try:
        for text in (manifest.created, manifest.updated):
            datetime.fromisoformat(text)
    except ValueError as error:
        raise damaged(path, str(error)) from None
    return manifest


def read_state(folder: Path) -> tuple[Manifest, Status]:
    """Return a run's manifest and status.

    A run with the status "running" but without a process is "interrupted".

    Raises:
        ConfigError: If the folder is not a run directory.
        StoreError: If the manifest is damaged.
    """
    manifest = read_manifest(folder)
    if manifest.status != "running" or is_locked(folder):
        return manifest, manifest.status
    manifest = read_manifest(folder)  # The run may have ended since the first read.
    return manifest, "interrupted" if manifest.status == "running" else manifest.status
