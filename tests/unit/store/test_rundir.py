"""Run directories: stored data are read unchanged while running, merged and reopened."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.synthetic_run import build_run, manifest, records
from writecliff.engines.data_placement_status import DataPlacementStatus, FdpStatistics
from writecliff.errors import ConfigError, StoreError
from writecliff.store.record import RoundRecord
from writecliff.store.rundir import RunDirectory
from writecliff.store.tables import OPTIONAL_TABLES, TABLE_NAMES

SMALL = {"rounds": 2, "steps_per_round": 3, "step_s": 2.0}


def small() -> list[RoundRecord]:
    return list(records(**SMALL))


def test_what_is_stored_is_what_was_measured(tmp_path: Path) -> None:
    steps = small()
    with RunDirectory.create(tmp_path / "run", manifest()) as run:
        assert [run.append_round(step) for step in steps] == [1, 2, 3, 4, 5, 6]
        rows = run.rounds().to_pylist()
    assert [(row["round"], row["step"], row["sample"]) for row in rows] == [
        (1, 1, False), (1, 2, False), (1, 3, True), (2, 1, False), (2, 2, False), (2, 3, True),
    ]  # fmt: skip
    for row, step in zip(rows, steps, strict=True):
        measured = step.result.jobs[0].operations["write"]
        assert row["phase"] == "rounds"
        assert row["label"] == step.label
        assert (row["started_ns"], row["elapsed_ns"]) == (step.started_ns, step.elapsed_ns)
        assert (row["ios"], row["bytes"]) == (measured.ios, measured.bytes)
        assert (row["write_ios"], row["read_ios"]) == (measured.ios, 0)
        assert row["iops"] == step.result.iops()
        assert row["waf"] == step.waf
        assert row["latency_mean_ns"] == measured.service.mean_ns
        assert row["latency_max_ns"] == measured.service.max_ns
        assert row["host_write_bytes"] == measured.bytes
        assert row["host_write_bytes_total"] == step.host_write_bytes_total
        assert row["nand_write_bytes"] == pytest.approx(measured.bytes * step.waf, abs=2)


def test_the_data_placement_interface_is_stored_by_step(tmp_path: Path) -> None:
    """Check the FDP counters in each step, null for a drive without such an interface."""
    first, second, *_ = small()
    looks = []
    for written in (0, 1000, 5000):
        looks.append(
            DataPlacementStatus(
                interface="nvme-fdp", enabled=True, open_streams=(), limit=8, streams_opened=0,
                streams_released=0, overflow_writes=written // 1000, overflow_bytes=written,
                overflow_by_number={}, statistics=FdpStatistics(written, 2 * written, 0),
                events={"media reallocated": written // 500, "time": 0},
            )
        )  # fmt: skip
    measured = replace(first.result, data_placement=(looks[1], looks[2]))
    with RunDirectory.create(tmp_path / "run", manifest()) as run:
        run.append_round(replace(first, result=measured))
        run.append_round(second)
        stored, none = run.rounds().column("data_placement").to_pylist()
    assert none is None
    assert (stored["interface"], stored["limit"], stored["open_streams"]) == ("nvme-fdp", 8, [])
    assert (stored["overflow_writes"], stored["overflow_bytes"]) == (4, 4000)
    assert (stored["hbmw_bytes"], stored["mbmw_bytes"], stored["mbe_bytes"]) == (4000, 8000, 0)
    assert dict(stored["events"]) == {"media reallocated": 8}


def test_intervals_are_on_the_time_axis_of_the_run(tmp_path: Path) -> None:
    steps = small()
    with RunDirectory.create(tmp_path / "run", manifest()) as run:
        for step in steps:
            run.append_round(step)
        table = run.intervals()
    assert table.num_rows == 6 * 2
    assert table.column("time_ns").to_pylist() == [(n + 1) * 1_000_000_000 for n in range(12)]
    stored = table.column("ios").to_numpy()
    assert stored.tolist() == np.concatenate([s.result.intervals["ios"] for s in steps]).tolist()


def test_unknown_write_amplification_is_null(tmp_path: Path) -> None:
    from tests.support.synthetic_run import Drive

    build_run(tmp_path / "run", Drive(has_waf=False), **SMALL)
    run = RunDirectory.open(tmp_path / "run")
    assert run.rounds().column("waf").null_count == 6
    assert run.rounds().column("nand_write_bytes").null_count == 6
    assert run.intervals().column("waf").null_count == 12


def test_histograms_come_back_as_they_were(tmp_path: Path) -> None:
    steps = small()
    with RunDirectory.create(tmp_path / "run", manifest()) as run:
        for step in steps:
            run.append_round(step)
        by_step = run.histograms_by_step()
        third = run.histogram(steps=[3])
        both = run.histogram(steps=[3, 5])
        assert run.histogram(steps=[99]) is None
        assert run.histogram(operation="read") is None
        assert run.histogram(kind="response") is None
        assert run.histogram(phase="rth") is None
        whole = run.histogram()
    assert list(by_step) == [1, 2, 3, 4, 5, 6]
    for number, step in enumerate(steps, 1):
        before = step.result.jobs[0].operations["write"].service
        after = by_step[number]
        for old, new in zip(before.buckets(), after.buckets(), strict=True):
            assert old.tolist() == new.tolist()
        for moment in ("count", "min_ns", "max_ns"):
            assert getattr(before, moment) == getattr(after, moment)
        assert after.mean_ns == pytest.approx(before.mean_ns, rel=1e-12)
        assert after.sd_ns == pytest.approx(before.sd_ns, rel=1e-9)
        assert after.quantile(0.99).value_ns == before.quantile(0.99).value_ns
    assert third is not None
    assert both is not None
    assert whole is not None
    assert both.count == third.count + by_step[5].count
    assert whole.count == sum(step.result.total()[0] for step in steps)


def test_merging_the_parts_changes_no_value(tmp_path: Path) -> None:
    running = build_run(tmp_path / "a", finish=None, **SMALL)
    merged = build_run(tmp_path / "b", **SMALL)
    assert sorted(p.name for p in merged.iterdir() if not p.name.startswith(".")) == [
        "histograms.parquet", "intervals.parquet", "manifest.json", "rounds.parquet",
    ]  # fmt: skip
    assert len(list((running / "rounds").iterdir())) == 6
    before, after = RunDirectory.open(running), RunDirectory.open(merged)
    assert before.rounds().equals(after.rounds())
    assert before.intervals().equals(after.intervals())
    everything = "select * from histograms order by seq, lower_ns"
    assert before.query(everything).equals(after.query(everything))
    assert (
        pq.ParquetFile(merged / "rounds.parquet").metadata.row_group(0).column(0).compression
        == "ZSTD"
    )


def test_a_finished_session_can_be_gone_on_with(tmp_path: Path) -> None:
    steps = small()
    path = tmp_path / "run"
    with RunDirectory.create(path, manifest()) as run:
        for step in steps[:2]:
            run.append_round(step)
        run.finish("interrupted", reason="stopped by the user")
    with RunDirectory.open(path, write=True) as run:
        assert run.steps == 2
        assert run.manifest.status == "interrupted"
        run.update(status="running")
        for step in steps[2:4]:
            run.append_round(step)
        assert run.rounds().num_rows == 4  # The run has both a merged file and fragments.
        run.finish("complete")
    with RunDirectory.open(path, write=True) as run:
        run.append_round(steps[4])
        run.finish("complete")
    run = RunDirectory.open(path)
    assert run.rounds().column("seq").to_pylist() == [1, 2, 3, 4, 5]
    assert run.intervals().num_rows == 10
    assert run.status == "complete"


def test_steps_that_are_stored_together_read_like_those_stored_one_by_one(tmp_path: Path) -> None:
    steps = small()
    steps[1] = replace(steps[1], extra={"note": "second"})
    with RunDirectory.create(tmp_path / "alone", manifest()) as alone:
        for step in steps:
            alone.append_round(step)
        alone.finish("complete")
    with RunDirectory.create(tmp_path / "together", manifest()) as run:
        assert run.append_rounds(steps[:4]) == 4
        assert run.append_rounds(steps[4:]) == 6
        names = ["000001-000004.parquet", "000005-000006.parquet"]
        tables = [name for name in TABLE_NAMES if name not in OPTIONAL_TABLES]
        for table in tables:
            assert sorted(part.name for part in (run.path / table).iterdir()) == names
            for reader in (run, RunDirectory.open(run.path)):
                assert reader.table(table).equals(alone.table(table))
                later = alone.rows_after(table, 2)
                assert later.column("seq").to_pylist()[0] == 3
                assert reader.rows_after(table, 2).equals(later)
        run.finish("complete")
    for table in tables:
        merged = [(directory.path / f"{table}.parquet").read_bytes() for directory in (alone, run)]
        assert merged[0] == merged[1]


def test_extra_columns(tmp_path: Path) -> None:
    from dataclasses import replace

    steps = small()
    with RunDirectory.create(tmp_path / "run", manifest()) as run:
        run.append_round(replace(steps[0], extra={"drive_fills": 0.25, "note": "first"}))
        run.append_round(replace(steps[1], extra={}))
        run.append_round(replace(steps[2], extra={"drive_fills": None, "latency_p999_ns": 12}))
        with pytest.raises(ValueError, match="'iops' duplicates a standard column"):
            run.append_round(replace(steps[3], extra={"iops": 1.0}))
        columns = run.rounds().to_pydict()
        assert columns["drive_fills"] == [0.25, None, None]
        assert columns["note"] == ["first", None, None]
        run.finish("complete")
        assert RunDirectory.open(run.path).rounds().to_pydict() == columns
        assert columns["latency_p999_ns"] == [None, None, 12]


def test_raw_output_of_the_load_generator_is_kept(tmp_path: Path) -> None:
    import gzip
    from dataclasses import replace

    step = small()[0]
    step = replace(step, result=replace(step.result, raw={"fio version": "fio-3.33"}))
    with RunDirectory.create(tmp_path / "run", manifest()) as run:
        run.append_round(step)
    raw = gzip.decompress((tmp_path / "run" / "raw" / "000001.json.gz").read_bytes())
    assert json.loads(raw) == {"fio version": "fio-3.33"}


def test_queries_see_three_views(tmp_path: Path) -> None:
    run = RunDirectory.open(build_run(tmp_path / "it's a run", **SMALL))
    table = run.query(
        "select r.round, sum(i.ios) as ios from rounds r join intervals i using (seq) "
        "where r.phase = ? group by r.round order by r.round",
        ["rounds"],
    )
    per_round = [sum(step.result.total()[0] for step in small()[k : k + 3]) for k in (0, 3)]
    assert [int(n) for n in table.column("ios").to_pylist()] == per_round
    with pytest.raises(StoreError, match="query failed"):
        run.query("select nothing from nowhere")


def test_an_empty_run_has_empty_tables(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "run", manifest()) as run:
        assert run.steps == 0
        assert run.rounds().num_rows == run.intervals().num_rows == 0
        assert run.histogram() is None
        run.finish("failed", reason="no drive")
    assert RunDirectory.open(tmp_path / "run").rounds().num_rows == 0


@pytest.mark.parametrize("what", ["file", "full folder"])
def test_a_run_needs_a_directory_of_its_own(tmp_path: Path, what: str) -> None:
    target = tmp_path / "x"
    if what == "file":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / "mine").write_text("mine")
    with pytest.raises(ConfigError, match="x is a file" if what == "file" else "x exists and is"):
        RunDirectory.create(target, manifest())
    assert (target if what == "file" else target / "mine").read_text() == "mine"


def test_reading_needs_a_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a run directory"):
        RunDirectory.open(tmp_path)
    with pytest.raises(ConfigError, match="not a run directory"):
        RunDirectory.open(tmp_path, write=True)
    assert list(tmp_path.iterdir()) == []
    run = RunDirectory.open(build_run(tmp_path / "run", **SMALL))
    with pytest.raises(StoreError, match="open for reading only"):
        run.append_round(small()[0])
    with pytest.raises(StoreError, match="open for reading only"):
        run.update(status="failed")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = build_run(tmp_path / "run", finish=None, **SMALL)
    (path / "rounds" / "000002.parquet").write_bytes(b"not parquet")
    with pytest.raises(StoreError, match=r"000002\.parquet"):
        RunDirectory.open(path).rounds()


@pytest.mark.parametrize("name", ["y[1]", "*", "y?", 'it\'s "a" run', "wsat-2026-11-22T12:00:00"])
def test_a_run_is_read_by_its_very_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Check that a name is neither a pattern matching other runs nor a URI, merged or not."""
    monkeypatch.chdir(tmp_path)
    build_run(Path("y1"), rounds=1, steps_per_round=2, step_s=2.0)
    path = build_run(Path(name), finish="interrupted", **SMALL)
    assert RunDirectory.open(path).rounds().num_rows == 6
    with RunDirectory.open(path, write=True) as run:
        run.update(status="running")
        run.append_round(small()[0])
        assert run.rounds().num_rows == 7
        run.finish("complete")
    assert RunDirectory.open(path).rounds().num_rows == 7
    assert RunDirectory.open(path).intervals().num_rows == 14
    assert len(RunDirectory.open(path).histograms_by_step()) == 7


def test_a_run_that_had_no_manifest_yet_is_begun_anew(tmp_path: Path) -> None:
    """Check a run that was killed, or whose disk was full, before its manifest was written."""
    path = tmp_path / "run"
    path.mkdir()
    (path / ".lock").touch()
    (path / "manifest.json.tmp").write_bytes(b"{")
    build_run(path, finish=None, rounds=1, steps_per_round=1, step_s=1.0)
    assert RunDirectory.open(path).steps == 1
