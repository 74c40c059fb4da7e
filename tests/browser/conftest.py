"""Make `tests.support` importable regardless of where pytest is started."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

import pytest  # noqa: E402

from tests.support.sample_report import sample_report  # noqa: E402
from writecliff.report.pages import render_html  # noqa: E402


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a report with every kind of figure, a long table, long header names and a stamp."""
    path = tmp_path_factory.mktemp("sample") / "sample.html"
    path.write_text(render_html(sample_report()))
    return path
