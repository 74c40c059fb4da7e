"""Errors, kinds and comparisons, with synthetic figures and results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from writecliff.published.conditions import Load, condition, parts_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.kinds import (
    BETTER_RATES,
    BETTER_TAILS,
    CONSISTENCY,
    DEVIATION,
    ENDURANCE,
    MEAN,
    MIXED,
    OTHER,
    POWER,
    PURE,
    TAILS,
    WINNERS,
    WINNERS_MIXED,
)
from writecliff.published.scores import (
    PairwiseComparison,
    Results,
    Row,
    comparisons_of,
    right_pct,
    row_of,
    scores_of,
)

FIGURE = PublishedFigure(
    "s", "i", "pm863-960", "", "random", 4096, 0.0, 32, "iops", 1000.0, "IOPS", ""
)


def _row(simulated: float | None, **changes: object) -> Row:
    return Row(replace(FIGURE, **changes), simulated)  # type: ignore[arg-type]


def test_errors_are_of_the_figure() -> None:
    assert _row(1100.0).error_pct == pytest.approx(10.0)
    assert _row(900.0).error_pct == pytest.approx(-10.0)
    assert _row(None).error_pct is None
    assert _row(3.0, value=0.0).error_pct is None


def test_errors_of_improvements_are_of_the_ratio() -> None:
    """Check 50 % better where 25 % was published: 1.5 instead of 1.25, not twice as much."""
    row = _row(50.0, metric="iops_improvement", value=25.0, unit="%", baseline="mlc-a-800")
    assert row.error_pct == pytest.approx(20.0)
    worse = _row(-50.0, metric="iops_improvement", value=0.0, unit="%", baseline="mlc-a-800")
    assert worse.error_pct == pytest.approx(-50.0)


def test_kinds() -> None:
    kinds = {
        "write_iops": PURE, "throughput_improvement": BETTER_RATES, "iops_fob": PURE,
        "iops_improvement_min": BETTER_RATES, "latency_max_read_improvement": BETTER_TAILS,
        "latency_avg": MEAN, "latency_avg_write": MEAN, "latency_p99.9": TAILS,
        "iops_consistency_read": CONSISTENCY, "iops_stddev": DEVIATION, "dwpd": ENDURANCE,
        "power_idle": POWER, "iosp": OTHER, "waf": ENDURANCE,
    }  # fmt: skip
    assert {name: _row(1.0, metric=name).kind for name in kinds} == kinds
    assert _row(1.0, read_pct=65.0).kind is _row(1.0, access="messenger").kind is MIXED


def test_errors_are_in_the_unit_of_their_kind() -> None:
    tail = _row(2.0, metric="latency_max", value=10.0)
    assert (tail.error, tail.size, tail.is_far) == (0.2, 5.0, True)
    assert _row(12.0, metric="latency_max", value=10.0).size == pytest.approx(1.2)
    points = _row(91.0, metric="iops_consistency_read", value=95.0)
    assert (points.error, points.size) == (-4.0, 4.0)
    better = _row(80.0, metric="latency_max_improvement", value=90.0, baseline="mlc-a-800")
    assert (better.error, better.is_far) == (-10.0, False)
    # The latency falls to a fifth instead of a tenth.
    assert better.error_pct == pytest.approx(100.0)
    assert _row(1100.0).error == _row(1100.0).error_pct
    assert _row(0.0, metric="latency_max").size == float("inf")
    assert _row(None).size is None


def test_scores_are_medians_or_shares_with_their_goals() -> None:
    rows = [_row(1000.0), _row(1100.0), _row(700.0), _row(None), _row(2.0, metric="latency_avg")]
    rates, latency = scores_of(rows)
    assert (rates.kind, rates.figures, rates.missing, rates.statistic) == (
        "IOPS and throughput, pure loads", 3, 1, "median",
    )  # fmt: skip
    assert (rates.value, rates.unit, rates.goal) == (pytest.approx(10.0), "%", 5.0)
    assert rates.reached is False and rates.worst is rows[2]
    assert latency.figures == 1
    spread = [_row(v, metric="iops_stddev", value=10.0) for v in (5.0, 19.0, 21.0, 10.0)]
    (score,) = scores_of(spread)
    assert (score.statistic, score.value, score.reached) == ("share within 2 x", 75.0, False)
    (power,) = scores_of([_row(1.0, metric="power_idle", value=1.0)])
    assert power.goal is None and power.reached is None


def test_winners_of_mixed_cells_are_counted_where_the_difference_is_clear() -> None:
    other = {"device": "mlc-a-800"}
    pure = [_row(1.0), _row(2.0, value=900.0, **other)]
    near = [_row(1.0, read_pct=70.0), _row(2.0, read_pct=70.0, value=960.0, **other)]
    clear = [_row(2.0, read_pct=25.0), _row(1.0, read_pct=25.0, value=900.0, **other)]
    scores = {score.kind: score for score in scores_of([*pure, *near, *clear])}
    mixed, every = scores[WINNERS_MIXED], scores[WINNERS]
    assert (mixed.figures, mixed.value, mixed.reached) == (1, 100.0, True)
    assert (every.figures, every.value) == (3, pytest.approx(100 / 3))


def test_comparisons_are_between_drives_under_the_same_conditions() -> None:
    other = {"device": "mlc-a-800"}
    rows = [
        _row(1000.0),
        _row(900.0, value=900.0, **other),
        _row(2000.0, outstanding=1, **other),  # A different test cannot be compared.
        _row(2000.0, compressible_pct=100.0, **other),  # Different data cannot be compared.
        _row(None, device="mlc-b-800"),  # This figure was not simulated.
        _row(1.0, device="mlc-b-800", value=1000.0),  # Equal published values have no winner.
    ]
    comparisons = comparisons_of(rows)
    pairs = [comparison.drives for comparison in comparisons]
    assert pairs == [("pm863-960", "mlc-a-800"), ("mlc-a-800", "mlc-b-800")]
    assert [comparison.right for comparison in comparisons] == [True, False]


def test_two_names_of_one_drive_are_not_compared() -> None:
    assert comparisons_of([_row(1.0), _row(2.0, device="pm863", value=2.0)]) == []


def test_a_lower_latency_wins() -> None:
    rows = [
        _row(3.0, metric="latency_max", value=10.0),
        _row(4.0, metric="latency_max", value=20.0, device="mlc-a-800"),
    ]
    assert [comparison.right for comparison in comparisons_of(rows)] == [True]
    worse = [replace(rows[0], simulated=5.0), rows[1]]
    assert [comparison.right for comparison in comparisons_of(worse)] == [False]


def test_a_draw_is_wrong_whoever_was_better() -> None:
    comparison = PairwiseComparison("i", "iops", "", ("a", "b"), (2.0, 1.0), (3.0, 3.0))
    assert not comparison.right and not replace(comparison, published=(1.0, 2.0)).right


def test_an_improvement_is_a_comparison_in_itself() -> None:
    row = _row(-1.0, metric="iops_improvement", value=5.0, unit="%", baseline="mlc-a-800")
    (comparison,) = comparisons_of([row])
    assert (comparison.metric, comparison.right) == ("iops", False)
    assert comparison.published == (1.05, 1.0)


def test_a_lower_latency_is_an_improvement(
    figures: tuple[PublishedFigure, ...], results: Results
) -> None:
    """Check that half the baseline's maximum, 4 ms against 8 ms, is 50 % better."""
    metric = "latency_max_improvement"
    figure = replace(figures[2], metric=metric, baseline="mlc-a-800", value=50.0, unit="%")
    row = row_of(figure, results, {})
    assert (row.simulated, row.error, row.error_pct) == (50.0, 0.0, 0.0)
    (comparison,) = comparisons_of([row])
    assert comparison.right and comparison.published == (0.5, 1.0)
    # The comparison is a draw.
    assert comparisons_of([replace(row, figure=replace(figure, value=0.0))]) == []


