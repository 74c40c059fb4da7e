"""Attach a drive that is served over NVMe/TCP, or detach it."""

from __future__ import annotations

from writecliff.cli.output import JsonFlag, emit_json
from writecliff.errors import ConfigError

GROUP = "drives", 4


def attach(
    address: str, *, host_nqn: str | None = None, detach: bool = False, json: JsonFlag = False
) -> int:
    """Attach a drive that is served over NVMe/TCP to this machine, and print its block device.

    This needs root and nvme-cli, and loads the kernel module nvme-tcp. Any NVMe/TCP drive can be
    attached, including drives of `writecliff serve --listen`. The drive stays attached until
    `writecliff attach --detach`.

    Parameters
    ----------
    address
        The drive: nvme-tcp://HOST:PORT if one drive is served there, else
        nvme-tcp://HOST:PORT/NQN. With --detach, its block device, such as /dev/nvme0n1, or its NVMe
        qualified name.
    host_nqn
        NVMe qualified name of this machine as a host, such as nqn.2014-08.org.nvmexpress:uuid:UUID
        (default: the name in /etc/nvme/hostnqn).
    detach
        Detach the drive. A drive in use, for example by a mounted file system, is not detached.
    """
    from writecliff.api.machine import attach_drive, detach_drive

    if detach:
        if host_nqn is not None:
            raise ConfigError("--host-nqn does not apply to --detach", hint="leave out one of them")
        gone = detach_drive(address)
        if json:
            emit_json(gone)
        else:
            print(f"{' '.join(gone.devices) or gone.nqn} detached")
        return 0
    drive = attach_drive(address, host_nqn)
    if json:
        emit_json(drive)
    else:
        print(drive.device)
    return 0
