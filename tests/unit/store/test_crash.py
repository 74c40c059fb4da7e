"""Run directories after kill -9, torn files, a full disk, and with two processes at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest

from tests.support.processes import WAIT_LIMIT_S
from tests.support.synthetic_run import build_run, manifest, records
from writecliff.errors import StoreError
from writecliff.store import files as store_files
from writecliff.store import rundir
from writecliff.store.files import LOCK_NAME
from writecliff.store.rundir import PartedTable, RunDirectory
from writecliff.store.tables import TABLE_NAMES

ROOT = Path(__file__).resolve().parents[3]
SMALL = {"rounds": 2, "steps_per_round": 3, "step_s": 2.0}

WRITER = """
import resource, sys
from pathlib import Path
from tests.support.synthetic_run import manifest, records
from writecliff.errors import StoreError
from writecliff.store.rundir import RunDirectory
path, limit = Path(sys.argv[1]), int(sys.argv[2])
with RunDirectory.create(path, manifest()) as run:
    # Enough for minutes; the test kills the process before.
    for record in records(rounds=100_000, steps_per_round=3, step_s=2.0):
        if limit and run.steps == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            print(run.append_round(record), flush=True)
        except StoreError as error:
            print("StoreError", error, error.hint, flush=True)
            break
"""


def writer(path: Path, limit: int = 0) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'python'}"}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(limit)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_kill_loses_at_most_the_step_in_progress(tmp_path: Path) -> None:
    path = tmp_path / "run"
    process = writer(path)
    assert process.stdout is not None
    reported = 0
    for line in process.stdout:
        reported = int(line)
        if reported == 5:
            break
    with pytest.raises(StoreError, match=f"another process \\(process {process.pid}\\)"):
        RunDirectory.open(path, write=True)
    assert RunDirectory.open(path).status == "running"
    time.sleep(0.013)  # Kill the process somewhere within a step.
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().split()
    process.wait()
    reported = int(rest[-1]) if rest else reported
    run = RunDirectory.open(path)
    assert run.status == "interrupted"
    assert run.steps in (reported, reported + 1)
    assert run.rounds().column("seq").to_pylist() == list(range(1, run.steps + 1))
    histograms = run.histograms_by_step()
    assert sorted(histograms) == list(range(1, run.steps + 1))
    with RunDirectory.open(path, write=True) as again:
        all_records = records(rounds=100_000, steps_per_round=3, step_s=2.0)
        expected = list(islice(all_records, again.steps + 1))
        again.append_round(expected[-1])
        again.finish("interrupted")
    ios = RunDirectory.open(path).rounds().column("ios").to_pylist()
    assert ios == [record.result.total()[0] for record in expected]


def test_torn_and_temporary_files_are_ignored(tmp_path: Path) -> None:
    path = build_run(tmp_path / "run", finish=None, **SMALL)
    before = RunDirectory.open(path).rounds()
    # This step lacks its fragment of `rounds`, because the process was killed between two tables.
    shutil.copy(path / "intervals" / "000006.parquet", path / "intervals" / "000007.parquet")
    (path / "histograms" / "000007-000009.parquet").write_bytes(b"PAR1 torn")
    (path / "rounds" / "000007.parquet.tmp").write_bytes(b"PAR1 torn")
    (path / "manifest.json.tmp").write_bytes(b"{")
    reader = RunDirectory.open(path)
    assert reader.rounds().equals(before)
    assert reader.intervals().num_rows == 12
    assert sorted(reader.histograms_by_step()) == [1, 2, 3, 4, 5, 6]
    with RunDirectory.open(path, write=True) as run:
        assert not list(path.rglob("*.tmp"))
        assert not (path / "histograms" / "000007-000009.parquet").exists()
        assert run.append_round(next(iter(records(**SMALL)))) == 7
        run.finish("complete")
    assert RunDirectory.open(path).intervals().num_rows == 14


@pytest.mark.parametrize("stop_before", range(2 * len(TABLE_NAMES)))
def test_a_crash_while_merging_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_before: int
) -> None:
    path = build_run(tmp_path / "run", finish=None, **SMALL)
    reader = RunDirectory.open(path)
    rounds, intervals = reader.rounds(), reader.intervals()
    count = reader.histogram().count
    calls = 0

    def stop() -> None:
        nonlocal calls
        if calls == stop_before:
            raise KeyboardInterrupt
        calls += 1

    merge, tidy = PartedTable.merge, PartedTable.tidy
    monkeypatch.setattr(PartedTable, "merge", lambda self, last: (stop(), merge(self, last)))
    monkeypatch.setattr(PartedTable, "tidy", lambda self, last: (stop(), tidy(self, last)))
    calls = -len(TABLE_NAMES)  # Opening the run merges each table.
    (path / "checkpoint-000006.wcs").write_bytes(b"")
    with RunDirectory.open(path, write=True) as run, pytest.raises(KeyboardInterrupt):
        run.finish("complete")
    monkeypatch.undo()
    path.chmod(0o500)  # The run is read-only but has the same content.
    for _ in range(2):
        reader = RunDirectory.open(path)
        assert reader.status == "complete"
        assert reader.rounds().equals(rounds)
        assert reader.intervals().equals(intervals)
        assert reader.histogram().count == count
        path.chmod(0o700)
    # Opening the run completed the merge.
    assert sorted(item.name for item in path.iterdir() if item.name != LOCK_NAME) == [
        "histograms.parquet", "intervals.parquet", "manifest.json", "rounds.parquet",
    ]  # fmt: skip


def test_a_full_disk_keeps_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "run"
    process = writer(path, limit=2048)  # A limit on file growth makes the next fragment fail.
    output = process.communicate(timeout=WAIT_LIMIT_S)[0].splitlines()
    assert output[:2] == ["1", "2"]
    assert output[2].startswith("StoreError cannot write ")
    assert "free some space" in output[2]
    assert not list(path.rglob("*.tmp"))
    run = RunDirectory.open(path)
    assert run.rounds().num_rows == run.steps == 2
    assert run.histogram() is not None


def test_a_full_disk_while_merging_keeps_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build_run(tmp_path / "run", finish=None, **SMALL)
    replace = os.replace

    def no_space(source: Path, target: Path) -> None:
        if target.name == "intervals.parquet":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(store_files.os, "replace", no_space)
    with RunDirectory.open(path, write=True) as run, pytest.raises(StoreError, match="no space"):
        run.finish("complete")
    monkeypatch.undo()
    reader = RunDirectory.open(path)
    assert reader.status == "complete"
    assert reader.rounds().num_rows == 6
    assert reader.intervals().num_rows == 12


def test_two_writers_never(tmp_path: Path) -> None:
    path = tmp_path / "run"
    first = RunDirectory.create(path, manifest())
    with pytest.raises(StoreError, match="being written by another process"):
        RunDirectory.open(path, write=True)
    assert RunDirectory.open(path).status == "running"
    first.close()
    RunDirectory.open(path, write=True).close()


def test_a_reader_survives_a_merge_under_its_feet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build_run(tmp_path / "run", finish=None, **SMALL)
    reader = RunDirectory.open(path)

    read = rundir._read

    def merged_meanwhile(file: Path, *columns: Sequence[str] | None) -> object:
        if file.name == "000002.parquet":
            monkeypatch.undo()
            with RunDirectory.open(path, write=True) as run:
                run.finish("complete")
            assert not file.exists()
        return read(file, *columns)

    monkeypatch.setattr(rundir, "_read", merged_meanwhile)
    assert reader.rounds().num_rows == 6


def test_a_reader_sees_the_steps_that_were_complete_when_it_first_looked(tmp_path: Path) -> None:
    steps = list(records(**SMALL))
    path = tmp_path / "run"
    with RunDirectory.create(path, manifest()) as run:
        for step in steps[:2]:
            run.append_round(step)
        reader, merged = RunDirectory.open(path), RunDirectory.open(path)
        assert reader.rounds().num_rows == merged.rounds().num_rows == 2
        run.append_round(steps[2])
        # Two tables of the next step exist, but the third table does not.
        shutil.copy(path / "intervals" / "000003.parquet", path / "intervals" / "000004.parquet")
        assert reader.intervals().column("seq").to_pylist() == [1, 1, 2, 2]
        assert list(reader.histograms_by_step()) == [1, 2]
        assert RunDirectory.open(path).steps == 3
        run.finish("complete")
    assert list(merged.histograms_by_step()) == [1, 2]
    assert merged.intervals().num_rows == 4


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    path = build_run(tmp_path / "run", finish=None, **SMALL)
    (path / "intervals" / "000002.parquet").unlink()
    with pytest.raises(StoreError, match=r"intervals/000002\.parquet: the file is missing"):
        RunDirectory.open(path).intervals()


def test_a_part_of_several_steps_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run"
    steps = list(records(**SMALL))
    with RunDirectory.create(path, manifest()) as run:
        run.append_rounds(steps[:2])
        run.append_rounds(steps[2:4])
        run.append_rounds(steps[4:])
    (path / "intervals" / "000003-000004.parquet").unlink()
    with pytest.raises(StoreError, match=r"intervals/000003\.parquet: the file is missing"):
        RunDirectory.open(path).intervals()
