"""Attachment of drives served over NVMe/TCP.

nvme-cli configures the kernel's initiator. The resulting devices are identified in sysfs by the
subsystem's qualified name (NQN), because the `nvme connect` output differs between versions.
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

# Common URI scheme, and the scheme that `writecliff serve` prints.
_SCHEMES = ("nvme-tcp", "nvme+tcp")
_DISCOVERY = "nqn.2014-08.org.nvmexpress.discovery"
_NAMESPACE = re.compile(r"nvme\d+n\d+")
_UUID = re.compile(r":uuid:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.I)
_APPEARS_S, _POLL_S = 10.0, 0.05


@dataclass(frozen=True)
class RemoteDrive:
    """Address of a served drive."""

    host: str
    port: int
    nqn: str | None  # NVMe qualified name; `None` selects the only drive served at the address.
    # This machine's qualified name; `None` to use nvme-cli's configuration.
    host_nqn: str | None = None

    @classmethod
    def parse(cls, text: str, host_nqn: str | None = None) -> RemoteDrive:
        """Parse nvme-tcp://HOST:PORT[/NQN].

        Raises:
            ConfigError: If the text is not an NVMe/TCP address.
        """
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or not port or parts.scheme not in _SCHEMES or parts.query or parts.fragment:
            raise ConfigError(
                f"'{text}' is not the address of a served drive",
                hint="specify nvme-tcp://HOST:PORT or nvme-tcp://HOST:PORT/NQN",
            )
        return cls(host, port, parts.path.strip("/") or None, host_nqn)

    @property
    def options(self) -> list[str]:
        """nvme-cli options for this address.

        Linux rejects a host name that does not match the host identifier. Therefore, the UUID in
        the host name is also passed as the host identifier.
        """
        options = ["-t", "tcp", "-a", self.host, "-s", str(self.port)]
        if self.host_nqn is not None:
            options += ["--hostnqn", self.host_nqn]
            if uuid := _UUID.search(self.host_nqn):
                options += ["--hostid", uuid[1]]
        return options

    def __str__(self) -> str:
        """Return the address in the form HOST:PORT."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class AttachedDrive:
    """A remote drive attached to this machine."""

    nqn: str
    devices: tuple[str, ...]  # Block devices of the drive's namespaces, for example /dev/nvme0n1.


def attach(remote: RemoteDrive, system: System) -> AttachedDrive:
    """Connect to a served drive, and wait for its block device.

    Raises:
        TargetError: If no drive is served at the address, or the drive is already attached.
        EngineError: If this machine cannot attach drives.
    """
    _need_root()
    _load_module(system)
    nqn = remote.nqn or _only_nqn(remote, system)
    if _controllers(system, nqn):
        drive = AttachedDrive(nqn, _devices(system, nqn))
        where = f" as {drive.devices[0]}" if drive.devices else ""
        raise TargetError(
            f"{nqn} is already attached{where}",
            hint=f"to attach it again, first run: writecliff attach --detach {nqn}",
        )
    _nvme(["connect", *remote.options, "-n", nqn], remote, system)
    deadline = time.monotonic() + _APPEARS_S
    while not (devices := _devices(system, nqn)):
        if time.monotonic() >= deadline:
            raise EngineError(
                f"{remote} is connected, but no block device appeared within {_APPEARS_S:g} s",
                hint=f"see `dmesg`; to disconnect: writecliff attach --detach {nqn}",
            )
        time.sleep(_POLL_S)
    return AttachedDrive(nqn, devices)


def detach(what: str, system: System) -> AttachedDrive:
    """Disconnect and return the drive that has the given block device or NQN.

    Raises:
        TargetError: If the drive is not attached over NVMe/TCP, or is in use.
        EngineError: If the drive is still attached after the disconnect.
    """
    _need_root()
    nqn = what if what.startswith("nqn.") else _nqn_of(what, system)
    if not _controllers(system, nqn):
        attached = ", ".join(sorted(set(_attached(system).values()))) or "no drive"
        raise TargetError(f"{nqn} is not attached", hint=f"attached over NVMe/TCP: {attached}")
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
            "attaching and detaching drives requires root",
            hint="run the command as root, for example with sudo",
        )


