"""Run all drive tests and print the table of figures.

Some tests run outside the guest: those that cut its power, and those that need a fast drive. The
table is generated from the test results (`counting`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from tests.guest.figures import Figures
from tests.guest.job import Job

ROOT = Path(__file__).parents[2]
QUIET = "--quiet"
IN_GUEST = ["tests/drives"]
OUTSIDE = ["tests/power", "tests/device/test_device_gaps.py"]


def run_all(job: Job, *, seconds: float | None, where: Mapping[str, str]) -> int:
    """Run pytest in and outside the guest, print the table, return the first nonzero exit code.

    `job` is a guest whose command is `pytest_words(...)`.
    """
    with job:
        status = job.follow(seconds)
    outside = job.out / "figures-outside.json"
    words = [*pytest_words(outside, "-rs"), QUIET, *OUTSIDE]
    ended = subprocess.run(words, cwd=ROOT, env={**os.environ, **where}, check=False)
    print_table(job.out / "figures.json", outside)
    return status or ended.returncode


def pytest_words(figures: Path | str, *more: str) -> list[str]:
    """Return the command that runs pytest and writes the cases of figures to a file."""
    plugins = ["-p", "no:cacheprovider", "-p", "tests.guest.counting"]
    return [sys.executable, "-m", "pytest", *plugins, f"--figures={figures}", *more]


def failed_in(results: Path) -> list[str]:
    """Return the ids of failed tests from a `--junitxml` file; empty if the file does not exist."""
    if not results.exists():
        return []
    cases = ElementTree.parse(results).getroot().iter("testcase")
    failed = [case for case in cases if {"failure", "error"} & {child.tag for child in case}]
    ids = (
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}" for case in failed
    )
    return list(dict.fromkeys(ids))


def print_table(*files: Path) -> None:
    """Print how many cases of each figure passed."""
    lines = Figures.of_files(*files).lines()
    if lines:
        print("\n" + "\n".join(lines), flush=True)
