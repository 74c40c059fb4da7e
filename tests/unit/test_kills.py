"""Commands killed at random times and resumed; `python -m tests.kills` runs more trials."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_killed_commands_end_as_undisturbed_ones(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kills", "--kind", "test", "--kind", "import", "--count", "4",
         "--seed", "21", "--folder", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("4 of 4 as undisturbed\n")
