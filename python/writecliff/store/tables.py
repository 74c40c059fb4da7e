"""Parquet tables of a run, and the conversion of a `RoundRecord` to rows.

    rounds       one row per step, with totals, mean and maximum latency, write volume and WAF
    intervals    one row per (step, interval, job, operation), which form the series within a step
    histograms   one row per non-empty bucket of a (step, job, operation, kind) histogram
    batches      one row per (step, batch, job, operation, kind), with sums over at most 128 equal
                 periods per step, from which reports estimate 95 % intervals; only for user loads

`seq` numbers the steps of a run from 1 and joins the tables. Times are nanoseconds of device time,
sizes are bytes, and unknown values are null. Histogram rows contain the exact moments of their
histogram, which cannot be derived from buckets. If a drive attributes latency to causes, service
time buckets have a column for each cause (`cause_column`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from writecliff.engines.base import OPERATIONS, JobResult, StepResult
from writecliff.engines.counters import declared
from writecliff.errors import texts_only
from writecliff.latency_causes import LatencyCauses, causes
from writecliff.operation_names import FLUSH
from writecliff.store.checksums import damaged
from writecliff.store.record import RoundRecord

if TYPE_CHECKING:
    from writecliff._native import Histogram

TableName = Literal["rounds", "intervals", "histograms", "batches"]
# Operation names in the order of the numbers in the `operation` column.
OPERATION_NAMES: tuple[str, ...] = OPERATIONS
# Values of the `operation` column in `histograms`, in the order of their numbers in `batches`.
TIMED_NAMES: tuple[str, ...] = (*OPERATIONS, FLUSH)
# The `rounds` table is last, because its part file completes a step (see rundir.py).
TABLE_NAMES: tuple[TableName, ...] = ("batches", "histograms", "intervals", "rounds")
# Tables where a step may have no rows. Runs from earlier versions lack the files for these tables.
OPTIONAL_TABLES: tuple[TableName, ...] = ("batches",)

_POSITION = [
    ("seq", pa.int32()),
    ("phase", pa.string()),
    ("round", pa.int32()),
    ("step", pa.int32()),
]

DATA_PLACEMENT = pa.struct(
    [
        ("interface", pa.string()),
        # Identifiers of open streams at the end of the step.
        ("open_streams", pa.list_(pa.int32())),
        # Number of streams besides the default stream, or of placement handles.
        ("limit", pa.int32()),
        *(
            (name, pa.int64())  # Counts for this step, like all following fields.
            for name in (
                "streams_opened", "streams_released", "overflow_writes", "overflow_bytes",
                "hbmw_bytes", "mbmw_bytes", "mbe_bytes", "abandoned_bytes",
            )
        ),
        ("events", pa.map_(pa.string(), pa.int64())),  # FDP event counts by name, omitting zeros.
    ]
)  # fmt: skip

JOBS = pa.list_(
    pa.struct(
        [
            ("name", pa.string()),
            ("elapsed_ns", pa.int64()),
            ("began_ns", pa.int64()),  # Start time since the start of the step.
            *((f"{name}_{what}", pa.int64()) for name in OPERATIONS for what in ("ios", "bytes")),
            # Backlog of an open load (`engines.base.Adherence`); null for closed loads.
            ("scheduled", pa.bool_()),  # True for an open loop.
            ("schedule_ios", pa.int64()),
            ("schedule_span_ns", pa.int64()),
            ("schedule_slope", pa.float64()),
            ("schedule_slope_error", pa.float64()),
            ("schedule_last_age_ns", pa.int64()),
        ]
    )
)

ROUNDS_SCHEMA = pa.schema(
    [
        *_POSITION,
        ("label", pa.string()),
        ("sample", pa.bool_()),
        # This field and the next four fields are null for mixes and for several jobs.
        ("pattern", pa.string()),
        ("block_bytes", pa.int64()),
        ("read_pct", pa.float64()),
        ("threads", pa.int32()),
        ("queue_depth", pa.int32()),  # Queue depth of each thread.
        ("started_ns", pa.int64()),
        ("elapsed_ns", pa.int64()),
        ("ios", pa.int64()),
        ("bytes", pa.int64()),
        *((f"{name}_{what}", pa.int64()) for name in OPERATIONS for what in ("ios", "bytes")),
        ("iops", pa.float64()),
        ("latency_mean_ns", pa.float64()),
        ("latency_max_ns", pa.int64()),
        # Sums cover this step, and levels are the values at the end of the step.
        *((c.name, pa.float64() if c.is_real else pa.int64()) for c in declared().values()),
        # Total bytes written since the purge, including this step.
        ("host_write_bytes_total", pa.int64()),
        ("waf", pa.float64()),
        # CPU load of the machine that issued the I/O (real drives only).
        ("cpu_busy_pct", pa.float64()),
        # Data placement columns (see `_data_placement`); null without a data placement interface.
        ("data_placement", DATA_PLACEMENT),
        ("data_placement_json", pa.string()),  # Complete report, including handles and log.
        ("jobs", JOBS),  # Results of each job, in order.
        ("warnings", pa.list_(pa.string())),
    ]
)

INTERVALS_SCHEMA = pa.schema(
    [
        *_POSITION,
        ("time_ns", pa.int64()),  # End of the interval since the first step of the rounds.
        ("end_ns", pa.int64()),  # End of the interval since the start of its step.
        ("job", pa.int32()),
        ("operation", pa.int8()),  # Operation: 0 read, 1 write, 2 trim.
        ("ios", pa.int64()),
        ("bytes", pa.int64()),
        ("latency_mean_ns", pa.float64()),
        ("latency_max_ns", pa.float64()),
        ("latency_sd_ns", pa.float64()),
        ("waf", pa.float64()),
        ("watts", pa.float64()),  # Mean power of the whole drive in the interval.
        ("temperature_c", pa.float64()),  # Drive temperature at the end of the interval.
    ]
)

# Times from the intended arrival in runs with open loads; null for closed loads.
RESPONSE_COLUMNS: Mapping[str, pa.DataType] = {
    "response_mean_ns": pa.float64(),
    "response_max_ns": pa.float64(),
    "response_sd_ns": pa.float64(),
}

# Columns for served drives, whose tables have a row per second; other runs lack these columns.
SERVED_COLUMNS: Mapping[str, pa.DataType] = {
    "latency_p50_ns": pa.float64(),
    "latency_p99_ns": pa.float64(),
    "latency_p999_ns": pa.float64(),
    "lateness_p50_ns": pa.float64(),  # Lateness over all operations, like all following columns.
    "lateness_p99_ns": pa.float64(),
    "free_units": pa.int64(),  # Value at the end of the interval.
}

HISTOGRAMS_SCHEMA = pa.schema(
    [
        *_POSITION,
        ("job", pa.int32()),
        ("job_name", pa.string()),
        # Operation, where "flush" has rows in this table and in `batches`.
        ("operation", pa.string()),
        ("kind", pa.string()),  # Kind of latency: "service" or "response".
        ("lower_ns", pa.uint64()),  # The bound is inclusive.
        ("upper_ns", pa.uint64()),  # The bound is inclusive.
        ("count", pa.uint64()),
        ("min_ns", pa.uint64()),
        ("max_ns", pa.uint64()),
        ("mean_ns", pa.float64()),
        ("sd_ns", pa.float64()),
    ]
)

# Columns that identify a row by its histogram and bucket.
HISTOGRAM_KEYS = ("seq", "job", "operation", "kind", "lower_ns")

# Columns in the `batches` table that count I/Os slower than a quantile of their step.
SLOWER: Mapping[float, str] = {
    0.5: "slower_p50", 0.9: "slower_p90", 0.95: "slower_p95", 0.99: "slower_p99",
    0.999: "slower_p999", 0.9999: "slower_p9999", 0.99999: "slower_p99999",
}  # fmt: skip

BATCHES_SCHEMA = pa.schema(
    [
        *_POSITION,
        ("job", pa.int32()),
        ("operation", pa.int8()),  # Operation: 0 read, 1 write, 2 trim, 3 flush.
        ("kind", pa.string()),  # Kind of latency: "service" or "response".
        ("end_ns", pa.int64()),  # End of the batch since the start of its step.
        ("width_ns", pa.int64()),
        ("ios", pa.int64()),
        ("bytes", pa.int64()),
        ("latency_sum_ns", pa.float64()),
        *((column, pa.int64()) for column in SLOWER.values()),
        ("host_write_bytes", pa.float64()),  # Value for the whole drive, like `nand_write_bytes`.
        ("nand_write_bytes", pa.float64()),
    ]
)

SCHEMAS: Mapping[TableName, pa.Schema] = {
    "rounds": ROUNDS_SCHEMA,
    "intervals": INTERVALS_SCHEMA,
    "histograms": HISTOGRAMS_SCHEMA,
    "batches": BATCHES_SCHEMA,
}


def cause_column(cause: str) -> str:
    """Return the `histograms` column for the time that the I/Os in a bucket spent on a cause.

    The column is in ns, and exists only in runs that recorded latency causes.
    """
    return f"{cause}_ns"


def tables_of(first: int, records: Sequence[RoundRecord]) -> dict[TableName, pa.Table]:
    """Return the rows of steps by table, with step numbers that start at `first`.

    Raises:
        ValueError: If an extra column duplicates a standard column.
    """
    numbered = list(enumerate(records, first))
    return {
        "rounds": _rounds(numbered),
        "intervals": _joined([_intervals(seq, record) for seq, record in numbered]),
        "histograms": _joined([_histograms(seq, record) for seq, record in numbered]),
        "batches": _joined([_batches(seq, record) for seq, record in numbered]),
    }


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive")


def _position(seq: int, record: RoundRecord, rows: int) -> dict[str, pa.Array]:
    """Return the columns that identify the step in `rows` rows."""
    values = (seq, record.phase, record.round, record.step)
    return {
        name: pa.repeat(pa.scalar(value, kind), rows)
        for (name, kind), value in zip(_POSITION, values, strict=True)
    }


def columns_of(record: RoundRecord) -> dict[str, object]:
    """Return a step's columns for the `rounds` table, except for its number `seq`.

    Raises:
        ValueError: If an extra column duplicates a standard column.
    """
    result = record.result
    ios, size = result.total()
    for name in record.extra:
        if name in ROUNDS_SCHEMA.names:
            raise ValueError(f"extra column '{name}' duplicates a standard column")
    columns = {
        **{name: value for name, value in vars(record).items() if name in ROUNDS_SCHEMA.names},
        **asdict(record.access),
        "ios": ios,
        "bytes": size,
        "iops": result.iops(),
        **result.counted,
        "host_write_bytes": result.written_bytes,
        "warnings": list(result.warnings),
        "cpu_busy_pct": _cpu_busy_pct(result),
        **_data_placement(result),
        "jobs": list(map(job_row, result.jobs)),
        **_latency(result),
        **record.extra,
    }
    for operation in OPERATIONS:
        columns[f"{operation}_ios"], columns[f"{operation}_bytes"] = result.total(operation)
    return columns


def counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the drive's counters over rows of `rounds`, as sums, and the last row's levels.

    A counter is `None` if it is unknown in any row.
    """
    totals: dict[str, float | None] = {}
    for name, counter in declared().items():
        values = [row[name] for row in rows]
        if counter.is_level:
            totals[name] = values[-1] if values else None
        else:
            totals[name] = None if None in values else sum(values)
    return totals


