"""Cells that a spreadsheet would interpret as a formula."""

from __future__ import annotations

import pytest

from writecliff.csv_cells import cell


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-2+3", "@A1", "\t=1", "\r=1", " =1", "-x", "=-5"]
)
def test_formulas_become_text(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "text", ["", "-", "-5", "+3.5 %", "-1,234.5", "1e-9", "-5e-3", "4 KiB", "a=b", "x"]
)
def test_numbers_and_names_stay(text: str) -> None:
    assert cell(text) == text
