"""A namespace's flexible data placement handles, statistics and events (Base 2.1, 8.1.10).

Real and simulated drives share these result types, so that reports show them in the same format. A
real drive does not report the counts of opened streams and overflowed writes, which are therefore
`None`.

`nvme fdp status --raw-binary` prints the handle list as bytes. nvme-cli 2.3 omits the last
descriptor's final 16 bytes, which are reserved.
"""

from __future__ import annotations

from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.nvme.pages import Namespace, fdp_statistics, number
from writecliff.engines.data_placement_status import (
    DataPlacementStatus,
    FdpEvent,
    FdpStatistics,
    HandleStatus,
)

# Event types (Base 2.1, 5.1.12.1.31). Numbers below 80h are host events.
EVENTS = {
    0x00: "reclaim unit not fully written",
    0x01: "reclaim unit time limit exceeded",
    0x02: "controller reset modified handles",
    0x03: "invalid placement identifier",
    0x80: "media reallocated",
    0x81: "implicitly modified handle",
}
_MEDIA_REALLOCATED = 0x80
_STATISTICS, _EVENTS = 0x22, 0x23
_EVENTS_BYTES = 4096  # Log size: a header and 63 events of 64 bytes.
_PLACEMENT_VALID, _NAMESPACE_VALID, _LOCATION_VALID = 1, 2, 4  # Event flags.


def placement_handles(drive: NvmeDrive, block_bytes: int) -> tuple[HandleStatus, ...]:
    """Return the namespace's placement handles, or an empty list if FDP is not enabled.

    RUAMW counts logical blocks of `block_bytes`.
    """
    words = ("fdp", "status", str(drive.disk.node(drive.system)), "--raw-binary")
    try:
        data = drive.command(*words).data
    except Refused:
        return ()
    return tuple(
        HandleStatus(
            placement_id=number(data, at, 2),
            handle=number(data, at + 2, 2),
            time_remaining_s=number(data, at + 4, 4),
            available_blocks=number(data, at + 8, 8) * block_bytes // 512,
        )
        for at in range(16, 16 + 32 * number(data, 14, 2), 32)
        if at + 16 <= len(data)
    )


def handle_count(handles: tuple[HandleStatus, ...]) -> int:
    """Return the placement handle count, given a list that has one row per reclaim group."""
    return len({handle.handle for handle in handles})


def statistics(drive: NvmeDrive, namespace: Namespace) -> FdpStatistics:
    """Return HBMW, MBMW and MBE for the namespace's endurance group.

    Raises:
        Refused: If the drive does not support the log.
    """
    data = drive.log(_STATISTICS, 64, specific=namespace.endurance_group)
    return FdpStatistics(*fdp_statistics(data))


def events(drive: NvmeDrive, namespace: Namespace, *, of_host: bool) -> tuple[FdpEvent, ...]:
    """Return the log of enabled events, oldest first."""
    try:
        group = namespace.endurance_group
        data = drive.log(_EVENTS, _EVENTS_BYTES, specific=group, lsp=int(of_host))
    except Refused:
        return ()
    count = min(number(data, 0, 4), 63)
    return tuple(_event(data[at : at + 64]) for at in range(64, 64 * (count + 1), 64))


def _event(data: bytes) -> FdpEvent:
    code, flags = data[0], data[1]
    return FdpEvent(
        kind=EVENTS.get(code, f"event {code:02X}h"),
        code=code,
        time_ns=number(data, 4, 6) * 1_000_000,  # The log counts time in milliseconds.
        placement_id=number(data, 2, 2) if flags & _PLACEMENT_VALID else None,
        namespace=number(data, 12, 4) if flags & _NAMESPACE_VALID else None,
        handle=data[34] if flags & _LOCATION_VALID else None,
        blocks_moved=number(data, 18, 2) if code == _MEDIA_REALLOCATED else None,
    )


def read_status(drive: NvmeDrive) -> DataPlacementStatus | None:
    """Return the data placement status, or None if FDP is unsupported or disabled."""
    try:
        if not drive.controller().has_fdp:
            return None
        namespace = drive.namespace()
        counted = statistics(drive, namespace)
    except Refused:
        return None
    handles = placement_handles(drive, namespace.layout.data_bytes)
    if not handles:
        return None
    of_host = events(drive, namespace, of_host=True)
    return DataPlacementStatus(
        interface="nvme-fdp",
        enabled=True,
        open_streams=(),
        limit=handle_count(handles),
        streams_opened=None,
        streams_released=None,
        overflow_writes=None,
        overflow_bytes=None,
        overflow_by_number={},
        statistics=counted,
        handles=handles,
        events=None,
        log=of_host + events(drive, namespace, of_host=False),
        abandoned_bytes=None,
    )


def enable_events(drive: NvmeDrive) -> str:
    """Enable all event types for all handles until the next reset (feature 1Eh, 5.1.25.1.21).

    Returns:
        A note on events that cannot be enabled, or "" on success or if the drive does not support
        FDP.
    """
    try:
        if not drive.controller().has_fdp:
            return ""
    except Refused:
        return ""
    node = str(drive.disk.node(drive.system))
    refused: set[int] = set()
    for index in range(handle_count(placement_handles(drive, 512))):
        words = ("fdp", "set-events", node, f"--placement-handle={index}", "--enable")
        left = [code for code in EVENTS if code not in refused]
        try:
            drive.command(*words, f"--event-types={','.join(map(str, left))}")
        except Refused:
            # The drive rejects the whole list if it does not support one of the events.
            for code in left:
                try:
                    drive.command(*words, f"--event-types={code}")
                except Refused:
                    refused.add(code)
    names = ", ".join(EVENTS[code] for code in sorted(refused))
    return f"the drive does not log FDP events of these types: {names}" if refused else ""
