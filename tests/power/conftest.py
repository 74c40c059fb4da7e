"""Guests for tests that cut their power; skipped with a reason if no guest can run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guest.fetch import Parts, fetch
from tests.guest.job import run_folder
from tests.guest.reasons import CannotRun


@pytest.fixture(scope="session")
def parts() -> Parts:
    """Return emulator, kernel and tools."""
    if os.environ.get("WRITECLIFF_NO_GUEST"):
        pytest.skip("power tests: WRITECLIFF_NO_GUEST is set")
    try:
        return fetch()
    except CannotRun as reason:
        pytest.skip(f"power tests: {reason}")


@pytest.fixture
def run() -> Iterator[Path]:
    """Yield a folder for one guest."""
    with run_folder() as folder:
        yield folder
