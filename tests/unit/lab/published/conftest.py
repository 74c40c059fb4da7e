"""Fixtures of all tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.published_figures import cli, figures, results, table
from writecliff.lab.published.reproduce import (
    DriveRun,
    LoadResult,
    Reproduction,
    _explained,
    without_preset,
)
from writecliff.published.figures import PublishedFigure, SkippedRow
from writecliff.published.scores import Results, row_of

__all__ = ("cli", "figures", "made_up", "results", "table")


@pytest.fixture
def made_up(figures: tuple[PublishedFigure, ...], results: Results) -> Reproduction:
    derived = {"pm863-960 tbw": 990.0}
    missing = without_preset(figures)
    rows = tuple(_explained(row_of(figure, results, derived), missing, {}) for figure in figures)
    drives = tuple(
        DriveRun(name, f"about {name}", name.encode().hex() * 4, len(loads), 12.0, 8.0, 60 * 10**9)
        for name, loads in results.items()
    )
    loads = tuple(
        LoadResult(name, load, metrics)
        for name, members in results.items()
        for load, metrics in members.items()
    )
    skipped = (SkippedRow(Path("own.csv"), 11, "value is 'much', not a number"),)
    return Reproduction("own", "a table of the tests", rows, drives, loads, skipped, 90.0)
