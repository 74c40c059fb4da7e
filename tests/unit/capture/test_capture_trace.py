"""The trace file: a round trip, and short errors for files that are not traces."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from writecliff.capture.trace import COLUMNS, TraceError, read_trace, write_trace

ROWS = {
    "time_ns": [0, 5, 5],
    "op": ["create", "write", "unlink"],
    "file": [0, 0, 0],
    "path": ["a", "a", "a"],
    "offset_bytes": [0, 4096, 0],
    "length_bytes": [0, 512, 0],
    "thread": ["main", "worker", "main"],
    "process": ["db", "db", "db"],
    "hint": [None, 2, 2],
}


def _table(**changed: list[object]) -> pa.Table:
    values = {**ROWS, **changed}
    return pa.table({n: pa.array(values[n], type=kind) for n, kind in COLUMNS.items()})


def test_comes_back_as_written(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_trace(path, _table(), {"command": ["db"], "notes": ["für"]})
    trace = read_trace(path)
    assert trace.rows == 3
    assert trace.metadata == {"schema": "writecliff/trace/1", "command": ["db"], "notes": ["für"]}
    assert trace.table.to_pylist() == _table().to_pylist()
    assert pa.types.is_dictionary(trace.table.schema.field("path").type)


def test_a_name_with_a_colon_is_not_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(Path("tr:1.parquet"), _table(), {})
    assert read_trace(Path("tr:1.parquet")).rows == 3


def test_an_empty_trace_is_one(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_trace(path, _table().slice(0, 0), {})
    assert read_trace(path).rows == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"time_ns": [0, 5, 4]}, "row 2: time_ns decreases"),
        ({"op": ["create", "wriet", "unlink"]}, "unknown operation 'wriet'"),
        ({"length_bytes": [0, 0, 0]}, "row 1: write, read or punch of zero bytes"),
        ({"offset_bytes": [0, -1, 0]}, "row 1: offset_bytes is negative"),
        ({"hint": [None, 6, 2]}, "row 1: hint is not 0 to 5"),
        ({"file": [0, None, 0]}, "column 'file' contains null values"),
    ],
)
def test_a_table_that_cannot_be_right_is_not_written(
    tmp_path: Path, changed: dict[str, list[object]], message: str
) -> None:
    path = tmp_path / "t.parquet"
    with pytest.raises(TraceError) as caught:
        write_trace(path, _table(**changed), {})
    assert str(caught.value) == f"{path}: {message}"
    assert not path.exists()


def test_files_that_are_no_traces(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pytest.raises(TraceError, match="does not exist"):
        read_trace(path)
    path.write_text("PAR1 not really")
    with pytest.raises(TraceError, match="is not a trace: it is not a Parquet file"):
        read_trace(path)
    pq.write_table(_table(), path)
    with pytest.raises(TraceError, match="its metadata do not contain 'writecliff'"):
        read_trace(path)
    short = _table().drop_columns(["hint"])
    pq.write_table(
        short.replace_schema_metadata({"writecliff": '{"schema": "writecliff/trace/1"}'}), path
    )
    with pytest.raises(TraceError, match="column 'hint' is missing"):
        read_trace(path)
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(TraceError, match="is not a trace: its metadata do not contain"):
        read_trace(path)
    named = pa.table({"x": [1]}, metadata={"writecliff": '{"schema": "writecliff/trace/1"}'})
    pq.write_table(named, path)
    with pytest.raises(TraceError, match="column 'op' is missing"):
        read_trace(path)
    pq.write_table(
        short.replace_schema_metadata({"writecliff": '{"schema": "writecliff/trace/9"}'}), path
    )
    with pytest.raises(TraceError, match="schema is 'writecliff/trace/9'"):
        read_trace(path)
