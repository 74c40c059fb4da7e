"""Fixtures for a simulated machine; `tests.support` is importable wherever pytest is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parents[3])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from tests.support.block_machine import Machine  # noqa: E402


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
