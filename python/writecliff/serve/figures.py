"""State of a served drive, consisting of counter snapshots and of figures between two snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from writecliff._native import Histogram
from writecliff.engines.counters import Counters
from writecliff.engines.data_placement_status import DataPlacementStatus, status_of

LATENESS_SHARE_MAX = 0.1  # This value must match crates/serve/src/statistics.rs.


@dataclass(frozen=True)
class Operation:
    """Completed requests for an operation."""

    requests: int
    bytes: int
    latency: Histogram
    """Latencies in the drive's time; empty without timing."""


@dataclass(frozen=True)
class StreamWrites:
    """Client writes with a stream or placement identifier, by drive stream.

    Counting starts when the server starts.
    """

    number: int
    requests: int
    bytes: int
    drive_stream: int | None
    """Stream of the drive; None if the drive does not report relocation by stream."""
    moved_bytes: int | None
    """Bytes of this stream of the drive that garbage collection and wear levelling relocated."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a served drive at a point in time. Times are relative to the server's start."""

    wall_ns: int
    drive_time_ns: int
    operations: Mapping[str, Operation]
    """Operations by name: read, write, trim, flush."""
    recent: Mapping[str, Operation]
    """Operations since the previous snapshot."""
    lateness: Histogram
    """Delays of replies: from the time they were due to the time they were sent. Without timing:
    the total time of requests in the server."""
    recent_lateness: Histogram
    lateness_share: float | None
    """Ratio of lateness to the drive's latency: the larger of those of medians and means."""
    is_late: bool
    counters: Counters
    free_units: int | None
    temperature_c: float | None
    connections: int
    outstanding: int
    contents_bytes: int
    """Memory or file-system space that the data take."""
    data_placement: DataPlacementStatus | None
    """None for a drive without streams or placement handles."""
    streams: tuple[StreamWrites, ...]
    mixed_moved_bytes: int | None
    """Bytes relocated from reclaim units with data of several streams, since the server started;
    None if the drive does not report relocation by stream."""
    power_cycles: int
    """Number of power-ups of the drive, as in SMART."""

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Snapshot:
        """Create a snapshot from the native module's snapshot."""
        plain = {**raw, "counters": Counters(**raw["counters"])}
        for name in ("operations", "recent"):
            plain[name] = {which: Operation(**fields) for which, fields in raw[name].items()}
        plain["data_placement"] = status_of(raw["data_placement"])
        plain["streams"] = tuple(StreamWrites(**fields) for fields in raw["streams"])
        return cls(**plain)


@dataclass(frozen=True)
class PowerCut:
    """A power cut with its effect on the data, in pages of 4 KiB."""

    wall_ns: int
    """Time since the start of the server."""
    seed: int
    """Seed of the choice of lost data, if the drive does not model what it had programmed."""
    writes: int
    """Number of writes sent to the drive, including the write at which power was cut."""
    outstanding: int
    """Number of requests without a reply: each was executed completely, in part, or not at all."""
    pages_open: int
    """Number of pages with changes that were not durable."""
    pages_undone: int
    """Number of open pages that lost changes; `undone_as` is the reason why NVMe permits it."""
    undone_as: Literal["unacknowledged", "unflushed"]
    """Reason why NVMe permits the loss: no host had a reply to these writes, or, on a drive with a
    volatile cache, no flush followed. A drive with capacitors loses only unacknowledged writes."""
    hold_up_ns: int | None
    """Time that the capacitors lasted; this and the next two are None if not modelled."""
    rebuild_ns: int | None
    """Drive time from power-up until commands are accepted."""
    rebuild_parts_ns: Mapping[str, int] | None
    """Phases of the rebuild: start, checkpoint, journal, scan, erase."""


@dataclass(frozen=True)
class OperationFigures:
    """Figures for an operation over a period."""

    requests: int
    bytes: int
    iops: float
    bytes_per_s: float
    latency: Mapping[str, float | None]
    """`mean_ns`, `p50_ns`, `p99_ns`, `p99_9_ns` and `max_ns` by the drive's clock."""


@dataclass(frozen=True)
class Figures:
    """Figures for all operations over a period."""

    seconds: float
    """Length of the period in wall time."""
    operations: Mapping[str, OperationFigures]
    lateness: Mapping[str, float | None]
    waf: float | None
    """Write amplification; None if nothing was written, or the drive has no flash."""


def latencies(histogram: Histogram) -> dict[str, float | None]:
    """Return the mean, percentiles and maximum, with None for percentiles with too few samples."""
    points = {"p50_ns": 0.5, "p99_ns": 0.99, "p99_9_ns": 0.999}
    return {
        "mean_ns": histogram.mean_ns,
        **{name: histogram.quantile(q).value_ns for name, q in points.items()},
        "max_ns": histogram.max_ns,
    }


def histogram_mapping(histogram: Histogram) -> dict[str, object]:
    """Return a histogram as plain data for `Histogram.from_buckets`."""
    lower, upper, count = histogram.buckets()
    middle = lower + (upper - lower) // lower.dtype.type(2)
    moments = ("min_ns", "max_ns", "mean_ns", "sd_ns")
    return {
        "middle_ns": middle.tolist(),
        "count": count.tolist(),
        **{name: getattr(histogram, name) for name in moments},
    }


def histogram_of(stored: Mapping[str, Any]) -> Histogram | None:
    """Return the histogram from a `histogram_mapping`, or None if it is empty."""
    if not stored["count"]:
        return None
    middle, count = (np.array(stored[name], np.uint64) for name in ("middle_ns", "count"))
    moments = (stored[name] for name in ("min_ns", "max_ns", "mean_ns", "sd_ns"))
    return Histogram.from_buckets(middle, count, *moments)


def difference(before: Snapshot, now: Snapshot, *, recent: bool = False) -> Figures:
    """Return the figures between two snapshots.

    Args:
        before: First snapshot of the server or, with `recent`, the snapshot before `now`.
        now: A later snapshot.
        recent: `True` to return figures since the previous snapshot.
    """
    seconds = (now.wall_ns - before.wall_ns) / 1e9
    operations = now.recent if recent else now.operations
    return Figures(
        seconds=seconds,
        operations={
            name: OperationFigures(
                requests=operation.requests,
                bytes=operation.bytes,
                iops=operation.requests / seconds if seconds > 0 else 0.0,
                bytes_per_s=operation.bytes / seconds if seconds > 0 else 0.0,
                latency=latencies(operation.latency),
            )
            for name, operation in operations.items()
        },
        lateness=latencies(now.recent_lateness if recent else now.lateness),
        waf=_waf(before.counters, now.counters),
    )


def _waf(before: Counters, now: Counters) -> float | None:
    host, nand = (
        _grown(getattr(before, name), getattr(now, name))
        for name in ("host_write_bytes", "nand_write_bytes")
    )
    return nand / host if host and nand is not None else None


def _grown(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before
