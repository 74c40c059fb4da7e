"""Detach a drive that `attach` has attached."""

from __future__ import annotations

from writecliff.cli.output import emit_json

GROUP = "drives", 5


def detach(drive: str, *, json: bool = False) -> int:
    """Detach a drive that is attached over NVMe/TCP. Needs root and nvme-cli.

    A drive that is in use, such as by a mounted file system, is left alone.

    Parameters
    ----------
    drive
        Its block device, such as /dev/nvme0n1, or its NVMe qualified name.
    json
        Print {"schema", "devices", "nqn"}.
    """
    from writecliff.engines.blockdev.nvme.fabrics import detach as detach_drive
    from writecliff.engines.blockdev.topology import System

    gone = detach_drive(drive, System())
    if json:
        emit_json({"devices": gone.devices, "nqn": gone.nqn}, "detach")
    else:
        print(f"{' '.join(gone.devices) or gone.nqn} detached")
    return 0
