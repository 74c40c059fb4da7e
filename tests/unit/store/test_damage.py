"""Flipped bits in any file of a run: detected, or without effect."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic_run import manifest, records
from writecliff.errors import StoreError
from writecliff.store.rundir import RunDirectory
from writecliff.store.tables import TABLE_NAMES


def make(path: Path, *, merged: bool) -> Path:
    with RunDirectory.create(path, manifest()) as run:
        for record in records(rounds=2, steps_per_round=2, step_s=2.0):
            result = replace(record.result, raw={"jobs": [record.label]})
            run.append_round(replace(record, result=result))
        if merged:
            run.finish("complete")
    return path


def figures(path: Path) -> tuple[Any, ...]:
    """Read all data of a run; queries use the same tables."""
    run = RunDirectory.open(path)
    return run.manifest, *(run.table(name) for name in TABLE_NAMES)


@pytest.mark.parametrize(
    ("merged", "flips_per_file"),
    [
        pytest.param(True, 10, id="complete"),
        pytest.param(False, 10, id="killed"),
        pytest.param(True, 60, id="complete, more bits", marks=pytest.mark.long),
    ],
)
def test_no_flipped_bit_changes_a_figure(tmp_path: Path, merged: bool, flips_per_file: int) -> None:
    path = make(tmp_path / "run", merged=merged)
    before = figures(path)
    rng = random.Random(12)
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != ".lock")
    assert {"manifest.json", "000002.json.gz"} < {file.name for file in files}
    detected = 0
    for file in files:
        content = file.read_bytes()
        for _ in range(flips_per_file):
            bit = rng.randrange(8 * len(content))
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            file.write_bytes(flipped)
            try:
                assert figures(path) == before, f"{file}, bit {bit}"
            except StoreError as error:
                assert str(file) in str(error), f"{file}, bit {bit}"
                detected += 1
        file.write_bytes(content)
    # The load generator's output is for cross-checks only, and no figure uses it.
    tables = [file for file in files if file.suffix == ".parquet"]
    assert detected >= flips_per_file * len(tables)


@pytest.mark.parametrize("keep", [0, 3, 8, 100, -1])
def test_a_table_that_was_cut_off_is_named(tmp_path: Path, keep: int) -> None:
    path = make(tmp_path / "run", merged=True)
    table = path / "rounds.parquet"
    table.write_bytes(table.read_bytes()[:keep])
    with pytest.raises(StoreError, match=r"damaged: .*rounds\.parquet: checksum mismatch"):
        RunDirectory.open(path).rounds()


def test_a_damaged_run_is_not_resumed(tmp_path: Path) -> None:
    path = make(tmp_path / "run", merged=False)
    part = path / "rounds" / "000002.parquet"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with RunDirectory.open(path, write=True) as run, pytest.raises(StoreError, match="damaged"):
        run.finish("complete")
