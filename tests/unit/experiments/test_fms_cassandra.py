"""The fms-cassandra experiment from its trace on; the capture is tested with the captures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from writecliff.capture.rules import parse_rules
from writecliff.capture.trace import TraceError
from writecliff.experiments import fms_cassandra, fms_cassandra_page
from writecliff.replay.columns import file_io
from writecliff.replay.synthetic import RULES, synthetic_table


@pytest.fixture(scope="module")
def result() -> fms_cassandra.Result:
    table = synthetic_table(table_bytes=64 << 10, chunk_bytes=16 << 10, logged_bytes=48 << 20)
    io = file_io(table, parse_rules(RULES, "store.toml"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fms_cassandra, "UNITS", 256)
        rows = fms_cassandra._compare(io, (60.0, 90.0))
    return fms_cassandra.Result(Path("t.parquet"), False, {"program": "store"}, io, rows)


def test_streams_save_writes_where_the_drive_is_full(result: fms_cassandra.Result) -> None:
    half, full = result.rows
    assert full.off.waf > half.off.waf
    assert full.on.waf < full.off.waf
    assert full.lifetime_ratio == full.off.waf / full.on.waf > 1
    assert full.io_ratio is not None
    assert full.io_ratio > 0.5


def test_every_figure_comes_with_its_precondition_and_the_claim(
    result: fms_cassandra.Result,
) -> None:
    told = json.loads(json.dumps(fms_cassandra_page.mapping(result)))
    assert told["claimed"] == {"lifetime_ratio": 2.0, "io_ratio": 1.45}
    assert [row["fill_pct"] for row in told["rows"]] == [60.0, 90.0]
    assert "second half is measured" in told["precondition"]
    assert {row["name"] for row in told["rows"][1]["on"]["by_stream"]} >= {"log", "flush"}


def test_the_page_shows_what_was_measured(result: fms_cassandra.Result) -> None:
    page = fms_cassandra_page.page(result)
    (table,) = page.sections[0].tables
    assert [row[1] for row in table.rows] == [f"{row.off.waf:.3f}" for row in result.rows]
    assert page.sections[0].figures


def test_a_capture_that_exists_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / fms_cassandra.TRACE).write_bytes(b"no trace")
    said: list[str] = []
    with pytest.raises(TraceError, match="fms-cassandra"):
        fms_cassandra.run(scale=32.0, tell=said.append)
    assert "remove it to capture anew" in said[0]
    assert (tmp_path / fms_cassandra.TRACE).read_bytes() == b"no trace"
