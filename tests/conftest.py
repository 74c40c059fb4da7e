"""Setup shared by all tests: signals, and the browser.

A CI job in the background may hand down SIGINT as ignored; the programs that tests start and stop
would inherit that. Here Ctrl-C means what it means to a user.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium. A process can have only one, because Playwright runs its event loop."""
    playwright = pytest.importorskip("playwright.sync_api")
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()
