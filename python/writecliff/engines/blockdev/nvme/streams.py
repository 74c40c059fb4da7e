"""Status of a namespace's Streams directive (NVMe Base 2.1, 8.1.8.3).

Real and simulated drives share the result type. A real drive does not report the counts of opened
and released streams, overflowed writes and bytes written to flash, which are therefore `None`.
"""

from __future__ import annotations

from collections.abc import Mapping

from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.data_placement_status import DataPlacementStatus


def read_status(drive: NvmeDrive) -> DataPlacementStatus | None:
    """Return the data placement status, or None if the directive is not enabled."""
    try:
        if not (drive.controller().has_directives and drive.has_streams()):
            return None
        parameters = drive.stream_parameters()
        open_streams = drive.open_streams()
    except Refused:
        return None
    return DataPlacementStatus(
        interface="nvme-streams",
        enabled=True,
        open_streams=open_streams,
        limit=usable_streams(parameters),
        streams_opened=None,
        streams_released=None,
        overflow_writes=None,
        overflow_bytes=None,
        overflow_by_number={},
        statistics=None,
        abandoned_bytes=None,
    )


def usable_streams(parameters: Mapping[str, int]) -> int:
    """Return the streams allocated to the namespace, or those available to all namespaces."""
    return parameters["nsa"] or parameters["nssa"]
