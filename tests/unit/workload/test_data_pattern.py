"""Data patterns from files: measured properties, and their use in a test."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine
from writecliff.errors import ConfigError
from writecliff.procedures.model import History
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.procedures.wsat import Wsat, WsatOptions
from writecliff.suite.sweep import plan_sweep
from writecliff.workload.data_pattern import BLOCK_BYTES, data_pattern_of


def noise(blocks: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(blocks * BLOCK_BYTES)


def test_random_data_save_nothing(tmp_path: Path) -> None:
    path = tmp_path / "noise"
    path.write_bytes(noise(64) + b"half a block")
    pattern = data_pattern_of(path)
    assert (pattern.compressible_pct, pattern.duplicate_pct, pattern.blocks) == (0, 0, 64)


def test_repeated_blocks_count_as_duplicates_and_not_as_compressible(tmp_path: Path) -> None:
    path = tmp_path / "repeated"
    path.write_bytes(noise(30) + noise(10) + bytes(20 * BLOCK_BYTES))
    # The 60 blocks are 30 unique blocks, 10 and 19 repetitions, and one block of zeros.
    pattern = data_pattern_of(path)
    assert pattern.duplicate_pct == 48
    assert pattern.compressible_pct == 3


def test_half_empty_blocks_are_half_compressible(tmp_path: Path) -> None:
    half = b"".join(
        noise(1, seed)[: BLOCK_BYTES // 2] + bytes(BLOCK_BYTES // 2) for seed in range(50)
    )
    (tmp_path / "half").write_bytes(half)
    pattern = data_pattern_of(tmp_path / "half")
    assert pattern.duplicate_pct == 0
    assert pattern.compressible_pct == pytest.approx(50, abs=2)


def test_a_database_is_compressible(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    with sqlite3.connect(path) as database:
        database.execute("create table orders (id integer, customer text, total real)")
        rows = [(n, f"customer {n % 97}", n * 1.5) for n in range(20_000)]
        database.executemany("insert into orders values (?, ?, ?)", rows)
    database.close()
    assert 30 <= data_pattern_of(path).compressible_pct <= 90


def test_a_test_writes_data_like_the_file(tmp_path: Path) -> None:
    path = tmp_path / "db.bin"
    path.write_bytes(noise(30) + noise(10) + bytes(20 * BLOCK_BYTES))
    test = Wsat(WsatOptions(data_file=str(path)))
    drive = FakeEngine().identify()
    (job,) = test.stages(drive)[0].steps(History(), 1)[0].workload.jobs
    assert (job.compressible_pct, job.duplicate_pct) == (3, 48)
    assert test.setup(drive)["data_pattern"] == "3% compr., 48% dup. (as db.bin)"
    assert {name.option for name in test.deviations()} == {"compressible_pct", "duplicate_pct"}
    path.unlink()  # A stored run no longer needs the file.
    again = procedure_from_mapping("wsat", test.options_mapping())
    assert again.setup(drive) == test.setup(drive)


def test_a_share_that_is_given_stays(tmp_path: Path) -> None:
    (tmp_path / "zeros").write_bytes(bytes(4 * BLOCK_BYTES))
    test = Wsat(WsatOptions(data_file=str(tmp_path / "zeros"), duplicate_pct=0.0))
    assert (test.options.compressible_pct, test.options.duplicate_pct) == (99, 0)


def test_a_sweep_sets_files_beside_random_data(tmp_path: Path) -> None:
    path = tmp_path / "db.bin"
    path.write_bytes(noise(4))
    cells = [{"data_file": name} for name in ("random", str(path))]
    plan = plan_sweep("wsat", "sim:x", cells, {}, folder=tmp_path)
    assert list(plan.members) == ["data-file-random", "data-file-db.bin"]


@pytest.mark.parametrize("content", [None, b"short"])
def test_what_is_no_pattern_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        ConfigError, match=r"cannot read|is not a regular file of at least 4096 bytes"
    ):
        Wsat(WsatOptions(data_file=str(path)))
