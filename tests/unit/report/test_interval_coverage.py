"""A small `writecliff lab validate intervals`: repetitions of a load, equal and slower drives."""

from __future__ import annotations

import pytest

from writecliff.engines.preconditioned import recipe
from writecliff.lab.validate.intervals import (
    CoverageRow,
    IntervalsReport,
    PairsRow,
    binomial_tail,
    repetition,
    run,
)


def test_equal_drives_are_equal_and_a_slower_drive_is_found() -> None:
    report = run(6, 40.0, loads=("70/30 mix",))
    (pairs,) = report.pairs
    assert (pairs.pairs, pairs.false_winners) == (6, 0)
    assert pairs.slower_pct is not None
    assert 2 < pairs.slower_pct < 6
    assert pairs.slower_found == pairs.slower_pairs
    rows = {row.figure: row for row in report.coverage}
    measured = [row for row in report.coverage if row.intervals]
    assert len(measured) >= 10
    assert sum(row.covered for row in measured) >= 0.85 * sum(row.intervals for row in measured)
    for figure in ("mix reads, IOPS", "mix writes, IOPS", "mix reads, mean", "WAF"):
        half = rows[figure].half_width_pct
        assert half is not None, figure
        assert 0 < half < 8, figure


def test_a_short_run_has_not_enough_samples_for_percentiles() -> None:
    figures = repetition("70/30 mix", 1, 1.0).figures
    assert figures["mix reads, p99"].interval is None
    assert figures["WAF"].interval is None


def test_binomial_tails_are_those_of_two_trials() -> None:
    assert [binomial_tail(n, 2, 0.93) for n in range(3)] == pytest.approx([0.0049, 0.1351, 1.0])


def _report(covered: int, shares: int | None, false_winners: int = 0) -> IntervalsReport:
    row = CoverageRow("load", "p99", 1.0, 200, 200, covered, shares, 1.0)
    return IntervalsReport([row], [PairsRow("load", 200, false_winners, 20, 20, 5.0)])


def test_the_validation_fails_if_coverage_is_too_low_or_winners_are_false() -> None:
    """A coverage of 93 % yields at most 179 of 200 in 4.5 % of cases, 180 in 7.5 %."""
    assert _report(180, 200).ok
    assert not _report(179, 200).ok
    assert not _report(200, 179).ok, "by the share of slower I/Os"
    assert _report(190, None).ok
    assert _report(190, None, false_winners=11).problems == [
        "more than 5 % of the pairs of equal drives have a winner"
    ]


def test_each_seed_prepares_a_drive_of_its_own() -> None:
    first, again, other = (recipe("sustained", 1 << 30, seed=seed) for seed in (1, 1, 2))
    assert [load.seed for load in first] == [load.seed for load in again] == [1001, 1002]
    assert not {load.seed for load in first} & {load.seed for load in other}
