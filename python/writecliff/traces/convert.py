"""Conversion of a trace to another format."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import _native
from writecliff.capture.trace import BLOCK, BLOCK_COLUMNS
from writecliff.errors import ConfigError, EngineError
from writecliff.native_errors import as_user_errors
from writecliff.output_files import open_part, part_of, remove_part
from writecliff.progress import UNSEEN, WorkProgress
from writecliff.store.files import store_error
from writecliff.traces.source import PARQUET, Skipped, Source

if TYPE_CHECKING:
    import pyarrow as pa

OPS = (
    "read",
    "write",
    "fsync",
    "punch",
)  # Operation names by number, as in `_native.TraceReader.next`.
_SUFFIXES = {".parquet": PARQUET, ".csv": "msr", ".log": "fio-iolog", ".txt": "blkparse"}


@dataclass(frozen=True)
class Converted:
    """Result of a conversion."""

    output: Path
    formats: tuple[str, ...]  # Trace formats of the input.
    written_as: str
    ios: int
    left_out: int  # Number of I/Os that the output format cannot express.
    moved: int  # Number of I/Os whose times were raised to that of a previous I/O.
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]


def written_formats() -> list[str]:
    """Return the names of all output formats."""
    return [PARQUET, *_native.trace_formats_written()]


def written_format(output: Path, to: str | None) -> str:
    """Return the output format: `to`, or else the format of the suffix.

    Raises:
        ConfigError: If the format is unknown or no format has this suffix.
    """
    if to is not None:
        if to not in written_formats():
            raise ConfigError.unknown("output format", to, written_formats())
        return to
    format = _SUFFIXES.get(output.suffix)
    if format is None:
        raise ConfigError(
            f"{output}: no format has the suffix '{output.suffix}'",
            hint=f"set --to to one of {', '.join(written_formats())}",
        )
    return format


def convert(
    source: Source,
    output: Path,
    to: str,
    *,
    progress: WorkProgress = UNSEEN,
) -> Converted:
    """Write a whole trace to `output` in the format `to`. The file appears when it is complete.

    Raises:
        ConfigError: If the trace is malformed.
        StoreError: If the output cannot be written.
        EngineError: If the trace cannot be read.
    """
    written = _to_parquet if to == PARQUET else _to_text
    ios, left_out, moved = written(source, output, to, progress)
    return Converted(
        output=output,
        formats=tuple(source.formats),
        written_as=to,
        ios=ios,
        left_out=left_out,
        moved=moved,
        skipped=tuple(source.skipped()),
        notes=tuple(source.notes()),
    )


def _to_text(source: Source, output: Path, to: str, progress: WorkProgress) -> tuple[int, int, int]:
    part = part_of(output)
    try:
        os.close(open_part(part))  # The writer opens the file again.
    except OSError as error:
        raise store_error(error, output) from error
    try:
        with as_user_errors():
            writer = _native.TraceWriter(part, to)
        for _ in source.feed(writer):
            progress.done(source.share, ios=writer.counts()["records"])
        with as_user_errors():
            writer.finish()
        os.replace(part, output)
    except EngineError as error:
        if isinstance(error.__cause__, OSError) and str(part) in str(error):
            raise store_error(error.__cause__, output) from error
        raise
    finally:
        remove_part(part)
    counts = writer.counts()
    return counts["records"], counts["left_out"], counts["moved"]


def _to_parquet(
    source: Source, output: Path, to: str, progress: WorkProgress
) -> tuple[int, int, int]:
    from writecliff.capture.trace_file import TraceFile, fields

    file = TraceFile(output, fields({**BLOCK_COLUMNS, "content": "uint64"}))
    last_ns = moved = 0
    try:
        for columns in source.batches():
            times = columns["time_ns"]
            latest = np.maximum.accumulate(np.concatenate(([last_ns], times)))[1:]
            moved += int((times < latest).sum())
            columns["time_ns"], last_ns = latest, int(latest[-1])
            file.add(_record_batch(columns, source))
            progress.done(source.share, ios=file.rows)
        volumes = source.volumes
        file.finish(
            {
                "level": BLOCK,
                "program": f"{', '.join(source.formats)} trace",
                "formats": source.formats,
                "volumes": volumes,
                "requests_moved": moved,
                "skipped_lines": sum(skipped.lines for skipped in source.skipped()),
            }
        )
    except BaseException:
        file.abandon()
        raise
    return file.rows, 0, moved


def _record_batch(columns: dict[str, Any], source: Source) -> pa.RecordBatch:
    """Return columns as a record batch in writecliff's own trace format."""
    import pyarrow as pa

    from writecliff.capture.trace_file import fields, texts

    rows = len(columns["time_ns"])
    zeros = np.zeros(rows, np.int32)
    done = columns["time_ns"] + columns["response_ns"]
    unknown = columns["response_ns"] < 0
    process = texts(columns["process"], source.processes)
    columns_of = {
        "time_ns": columns["time_ns"],
        "op": texts(columns["operation"].astype(np.int32), OPS),
        "file": columns["volume"],
        "path": texts(columns["volume"], source.volumes),
        "offset_bytes": columns["offset_bytes"],
        "length_bytes": columns["length_bytes"],
        "thread": process,
        "process": process,
        "hint": pa.nulls(rows, pa.int8()),
        "issue_ns": columns["time_ns"],
        "complete_ns": pa.array(done, mask=unknown),
        "flags": texts(zeros, [""]),
        "pid": zeros,
        "errno": zeros.astype(np.int16),
        "content": pa.array(columns["content"], mask=columns["content"] == 0),
    }
    schema = fields({**BLOCK_COLUMNS, "content": "uint64"})
    arrays = [pa.array(values) for values in columns_of.values()]
    return pa.record_batch(arrays, schema=schema)
