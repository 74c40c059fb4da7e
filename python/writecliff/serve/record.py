"""Storage of a served drive's session in a run directory.

Each snapshot of the drive ends an interval. Intervals are stored together as a step after a minute,
and later after a sixtieth of the session's duration so far. As a result, a session of several weeks
has only a few hundred steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from writecliff.capture.trace import BLOCK, STREAM_THREAD
from writecliff.capture.trace_file import TraceFile, fields, texts
from writecliff.engines.base import OPERATIONS, JobResult, OperationResult, StepResult
from writecliff.latency_basis import merged
from writecliff.procedures.measure import record_of
from writecliff.procedures.model import StepPosition
from writecliff.procedures.served import PHASE, STEP, Served
from writecliff.serve.figures import Snapshot, difference, histogram_mapping
from writecliff.serve.session import session_mapping
from writecliff.store.manifest import Manifest
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from writecliff.serve.figures import Operation
    from writecliff.serve.server import DriveServer

PART_S = 60.0
PART_SHARE = 1 / 60  # Segment length as a fraction of the session so far.
_POINTS = {"latency_p50_ns": 0.5, "latency_p99_ns": 0.99, "latency_p999_ns": 0.999}
_LATE = {"lateness_p50_ns": 0.5, "lateness_p99_ns": 0.99}


class SessionRecorder:
    """Recorder of a session; call `look` for each snapshot, and `finish` or `fail` last."""

    def __init__(self, directory: Path, server: DriveServer, *, trace: bool = True) -> None:
        """Start a run directory, which must be nonexistent or empty; `trace` also records requests.

        Raises:
            ConfigError: If the directory is already in use.
            StoreError: If the directory cannot be written.
        """
        self.directory = directory
        self._server = server
        self._before = self._part_begin = server.first
        self._rows: list[dict[str, Any]] = []
        self._looks: list[Mapping[str, Operation]] = []
        self._steps = 0
        self._slow_down = server.options.slow_down or 1.0
        procedure = self._procedure(server.first)
        manifest = Manifest(
            procedure=procedure.name,
            title=procedure.title,
            edition=procedure.edition,
            device=server.identity,
            options=procedure.options_mapping(),
            seed=server.options.seed,
            setup=dict(procedure.setup(server.identity)),
            status="running",
        )
        self._run = RunDirectory.create(directory, manifest)
        self._trace: TraceWriter | None = None
        if trace:
            self._trace = TraceWriter(directory / TRACE_NAME)
            server.keep_trace()

    def _procedure(self, now: Snapshot) -> Served:
        session = session_mapping(self._server, now)
        histograms = {"flush": now.operations["flush"].latency, "lateness": now.lateness}
        session["histograms"] = {name: histogram_mapping(of) for name, of in histograms.items()}
        trace = getattr(self, "_trace", None)
        session["trace"] = trace and {
            "file": TRACE_NAME, "requests": trace.rows, "lost_requests": trace.lost,
        }  # fmt: skip
        return Served(
            session=session,
            precondition=self._server.options.precondition,
            seed=self._server.options.seed,
        )

    def _clock_ns(self, at: Snapshot) -> int:
        """Return the server's drive time or, without timing, the wall time."""
        return round((at.wall_ns - self._server.first.wall_ns) / self._slow_down)

    # -- during the session -------------------------------------------------------------------

    def look(self, now: Snapshot) -> None:
        """Add the interval since the previous snapshot.

        Raises:
            StoreError: If the disk is full.
        """
        if self._trace is not None:
            self._trace.add(self._server.take_trace())
        if self._clock_ns(now) <= self._clock_ns(self._before):
            return
        self._rows += self._interval(now)
        self._looks.append(now.recent)
        self._before = now
        part_s = (now.wall_ns - self._part_begin.wall_ns) / 1e9
        if part_s >= max(PART_S, PART_SHARE * now.wall_ns / 1e9):
            self._store_part()

    def _interval(self, now: Snapshot) -> list[dict[str, Any]]:
        """Return a row for each operation with requests, or a single row with zero I/Os."""
        waf = difference(self._before, now, recent=True).waf
        common = {
            "end_ns": self._clock_ns(now) - self._clock_ns(self._part_begin),
            "job": 0,
            "waf": np.nan if waf is None else waf,
            "temperature_c": _nan_if_none(now.temperature_c),
            "free_units": _nan_if_none(now.free_units),
            **{
                name: _nan_if_none(now.recent_lateness.quantile(q).value_ns)
                for name, q in _LATE.items()
            },
        }
        done = [name for name in OPERATIONS if now.recent[name].requests] or [OPERATIONS[0]]
        rows = []
        for name in done:
            operation = now.recent[name]
            rows.append(
                {
                    **common,
                    "operation": OPERATIONS.index(name),
                    "ios": operation.requests,
                    "bytes": operation.bytes,
                    "latency_mean_ns": _nan_if_none(operation.latency.mean_ns),
                    "latency_max_ns": _nan_if_none(operation.latency.max_ns),
                    "latency_sd_ns": _nan_if_none(operation.latency.sd_ns),
                    **{
                        point: _nan_if_none(operation.latency.quantile(q).value_ns)
                        for point, q in _POINTS.items()
                    },
                }
            )
        return rows

    def _store_part(self) -> None:
        """Store the intervals as a step, and store the session so far in the manifest."""
        if not self._rows:
            return
        begin, end, first = self._part_begin, self._before, self._server.first
        self._steps += 1
        record = record_of(
            self._result(begin, end),
            StepPosition(PHASE, 0, self._steps),
            STEP,
            started_ns=self._clock_ns(begin),
            written_before_bytes=_written(begin) - _written(first),
            capacity_bytes=self._server.identity.capacity_bytes,
        )
        self._run.append_round(record)
        self._rows, self._looks, self._part_begin = [], [], end
        self._update(end)

    def _result(self, begin: Snapshot, end: Snapshot) -> StepResult:
        elapsed_ns = self._clock_ns(end) - self._clock_ns(begin)
        operations = {}
        for name in OPERATIONS:
            operations_of_name = [look[name] for look in self._looks if look[name].requests]
            service = merged(operation.latency for operation in operations_of_name)
            if service is not None:
                ios, size = (
                    sum(operation.requests for operation in operations_of_name),
                    sum(operation.bytes for operation in operations_of_name),
                )
                operations[name] = OperationResult(ios, size, service)
        names = self._rows[0]
        placement = begin.data_placement, end.data_placement
        return StepResult(
            started_ns=self._clock_ns(begin),
            elapsed_ns=elapsed_ns,
            jobs=(JobResult("clients", elapsed_ns, operations),),
            intervals={name: np.array([row[name] for row in self._rows]) for name in names},
            counters_before=begin.counters,
            counters_after=end.counters,
            data_placement=None if None in placement else placement,  # type: ignore[arg-type]
        )

    def _update(self, now: Snapshot, **changes: Any) -> None:
        procedure = self._procedure(now)
        self._run.update(
            options=procedure.options_mapping(),
            setup=dict(procedure.setup(self._server.identity)),
            warnings=tuple(procedure.session["warnings"]),
            **changes,
        )

    # -- end of the session -------------------------------------------------------------------

    def finish(self, last: Snapshot, reason: str) -> None:
        """Complete the run after the drive has stopped; `last` must have been passed to `look`.

        Raises:
            StoreError: If the run cannot be written.
        """
        self._store_part()
        if self._trace is not None:
            identity = self._server.identity
            self._trace.finish(
                {
                    "target": identity.target,
                    "capacity_bytes": identity.capacity_bytes,
                    "device_hash": identity.device_hash,
                    "slow_down": self._server.options.slow_down,
                }
            )
        self._update(last)
        self._run.finish("complete", reason=reason, ended_by="stop")

    def fail(self, reason: str) -> None:
        """Close the run after an error, with the data recorded so far.

        Raises:
            StoreError: If the run cannot be written.
        """
        if self._trace is not None:
            self._trace.abandon()
        self._run.finish("failed", reason=reason)