def _rounds(numbered: Sequence[tuple[int, RoundRecord]]) -> pa.Table:
    rows = [texts_only({"seq": seq, **record.columns}) for seq, record in numbered]
    # Most counters are unknown, and each column takes time to read (see `PartedTable.read`).
    columns = [f for f in ROUNDS_SCHEMA if any(row.get(f.name) is not None for row in rows)]
    table = pa.Table.from_pylist(rows, schema=pa.schema(columns))
    for name in dict.fromkeys(name for _, record in numbered for name in record.extra):
        table = table.append_column(name, pa.array([row.get(name) for row in rows]))
    return table


def _cpu_busy_pct(result: StepResult) -> float | None:
    """Return the busy fraction of the host CPU during a step, or None if not measured."""
    machine = result.raw.get("machine")
    value = machine.get("cpu_busy_pct") if isinstance(machine, Mapping) else None
    return None if value is None else float(value)


def job_row(job: JobResult) -> dict[str, object]:
    """Return a job's results by operation, with null for operations that the job did not issue."""
    row: dict[str, Any] = {
        "name": job.name,
        "elapsed_ns": job.elapsed_ns,
        "began_ns": job.began_ns,
        "scheduled": any(done.scheduled for done in job.operations.values()),
    }
    for operation, done in job.operations.items():
        row |= {f"{operation}_ios": done.ios, f"{operation}_bytes": done.bytes}
    if job.adherence is not None:
        row |= {f"schedule_{name}": value for name, value in vars(job.adherence).items()}
    return row


