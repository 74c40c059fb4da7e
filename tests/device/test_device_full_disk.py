"""Commands whose disk is full or read-only, on a file system of a disk: one line says so, nothing is
lost or half written, and the same command works once there is space. `python -m tests.kills --by full
--disk ext4` does it with all kinds of commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = ("drive", "convert", "tag", "capture", "export", "import")


@pytest.mark.parametrize("by", ["full", "read-only"])
def test_commands_without_space(by: str, tmp_path: Path) -> None:
    kinds = [word for kind in KINDS for word in ("--kind", kind)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.kills", *kinds, "--count", str(len(KINDS)), "--by", by,
         "--disk", "ext4", "--seed", "21", "--folder", str(tmp_path / "trials")],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"{len(KINDS)} of {len(KINDS)} as undisturbed\n")
    if by == "read-only":
        assert done.stdout.count("exit code 1: error: ") == len(KINDS), done.stdout
