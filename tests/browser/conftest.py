"""Lets these tests import `tests.support` wherever pytest is started."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

import shutil  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from typing import Any  # noqa: E402

import pytest  # noqa: E402

from tests.support.sample_report import sample_report  # noqa: E402
from writecliff.report.pages import render_html  # noqa: E402

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if not Path(CHROMIUM).exists():
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of figure, a long table, long names in the header, a stamp."""
    path = tmp_path_factory.mktemp("sample") / "sample.html"
    path.write_text(render_html(sample_report()))
    return path