def _data_placement(result: StepResult) -> dict[str, Any]:
    """Return the data placement status in the `writecliff run --json` format.

    The row omits the log and the handles, which are included in the JSON text.
    """
    if result.data_placement is None:
        return {"data_placement": None, "data_placement_json": None}
    before, after = result.data_placement
    shown = after.mapping(before)
    row = {field.name: shown.get(field.name) for field in DATA_PLACEMENT}
    row["events"] = [(name, n) for name, n in shown.get("events", {}).items() if n]
    return {"data_placement": row, "data_placement_json": json.dumps(shown)}


def _latency(result: StepResult) -> dict[str, float | int | None]:
    """Return the mean and maximum service time over all I/Os of a step."""
    parts = [op.service for job in result.jobs for op in job.operations.values()]
    parts = [part for part in parts if part.count]
    count = sum(part.count for part in parts)
    if not count:
        return {"latency_mean_ns": None, "latency_max_ns": None}
    return {
        "latency_mean_ns": sum((part.mean_ns or 0.0) * part.count for part in parts) / count,
        "latency_max_ns": max(part.max_ns or 0 for part in parts),
    }


def _intervals(seq: int, record: RoundRecord) -> pa.Table:
    series = dict(record.result.intervals)
    if not series or not len(series["end_ns"]):
        return INTERVALS_SCHEMA.empty_table()
    rows = len(series["end_ns"])
    columns = _position(seq, record, rows)
    series["time_ns"] = np.asarray(series["end_ns"], dtype=np.int64) + record.started_ns
    for name in INTERVALS_SCHEMA.names[len(_POSITION) :]:
        kind = INTERVALS_SCHEMA.field(name).type
        if name not in series:
            columns[name] = pa.nulls(rows, kind)
            continue
        # Engines use NaN for unknown values, but tables use null.
        columns[name] = pa.array(np.asarray(series[name]), from_pandas=True).cast(kind)
    table = pa.table(columns, schema=INTERVALS_SCHEMA)
    for name, kind in {**SERVED_COLUMNS, **RESPONSE_COLUMNS}.items():
        if name in series:
            column = pa.array(np.asarray(series[name]), from_pandas=True).cast(kind)
            table = table.append_column(name, column)
    return table


