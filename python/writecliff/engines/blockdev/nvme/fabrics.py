"""Attaches drives that are served over NVMe/TCP to this machine, and detaches them.

nvme-cli does it with the kernel's initiator. The devices that come of it are found in sysfs, by the
qualified name (NQN) of the drive's subsystem: what `nvme connect` prints differs between versions.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from writecliff.engines.blockdev.nvme.topology import controllers_of
from writecliff.engines.blockdev.tools import ToolResult
from writecliff.engines.blockdev.topology import System, device_at, read_text
from writecliff.engines.blockdev.usage import in_use, uses_of
from writecliff.errors import ConfigError, EngineError, TargetError

_SCHEMES = ("nvme-tcp", "nvme+tcp")  # as people write it, and as `writecliff serve` prints it
_DISCOVERY = "nqn.2014-08.org.nvmexpress.discovery"
_NAMESPACE = re.compile(r"nvme\d+n\d+")
_UUID = re.compile(r":uuid:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.I)
_APPEARS_S, _POLL_S = 10.0, 0.05


@dataclass(frozen=True)
class RemoteDrive:
    """Where a drive is served; without `nqn` it is the only one there."""

    host: str
    port: int
    nqn: str | None
    host_nqn: str | None = None
    """The qualified name of this machine; None: nvme-cli knows it."""

    @classmethod
    def parse(cls, text: str, host_nqn: str | None = None) -> RemoteDrive:
        """From nvme-tcp://HOST:PORT[/NQN]. Raises ConfigError."""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or not port or parts.scheme not in _SCHEMES or parts.query or parts.fragment:
            raise ConfigError(
                f"'{text}' is not an address of a served drive",
                hint="give nvme-tcp://HOST:PORT or nvme-tcp://HOST:PORT/NQN",
            )
        return cls(host, port, parts.path.strip("/") or None, host_nqn)

    @property
    def options(self) -> list[str]:
        """Of nvme-cli. Linux refuses a name that does not go with the host identifier, so the
        UUID of a name is given as that, too.
        """
        options = ["-t", "tcp", "-a", self.host, "-s", str(self.port)]
        if self.host_nqn is not None:
            options += ["--hostnqn", self.host_nqn]
            if uuid := _UUID.search(self.host_nqn):
                options += ["--hostid", uuid[1]]
        return options

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class AttachedDrive:
    """A drive of this machine that is somewhere else."""

    nqn: str
    devices: tuple[str, ...]
    """Block devices of its namespaces, such as /dev/nvme0n1."""


def attach(remote: RemoteDrive, system: System) -> AttachedDrive:
    """Connect to a served drive, and wait for its block device.

    Raises TargetError if it is not there or is attached already, EngineError if this machine cannot
    attach drives.
    """
    _need_root()
    _load_module(system)
    nqn = remote.nqn or _only_nqn(remote, system)
    if _controllers(system, nqn):
        drive = AttachedDrive(nqn, _devices(system, nqn))
        where = f" as {drive.devices[0]}" if drive.devices else ""
        raise TargetError(
            f"{nqn} is attached already{where}",
            hint=f"to attach it anew: writecliff attach --detach {nqn}",
        )
    _nvme(["connect", *remote.options, "-n", nqn], remote, system)
    deadline = time.monotonic() + _APPEARS_S
    while not (devices := _devices(system, nqn)):
        if time.monotonic() >= deadline:
            raise EngineError(
                f"{remote}: connected, but no block device has appeared within {_APPEARS_S:g} s",
                hint=f"see `dmesg`; to disconnect: writecliff attach --detach {nqn}",
            )
        time.sleep(_POLL_S)
    return AttachedDrive(nqn, devices)


def detach(what: str, system: System) -> AttachedDrive:
    """Disconnect a drive, given by its block device or its NQN; returns what it was.

    Raises TargetError if it is not attached over NVMe/TCP or is in use, EngineError if it stays.
    """
    _need_root()
    nqn = what if what.startswith("nqn.") else _nqn_of(what, system)
    if not _controllers(system, nqn):
        known = ", ".join(sorted(set(_attached(system).values()))) or "no drive"
        raise TargetError(f"{nqn} is not attached", hint=f"attached over NVMe/TCP: {known}")
    drive = AttachedDrive(nqn, _devices(system, nqn))
    for device in drive.devices:
        if uses := uses_of(system, device_at(system, Path(device))):
            raise in_use(device, uses)
    _nvme(["disconnect", "-n", nqn], None, system)
    if _controllers(system, nqn):
        raise EngineError(f"{nqn} is still attached", hint="see `dmesg`")
    return drive


