"""PTS conformance page: the tests that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "pts-conformance.md"
ROWS_MIN = 30  # Minimum number of rows; rows that have no check can be verified by reading.


def test_every_check_is_a_test() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if "| " in line]
    named = {name for row in rows for name in re.findall(r"`(test_\w+)`", row[-1])}
    sources = "\n".join(path.read_text() for path in (ROOT / "tests/unit").rglob("test_*.py"))
    defined = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    assert named <= defined
    assert sum("`test_" in row[-1] for row in rows) >= ROWS_MIN
