"""Dashboards over stores of small runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parents[3])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from tests.support.dashboard import Served, dashboard  # noqa: E402
from tests.support.run_store import aged, make_run  # noqa: E402


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WRITECLIFF_STORE", raising=False)


@pytest.fixture(scope="session")
def made_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return three runs, started on different days; one was killed, the others have a report."""
    root = tmp_path_factory.mktemp("made") / "store"
    make_run(root / "runs" / "first", seed=1, created="2026-03-01T10:00:00+00:00")
    make_run(root / "runs" / "second", seed=2, created="2026-03-02T10:00:00+00:00", iops=9_000.0)
    make_run(root / "runs" / "third", seed=3, created="2026-03-03T10:00:00+00:00", finish=None)
    for name in ("first", "second"):
        (root / "runs" / name / "report.html").write_text(f"<!DOCTYPE html>the report of {name}")
    return root


@pytest.fixture
def store(made_store: Path, tmp_path: Path) -> Path:
    """Return a copy of these runs that a test may change."""
    root = tmp_path / "store"
    shutil.copytree(made_store, root)
    return aged(root)


@pytest.fixture
def served(store: Path) -> Iterator[Served]:
    """Return the dashboard of that copy."""
    with dashboard(store) as server:
        yield server


@pytest.fixture
def editable(store: Path) -> Iterator[Served]:
    """Return the dashboard with changes allowed."""
    with dashboard(store, allow_changes=True) as server:
        yield server
