"""All drive tests: those that run in the guest, those that switch it off from outside, and the table.

The table counts what the tests' own results say (`counting`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.guest.figures import Figures
from tests.guest.job import Job

ROOT = Path(__file__).parents[2]
IN_GUEST = ["tests/drives"]
OUTSIDE = ["tests/power"]


def run_all(
    job: Job, *, seconds: float | None, only: Sequence[str], where: Mapping[str, str]
) -> int:
    """Runs pytest in the guest, then outside, and prints the table. Returns the first exit code but 0.

    `job` is a guest whose command is `pytest_words(...)`; `only` are arguments of pytest for both, such as
    `-m "not long"`.
    """
    with job:
        status = job.follow(seconds)
    outside = job.out / "figures-outside.json"
    words = [*pytest_words(outside, "-rs"), *only, *OUTSIDE]
    ended = subprocess.run(words, cwd=ROOT, env={**os.environ, **where}, check=False)
    print_table(job.out / "figures.json", outside)
    return status or (0 if ended.returncode == 5 else ended.returncode)  # 5: no test was chosen


def pytest_words(figures: Path | str, *more: str) -> list[str]:
    """The command that runs pytest and writes the cases of figures to a file."""
    plugins = ["-p", "no:cacheprovider", "-p", "tests.guest.counting"]
    return [sys.executable, "-m", "pytest", *plugins, f"--figures={figures}", *more]


def print_table(*files: Path) -> None:
    """Prints how many cases of each figure passed."""
    lines = Figures.of_files(*files).lines()
    if lines:
        print("\n" + "\n".join(lines), flush=True)
