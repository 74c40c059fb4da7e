"""Intervals of a run as lines over time, with a line for each operation and quantity.

Partial intervals are merged with their neighbours (`store.partial_intervals`). Jobs are combined by
summing counts, taking the largest maxima, and weighting means by I/O count. Each point is at the
end of its interval. Only served drives have quantiles for intervals; for other runs, the quantiles
of a step are drawn over the step's duration. Intervals do not count flushes, so the mean flush
latency comes from a step's batches.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from writecliff.errors import StoreError
from writecliff.latency_basis import Basis, histogram_of
from writecliff.operation_names import FLUSH
from writecliff.store.partial_intervals import whole_ends
from writecliff.store.rundir import RunDirectory
from writecliff.store.tables import OPERATION_NAMES, TIMED_NAMES, rebuild_histograms
from writecliff.ui.marks import Array

if TYPE_CHECKING:
    from writecliff._native import Histogram

# Maximum number of rows in a run, which need about 2 GB while they are read.
MOST_ROWS = 30_000_000
_MOST_STEPS = 5_000  # Maximum number of steps with quantiles, counted back from the last step.
_KEPT_BYTES = 1 << 29
_NS = 1e9
_BASIS_NAMES: Mapping[Basis, str] = {"arrival": "latency", "service": "service"}
_COLUMNS = ("seq", "end_ns", "time_ns", "operation", "ios", "bytes", "latency_mean_ns",
            "latency_max_ns", "response_mean_ns", "response_max_ns", "latency_p99_ns", "waf",
            "watts", "temperature_c", "free_units")  # fmt: skip
# Quantities of the drive rather than of an operation: column, and name in plots.
_OF_DRIVE = (("waf", "waf"), ("watts", "watts"), ("temperature_c", "temperature"),
             ("free_units", "free_units"))  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A quantity over time.

    `x` is the time in s since the first step, in ascending order; `y` is in the quantity's unit,
    with NaN for unknown values.
    """

    quantity: str  # Quantity (see plots.py).
    operation: str  # Operation; "" for the whole drive.
    x: Array
    y: Array

    @property
    def key(self) -> str:
        """Name used in URLs, such as "iops.write" or "waf"."""
        return ".".join(filter(None, (self.quantity, self.operation)))


@dataclass(frozen=True)
class Series:
    """All lines for a run."""

    lines: Sequence[Line]
    intervals: int  # Number of intervals for a single operation.
    # Time span from the start of the first step to the end of the last step.
    span_s: tuple[float, float]

    @property
    def size_bytes(self) -> int:
        """Size of the arrays in bytes."""
        return sum(line.x.nbytes + line.y.nbytes for line in self.lines)


def lines_of(rows: Mapping[str, Array]) -> Iterator[Line]:
    """Yield the lines for the columns of `intervals`, whose rows may be in any order."""
    steps, ends = np.diff(rows["seq"]), np.diff(rows["end_ns"])
    if not ((steps > 0) | ((steps == 0) & (ends >= 0))).all():  # Flushes are stored in time order.
        order = np.lexsort((rows["end_ns"], rows["seq"]))
        rows = {name: column[order] for name, column in rows.items()}
    ends = whole_ends(rows["seq"], rows["end_ns"])
    rows = {**rows, "time_ns": rows["time_ns"] + ends - rows["end_ns"], "end_ns": ends}
    for code, operation in enumerate(OPERATION_NAMES):
        chosen = rows["operation"] == code
        if rows["ios"][chosen].any():
            alone = chosen.all()
            part = rows if alone else {name: column[chosen] for name, column in rows.items()}
            yield from _of_operation(operation, part)
    if not len(rows["seq"]):
        return
    starts = _starts(rows)
    x = rows["time_ns"][starts] / _NS
    for column, quantity in _OF_DRIVE:
        y = rows[column][starts]
        if np.isfinite(y).any():
            yield _line(quantity, "", x, y)


