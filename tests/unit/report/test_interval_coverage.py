"""A small `writecliff validate intervals`: repetitions of one load, equal and slower drives."""

from __future__ import annotations

from writecliff.engines.preconditioned import recipe
from writecliff.validate.intervals import repetition, run


def test_equal_drives_are_equal_and_a_slower_drive_is_found() -> None:
    report = run(6, 10.0, loads=("70/30 mix",))
    (pairs,) = report.pairs
    assert (pairs.pairs, pairs.false_winners) == (6, 0)
    assert pairs.slower_pct is not None
    assert 3 < pairs.slower_pct < 6
    assert pairs.slower_found == pairs.slower_pairs
    rows = {row.figure: row for row in report.coverage}
    known = [row for row in report.coverage if row.intervals]
    assert len(known) >= 10
    assert sum(row.covered for row in known) >= 0.85 * sum(row.intervals for row in known)
    for figure in ("mix reads, IOPS", "mix writes, IOPS", "mix reads, mean", "WAF"):
        half = rows[figure].half_width_pct
        assert half is not None, figure
        assert 0 < half < 8, figure


def test_a_short_run_has_not_enough_samples_for_percentiles() -> None:
    figures = repetition("70/30 mix", 1, 1.0).figures
    assert figures["mix reads, p99"].interval is None
    assert figures["WAF"].interval is None


def test_each_seed_prepares_a_drive_of_its_own() -> None:
    first, again, other = (recipe("sustained", 1 << 30, seed=seed) for seed in (1, 1, 2))
    assert [load.seed for load in first] == [load.seed for load in again] == [1001, 1002]
    assert not {load.seed for load in first} & {load.seed for load in other}
