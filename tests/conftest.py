"""Setup shared by all tests: signal handling, garbage collection and the browser.

A CI job in the background may inherit an ignored SIGINT and pass this setting on to the programs
that tests start and stop. This setup restores the default effect of Ctrl-C.
"""

from __future__ import annotations

import gc
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from writecliff.startup import NEW_OBJECTS

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Frequent garbage collection would find little and take a tenth of the time.
gc.set_threshold(NEW_OBJECTS)


def pytest_collection_finish() -> None:
    """Except the collected tests, which live until the end, from garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium. A process can have one browser, because Playwright runs its event loop."""
    playwright = pytest.importorskip("playwright.sync_api")
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()
