"""What a drive's data placement interface shows: open streams, overflow, FDP's statistics.

Owns: the plain form of it, what happened between two looks, and both as JSON. The figures are named
as in NVMe Base Specification 2.1, 5.1.12.1.30.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class FdpStatistics:
    """The FDP Statistics log page (22h), of real drives for the namespace's endurance group. Every
    simulated drive can tell these figures.
    """

    hbmw: int  # Host Bytes with Metadata Written
    mbmw: int  # Media Bytes with Metadata Written, by host and controller
    mbe: int  # Media Bytes Erased

    def since(self, earlier: FdpStatistics) -> FdpStatistics:
        return FdpStatistics(
            self.hbmw - earlier.hbmw, self.mbmw - earlier.mbmw, self.mbe - earlier.mbe
        )

    @property
    def dlwa(self) -> float | None:
        """Device-level write amplification, MBMW per HBMW; None if nothing was written."""
        return self.mbmw / self.hbmw if self.hbmw > 0 else None

    def mapping(self) -> dict[str, Any]:
        return {
            "hbmw_bytes": self.hbmw,
            "mbmw_bytes": self.mbmw,
            "mbe_bytes": self.mbe,
            "dlwa": self.dlwa,
        }


@dataclass(frozen=True)
class HandleStatus:
    """Reclaim unit handle status descriptor (I/O Management Receive, 7.3)."""

    placement_id: int
    handle: int  # reclaim unit handle
    time_remaining_s: int  # EARUTR; 0: not reported
    available_blocks: int  # RUAMW: blocks of 512 bytes until the unit is full


@dataclass(frozen=True)
class FdpEvent:
    """An FDP event (5.1.12.1.31); None where its flags call a field invalid."""

    kind: str
    code: int
    time_ns: int  # device time; of controller events, when they were noticed
    placement_id: int | None
    namespace: int | None
    handle: int | None
    blocks_moved: int | None  # of "media reallocated"; 65535: that many or more


_COUNTS = ("streams_opened", "streams_released", "overflow_writes", "overflow_bytes")


@dataclass(frozen=True)
class DataPlacementStatus:
    """A look at the interface. Counts are since the drive was new; None: a real drive does not
    tell.
    """

    interface: str  # "nvme-streams", "scsi-streams" or "nvme-fdp"
    enabled: bool
    open_streams: tuple[int, ...]
    limit: int  # streams beside the default one, or placement handles
    streams_opened: int | None
    streams_released: int | None  # by the controller, to make room
    overflow_writes: int | None  # writes that named a stream which they did not get
    overflow_bytes: int | None
    overflow_by_number: Mapping[int, int]  # bytes; 65535 stands for all beyond the first 64
    statistics: FdpStatistics | None  # None: a real drive with streams does not tell
    handles: tuple[HandleStatus, ...] = ()  # FDP only, as is what follows
    # How often, logged or not; None: only the log tells.
    events: Mapping[str, int] | None = field(default_factory=dict)
    # The log page, of events that are enabled: the newest 63 of the host, then of the controller.
    log: tuple[FdpEvent, ...] = ()
    abandoned_bytes: int | None = 0  # left unwritten in units that the host or a reset gave up

    def mapping(self, earlier: DataPlacementStatus | None = None) -> dict[str, Any]:
        """As JSON: the state, and the counts since `earlier` (None: since the drive was new)."""
        base = earlier or DataPlacementStatus(
            self.interface, True, (), self.limit, 0, 0, 0, 0, {}, FdpStatistics(0, 0, 0)
        )
        before = base.overflow_by_number
        by_number = {n: size - before.get(n, 0) for n, size in self.overflow_by_number.items()}
        shown = {
            "interface": self.interface,
            "enabled": self.enabled,
            "limit": self.limit,
            "open_streams": list(self.open_streams),
            **{name: _grown(getattr(self, name), getattr(base, name)) for name in _COUNTS},
            "overflow_by_number_bytes": {str(n): size for n, size in by_number.items() if size},
            **_figures(self.statistics, base.statistics),
        }
        if self.interface == "nvme-fdp":
            shown["handles"] = [asdict(handle) for handle in self.handles]
            shown["events"] = self.events_since(earlier)
            shown["log"] = [asdict(event) for event in self.log_since(earlier)]
            shown["abandoned_bytes"] = _grown(self.abandoned_bytes, base.abandoned_bytes)
        return shown

    def events_since(self, earlier: DataPlacementStatus | None) -> dict[str, int]:
        """How often each type of event happened since then. A log that turned over in the meantime
        tells of its newest events only.
        """
        if self.events is None:
            return dict(Counter(event.kind for event in self.log_since(earlier)))
        before = (earlier.events if earlier is not None else None) or {}
        return {name: count - before.get(name, 0) for name, count in self.events.items()}

    def log_since(self, earlier: DataPlacementStatus | None) -> tuple[FdpEvent, ...]:
        """What the log holds that it did not hold then."""
        known = Counter(earlier.log if earlier is not None else ())
        new = []
        for event in self.log:
            if known[event]:
                known[event] -= 1
            else:
                new.append(event)
        return tuple(new)


def _figures(now: FdpStatistics | None, before: FdpStatistics | None) -> dict[str, object]:
    if now is None:
        return dict.fromkeys(FdpStatistics(0, 0, 0).mapping())
    return (now.since(before) if before is not None else now).mapping()


def _grown(now: int | None, before: int | None) -> int | None:
    return None if now is None else now - (before or 0)


def status_of(raw: Mapping[str, Any] | None) -> DataPlacementStatus | None:
    """From what the native module hands over; None for a drive without an interface."""
    if raw is None:
        return None
    values = dict(raw)
    return DataPlacementStatus(
        **{
            **values,
            "open_streams": tuple(values["open_streams"]),
            "overflow_by_number": dict(values["overflow_by_number"]),
            "statistics": FdpStatistics(**values["statistics"]),
            "handles": tuple(HandleStatus(**row) for row in values.get("handles", ())),
            "log": tuple(FdpEvent(**row) for row in values.get("log", ())),
        }
    )
