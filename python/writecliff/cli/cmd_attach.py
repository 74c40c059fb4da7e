"""Attach a drive that is served over NVMe/TCP to this machine."""

from __future__ import annotations

from writecliff.cli.output import emit_json

GROUP = "drives", 4


def attach(address: str, *, host_nqn: str | None = None, json: bool = False) -> int:
    """Attach a drive that is served over NVMe/TCP to this machine, and print its block device.

    Needs root, nvme-cli and the kernel module nvme-tcp, which is loaded. The drive may be one of
    `writecliff serve --listen` or any other. It stays until `writecliff detach`.

    Parameters
    ----------
    address
        The drive: nvme-tcp://HOST:PORT if one is served there, else nvme-tcp://HOST:PORT/NQN.
    host_nqn
        Call this machine so, such as nqn.2014-08.org.nvmexpress:uuid:UUID (default: the name in
        /etc/nvme/hostnqn).
    json
        Print {"schema", "device", "devices", "nqn"}.
    """
    from writecliff.engines.blockdev.nvme.fabrics import RemoteDrive
    from writecliff.engines.blockdev.nvme.fabrics import attach as attach_drive
    from writecliff.engines.blockdev.topology import System

    drive = attach_drive(RemoteDrive.parse(address, host_nqn), System())
    device, *_ = drive.devices
    if json:
        emit_json({"device": device, "devices": drive.devices, "nqn": drive.nqn}, "attach")
    else:
        print(device)
    return 0
