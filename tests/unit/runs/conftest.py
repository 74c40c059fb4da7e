"""A store of small runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parents[3])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from tests.support.cli import CommandLine, serve_fake_drive  # noqa: E402
from tests.support.fake_engine import FakeEngine  # noqa: E402
from tests.support.run_store import aged, make_run  # noqa: E402


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WRITECLIFF_STORE", raising=False)


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "88")
    monkeypatch.chdir(tmp_path)
    serve_fake_drive(monkeypatch, FakeEngine)
    return CommandLine(capsys)


@pytest.fixture(scope="session")
def made_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of three runs, started on different days; the third was killed."""
    root = tmp_path_factory.mktemp("made") / "store"
    make_run(root / "runs" / "first", seed=1, created="2026-03-01T10:00:00+00:00")
    make_run(root / "runs" / "second", seed=2, created="2026-03-02T10:00:00+00:00")
    make_run(root / "runs" / "third", seed=3, created="2026-03-03T10:00:00+00:00", finish=None)
    return root


@pytest.fixture
def store(made_store: Path, tmp_path: Path) -> Path:
    """Return a copy of `made_store` that a test may change."""
    root = tmp_path / "store"
    shutil.copytree(made_store, root)
    return aged(root)
