"""Attach or detach a drive served over NVMe/TCP."""

from __future__ import annotations

from writecliff.cli.output import JsonFlag, emit_json
from writecliff.errors import ConfigError

GROUP = "drives", 4


def attach(
    address: str, *, host_nqn: str | None = None, detach: bool = False, json: JsonFlag = False
) -> int:
    """Attach a drive served over NVMe/TCP to this machine, and print its block device.

    The command requires root and nvme-cli, and loads the kernel module nvme-tcp. Any NVMe/TCP drive
    can be attached, including drives served by `writecliff serve --listen`. The drive stays
    attached until `writecliff attach --detach` detaches it.

    Parameters
    ----------
    address
        The drive: nvme-tcp://HOST:PORT if only one drive is served there, otherwise
        nvme-tcp://HOST:PORT/NQN. With --detach, the drive's block device, such as /dev/nvme0n1, or
        its NVMe qualified name.
    host_nqn
        NVMe qualified name of this machine as a host, such as nqn.2014-08.org.nvmexpress:uuid:UUID
        (default: the name in /etc/nvme/hostnqn).
    detach
        Detach the drive. A drive in use, for example because a file system is mounted, is not
        detached.
    """
    from writecliff.api.machine import attach_drive, detach_drive

    if detach:
        if host_nqn is not None:
            raise ConfigError("--host-nqn does not apply to --detach", hint="omit either option")
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
