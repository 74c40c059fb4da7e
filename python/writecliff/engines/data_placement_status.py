"""Data placement status, with open streams, overflows, FDP statistics and events.

The module also computes differences between two states, and converts both to JSON. Names follow
NVMe Base Specification 2.1, 5.1.12.1.30.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class FdpStatistics:
    """FDP Statistics log page (22h) for the endurance group of a real drive's namespace.

    Simulated drives report these figures for any data placement interface.
    """

    hbmw: int  # Host Bytes with Metadata Written.
    mbmw: int  # Media Bytes with Metadata Written, by host and controller.
    mbe: int  # Media Bytes Erased.

    def since(self, earlier: FdpStatistics) -> FdpStatistics:
        """Return the increase in the figures since `earlier`."""
        return FdpStatistics(
            self.hbmw - earlier.hbmw, self.mbmw - earlier.mbmw, self.mbe - earlier.mbe
        )

    @property
    def dlwa(self) -> float | None:
        """Device-level write amplification, MBMW per HBMW, or None if nothing was written."""
        return self.mbmw / self.hbmw if self.hbmw > 0 else None

    def mapping(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
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
    handle: int  # Reclaim unit handle number.
    time_remaining_s: int  # EARUTR; 0 if not reported.
    available_blocks: int  # RUAMW: number of 512-byte blocks until the unit is full.


@dataclass(frozen=True)
class FdpEvent:
    """An FDP event (5.1.12.1.31), where fields that the flags mark as invalid are `None`."""

    kind: str
    code: int
    time_ns: int  # Device time in ns; the detection time for controller events.
    placement_id: int | None
    namespace: int | None
    handle: int | None
    # Blocks moved by "media reallocated"; 65535 means at least this number.
    blocks_moved: int | None


_COUNTS = ("streams_opened", "streams_released", "overflow_writes", "overflow_bytes")


@dataclass(frozen=True)
class DataPlacementStatus:
    """A drive's data placement state.

    Counts cover the drive's lifetime. `None` means that a real drive does not report the count.
    """

    interface: str  # Interface: "nvme-streams", "scsi-streams" or "nvme-fdp".
    enabled: bool
    open_streams: tuple[int, ...]
    limit: int  # Number of streams besides the default stream, or of placement handles.
    streams_opened: int | None
    # Number of streams that the controller released to open another stream.
    streams_released: int | None
    # Number of writes that requested a stream but used the default stream.
    overflow_writes: int | None
    overflow_bytes: int | None
    # Byte counts by stream number; 65535 combines all numbers after the first 64.
    overflow_by_number: Mapping[int, int]
    statistics: FdpStatistics | None  # FDP statistics; `None` for a real drive that uses streams.
    # The following fields apply to FDP only.
    handles: tuple[HandleStatus, ...] = ()
    # Event counts by type, including events that were not logged; `None` if only the events in
    # `log` can be counted.
    events: Mapping[str, int] | None = field(default_factory=dict)
    # Log of enabled events: the latest 63 host events, followed by the latest 63 controller events.
    log: tuple[FdpEvent, ...] = ()
    # Number of unwritten bytes in reclaim units that the host or a reset abandoned.
    abandoned_bytes: int | None = 0

    def mapping(self, earlier: DataPlacementStatus | None = None) -> dict[str, Any]:
        """Return the state as JSON values, with counts since `earlier` or in total."""
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
        """Return event counts by type since `earlier`.

        If only the log is available and has wrapped since `earlier`, older events are missing.
        """
        if self.events is None:
            return dict(Counter(event.kind for event in self.log_since(earlier)))
        before = (earlier.events if earlier is not None else None) or {}
        return {name: count - before.get(name, 0) for name, count in self.events.items()}

    def log_since(self, earlier: DataPlacementStatus | None) -> tuple[FdpEvent, ...]:
        """Return the logged events that were not in the log of `earlier`."""
        seen = Counter(earlier.log if earlier is not None else ())
        new = []
        for event in self.log:
            if seen[event]:
                seen[event] -= 1
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
    """Convert the native module's values, or return None if the drive has no data placement."""
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
