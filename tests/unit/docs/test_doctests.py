"""Examples in docstrings: they produce the results that they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

PYTHON = Path(__file__).resolve().parents[3] / "python"
MODULES = [
    ".".join(path.relative_to(PYTHON).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PYTHON.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


def test_the_package_itself_has_an_example() -> None:
    assert "writecliff" in MODULES


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(module), raise_on_error=False)
    assert outcome.attempted > 0
    assert outcome.failed == 0