def _load_module(system: System) -> None:
    if (system.sys / "module/nvme_tcp").exists():
        return
    loaded = system.run(["modprobe", "nvme-tcp"])
    if not loaded.ok:
        raise EngineError(
            f"the kernel module nvme-tcp cannot be loaded: {loaded.message}",
            hint="install it for the running kernel (Ubuntu: linux-modules-extra-$(uname -r)), or "
            "serve the drive with --nbd",
        )


def _nvme(words: list[str], remote: RemoteDrive | None, system: System) -> ToolResult:
    """Run nvme-cli, and name `remote` in connection errors."""
    done = system.run(["nvme", *words])
    if done.ok:
        return done
    if done.absent:
        raise EngineError("nvme-cli is not installed", hint="install the nvme-cli package")
    if remote is None:
        raise EngineError(f"the command `nvme {words[0]}` failed: {done.message}")
    hint = (
        "see `dmesg`; a machine that has no /etc/nvme/hostnqn and hostid needs --host-nqn, and "
        "the server may admit only certain hosts (--allow-host)"
    )
    if re.search("refused|timed out|unreachable|no route|did not finish", done.message, re.I):
        hint = f"start the server on that machine: writecliff serve sim:NAME --listen {remote}"
    raise TargetError(f"{remote}: the command `nvme {words[0]}` failed: {done.message}", hint=hint)


def _only_nqn(remote: RemoteDrive, system: System) -> str:
    """Return the single subsystem that the discovery service lists."""
    log = _nvme(["discover", *remote.options, "-o", "json"], remote, system).json()
    records = log.get("records")
    names = [
        str(record["subnqn"])
        for record in (records if isinstance(records, list) else [])
        if isinstance(record, dict) and record.get("subnqn") not in (None, _DISCOVERY)
    ]
    drives = sorted(set(names))
    if not drives:
        raise TargetError(
            f"{remote}: no drive is served at this address", hint="check that the port is correct"
        )
    if len(drives) > 1:
        raise TargetError(
            f"{remote}: {len(drives)} drives are served at this address",
            hint=f"select a drive with nvme-tcp://{remote}/NQN: {', '.join(drives)}",
        )
    return drives[0]


def _attached(system: System) -> dict[Path, str]:
    """Return the NVMe/TCP controllers and the NQN of each one's subsystem."""
    return {
        entry: nqn
        for entry in sorted((system.sys / "class/nvme").glob("nvme*"))
        if read_text(entry / "transport") == "tcp" and (nqn := read_text(entry / "subsysnqn"))
    }


def _controllers(system: System, nqn: str) -> list[Path]:
    return [entry for entry, name in _attached(system).items() if name == nqn]


def _devices(system: System, nqn: str) -> tuple[str, ...]:
    """Return the block devices of the subsystem, or of its controllers if multipath is off."""
    subsystems = (system.sys / "class/nvme-subsystem").glob("nvme-subsys*")
    above = [folder for folder in subsystems if read_text(folder / "subsysnqn") == nqn]
    names = {
        entry.name
        for directory in (*above, *_controllers(system, nqn))
        for entry in directory.glob("nvme*n*")
        if _NAMESPACE.fullmatch(entry.name) and (system.dev / entry.name).exists()
    }
    return tuple(str(system.dev / name) for name in sorted(names))


def _nqn_of(path: str, system: System) -> str:
    """Return a block device's NQN."""
    disk = device_at(system, Path(path))
    directory = system.sys / "block" / disk.whole_name
    if _NAMESPACE.fullmatch(disk.whole_name) and directory.exists():
        whole = disk if not disk.is_partition else device_at(system, system.dev / disk.whole_name)
        for controller in controllers_of(whole):
            nqn = read_text(controller.directory / "subsysnqn")
            if controller.transport == "tcp" and nqn is not None:
                return nqn
    raise TargetError(
        f"{path} is not attached over NVMe/TCP", hint="`nvme list-subsys` lists attached drives"
    )
