"""Lets these tests import `tests.support`, and gives them a histogram where the native one is not
built."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from tests.support import standin_native  # noqa: E402

standin_native.install()