def _of_operation(operation: str, rows: Mapping[str, Array]) -> Iterator[Line]:
    starts = _starts(rows)
    ends, seq = rows["end_ns"][starts], rows["seq"][starts]
    first = np.append(True, seq[1:] != seq[:-1])
    width_ns = np.where(first, ends, ends - np.append(0.0, ends[:-1]))
    x = rows["time_ns"][starts] / _NS
    several = len(starts) != len(rows["seq"])

    def total(values: Array) -> Array:
        return np.add.reduceat(values, starts) if several else values

    def most(values: Array) -> Array:
        return np.fmax.reduceat(values, starts) if several else values

    ios = total(rows["ios"])
    with np.errstate(divide="ignore", invalid="ignore"):
        yield _line("iops", operation, x, ios / width_ns * _NS)
        yield _line("mbps", operation, x, total(rows["bytes"]) / width_ns * (_NS / 1e6))
        # Rows of jobs that have intended arrivals.
        scheduled = np.isfinite(rows["response_mean_ns"])
        for basis, name in _BASIS_NAMES.items():
            if basis == "service" and not scheduled.any():
                continue
            mean, slowest = (
                histogram_of(basis, service=rows[f"latency_{what}_ns"], scheduled=True,
                             response=np.where(scheduled, rows[f"response_{what}_ns"],
                                               rows[f"latency_{what}_ns"]))
                for what in ("mean", "max")
            )  # fmt: skip
            spent = np.where(rows["ios"] > 0, mean * rows["ios"], 0.0)
            yield _line(f"{name}_mean", operation, x, total(spent) / ios / 1e6)
            columns = {f"{name}_max": slowest}
            if basis == "arrival":
                columns["latency_p99"] = rows["latency_p99_ns"]
            for quantity, values in columns.items():
                y = most(np.where(rows["ios"] > 0, values, np.nan)) / 1e6
                if np.isfinite(y).any():
                    yield _line(quantity, operation, x, y)


def flush_lines(rows: Mapping[str, Array]) -> Iterator[Line]:
    """Yield the mean flush latency over time.

    Args:
        rows: Flushes in the batches, with the columns of `intervals`, ordered by step and time.
    """
    if rows["ios"].any():
        ends = whole_ends(rows["seq"], rows["end_ns"])
        merged = {"time_ns": rows["time_ns"] + ends - rows["end_ns"], "end_ns": ends}
        lines = _of_operation(FLUSH, {**rows, **merged})
        yield from (line for line in lines if line.quantity == "latency_mean")


def _starts(rows: Mapping[str, Array]) -> Any:
    """Return a mask that selects the first row of each interval in sorted rows."""
    if not len(rows["seq"]):
        return np.array([], dtype=np.int64)
    new = (np.diff(rows["end_ns"]) != 0) | (np.diff(rows["seq"]) != 0)
    return np.flatnonzero(np.append(True, new))


def _line(quantity: str, operation: str, x: Array, y: Array) -> Line:
    y = np.where(np.isfinite(y), y, np.nan)
    if len(x) > 1 and (np.diff(x) < 0).any():
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    return Line(quantity, operation, x, y)


def _columns(table: pa.Table) -> dict[str, Array]:
    """Return the columns that lines require as numbers, with NaN for unknown values."""
    have = set(table.column_names)
    return {
        name: table.column(name).to_numpy().astype(np.float64, copy=False)
        if name in have
        else np.full(table.num_rows, np.nan)
        for name in _COLUMNS
    }


_BATCH_COLUMNS = ("seq", "operation", "end_ns", "ios", "bytes", "latency_sum_ns")


def _flush_columns(run: RunDirectory, after: int) -> dict[str, Array]:
    """Return the flushes in the batches of steps after `after`, in the form of `intervals` rows."""
    table = run.rows_after("batches", after, _BATCH_COLUMNS)
    table = table.filter(pc.field("operation") == TIMED_NAMES.index(FLUSH))
    table = table.sort_by([("seq", "ascending"), ("end_ns", "ascending")])
    columns = _columns(table)
    columns["end_ns"] = columns["end_ns"] * run.manifest.device.scale  # Batches are not scaled.
    rounds = run.rows_after("rounds", after, ("seq", "started_ns")).to_pylist()
    started_ns = {row["seq"]: row["started_ns"] for row in rounds}
    begin_ns = np.array([started_ns[seq] for seq in table["seq"].to_pylist()], dtype=np.float64)
    sums_ns = table["latency_sum_ns"].to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_ns = np.where(columns["ios"] > 0, sums_ns / columns["ios"], np.nan)
    return {**columns, "time_ns": begin_ns + columns["end_ns"], "latency_mean_ns": mean_ns}


