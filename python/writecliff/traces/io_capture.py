"""I/O captures, which describe a workload as time steps with I/O streams and queue depths.

The terms are those of SNIA's Real World Storage Workload PTS (RWSW, 1.0.7). An *I/O stream* is a
combination of access pattern (random or sequential), operation and size. The *cumulative workload*
lists the streams of the whole capture with their percentages of all I/Os. The dominant streams,
with percentages normalised to 100 %, are the *applied test workload*. A capture is derived from a
trace in any format or entered as a table of streams (`capture_file.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from writecliff import _native, units
from writecliff.errors import ConfigError
from writecliff.traces.source import Source

Access = Literal["random", "sequential"]
StreamOperation = Literal["read", "write"]
LETTERS = {"random": "RND", "sequential": "SEQ", "read": "R", "write": "W"}
STEP_S = (1.0, 600.0)  # Allowed length of a time step.


@dataclass(frozen=True, order=True)
class IoStream:
    """An I/O stream with its access pattern, operation and size."""

    access: Access
    operation: StreamOperation
    size_bytes: int

    @property
    def text(self) -> str:
        """Stream name in the standard's notation, such as "RND 4 KiB R"."""
        size = units.block(self.size_bytes)
        return f"{LETTERS[self.access]} {size} {LETTERS[self.operation]}"


@dataclass(frozen=True)
class StreamShare:
    """A stream with its percentage of the I/Os."""

    stream: IoStream
    share_pct: float


