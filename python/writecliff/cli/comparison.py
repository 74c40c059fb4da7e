"""A comparison on the terminal: tables, then the page, then the verdict as the last line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.cli.output import table

if TYPE_CHECKING:
    from writecliff.report.comparison import Comparison
    from writecliff.report.table import Table


def show_comparison(found: Comparison, *files: Path) -> None:
    """Print what differs, the figures (a long list in groups), where the page is (and its other
    forms), and the verdict."""
    from writecliff.report.comparison.groups import LONG_LIST, groups_of, groups_table
    from writecliff.report.comparison.page import differences_table, figures_table

    differing = differences_table(found)
    if differing is not None:
        print(_text(differing), "\n", sep="")
    if len(found.figures) > LONG_LIST:
        print(_text(groups_table(groups_of(found.figures), found.labels)))
        print(f"all {len(found.figures)} figures are on the page")
    else:
        print(_text(figures_table(found)))
    print("", *files, found.verdict, sep="\n")


def _text(of: Table) -> str:
    right = "".join("r" if align == "right" else "l" for align in of.align)
    return table(of.header, of.rows, right)