def _batches(seq: int, record: RoundRecord) -> pa.Table:
    batches = record.result.batches
    rows = len(batches.get("end_ns", ()))
    columns = _position(seq, record, rows)
    for name in BATCHES_SCHEMA.names[len(_POSITION) :]:
        kind = BATCHES_SCHEMA.field(name).type
        if not rows:
            columns[name] = pa.nulls(0, kind)
        elif name == "kind":
            kinds = pa.array(["service", "response"])
            columns[name] = kinds.take(pa.array(batches["is_response"].astype(np.int8)))
        else:
            columns[name] = pa.array(np.asarray(batches[name]), from_pandas=True).cast(kind)
    return pa.table(columns, schema=BATCHES_SCHEMA)


def _histograms(seq: int, record: RoundRecord) -> pa.Table:
    parts = []
    for labels, histogram, causes_of in _each(record.result):
        lower, upper, count = histogram.buckets()
        rows = len(count)
        columns = _position(seq, record, rows)
        values = {
            **labels,
            "min_ns": histogram.min_ns,
            "max_ns": histogram.max_ns,
            "mean_ns": histogram.mean_ns,
            "sd_ns": histogram.sd_ns,
        }
        for name, value in values.items():
            kind = HISTOGRAMS_SCHEMA.field(name).type
            columns[name] = pa.repeat(pa.scalar(value, kind), rows)
        columns |= {"lower_ns": pa.array(lower), "upper_ns": pa.array(upper)}
        columns["count"] = pa.array(count)
        ordered = [columns[name] for name in HISTOGRAMS_SCHEMA.names]
        part = pa.table(ordered, schema=HISTOGRAMS_SCHEMA)
        if causes_of is not None:
            for cause, spent_ns in zip(causes(), causes_of.spent_ns.T, strict=True):
                part = part.append_column(cause_column(cause), pa.array(spent_ns))
        parts.append(part)
    if not parts:
        return HISTOGRAMS_SCHEMA.empty_table()
    return pa.concat_tables(parts, promote_options="default")


