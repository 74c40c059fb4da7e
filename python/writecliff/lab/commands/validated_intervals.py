"""Tables of `writecliff lab validate intervals`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from writecliff import units
from writecliff.cli.output import table

if TYPE_CHECKING:
    from writecliff.lab.validate.intervals import IntervalsReport


def intervals_tables(report: IntervalsReport) -> str:
    """Return the tables of coverage and of pairs."""
    coverage = [
        (
            row.load,
            row.figure,
            units.significant(row.truth, 4),
            f"{row.intervals} of {row.runs}",
            _percent("{:.1f} %", row.covered_pct),
            _percent("{:.1f} %", row.shares_covered_pct),
            _percent("{:.2g} %", row.half_width_pct),
        )
        for row in report.coverage
    ]
    head = ("load", "figure", "truth (IOPS, ns)", "intervals", "hold it", "by share",
            "half width")  # fmt: skip
    pairs = [
        (
            row.load,
            str(row.pairs),
            f"{row.false_winners} ({row.false_pct:.1f} %)",
            _percent("{:.1f} %", row.slower_pct),
            f"{row.slower_found} of {row.slower_pairs}",
        )
        for row in report.pairs
    ]
    pairs_head = ("load", "equal pairs", "false winners", "slower by", "found")
    return "\n".join([table(head, coverage, "llrrrrr"), "", table(pairs_head, pairs, "lrrrr")])


def _percent(form: str, value: float | None) -> str:
    return units.UNKNOWN if value is None else form.format(value)