@dataclass(frozen=True, kw_only=True)
class CaptureStep:
    """A time step. Values that the trace does not contain are `None`."""

    begin_s: float
    length_s: float
    ios: float  # Number of reads and writes; arbitrary for a table without rates.
    bytes: float  # Number of bytes that these I/Os transferred.
    reads: float
    # Pairs of stream number and I/O count, in descending order of count.
    streams: tuple[tuple[int, float], ...]
    queue_depth: float | None = None  # Mean queue depth at arrivals, including the arriving I/O.
    art_ns: float | None = None  # Average response time in ns.
    # Five-nines latency; `None` if there are fewer than 100,000 I/Os.
    p99999_ns: float | None = None
    max_ns: float | None = None
    processes: tuple[tuple[str, int], ...] = ()  # Names and I/O counts of the busiest processes.
    counted: bool = True  # `False` if the table contains no rates.

    @property
    def iops(self) -> float | None:
        """Reads and writes per second, or `None` without rates."""
        return self.ios / self.length_s if self.counted else None

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes per second, or `None` without rates."""
        return self.bytes / self.length_s if self.counted else None


@dataclass(frozen=True, kw_only=True)
class IoCapture:
    """A capture with its streams, most I/Os first, and its time steps in time order."""

    name: str
    source: str  # Trace format, or publisher of the table.
    step_s: float
    streams: tuple[IoStream, ...]
    steps: tuple[CaptureStep, ...]
    notes: tuple[str, ...] = ()

    @property
    def ios(self) -> float:
        """Total number of reads and writes in all steps."""
        return sum(step.ios for step in self.steps)

    @property
    def duration_s(self) -> float:
        """Total duration of the steps, in seconds."""
        return sum(step.length_s for step in self.steps)

    @property
    def read_pct(self) -> float:
        """Percentage of reads."""
        return 100 * sum(step.reads for step in self.steps) / self.ios

    def cumulative(self) -> list[StreamShare]:
        """Return the streams of the whole capture, in descending order of I/O count.

        The percentages add up to less than 100 % if the trace has unlisted streams.
        """
        ios = dict.fromkeys(range(len(self.streams)), 0.0)
        for step in self.steps:
            for number, count in step.streams:
                ios[number] += count
        order = sorted(ios, key=lambda number: (-ios[number], self.streams[number]))
        return [StreamShare(self.streams[n], 100 * ios[n] / self.ios) for n in order if ios[n]]

    def applied(self, *, streams: int, cover_pct: float | None = None) -> list[StreamShare]:
        """Return the applied test workload.

        Args:
            streams: Number of streams to apply, starting with the most I/Os.
            cover_pct: Percentage of the I/Os that the streams must cover; replaces `streams`.
        """
        return dominant(self.cumulative(), streams=streams, cover_pct=cover_pct)

    def streams_of(self, step: CaptureStep) -> list[StreamShare]:
        """Return a step's streams, in descending order of I/O count."""
        return [StreamShare(self.streams[n], 100 * ios / step.ios) for n, ios in step.streams]

    def to_text(self) -> str:
        """Return the capture as one line of JSON, for a run's manifest."""
        streams = [[stream.access, stream.operation, stream.size_bytes] for stream in self.streams]
        steps = [{**vars(step)} for step in self.steps]
        data = {**vars(self), "streams": streams, "steps": steps}
        return json.dumps(data, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse text produced by `to_text`."""
        data = json.loads(text)
        return cls(
            **{
                **data,
                "streams": tuple(IoStream(*row) for row in data["streams"]),
                "steps": tuple(_step(**step) for step in data["steps"]),
                "notes": tuple(data["notes"]),
            }
        )


def _step(
    *, streams: Sequence[Sequence[Any]], processes: Sequence[Sequence[Any]], **rest: Any
) -> CaptureStep:
    return CaptureStep(
        streams=tuple((number, ios) for number, ios in streams),
        processes=tuple((name, ios) for name, ios in processes),
        **rest,
    )


def dominant(
    shares: Sequence[StreamShare], *, streams: int, cover_pct: float | None = None
) -> list[StreamShare]:
    """Return the first of the given streams, with percentages normalised to 100 %.

    Args:
        shares: Streams with their percentages, in descending order.
        streams: Number of streams to return.
        cover_pct: Total percentage that the streams must cover; replaces `streams`.
    """
    count, covered = min(streams, len(shares)), 0.0
    if cover_pct is not None:
        for count, share in enumerate(shares, 1):  # noqa: B007 - only the count is needed
            covered += share.share_pct
            if covered >= cover_pct - 1e-9:
                break
    return normalised(shares[:count])


def normalised(shares: Iterable[StreamShare]) -> list[StreamShare]:
    """Return the streams with their percentages scaled to add up to 100 %."""
    listed = list(shares)
    total = sum(share.share_pct for share in listed)
    return [replace(share, share_pct=100 * share.share_pct / total) for share in listed]


def on_sectors(shares: Iterable[StreamShare], sector_bytes: int) -> list[StreamShare]:
    """Return the streams with sizes rounded up to whole sectors, as in a block layer.

    Streams that become equal are merged.
    """
    by_stream: dict[IoStream, float] = {}
    for share in shares:
        size = -(-share.stream.size_bytes // sector_bytes) * sector_bytes
        stream = replace(share.stream, size_bytes=size)
        by_stream[stream] = by_stream.get(stream, 0.0) + share.share_pct
    return [StreamShare(stream, share_pct) for stream, share_pct in by_stream.items()]


def captured(source: Source, trace: Path, *, step_s: int | None = None) -> IoCapture:
    """Return the capture derived from a trace.

    Args:
        source: Reader of the trace.
        trace: Path of the trace.
        step_s: Step length in s (default: depends on the trace duration).

    Raises:
        ConfigError: If the file is not a trace, contains no reads and writes, or has too many
            steps.
    """
    measures = _native.TraceMeasures(steps=True, length_s=step_s)
    for _ in source.feed(measures):
        pass
    steps = json.loads(measures.steps() or "{}")
    if not steps.get("streams"):
        raise ConfigError(f"{trace} contains no reads or writes")
    if beyond := steps["ios_beyond"]:
        count, length = len(steps["rows"]), steps["length_s"]
        raise ConfigError(
            f"{trace}: {beyond:,} I/Os are later than the last of {count} steps of {length} s",
            hint="use a longer --capture-step",
        )
    return IoCapture(
        name=trace.name,
        source=f"trace, {', '.join(source.formats)}",
        step_s=float(steps["length_s"]),
        streams=tuple(
            IoStream(stream["access"], stream["operation"], stream["size_bytes"])
            for stream in steps["streams"]
        ),
        steps=tuple(map(_measured, steps["rows"])),
        notes=tuple(_notes(steps["rows"], source)),
    )


def _measured(row: Mapping[str, Any]) -> CaptureStep:
    return CaptureStep(
        begin_s=row["begin_s"],
        length_s=row["length_s"],
        ios=row["reads"] + row["writes"],
        bytes=row["read_bytes"] + row["write_bytes"],
        reads=row["reads"],
        streams=tuple((number, ios) for number, ios in row["streams"]),
        queue_depth=row["queue_depth"],
        art_ns=row["response_mean_ns"],
        p99999_ns=row["response_p99999_ns"],
        max_ns=row["response_max_ns"],
        processes=tuple((name, ios) for name, ios in row["processes"]),
    )


def _notes(rows: Sequence[Mapping[str, Any]], source: Source) -> list[str]:
    notes = list(source.notes())
    for key, name in (("flushes", "flushes"), ("discards", "discards"), ("other_ios", "I/Os of "
                      "rare streams")):  # fmt: skip
        if count := sum(row[key] for row in rows):
            notes.append(f"{count:,} {name} are not part of the streams")
    if all(row["queue_depth"] is None for row in rows):
        notes.append("queue depths are unknown, because the trace has no completions")
    return notes
