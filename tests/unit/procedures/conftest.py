"""Fixtures of procedure tests, which do not wait for the medium."""

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
    """Omit `fsync`, which dominates a fake step, because no power is cut in these tests."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