def _nan_if_none(value: float | None) -> float:
    return np.nan if value is None else value


def _written(at: Snapshot) -> int:
    return at.counters.host_write_bytes or 0


# -- trace -----------------------------------------------------------------------------------------

# Block trace of a served drive, in the format of captured traces, which replays read.
#
# The trace represents the drive by a single file that exists before the trace starts, so that
# repeated rounds overwrite its addresses. The `thread` of a request is its stream, which rules use
# to separate writes. Two trace columns are intended for other readers: `stream` contains the stream
# or placement identifier, and `session` contains the connection number.

TRACE_NAME = "trace.parquet"
PATH, PROCESS = "drive", "clients"
# Operation names, in the order of the operation numbers of `take_trace`.
_OPS = ("read", "write", "punch", "fsync")
_FLUSH = 3
_FIELDS = fields({"stream": pa.int32(), "session": pa.int64()})


class TraceWriter:
    """Writer of requests as they arrive; the file is named only when it is complete."""

    def __init__(self, path: Path) -> None:
        """Start a trace.

        Raises:
            StoreError: If the file cannot be created.
        """
        self.lost = 0
        self._file = TraceFile(path, _FIELDS)

    @property
    def rows(self) -> int:
        """Number of rows written so far."""
        return self._file.rows

    def add(self, taken: Mapping[str, Any]) -> None:
        """Add the output of `DriveServer.take_trace`.

        Raises:
            StoreError: If the disk is full.
        """
        self.lost += taken["lost"]
        self._file.add(_batch(taken))

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Complete the file.

        Raises:
            StoreError: If the file cannot be written.
        """
        self._file.finish({"level": BLOCK, **metadata, "lost_requests": self.lost})

    def abandon(self) -> None:
        """Remove the incomplete file."""
        self._file.abandon()


def _batch(taken: Mapping[str, Any]) -> pa.RecordBatch:
    """Return requests as trace columns, omitting requests that do not move data."""
    moves_data = (taken["length_bytes"] > 0) | (taken["operation"] == _FLUSH)
    whole = {name: values[moves_data] for name, values in taken.items() if name != "lost"}
    rows = len(whole["time_ns"])
    numbers, streams = np.unique(whole["stream"], return_inverse=True)
    columns = {
        "time_ns": whole["time_ns"].astype(np.int64),
        "op": texts(whole["operation"], _OPS),
        "file": np.zeros(rows, np.int32),
        "path": texts(np.zeros(rows), (PATH,)),
        "offset_bytes": whole["offset_bytes"].astype(np.int64),
        "length_bytes": whole["length_bytes"].astype(np.int64),
        "thread": texts(streams, [f"{STREAM_THREAD}{number}" for number in numbers]),
        "process": texts(np.zeros(rows), (PROCESS,)),
        "hint": pa.nulls(rows, pa.int8()),
        "stream": whole["stream"].astype(np.int32),
        "session": whole["session"].astype(np.int64),
    }
    return pa.record_batch([pa.array(values) for values in columns.values()], schema=_FIELDS)
