"""A few mutated inputs of each kind through the command line; `python -m tests.fuzz` runs more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.kinds.texts import JOBS
from tests.fuzz.kinds.tomls import WORKLOAD
from writecliff.workload.load import load_workload

ROOT = Path(__file__).parents[2]
QUICK = ("act", "capture", "device", "events", "figures", "fio", "fio-json", "model", "packed", "rules", "synthesise",
         "table", "trace", "words", "workload")  # fmt: skip
STORED = ("columns", "manifest", "parquet", "meter", "archive")


# The test runs only a few cases, because creating the runs that `stored` mutates takes most of its
# time.
@pytest.mark.parametrize(("kinds", "cases"), [(QUICK, 2), (STORED, 2)], ids=["given", "stored"])
def test_mutated_inputs_are_read_or_refused(
    kinds: tuple[str, ...], cases: int, tmp_path: Path
) -> None:
    words = [word for kind in kinds for word in ("--kind", kind)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *words, "--cases", str(cases), "--seed", "21", "--folder", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f" {cases} cases:") == len(kinds)


@pytest.mark.parametrize("text", [WORKLOAD, *JOBS])
def test_what_is_mutated_is_itself_accepted(text: str, tmp_path: Path) -> None:
    """Otherwise, each case would be rejected early, for the same reason."""
    path = tmp_path / ("case.toml" if text == WORKLOAD else "case.fio")
    path.write_text(text)
    assert load_workload(path, capacity_bytes=960_000_000).steps