Steps = list[tuple[str, float, float, float]]  # Operation, start and end in s, and latency in ms.


def _step_quantiles(run: RunDirectory, after: int) -> Steps:
    """Return the 99th percentile for each operation in the steps after `after`."""
    if run.merged_rows("histograms") > MOST_ROWS:
        return []
    rows = run.rows_after("rounds", after, ("seq", "started_ns", "elapsed_ns")).to_pylist()
    when = {row["seq"]: (row["started_ns"] / _NS, row["elapsed_ns"] / _NS) for row in rows}
    table = run.rows_after("histograms", after)
    service, response = (_by_cell(table, kind) for kind in ("service", "response"))
    merged: dict[tuple[int, str], Histogram] = {}
    for (seq, job, operation), timed in service.items():
        late = response.get((seq, job, operation))
        histogram = histogram_of("arrival", service=timed, response=late,
                                 scheduled=late is not None)  # fmt: skip
        key = seq, operation
        if histogram is None:
            continue
        if key in merged:
            merged[key].merge(histogram)
        else:
            merged[key] = histogram
    steps: Steps = []
    for (seq, operation), histogram in sorted(merged.items(), key=lambda item: item[0]):
        value_ns = histogram.quantile(0.99).value_ns
        begin, length = when.get(seq, (0.0, 0.0))
        if value_ns is not None and length > 0:
            steps.append((operation, begin, begin + length, value_ns / 1e6))
    return steps


def _by_cell(table: pa.Table, kind: str) -> dict[tuple[int, int, str], Histogram]:
    """Return the histograms of a kind by step, job and operation."""
    order = ("seq", "job", "operation", "kind", "lower_ns")
    rows = table.filter(pc.field("kind") == kind).sort_by([(n, "ascending") for n in order])
    return {
        (label["seq"], label["job"], label["operation"]): histogram
        for label, histogram in rebuild_histograms(rows)
    }


def _from_issue(run: RunDirectory, columns: Mapping[str, Array]) -> bool:
    """Return `True` if open-loop latencies were measured only from the issue time.

    This is the case for fio and for runs from earlier versions.
    """
    if np.isfinite(columns["response_mean_ns"]).any():
        return False
    rounds = run.rows_after("rounds", 0, ("seq", "jobs")).to_pylist()
    if any(job.get("scheduled") for row in rounds for job in row.get("jobs") or ()):
        return True
    steps = run.manifest.options.get("steps") or ()
    jobs = [job for step in steps for job in step.get("workload", {}).get("jobs", ())]
    return any(job.get("rate_iops") or job.get("rate_bytes_per_s") for job in jobs)


def _as_service(line: Line) -> Line:
    if line.operation == FLUSH:  # A flush follows a write and has no separate arrival.
        return line
    name = line.quantity.removeprefix("latency_")
    return replace(line, quantity=f"service_{name}") if name != line.quantity else line


def _step_lines(steps: Steps) -> Iterator[Line]:
    """Yield quantiles as constant levels over each step's duration."""
    for operation in TIMED_NAMES:
        recent = [step for step in steps if step[0] == operation][-_MOST_STEPS:]
        if recent:
            x = np.array([time for _, begin, end, _ in recent for time in (begin, end)])
            y = np.array([value for _, _, _, value in recent for _ in range(2)])
            yield _line("latency_p99_step", operation, x, y)


