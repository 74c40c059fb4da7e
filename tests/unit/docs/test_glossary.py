"""Glossary: its names exist, and the vocabulary that it replaced does not return."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"


def _rows() -> list[list[str]]:
    """Return the cells of every row of every table, without headers and rules."""
    lines = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] != "term"]


def _names() -> list[str]:
    """Return the names in code quotes in the column "in writecliff", the last but one."""
    return [name for row in _rows() for name in re.findall(r"`([^`]+)`", row[-2])]


@cache
def _sources() -> str:
    listed = subprocess.run(
        ["git", "ls-files", "crates", "python"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [n for n in listed.stdout.splitlines() if n.endswith((".rs", ".py", ".toml"))]
    assert len(names) > 500
    return "\n".join((ROOT / name).read_text(encoding="utf-8") for name in names)


def test_the_glossary_has_a_source_for_every_term() -> None:
    rows = _rows()
    assert len(rows) > 50
    assert [row[0] for row in rows if not row[-1]] == []


@pytest.mark.parametrize("name", sorted(set(_names())))
def test_every_name_of_the_glossary_is_in_the_code(name: str) -> None:
    escaped = re.escape(name)
    # A pattern that starts with literal text is found far faster.
    assert re.search(rf"{escaped}(?<![A-Za-z]{escaped})", _sources()), name


@pytest.mark.parametrize(
    ("word", "now"),
    [
        (r"grains?", "alloc_unit"),
        (r"gc_(start|floor|idle_target)", "gc_high_watermark, gc_low_watermark, gc_idle_watermark"),
        (r"(place|collect)_time", "mapping_update_time, relocation_time"),
        (r"Happening|Face|PlanAllows|Shower|Laid|Duel", "GcEvent, Interface, ThrottleExpired, ..."),
        (r"rehearse[sd]?", "simulate"),
        (r'"placement"|placement_(interface|reports|status|probe)', "data_placement, ..."),
        (r"(places?|grains?|slots)_per_unit", "name the unit in full"),
    ],
)
def test_words_that_the_glossary_replaced_do_not_come_back(word: str, now: str) -> None:
    pattern = rf"^.*(?<![A-Za-z_])(?:{word})(?![A-Za-z_]).*$"
    matches = [match[0].strip() for match in re.finditer(pattern, _sources(), re.M)]
    assert matches == [], f"write {now}"
