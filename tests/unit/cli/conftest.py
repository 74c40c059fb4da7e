"""Fixtures for the command line; `tests.support` is importable wherever pytest is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parents[3])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from tests.support.cli import CommandLine, serve_fake_drive  # noqa: E402
from tests.support.fake_engine import FakeEngine  # noqa: E402


@pytest.fixture
def drive() -> FakeEngine:
    """Return the fake drive behind `sim:fake`; a test may change it before it is opened."""
    return FakeEngine()


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, drive: FakeEngine
) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "88")
    serve_fake_drive(monkeypatch, lambda: drive)
    return CommandLine(capsys)