def _each(
    result: StepResult,
) -> Iterator[tuple[dict[str, Any], Histogram, LatencyCauses | None]]:
    """Yield a step's non-empty histograms, with identifying columns and latency causes."""
    for index, job in enumerate(result.jobs):
        for operation, measured in job.timed.items():
            for kind in ("service", "response"):
                histogram = getattr(measured, kind)
                if histogram is not None and histogram.count:
                    labels = {
                        "job": index,
                        "job_name": job.name,
                        "operation": operation,
                        "kind": kind,
                    }
                    yield labels, histogram, measured.causes if kind == "service" else None


def load_array_interface() -> None:
    """Import NumPy's C interface in the native module before its first array requires it.

    A signal handler that raises an exception during this import would cause a panic.
    """
    from writecliff._native import Histogram

    Histogram().buckets()


def rebuild_histograms(table: pa.Table) -> Iterator[tuple[dict[str, Any], Histogram]]:
    """Yield each histogram in `table` with its columns `seq`, `job`, `job_name` and `operation`.

    The table's rows must be sorted by `HISTOGRAM_KEYS`.

    Raises:
        StoreError: If bucket counts or moments are impossible.
    """
    from writecliff._native import Histogram

    if not table.num_rows:
        return
    numbers = {
        name: table.column(name).to_numpy()
        for name in ("lower_ns", "upper_ns", "count", "min_ns", "max_ns", "mean_ns", "sd_ns")
    }
    names = [table.column(n).combine_chunks().dictionary_encode() for n in ("operation", "kind")]
    keys = [table.column(name).to_numpy() for name in ("seq", "job")]
    changes = np.zeros(table.num_rows, dtype=bool)
    changes[0] = True
    for key in (*keys, *(name.indices.to_numpy() for name in names)):
        changes[1:] |= key[1:] != key[:-1]
    starts = np.flatnonzero(changes)
    labels = table.select(["seq", "job", "job_name", "operation"]).take(starts).to_pylist()
    lower, upper, count = (numbers[name] for name in ("lower_ns", "upper_ns", "count"))
    middles = lower + (upper - lower) // np.uint64(2)
    for label, start, end in zip(labels, starts, [*starts[1:], table.num_rows], strict=True):
        try:
            histogram = Histogram.from_buckets(
                middles[start:end],
                count[start:end],
                int(numbers["min_ns"][start]),
                int(numbers["max_ns"][start]),
                float(numbers["mean_ns"][start]),
                float(numbers["sd_ns"][start]),
            )
        except ValueError as error:
            raise damaged(Path("histograms.parquet"), f"step {label['seq']}: {error}") from None
        yield label, histogram