@dataclass(frozen=True)
class _CachedSeries:
    """Cached columns of a run up to a given step.

    A run that is resumed after a crash has different steps, so the cache is valid only for a
    manifest with this `created` value.
    """

    state: tuple[str, ...]
    steps: int
    rows: Mapping[str, Array]  # Interval rows; empty for a run that has stopped.
    flushes: Mapping[str, Array]  # Flush rows from batches; empty after the run has stopped.
    quantiles: Steps
    series: Series

    def grows_into(self, state: tuple[str, ...], steps: int) -> bool:
        """Return `True` if the cached columns are a prefix of this run's columns."""
        return bool(self.rows) and self.state[:2] == state[:2] and self.steps <= steps


class Shelf:
    """A cache for the series of recently viewed runs; the method `series` is thread-safe."""

    def __init__(self, kept_bytes: int = _KEPT_BYTES) -> None:
        """Create an empty cache with this maximum size in bytes."""
        self._cached: OrderedDict[str, _CachedSeries] = OrderedDict()
        self._kept_bytes = kept_bytes
        self._lock = threading.Lock()
        self._reading: dict[str, threading.Lock] = {}

    def series(self, name: str, folder: Path) -> Series:
        """Return the series of the run `name` in `folder`.

        Cached series are reused, and only the new steps of a running run are read.

        Raises:
            StoreError: If the run is damaged or too large.
        """
        with self._lock:
            reading = self._reading.setdefault(name, threading.Lock())
        with reading:  # All plots on a page read the same run.
            run = RunDirectory.open(folder)
            state: tuple[str, ...] = (run.manifest.created, str(len(run.manifest.interruptions)))
            with self._lock:
                cached = self._cached.get(name)
            ended = run.status != "running"
            if ended:
                state = (*state, run.manifest.updated)
            if cached is None or cached.state != state or cached.steps != run.steps:
                cached = self._read(run, state, cached)
        with self._lock:
            self._cached[name] = cached
            self._cached.move_to_end(name)
            while len(self._cached) > 1 and self._size() > self._kept_bytes:
                self._cached.popitem(last=False)
            if not reading.locked():
                self._reading.pop(name, None)
        return cached.series

    def _size(self) -> int:
        return sum(cached.series.size_bytes for cached in self._cached.values())

    @staticmethod
    def _read(
        run: RunDirectory, state: tuple[str, ...], before: _CachedSeries | None
    ) -> _CachedSeries:
        rows = run.merged_rows("intervals")
        if rows > MOST_ROWS:
            raise StoreError(
                f"{run.name} has {rows:,} rows of intervals; plots are limited to {MOST_ROWS:,}",
                hint="query a subset of the rows with writecliff runs sql",
            )
        if before is not None and not before.grows_into(state, run.steps):
            before = None
        after = 0 if before is None else before.steps
        columns = _columns(run.rows_after("intervals", after, _COLUMNS))
        flushes = _flush_columns(run, after)
        if before is not None:
            columns = {n: np.concatenate([before.rows[n], columns[n]]) for n in columns}
            flushes = {n: np.concatenate([before.flushes[n], flushes[n]]) for n in flushes}
        lines = list(lines_of(columns))
        quantiles = [] if before is None else before.quantiles
        if not any(line.quantity == "latency_p99" for line in lines):
            quantiles = quantiles + _step_quantiles(run, after)
            lines += _step_lines(quantiles)
        if _from_issue(run, columns):
            lines = [_as_service(line) for line in lines]
        ends = [(line.x[0], line.x[-1]) for line in lines if len(line.x)]
        longest = max((len(line.x) for line in lines), default=0)
        lines += flush_lines(flushes)
        first = float(np.nanmin(columns["time_ns"] - columns["end_ns"])) / _NS if longest else 0.0
        low = min([first, *(float(begin) for begin, _ in ends)])
        high = max([low, *(float(end) for _, end in ends)])
        series = Series(lines, longest, (low, high))
        if run.status != "running":  # Only an active run adds rows.
            columns, flushes = {}, {}
        return _CachedSeries(state, run.steps, columns, flushes, quantiles, series)


def named(series: Series, key: str) -> Line | None:
    """Return the line with this key, or `None`."""
    return next((line for line in series.lines if line.key == key), None)


def scaled(line: Line, factor: float) -> Line:
    """Return the line with its values multiplied by a factor."""
    return replace(line, y=line.y * factor)
