"""A block trace issued to a real target at its own times.

It is read twice: once to see what it asks for, so that a trace that does not fit is refused before
anything is written, and once to issue it. Each I/O is kept with three times: when it was due, when
it was issued, and when it was complete. They make a trace of their own, in the form that `capture
--device` writes, so it can be held against the original (`characterise --against`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from writecliff import _native, units
from writecliff.capture.trace import BLOCK, BLOCK_COLUMNS
from writecliff.capture.trace_file import TraceFile, fields, texts
from writecliff.engines.timed.issuing import (
    TraceHook,
    TraceIssued,
    follow,
    not_watched,
    opened,
    timing,
    timing_texts,
)
from writecliff.errors import ConfigError, TargetError
from writecliff.operation_names import FLUSH

if TYPE_CHECKING:
    from writecliff.engines.fio.command import Target
    from writecliff.traces.source import Source

IN_FLIGHT = 4096  # an open loop waits for nothing below it
INTERVAL_NS = 1_000_000_000


@dataclass(frozen=True)
class TracePlan:
    """What a trace asks for, made to fit a target."""

    fit: _native.TraceFit
    found: Mapping[str, Any]  # of `_native.TraceFit.found`

    @property
    def writes(self) -> bool:
        """Whether it changes the data of the target."""
        return bool(self.found["ios"]["write"] or self.found["ios"]["trim"])

    @property
    def ios(self) -> int:
        return sum(self.found["ios"].values())

    @property
    def due_ns(self) -> int:
        return int(self.found["due_ns"])

    def texts(self) -> list[str]:
        """What was changed to make it fit, in sentences."""
        of, texts = self.found, []
        for key, text in (
            ("other_volumes", "{} I/Os of other volumes were left out"),
            ("widened", "{} I/Os were made longer, to whole sectors"),
            ("too_long", "{} I/Os were left out: they are longer than 32 MiB"),
            ("moved", "{} I/Os stand behind a later one and were issued with it"),
        ):
            if of[key]:
                texts.append(text.format(f"{of[key]:,}"))
        return texts


@dataclass(frozen=True)
class TimedTrace:
    """A trace and how it is issued. `open_source` opens it; it is called twice."""

    open_source: Callable[[], Source]
    output: Path | None = None  # the trace of what was issued
    speed: float = 1.0  # how many times as fast as it was recorded
    wrap: bool = False  # addresses beyond the end begin again; else the trace is refused
    volume: str | None = None  # the only one that is issued
    seed: int = 1  # of the data that are written

    def plan(self, target: Target) -> TracePlan:
        """Read the trace to its end. Raises TargetError: it does not fit; ConfigError."""
        source = self.open_source()
        fit = self._fit(target, None)
        number: int | None = None
        if self.volume is not None:
            # Volumes are known when they have been read.
            for _ in source.feed(fit):
                pass
            if self.volume not in source.volumes:
                raise ConfigError.unknown("volume", self.volume, source.volumes)
            number = source.volumes.index(self.volume)
            source, fit = self.open_source(), self._fit(target, number)
        for _ in source.feed(fit):
            pass
        found = fit.totals()
        if not sum(found["ios"].values()) and not found["outside"]:
            raise ConfigError("the trace has no I/Os")
        if found["outside"] and not self.wrap:
            offset, length = found["first_outside"]
            raise TargetError(
                f"{target.filename}: {found['outside']:,} I/Os are beyond its end at "
                f"{units.size(target.capacity_bytes)}, the first at byte {offset:,} (of "
                f"{units.size(length)}); the trace reaches to {units.size(found['end_bytes'])}",
                hint="--wrap begins again at the begin of the drive",
            )
        if len(source.volumes) > 1 and self.volume is None:
            raise ConfigError(
                f"the trace has {len(source.volumes)} volumes, whose addresses are the same",
                hint=f"choose one with --volume: {', '.join(source.volumes[:5])}",
            )
        return TracePlan(self._fit(target, number), found)

    def _fit(self, target: Target, volume: int | None) -> _native.TraceFit:
        return _native.TraceFit(
            target.capacity_bytes, target.sector_bytes, wrap=self.wrap, volume=volume,
            speed=self.speed,
        )  # fmt: skip

    def issue(
        self,
        target: Target,
        plan: TracePlan,
        on_tick: Callable[[Mapping[str, int]], None],
    ) -> TraceIssued:
        """Issue it. `on_tick` gets what the issuer says of itself."""
        record = IssuedTrace(self.output, target.filename) if self.output is not None else None
        try:
            with opened(target, writes=plan.writes) as fd:
                issuer = _native.Issuer.of_trace(
                    fd, plan.fit, is_file=target.is_file, in_flight=IN_FLIGHT, seed=self.seed,
                    interval_ns=INTERVAL_NS, records=record is not None,
                )  # fmt: skip
                raw = self._fed(issuer, on_tick, record)
        except BaseException:
            if record is not None:
                record.abandon()
            raise
        found = timing(raw)
        if record is not None:
            record.add(issuer.done())
            record.finish({"timing": found})
        (job,) = raw["jobs"]
        flush = {} if job["flush"] is None else {FLUSH: job["flush"]}
        return TraceIssued(
            ios={name: one["ios"] for name, one in (job["operations"] | flush).items()},
            timing=found,
            elapsed_ns=raw["elapsed_ns"],
            operations=job["operations"],
            service={name: one["service"] for name, one in (job["operations"] | flush).items()},
            failure=raw["failure"],
            notes=[*plan.texts(), *timing_texts(found)],
        )

    def _fed(
        self,
        issuer: _native.Issuer,
        on_tick: Callable[[Mapping[str, int]], None],
        record: IssuedTrace | None,
    ) -> dict[str, Any]:
        import threading

        failed: list[BaseException] = []

        def feed() -> None:
            try:
                for _ in self.open_source().feed(_Taker(issuer)):
                    pass
            except BaseException as error:
                failed.append(error)
                issuer.stop()
            finally:
                issuer.end()

        def tick() -> None:
            if record is not None:
                record.add(issuer.done())
            on_tick(issuer.live())

        issuer.begin()
        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        try:
            raw = follow(issuer, tick)
        finally:
            feeder.join(timeout=10)
        if failed:
            raise failed[0]
        return raw


class _Taker:
    """An issuer as the target of a source, which ends when no more is taken."""

    def __init__(self, issuer: _native.Issuer) -> None:
        self._issuer = issuer

    def take(self, reader: _native.TraceReader) -> bool:
        return self._issuer.take(reader)

    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None:
        self._issuer.add(columns, volumes, processes)


def replay_timed(
    trace: TimedTrace,
    on: str,
    hook: TraceHook = not_watched,
    *,
    destroy_serial: str | None = None,
    allow_signatures: bool = False,
    size_bytes: int | None = None,
) -> TraceIssued:
    """Issue the trace to the real drive or file `on`, by the rules that tests have for it. Raises
    TargetError, ConfigError, EngineError, StoreError.
    """
    from writecliff.engines.fio import FioEngine
    from writecliff.engines.target import is_simulated, open_target

    if is_simulated(on):
        raise ConfigError(f"{on} is a simulated drive", hint="use replay_trace")
    trace.open_source()  # before a drive is opened
    engine = open_target(
        on, destroy_serial=destroy_serial, allow_signatures=allow_signatures, size_bytes=size_bytes
    )
    with closing(engine):
        assert isinstance(engine, FioEngine), "other targets are simulated"
        if trace.output is not None:
            trace.output.parent.mkdir(parents=True, exist_ok=True)
        return engine.replay_timed(trace, hook)


# -- issued trace ----------------------------------------------------------------------------------

# The trace of what was issued: rows in the form of a captured block device.

_OPS = ("read", "write", "punch", "fsync")  # by the numbers of `_native.Issuer.done`
_PROCESS = "writecliff"
HORIZON_NS = 600 * 1_000_000_000  # after which no I/O is waited for: the replay has failed by then
_ROWS_WAITING = 1 << 20


class IssuedTrace:
    """A trace that is being written; rows are put in order of their times."""

    def __init__(self, path: Path, device: str) -> None:
        """Begin it. Raises StoreError."""
        self._schema = fields(BLOCK_COLUMNS)
        self._file = TraceFile(path, self._schema)
        self._device = device
        self._waiting: list[dict[str, Any]] = []  # completed, while an earlier one may be open
        self._rows = 0  # of them
        self._latest_ns = 0

    def add(self, done: Mapping[str, Any]) -> None:
        """Add I/Os, in the order in which they were completed. Raises StoreError."""
        rows = len(done["intended_ns"])
        if rows:
            self._waiting.append(dict(done))
            self._rows += rows
            self._latest_ns = max(self._latest_ns, int(done["intended_ns"].max()))
        if self._rows >= _ROWS_WAITING:
            self._write(self._latest_ns - HORIZON_NS)

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Write what was added and complete the file. Raises StoreError."""
        self._write(self._latest_ns)
        self._file.finish({"level": BLOCK, "device": self._device, **metadata})

    def _write(self, upto_ns: int) -> None:
        """Write the rows up to a time, in order; the others wait."""
        if not self._waiting:
            return
        names = self._waiting[0].keys()
        of = {name: np.concatenate([one[name] for one in self._waiting]) for name in names}
        order = np.argsort(of["intended_ns"], kind="stable")
        of = {name: values[order] for name, values in of.items()}
        end = int(np.searchsorted(of["intended_ns"], max(upto_ns, 0), side="right"))
        if upto_ns >= 0:
            self._file.add(self._batch({name: values[:end] for name, values in of.items()}))
        else:
            end = 0
        self._waiting = [{name: values[end:] for name, values in of.items()}]
        self._rows = len(order) - end

    def abandon(self) -> None:
        self._file.abandon()

    def _batch(self, of: Mapping[str, Any]) -> pa.RecordBatch:
        rows = len(of["intended_ns"])
        zeros = np.zeros(rows, np.int32)
        columns = {
            "time_ns": of["intended_ns"].astype(np.int64),
            "op": texts(of["operation"], _OPS),
            "file": zeros,
            "path": texts(zeros, (self._device,)),
            "offset_bytes": of["offset_bytes"].astype(np.int64),
            "length_bytes": of["length_bytes"].astype(np.int64),
            "thread": texts(zeros, (_PROCESS,)),
            "process": texts(zeros, (_PROCESS,)),
            "hint": pa.nulls(rows, pa.int8()),
            "issue_ns": of["issue_ns"].astype(np.int64),
            "complete_ns": of["complete_ns"].astype(np.int64),
            "flags": texts(zeros, ("",)),
            "pid": zeros,
            "errno": np.where(of["result"] < 0, -of["result"], 0).astype(np.int32),
        }
        arrays = [pa.array(columns[field.name]).cast(field.type) for field in self._schema]
        return pa.record_batch(arrays, schema=self._schema)
