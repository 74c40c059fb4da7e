"""Checks of stored tables: types, and the range of each value.

Even a file with a correct checksum may have been written by a user. Table readers rely on the types
in `tables.SCHEMAS`, on non-negative sizes and times, and on the step order. A table that violates
these conditions is reported as damaged, for example "intervals.parquet: latency_mean_ns is a
string".
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from writecliff.store.checksums import damaged
from writecliff.store.tables import OPERATION_NAMES, SCHEMAS, TIMED_NAMES, TableName

# Limit for counts, bytes and ns, because the sum of two values must fit in 64 bits.
NUMBER_MAX = 1 << 62
JOBS_MAX = 1 << 20  # Maximum job number.
_POSITION = ("seq", "phase", "round", "step")
# Columns that the store writes for each row, which therefore cannot be null.
_NEVER_NULL: dict[TableName, tuple[str, ...]] = {
    "rounds": (*_POSITION, "label", "sample", "started_ns", "elapsed_ns", "ios", "bytes"),
    "intervals": (*_POSITION, "time_ns", "end_ns", "job", "operation", "ios", "bytes"),
    "histograms": (
        *_POSITION, "job", "job_name", "operation", "kind",
        "lower_ns", "upper_ns", "count", "min_ns", "max_ns", "mean_ns", "sd_ns",
    ),
    "batches": (
        *_POSITION, "job", "operation", "kind", "end_ns", "width_ns", "ios", "bytes",
        "latency_sum_ns",
    ),
}  # fmt: skip
_SIGNED = ("temperature_c",)
_WORDS = {"operation": TIMED_NAMES, "kind": ("service", "response")}


def with_types(name: TableName, table: pa.Table, path: Path) -> pa.Table:
    """Return a file's table with the schema's types and any additional columns.

    Raises:
        StoreError: If the file is damaged.
    """
    schema = SCHEMAS[name]
    if len(set(table.column_names)) < table.num_columns:
        raise damaged(path, "two columns have the same name")
    try:
        table.validate(full=True)  # Reading does not check that texts are valid UTF-8.
    except pa.ArrowInvalid as error:
        raise damaged(path, " ".join(str(error).split())) from None
    for index, field in enumerate(table.schema):
        column = schema.get_field_index(field.name)
        wanted = field.type if column < 0 else schema.field(column).type
        if column < 0 and not _is_number(field.type):
            continue
        if field.type != wanted:
            table = table.set_column(index, field.name, _cast(table, index, wanted, path))
    return table


def checked(name: TableName, table: pa.Table, path: Path) -> pa.Table:
    """Check and return the rows of a table's files, or some of their columns.

    NaN becomes null, because engines never store NaN as a value.

    Raises:
        StoreError: If the table is damaged; the message names the column.
    """
    for column in _NEVER_NULL[name]:
        if column in table.column_names and table.column(column).null_count:
            raise damaged(path, f"the column {column} contains empty values")
    schema = SCHEMAS[name]
    for index, field in enumerate(table.schema):
        values = table.column(index)
        if pa.types.is_floating(field.type):
            table = _real(table, index, path)
        elif pa.types.is_integer(field.type) and field.name in schema.names:
            _whole(name, values, field, path)
        elif field.name in _WORDS and pa.types.is_string(field.type):
            _check_words(values, field.name, path)
        elif field.name == "jobs":
            _jobs(values, path)
    if name == "rounds":
        _in_order(table, path)
    return table


def _cast(table: pa.Table, index: int, wanted: pa.DataType, path: Path) -> pa.ChunkedArray:
    field = table.schema.field(index)
    same = _is_number(field.type) == _is_number(wanted) and pa.types.is_nested(field.type) == (
        pa.types.is_nested(wanted)
    )
    if same or pa.types.is_null(field.type) or pa.types.is_dictionary(field.type):
        try:
            return table.column(index).cast(wanted)
        except (pa.ArrowException, ValueError):
            pass
    raise damaged(path, f"the column {field.name} is of type {field.type}, not {wanted}")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _real(table: pa.Table, index: int, path: Path) -> pa.Table:
    """Return the table with NaN replaced by null in a floating-point column."""
    field, values = table.schema.field(index), table.column(index)
    extremes = pc.min_max(values).as_py()
    low, high = extremes["min"], extremes["max"]
    if low is not None and (abs(low) > NUMBER_MAX or abs(high) > NUMBER_MAX):
        raise damaged(path, f"the column {field.name} contains values above 2^62")
    if low is not None and low < 0 and field.name not in _SIGNED and _is_standard(field.name):
        raise damaged(path, f"the column {field.name} contains negative values")
    unknown = pc.is_nan(values)
    if pc.any(unknown).as_py():
        values = pc.if_else(unknown, pa.scalar(None, field.type), values)
        return table.set_column(index, field, values)
    return table


def _is_standard(column: str) -> bool:
    return any(column in schema.names for schema in SCHEMAS.values())


def _whole(name: TableName, values: pa.ChunkedArray, field: pa.Field, path: Path) -> None:
    extremes = pc.min_max(values).as_py()
    low, high = extremes["min"], extremes["max"]
    if low is None:
        return
    least = 1 if field.name in ("seq", "count") else 0
    if low < least:
        raise damaged(path, f"the column {field.name} contains values below {least}")
    operations = TIMED_NAMES if name == "batches" else OPERATION_NAMES
    most = {"job": JOBS_MAX, "operation": len(operations) - 1}.get(field.name, NUMBER_MAX)
    if high > most:
        raise damaged(path, f"the column {field.name} contains values above {most}")


def _check_words(values: pa.ChunkedArray, column: str, path: Path) -> None:
    for word in pc.unique(values).to_pylist():
        if word not in _WORDS[column]:
            raise damaged(
                path,
                f"the column {column} contains '{word}', which is not one of "
                f"{', '.join(_WORDS[column])}",
            )


def _jobs(values: pa.ChunkedArray, path: Path) -> None:
    for row in values.to_pylist():
        for job in row or ():
            if job is None or job["name"] is None or not _counts(job):
                raise damaged(
                    path, "the column jobs contains a job that has no name or an invalid count"
                )


def _counts(job: dict[str, Any]) -> bool:
    signed = ("name", "schedule_slope")
    numbers: Iterable[Any] = (value for key, value in job.items() if key not in signed)
    return all(value is None or 0 <= value <= NUMBER_MAX for value in numbers)


def _in_order(table: pa.Table, path: Path) -> None:
    """Check that steps are numbered and unique."""
    if "seq" not in table.column_names:
        raise damaged(path, "the column seq is missing")
    if table.num_rows and pc.count_distinct(table.column("seq")).as_py() < table.num_rows:
        raise damaged(path, "the column seq contains a step twice")
