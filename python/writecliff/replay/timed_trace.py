"""A block trace that is issued to a real target at the recorded times.

The trace is read twice: once to check it, so that an unsuitable trace is rejected before any write,
and once to issue it. Each I/O is recorded with three times: its due time, issue time and completion
time. The recorded I/Os form a trace in the `capture --device` format, which can be compared with
the original trace (`characterise --against`).
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

IN_FLIGHT = 4096  # Queue depth above which an open loop waits.
INTERVAL_NS = 1_000_000_000


@dataclass(frozen=True)
class TracePlan:
    """A trace that has been checked and adjusted for a target."""

    fit: _native.TraceFit
    totals: Mapping[str, Any]  # Result of `_native.TraceFit.totals`.

    @property
    def writes(self) -> bool:
        """`True` if the trace changes data on the target."""
        return bool(self.totals["ios"]["write"] or self.totals["ios"]["trim"])

    @property
    def ios(self) -> int:
        """Number of I/Os to issue."""
        return sum(self.totals["ios"].values())

    @property
    def due_ns(self) -> int:
        """Due time of the last I/O, in ns from the start."""
        return int(self.totals["due_ns"])

    def texts(self) -> list[str]:
        """Return the changes made to fit the trace to the target, as sentences."""
        of, texts = self.totals, []
        for key, text in (
            ("other_volumes", "{} I/Os of other volumes were omitted"),
            ("widened", "{} I/Os were extended to whole sectors"),
            ("too_long", "{} I/Os were omitted because they are longer than 32 MiB"),
            ("moved", "{} I/Os have an earlier time than the previous I/O and were issued with it"),
        ):
            if of[key]:
                texts.append(text.format(f"{of[key]:,}"))
        return texts


@dataclass(frozen=True)
class TimedTrace:
    """A trace and the method of issuing it. `open_source` opens the trace and is called twice."""

    open_source: Callable[[], Source]
    output: Path | None = None  # Path for a trace of the issued I/Os, if any.
    speed: float = 1.0  # Replay speed relative to the recorded speed.
    wrap: bool = False  # `True` to wrap addresses beyond the end instead of rejecting the trace.
    volume: str | None = None  # Volume to issue; `None` for all volumes.
    seed: int = 1  # Seed for the written data.

    def plan(self, target: Target) -> TracePlan:
        """Read the whole trace and check that it fits the target.

        Raises:
            TargetError: If the trace does not fit the target.
            ConfigError: If the trace has no I/Os or covers several volumes.
        """
        source = self.open_source()
        fit = self._fit(target, None)
        number: int | None = None
        if self.volume is not None:
            # The volumes are known only after the trace has been read.
            for _ in source.feed(fit):
                pass
            if self.volume not in source.volumes:
                raise ConfigError.unknown("volume", self.volume, source.volumes)
            number = source.volumes.index(self.volume)
            source, fit = self.open_source(), self._fit(target, number)
        for _ in source.feed(fit):
            pass
        totals = fit.totals()
        if not sum(totals["ios"].values()) and not totals["outside"]:
            raise ConfigError("the trace contains no I/Os")
        if totals["outside"] and not self.wrap:
            offset, length = totals["first_outside"]
            raise TargetError(
                f"{target.filename}: {totals['outside']:,} I/Os exceed its capacity of "
                f"{units.size(target.capacity_bytes)}, the first at byte {offset:,} ("
                f"{units.size(length)}); the trace extends to {units.size(totals['end_bytes'])}",
                hint="add --wrap to continue at the start of the drive",
            )
        if len(source.volumes) > 1 and self.volume is None:
            raise ConfigError(
                f"the trace has {len(source.volumes)} volumes with overlapping addresses",
                hint=f"choose a volume with --volume: {', '.join(source.volumes[:5])}",
            )
        return TracePlan(self._fit(target, number), totals)

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
        """Issue the trace's I/Os. `on_tick` receives the issuer's counters."""
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
        timed = timing(raw)
        if record is not None:
            record.add(issuer.done())
            record.finish({"timing": timed})
        (job,) = raw["jobs"]
        flush = {} if job["flush"] is None else {FLUSH: job["flush"]}
        return TraceIssued(
            ios={name: operation["ios"] for name, operation in (job["operations"] | flush).items()},
            timing=timed,
            elapsed_ns=raw["elapsed_ns"],
            operations=job["operations"],
            service={
                name: operation["service"]
                for name, operation in (job["operations"] | flush).items()
            },
            failure=raw["failure"],
            notes=[*plan.texts(), *timing_texts(timed)],
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
    """An issuer that consumes a source and stops when the target accepts no more I/Os."""

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
    """Issue a trace to the real drive or file `on`, under the same protection rules as tests.

    Raises:
        TargetError: If the target is protected or is too small for the trace.
        ConfigError: If the target is simulated or the trace is invalid.
        EngineError: If an I/O fails.
        StoreError: If the output cannot be written.
    """
    from writecliff.engines.fio import FioEngine
    from writecliff.engines.target import is_simulated, open_target

    if is_simulated(on):
        raise ConfigError(
            f"{on} is a simulated drive", hint="use replay_trace for simulated drives"
        )
    trace.open_source()  # Check the trace before a drive is opened.
    engine = open_target(
        on, destroy_serial=destroy_serial, allow_signatures=allow_signatures, size_bytes=size_bytes
    )
    with closing(engine):
        assert isinstance(engine, FioEngine), "other targets are simulated"
        if trace.output is not None:
            trace.output.parent.mkdir(parents=True, exist_ok=True)
        return engine.replay_timed(trace, hook)


# -- issued trace ----------------------------------------------------------------------------------

# Trace of the issued I/Os, in the format for captured block devices.

# Operation names by number, as in `_native.Issuer.done`.
_OPS = ("read", "write", "punch", "fsync")
_PROCESS = "writecliff"
HORIZON_NS = 600 * 1_000_000_000  # Maximum wait for an I/O, after which the replay fails.
_ROWS_WAITING = 1 << 20


class IssuedTrace:
    """A trace writer that sorts rows by time."""

    def __init__(self, path: Path, device: str) -> None:
        """Create the output file.

        Raises:
            StoreError: If the file cannot be created.
        """
        self._schema = fields(BLOCK_COLUMNS)
        self._file = TraceFile(path, self._schema)
        self._device = device
        self._waiting: list[dict[str, Any]] = []  # Completed I/Os that wait for an earlier I/O.
        self._rows = 0  # Number of buffered rows.
        self._latest_ns = 0

    def add(self, done: Mapping[str, Any]) -> None:
        """Add I/Os in completion order.

        Raises:
            StoreError: If the file cannot be written.
        """
        rows = len(done["intended_ns"])
        if rows:
            self._waiting.append(dict(done))
            self._rows += rows
            self._latest_ns = max(self._latest_ns, int(done["intended_ns"].max()))
        if self._rows >= _ROWS_WAITING:
            self._write(self._latest_ns - HORIZON_NS)

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Write the buffered rows and close the file.

        Raises:
            StoreError: If the file cannot be written.
        """
        self._write(self._latest_ns)
        self._file.finish({"level": BLOCK, "device": self._device, **metadata})

    def _write(self, upto_ns: int) -> None:
        """Write the rows up to a given time in time order, and retain later rows."""
        if not self._waiting:
            return
        names = self._waiting[0].keys()
        of = {name: np.concatenate([batch[name] for batch in self._waiting]) for name in names}
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
        """Remove the incomplete file."""
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