def _need_root() -> None:
    if os.geteuid() != 0:
        raise TargetError(
            "attaching and detaching drives needs root", hint="run it with sudo, or as root"
        )


def _load_module(system: System) -> None:
    if (system.sys / "module/nvme_tcp").exists():
        return
    loaded = system.run(["modprobe", "nvme-tcp"])
    if not loaded.ok:
        raise EngineError(
            f"the kernel module nvme-tcp cannot be loaded: {loaded.message}",
            hint="install it for the kernel that runs (Ubuntu: linux-modules-extra-$(uname -r)), "
            "or serve the drive with --nbd",
        )


def _nvme(words: list[str], remote: RemoteDrive | None, system: System) -> ToolResult:
    """Run nvme-cli; its failure is an error about `remote`, if that is what it spoke to."""
    done = system.run(["nvme", *words])
    if done.ok:
        return done
    if done.absent:
        raise EngineError("nvme-cli is not installed", hint="install the package nvme-cli")
    if remote is None:
        raise EngineError(f"nvme {words[0]}: {done.message}")
    hint = (
        "see `dmesg`; a machine without /etc/nvme/hostnqn and hostid needs --host-nqn, and the "
        "server may admit certain hosts only (--allow-host)"
    )
    if re.search("refused|timed out|unreachable|no route|did not answer", done.message, re.I):
        hint = f"is it served there? writecliff serve sim:NAME --listen {remote}"
    raise TargetError(f"{remote}: nvme {words[0]}: {done.message}", hint=hint)


def _only_nqn(remote: RemoteDrive, system: System) -> str:
    """The subsystem that the discovery service tells of."""
    log = _nvme(["discover", *remote.options, "-o", "json"], remote, system).json()
    records = log.get("records")
    names = [
        str(one["subnqn"])
        for one in (records if isinstance(records, list) else [])
        if isinstance(one, dict) and one.get("subnqn") not in (None, _DISCOVERY)
    ]
    found = sorted(set(names))
    if not found:
        raise TargetError(f"{remote}: no drive is served there", hint="is the port right?")
    if len(found) > 1:
        raise TargetError(
            f"{remote}: {len(found)} drives are served there",
            hint=f"give one as nvme-tcp://{remote}/NQN: {', '.join(found)}",
        )
    return found[0]


def _attached(system: System) -> dict[Path, str]:
    """The controllers on TCP, with the NQN of their subsystem."""
    return {
        entry: nqn
        for entry in sorted((system.sys / "class/nvme").glob("nvme*"))
        if read_text(entry / "transport") == "tcp" and (nqn := read_text(entry / "subsysnqn"))
    }


def _controllers(system: System, nqn: str) -> list[Path]:
    return [entry for entry, name in _attached(system).items() if name == nqn]


def _devices(system: System, nqn: str) -> tuple[str, ...]:
    """Block devices of the namespaces: below the subsystem, or a controller without multipath."""
    subsystems = (system.sys / "class/nvme-subsystem").glob("nvme-subsys*")
    above = [one for one in subsystems if read_text(one / "subsysnqn") == nqn]
    names = {
        entry.name
        for directory in (*above, *_controllers(system, nqn))
        for entry in directory.glob("nvme*n*")
        if _NAMESPACE.fullmatch(entry.name) and (system.dev / entry.name).exists()
    }
    return tuple(str(system.dev / name) for name in sorted(names))


def _nqn_of(path: str, system: System) -> str:
    """The NQN of a block device."""
    disk = device_at(system, Path(path))
    directory = system.sys / "block" / disk.whole_name
    if _NAMESPACE.fullmatch(disk.whole_name) and directory.exists():
        whole = disk if not disk.is_partition else device_at(system, system.dev / disk.whole_name)
        for controller in controllers_of(whole):
            nqn = read_text(controller.directory / "subsysnqn")
            if controller.transport == "tcp" and nqn is not None:
                return nqn
    raise TargetError(
        f"{path} is not attached over NVMe/TCP", hint="`nvme list-subsys` shows what is"
    )
