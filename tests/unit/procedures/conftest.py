"""`tests.support` is found wherever pytest is started, and tests do not wait for the medium."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parents[3])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_medium(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power is cut in these tests, so `fsync`, most of the time of a fake step, is left out."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