def test_the_least_and_the_greatest_of_a_range() -> None:
    figure = replace(
        FIGURE, metric="iops_improvement_min", baseline="mlc-a-800", depths=(1, 4), unit="%"
    )
    results: dict[str, dict[Load, dict[str, float]]] = {"pm863-960": {}, "mlc-a-800": {}}
    for part, iops in zip(parts_of(figure), (110.0, 150.0, 130.0), strict=True):
        measured = condition(part)
        assert measured is not None and measured.load is not None
        results["pm863-960"][measured.load], results["mlc-a-800"][measured.load] = (
            {"iops": iops}, {"iops": 100.0},
        )  # fmt: skip
    least = row_of(figure, results, {})
    most = row_of(replace(figure, metric="iops_improvement_max"), results, {})
    assert (least.simulated, most.simulated) == (pytest.approx(10.0), pytest.approx(50.0))
    results["mlc-a-800"].popitem()
    assert row_of(figure, results, {}).why == "mlc-a-800 has no simulated figure"


def test_rows_come_from_results_and_from_what_is_derived(
    figures: tuple[PublishedFigure, ...], results: Results
) -> None:
    rows = [row_of(figure, results, {"pm863-960 tbw": 990.0}) for figure in figures]
    assert rows[0].simulated == 110_000.0
    assert rows[4].simulated == pytest.approx(100 * (110 / 60 - 1))
    assert rows[5].simulated == 990.0
    assert [row.simulated for row in rows[6:]] == [None, None, None]
    assert rows[7].why == "the simulator has no equivalent"


def test_the_share_of_right_winners() -> None:
    right = PairwiseComparison("i", "iops", "", ("a", "b"), (2.0, 1.0), (2.0, 1.0))
    wrong = replace(right, simulated=(1.0, 2.0))
    assert right_pct([right, right, wrong]) == pytest.approx(200 / 3)
    assert right_pct([]) is None
