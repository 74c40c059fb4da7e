"""A comparison on the terminal: tables, then the page, then the verdict as the last line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.cli.output import table

if TYPE_CHECKING:
    from writecliff.report.comparison import Comparison
    from writecliff.report.model import Table

MOST_FIGURES = 30  # on a terminal; the page has all


def show_comparison(found: Comparison, *files: Path) -> None:
    """Print what differs, the figures, where the page is (and its other forms), and the verdict."""
    from writecliff.report.comparison.page import differences_table, figures_table

    differing = differences_table(found)
    if differing is not None:
        print(_text(differing), "\n", sep="")
    print(_text(figures_table(found), MOST_FIGURES))
    if (more := len(found.figures) - MOST_FIGURES) > 0:
        print(f"... and {more} more on the page")
    print("", *files, found.verdict, sep="\n")


def _text(of: Table, most: int | None = None) -> str:
    right = "".join("r" if align == "right" else "l" for align in of.align)
    return table(of.header, of.rows[:most], right)
