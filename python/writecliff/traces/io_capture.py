"""I/O captures: a workload as time steps, each with its I/O streams and queue depth.

The words are those of SNIA's Real World Storage Workload PTS (RWSW, 1.0.7): an *I/O stream* is an
access (random or sequential) of an operation and a size; the *cumulative workload* has the streams
of the whole capture by their share of the I/Os; the dominant ones, with shares that add up to
100 %, are the *applied test workload*. A capture is cut out of a trace of any format, or typed in
as a table of streams (`capture_file.py`).
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
STEP_S = (1.0, 600.0)  # lengths of time steps in the standard, as recalled


@dataclass(frozen=True, order=True)
class IoStream:
    """A kind of I/O."""

    access: Access
    operation: StreamOperation
    size_bytes: int

    @property
    def text(self) -> str:
        """As the standard writes it: "RND 4 KiB R"."""
        size = units.block(self.size_bytes)
        return f"{LETTERS[self.access]} {size} {LETTERS[self.operation]}"


@dataclass(frozen=True)
class StreamShare:
    """A stream and its share of the I/Os, in percent."""

    stream: IoStream
    share_pct: float


@dataclass(frozen=True, kw_only=True)
class CaptureStep:
    """A time step. What the trace does not tell is None."""

    begin_s: float
    length_s: float
    ios: float  # reads and writes; of a table without rates any number
    bytes: float  # that they moved
    reads: float
    streams: tuple[tuple[int, float], ...]  # number in the capture's streams, I/Os; most first
    queue_depth: float | None = None  # mean of what arriving I/Os find, themselves included
    art_ns: float | None = None  # average response time
    p99999_ns: float | None = None  # five nines; None of less than 100,000 I/Os
    max_ns: float | None = None
    processes: tuple[tuple[str, int], ...] = ()  # name and I/Os of the busiest
    counted: bool = True  # False: the table does not say how many I/Os there were

    @property
    def iops(self) -> float | None:
        return self.ios / self.length_s if self.counted else None

    @property
    def bytes_per_s(self) -> float | None:
        return self.bytes / self.length_s if self.counted else None


@dataclass(frozen=True, kw_only=True)
class IoCapture:
    """A capture: streams, those with the most I/Os first, and time steps in order."""

    name: str
    source: str  # of a trace its format; of a table who published it
    step_s: float
    streams: tuple[IoStream, ...]
    steps: tuple[CaptureStep, ...]
    notes: tuple[str, ...] = ()

    @property
    def ios(self) -> float:
        """Reads and writes of all steps."""
        return sum(step.ios for step in self.steps)

    @property
    def duration_s(self) -> float:
        return sum(step.length_s for step in self.steps)

    @property
    def read_pct(self) -> float:
        return 100 * sum(step.reads for step in self.steps) / self.ios

    def cumulative(self) -> list[StreamShare]:
        """The streams of the whole capture, most I/Os first; what is left of 100 % is of streams
        that are not listed.
        """
        ios = dict.fromkeys(range(len(self.streams)), 0.0)
        for step in self.steps:
            for number, count in step.streams:
                ios[number] += count
        order = sorted(ios, key=lambda number: (-ios[number], self.streams[number]))
        return [StreamShare(self.streams[n], 100 * ios[n] / self.ios) for n in order if ios[n]]

    def applied(self, *, streams: int, cover_pct: float | None = None) -> list[StreamShare]:
        """The applied test workload: the `streams` with the most I/Os, or as many as have
        `cover_pct` of them.
        """
        return dominant(self.cumulative(), streams=streams, cover_pct=cover_pct)

    def streams_of(self, step: CaptureStep) -> list[StreamShare]:
        """The streams of a step by their share of its I/Os."""
        return [StreamShare(self.streams[n], 100 * ios / step.ios) for n, ios in step.streams]

    def to_text(self) -> str:
        """All of it as one line of JSON, for the manifest of a run."""
        streams = [[one.access, one.operation, one.size_bytes] for one in self.streams]
        steps = [{**vars(step)} for step in self.steps]
        data = {**vars(self), "streams": streams, "steps": steps}
        return json.dumps(data, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What `to_text` wrote."""
        data = json.loads(text)
        return cls(
            **{
                **data,
                "streams": tuple(IoStream(*one) for one in data["streams"]),
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
    found: Sequence[StreamShare], *, streams: int, cover_pct: float | None = None
) -> list[StreamShare]:
    """The first of `found`, which is in order: so many, or as many as have `cover_pct`; their
    shares add up to 100 %.
    """
    count, covered = min(streams, len(found)), 0.0
    if cover_pct is not None:
        for count, one in enumerate(found, 1):  # noqa: B007 - the count is what is wanted
            covered += one.share_pct
            if covered >= cover_pct - 1e-9:
                break
    return normalised(found[:count])


def normalised(found: Iterable[StreamShare]) -> list[StreamShare]:
    """The streams with shares that add up to 100 %."""
    kept = list(found)
    total = sum(one.share_pct for one in kept)
    return [replace(one, share_pct=100 * one.share_pct / total) for one in kept]


def on_sectors(found: Iterable[StreamShare], sector_bytes: int) -> list[StreamShare]:
    """The streams with sizes raised to whole sectors, as a block layer does; those that become
    equal are one.
    """
    shares: dict[IoStream, float] = {}
    for one in found:
        size = -(-one.stream.size_bytes // sector_bytes) * sector_bytes
        stream = replace(one.stream, size_bytes=size)
        shares[stream] = shares.get(stream, 0.0) + one.share_pct
    return [StreamShare(stream, share) for stream, share in shares.items()]


def captured(source: Source, trace: Path, *, step_s: int | None = None) -> IoCapture:
    """The capture that a trace is, in steps of `step_s` seconds (None: by its duration).

    Raises ConfigError: no reads and writes, more steps than are counted, not a trace.
    """
    measures = _native.TraceMeasures(steps=True, length_s=step_s)
    for _ in source.feed(measures):
        pass
    found = json.loads(measures.steps() or "{}")
    if not found.get("streams"):
        raise ConfigError(f"{trace}: has no reads and writes")
    if beyond := found["ios_beyond"]:
        steps, length = len(found["rows"]), found["length_s"]
        raise ConfigError(
            f"{trace}: {beyond:,} I/Os are after step {steps} of {length} s",
            hint="give a longer --capture-step",
        )
    return IoCapture(
        name=trace.name,
        source=f"trace, {', '.join(source.formats)}",
        step_s=float(found["length_s"]),
        streams=tuple(
            IoStream(one["access"], one["operation"], one["size_bytes"]) for one in found["streams"]
        ),
        steps=tuple(map(_measured, found["rows"])),
        notes=tuple(_notes(found["rows"], source)),
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
    found = list(source.notes())
    for key, name in (("flushes", "flushes"), ("discards", "discards"), ("other_ios", "I/Os of "
                      "rare streams")):  # fmt: skip
        if count := sum(row[key] for row in rows):
            found.append(f"{count:,} {name} are no part of the streams")
    if all(row["queue_depth"] is None for row in rows):
        found.append("the trace has no completions, so its queue depths are not known")
    return found
