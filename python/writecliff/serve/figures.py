"""What a served drive has done: a snapshot of its counters, and figures for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from writecliff._native import Histogram
from writecliff.engines.counters import Counters
from writecliff.engines.data_placement_status import DataPlacementStatus, status_of

LATENESS_SHARE_MAX = 0.1  # as in crates/serve/src/statistics.rs


@dataclass(frozen=True)
class Operation:
    """What was done of one operation."""

    requests: int
    bytes: int
    latency: Histogram
    """In the drive's time; empty without timing."""


@dataclass(frozen=True)
class StreamWrites:
    """What clients wrote with one stream or placement identifier to one stream of the drive since
    serving began.
    """

    number: int
    requests: int
    bytes: int
    drive_stream: int | None
    """The stream of the drive that they went to; None if the drive cannot tell what it moved."""
    moved_bytes: int | None
    """What garbage collection and wear levelling moved of that stream of the drive meanwhile."""


@dataclass(frozen=True)
class Snapshot:
    """A served drive at a moment. Times count from the begin of serving."""

    wall_ns: int
    drive_time_ns: int
    operations: Mapping[str, Operation]
    """By name: read, write, trim, flush."""
    recent: Mapping[str, Operation]
    """The same since the last snapshot."""
    lateness: Histogram
    """From when clients should have learnt of completions until these were sent. Without timing:
    the whole time of requests in the server."""
    recent_lateness: Histogram
    lateness_share: float | None
    """The larger of median and mean lateness, over that of the drive's latency."""
    is_late: bool
    counters: Counters
    free_units: int | None
    temperature_c: float | None
    connections: int
    outstanding: int
    contents_bytes: int
    """What the data take, of memory or of the file system."""
    data_placement: DataPlacementStatus | None
    """None for a drive without streams or placement handles."""
    streams: tuple[StreamWrites, ...]
    mixed_moved_bytes: int | None
    """Moved of reclaim units that hold data of several streams, since the server began; None if
    the drive cannot tell it by stream."""
    power_cycles: int
    """How often the drive was powered up, as SMART tells it."""

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Snapshot:
        """From what the native module gives."""
        plain = {**raw, "counters": Counters(**raw["counters"])}
        for name in ("operations", "recent"):
            plain[name] = {which: Operation(**one) for which, one in raw[name].items()}
        plain["data_placement"] = status_of(raw["data_placement"])
        plain["streams"] = tuple(StreamWrites(**one) for one in raw["streams"])
        return cls(**plain)


@dataclass(frozen=True)
class PowerCut:
    """A power cut and what it did to the data, in pages of 4 KiB."""

    wall_ns: int
    """Since the begin of serving."""
    seed: int
    """It chose what was lost, unless the drive tells what it had programmed."""
    writes: int
    """Writes that the drive had been sent, the one at which power was cut included."""
    outstanding: int
    """Requests without a reply: each has happened, in part, or not at all."""
    pages_open: int
    """Pages with changes that were not durable."""
    pages_undone: int
    """Open pages that lost some or all of these changes; `undone_as` is why NVMe allows it."""
    undone_as: Literal["unacknowledged", "unflushed"]
    """Why NVMe allows the loss: no host had a reply to these writes, or, on a drive with a volatile
    cache, no flush followed them. A drive with capacitors undoes only unacknowledged writes."""
    hold_up_ns: int | None
    """How long the capacitors lasted; this and the next two are None if they are not modelled."""
    rebuild_ns: int | None
    """The drive's time from power-up until it takes commands."""
    rebuild_parts_ns: Mapping[str, int] | None
    """Its parts: start, checkpoint, journal, scan, erase."""


@dataclass(frozen=True)
class OperationFigures:
    """One operation over a time."""

    requests: int
    bytes: int
    iops: float
    bytes_per_s: float
    latency: Mapping[str, float | None]
    """`mean_ns`, `p50_ns`, `p99_ns`, `p99_9_ns`, `max_ns` by the drive's clock."""


@dataclass(frozen=True)
class Figures:
    """All operations over a time."""

    seconds: float
    """Of wall time."""
    operations: Mapping[str, OperationFigures]
    lateness: Mapping[str, float | None]
    waf: float | None
    """None if nothing was written, or the drive does not write flash."""


def latencies(histogram: Histogram) -> dict[str, float | None]:
    """Mean, percentiles and maximum; None where there are not enough samples."""
    points = {"p50_ns": 0.5, "p99_ns": 0.99, "p99_9_ns": 0.999}
    return {
        "mean_ns": histogram.mean_ns,
        **{name: histogram.quantile(q).value_ns for name, q in points.items()},
        "max_ns": histogram.max_ns,
    }


def histogram_mapping(histogram: Histogram) -> dict[str, object]:
    """A histogram as plain data, for `Histogram.from_buckets`."""
    lower, upper, count = histogram.buckets()
    middle = lower + (upper - lower) // lower.dtype.type(2)
    moments = ("min_ns", "max_ns", "mean_ns", "sd_ns")
    return {
        "middle_ns": middle.tolist(),
        "count": count.tolist(),
        **{name: getattr(histogram, name) for name in moments},
    }


def histogram_of(stored: Mapping[str, Any]) -> Histogram | None:
    """The histogram of a `histogram_mapping`; None if it is empty."""
    if not stored["count"]:
        return None
    middle, count = (np.array(stored[name], np.uint64) for name in ("middle_ns", "count"))
    moments = (stored[name] for name in ("min_ns", "max_ns", "mean_ns", "sd_ns"))
    return Histogram.from_buckets(middle, count, *moments)


def difference(before: Snapshot, now: Snapshot, *, recent: bool = False) -> Figures:
    """The figures from one snapshot to another; `before` is the first one of the server unless
    they are `recent`, and then the one before `now`.
    """
    seconds = (now.wall_ns - before.wall_ns) / 1e9
    operations = now.recent if recent else now.operations
    return Figures(
        seconds=seconds,
        operations={
            name: OperationFigures(
                requests=one.requests,
                bytes=one.bytes,
                iops=one.requests / seconds if seconds > 0 else 0.0,
                bytes_per_s=one.bytes / seconds if seconds > 0 else 0.0,
                latency=latencies(one.latency),
            )
            for name, one in operations.items()
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
