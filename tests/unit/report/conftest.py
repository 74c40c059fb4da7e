"""Make `tests.support` importable wherever pytest is started."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[3])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

import pytest  # noqa: E402

from tests.support.synthetic_run import build_run  # noqa: E402


@pytest.fixture(scope="session")
def good_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a complete run with a write cliff and steady state in rounds 2 to 6."""
    return build_run(tmp_path_factory.mktemp("runs") / "wsat-good")
