"""The fms-cassandra experiment, starting from its trace; other tests cover the capture."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from writecliff.capture.rules import load_rules, parse_rules
from writecliff.capture.trace import Trace, TraceError
from writecliff.errors import ConfigError
from writecliff.lab.experiments import fms_cassandra, fms_cassandra_page
from writecliff.lab.experiments.fms_cassandra import Case, Load, Row
from writecliff.replay.columns import file_io
from writecliff.replay.synthetic import RULES, synthetic_table

TABLE_BYTES = 64 << 10


@pytest.fixture(scope="module")
def result() -> fms_cassandra.Result:
    """Replay the merge store instead of Cassandra, under a few conditions."""
    table = synthetic_table(table_bytes=TABLE_BYTES, chunk_bytes=16 << 10, logged_bytes=48 << 20)
    rules = parse_rules(RULES, "store.toml")
    load = Load(file_io(table, rules), TABLE_BYTES, 2.0)
    cases = [
        Case(1, trim, "next-fit", fill, 4.0) for trim in (True, False) for fill in (60.0, 90.0)
    ]
    cases += [Case(1, True, "first-fit", 90.0, 4.0), Case(1, False, "first-fit", 90.0, 4.0)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fms_cassandra, "DRIVE_WRITES", 8.0)
        patch.setattr(fms_cassandra, "TIMED_BYTES", 64 << 20)
        lines: list[str] = []
        rows = fms_cassandra.compare(load, cases, lines.append)
        assigned = fms_cassandra.assignments(Trace(table, {}), rules, load, cases[1])
    assert lines == ["6 sets of conditions, without and with streams"]
    path = Path("t.parquet")
    return fms_cassandra.Result(path, False, {"program": "store"}, load, rows, (assigned,))


def test_streams_and_trim_save_writes_where_the_drive_is_full(
    result: fms_cassandra.Result,
) -> None:
    half, full, half_untrimmed, full_untrimmed, first, first_untrimmed = result.rows
    assert full.off.waf > half.off.waf
    assert full.on.waf < full.off.waf < full_untrimmed.off.waf
    assert full.lifetime_ratio == full.off.waf / full.on.waf > 1
    for untrimmed in (half_untrimmed, full_untrimmed, first_untrimmed):
        assert untrimmed.off.mapped_bytes > full.off.mapped_bytes
    # Pages are mapped individually, so the positions of freed and trimmed data are irrelevant.
    assert first.off.waf == pytest.approx(full.off.waf, rel=0.01)
    assert all(row.off.read_p9999_ns is not None for row in result.rows)


def test_operations_follow_the_write_amplification(result: fms_cassandra.Result) -> None:
    row = max(result.rows, key=lambda row: row.lifetime_ratio)
    assert row.io_ratio_cached > 1.05
    for side in (row.off, row.on):
        # Reads take a portion of the bandwidth.
        assert side.write_bytes_per_s > side.mixed_bytes_per_s


def test_the_finer_assignment_writes_less_and_none_less_than_the_oracle(
    result: fms_cassandra.Result,
) -> None:
    (assigned,) = result.assigned
    waf = list(assigned.waf.values())
    # The values are not exactly equal, because only one run has a timed section.
    assert waf[0] == pytest.approx(result.rows[1].off.waf, rel=0.02)
    assert waf[3] < waf[0]
    assert assigned.waf[fms_cassandra.ORACLE] <= min(waf) + 1e-9


def test_findings_are_of_the_rows(result: fms_cassandra.Result) -> None:
    findings = fms_cassandra_page.findings(result.rows, result.assigned)
    best = max(result.rows, key=lambda row: row.lifetime_ratio)
    assert fms_cassandra_page.describe(best.case) in findings[0]
    assert f"to {best.lifetime_ratio:.2f} times" in findings[0]
    assert "Median write amplification: neither" in findings[1]
    (assigned,) = result.assigned
    one_stream, commit_log, *_, finest, oracle = assigned.waf.values()
    wins = f"{100 * (one_stream - finest) / (one_stream - oracle):.0f} %"
    assert commit_log < one_stream
    assert any(wins in text and "An oracle with as many streams" in text for text in findings)


def test_findings_say_which_drives_had_not_settled(result: fms_cassandra.Result) -> None:
    some = result.rows[0]
    still = replace(some, on=replace(some.on, waf_drift=-0.12))
    rows = [replace(some, off=replace(some.off, waf_drift=None)), still]
    assert fms_cassandra_page.findings(rows, [])[-1] == (
        "In 1 of 2 sets of conditions write amplification still changed by more than 5 % in the "
        "last quarter, at most by 12 %."
    )


def _with(row: Row, case: Case, off: float, on: float) -> Row:
    return replace(row, case=case, off=replace(row.off, waf=off), on=replace(row.on, waf=on))


def test_a_factor_is_what_one_condition_changes_alone(result: fms_cassandra.Result) -> None:
    some, case = result.rows[0], Case(1, True, "next-fit", 50.0)
    rows = [
        _with(some, case, 1.0, 1.0),
        _with(some, replace(case, fill_pct=90.0), 1.2, 1.0),
        _with(some, replace(case, trim=False), 2.0, 1.0),
        _with(some, replace(case, trim=False, fill_pct=90.0), 2.6, 1.0),
        _with(some, replace(case, trim=False, fill_pct=90.0, allocator="folders"), 2.65, 1.0),
    ]
    factors = {factor.name: factor for factor in fms_cassandra_page.factors(rows)}
    assert factors.keys() == {"TRIM", "allocator, TRIM off", "files at their peak"}
    trim, fill = factors["TRIM"], factors["files at their peak"]
    assert (trim.least, trim.most, trim.groups) == (pytest.approx(1.0), pytest.approx(1.4), 2)
    assert (fill.least, fill.most, fill.groups) == (pytest.approx(0.2), pytest.approx(0.6), 2)
    assert trim.levels == ("on", "off")
    assert [f.name for f in factors.values() if not f.matters] == ["allocator, TRIM off"]
    findings = fms_cassandra_page.findings(rows, [])
    assert "4 of 5" not in findings[0] and "in 3 of 5 sets of conditions" in findings[0]
    assert "TRIM alone is at least as good as streams alone in 1 of 2" in findings[1]
    assert (
        findings[2].startswith("Conditions that matter")
        and "TRIM (1.20, at most 1.40)" in findings[2]
    )
    assert findings[3].startswith("Conditions that hardly matter")


def test_every_figure_comes_with_its_precondition_and_the_claim(
    result: fms_cassandra.Result,
) -> None:
    answer = json.loads(json.dumps(fms_cassandra_page.mapping(result)))
    assert answer["claimed"] == {"lifetime_ratio": 2.0, "io_ratio": 1.45}
    assert [row["fill_pct"] for row in answer["rows"][:2]] == [60.0, 90.0]
    assert "second half is measured" in answer["precondition"]
    assert {row["name"] for row in answer["rows"][1]["on"]["by_stream"]} >= {"log", "flush"}
    assert answer["assignments"][0]["waf"].keys() == {
        *fms_cassandra.ASSIGNMENTS,
        fms_cassandra.ORACLE,
    }


def test_the_page_shows_what_was_measured(result: fms_cassandra.Result) -> None:
    page = fms_cassandra_page.page(result)
    cells = next(t for s in page.sections for t in s.tables if t.title == "Streams off and on")
    assert [row[7] for row in cells.rows] == [f"{row.off.waf:.3f}" for row in result.rows]
    assert any(section.figures for section in page.sections)


def test_conditions_are_all_fills_under_all_allocators_with_and_without_trim() -> None:
    cases = list(fms_cassandra.cases())
    assert len(set(cases)) == len(cases) == 2 * 2 * 3 * 5 + 2 * (2 + 4)


def _trace(metadata: dict[str, object]) -> Trace:
    """Create two flushed tables (one a system table) and one written by compaction."""
    names = ("data/bench/nb-1-big-Data.db", "data/bench/nb-2-big-Data.db",
             "data/bench/nb-0-big-Data.db", "data/bench/nb-3-big-Data.db")  # fmt: skip
    sizes = (8 << 20, 6 << 20, 4096, 14 << 20)
    threads = ("MemtableFlushWr", "MemtableFlushWr", "MemtableFlushWr", "CompactionExecu")
    table = pa.table(
        {
            "time_ns": pa.array(range(4), pa.int64()),
            "op": pa.array(["write"] * 4).dictionary_encode(),
            "file": pa.array(range(4), pa.int32()),
            "path": pa.array(names).dictionary_encode(),
            "offset_bytes": pa.array([0] * 4, pa.int64()),
            "length_bytes": pa.array(sizes, pa.int64()),
            "thread": pa.array(threads).dictionary_encode(),
            "process": pa.array(["java"] * 4).dictionary_encode(),
            "hint": pa.nulls(4, pa.int8()),
        }
    )
    return Trace(table, metadata)


def test_the_capture_describes_its_load() -> None:
    size = {"records": 1000, "updates": 4000, "operations": 1000, "value_bytes": 300}
    load = fms_cassandra.load_of(_trace({"load": size}), load_rules("cassandra"))
    assert load.table_bytes == 7 << 20
    # 28 MiB and one block are written per 5,500 client writes.
    assert load.reads_per_block == pytest.approx(5500 / (28 * 256 + 1))


def test_a_capture_of_an_unknown_load_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not record its number of records"):
        fms_cassandra.load_of(_trace({}), load_rules("cassandra"))


def test_a_capture_that_exists_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / fms_cassandra.TRACE).write_bytes(b"no trace")
    lines: list[str] = []
    with pytest.raises(TraceError, match="fms-cassandra"):
        fms_cassandra.run(scale=32.0, log=lines.append)
    assert "remove the file to capture again" in lines[0]
    assert (tmp_path / fms_cassandra.TRACE).read_bytes() == b"no trace"
