"""Errors, groups and comparisons, on figures and results made up for the purpose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from writecliff.published.figures import PublishedFigure
from writecliff.published.reproduce import Reproduction
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
    """50 % better where 25 % was published: 1.5 instead of 1.25, not twice as much."""
    row = _row(50.0, metric="iops_improvement", value=25.0, unit="%", baseline="mlc-a-800")
    assert row.error_pct == pytest.approx(20.0)
    worse = _row(-50.0, metric="iops_improvement", value=0.0, unit="%", baseline="mlc-a-800")
    assert worse.error_pct == pytest.approx(-50.0)


def test_groups() -> None:
    metrics = {
        "write_iops": "throughput", "throughput_improvement": "throughput",
        "latency_avg": "latency, average", "latency_p99.9": "latency, percentiles and maximum",
        "iops_stddev": "consistency", "dwpd": "endurance", "power_idle": "power", "iosp": "other",
        "throughput_fob": "throughput", "waf": "endurance",
    }  # fmt: skip
    assert {name: _row(1.0, metric=name).group for name in metrics} == metrics


def test_scores_count_what_is_simulated() -> None:
    rows = [_row(1000.0), _row(1100.0), _row(700.0), _row(None), _row(2.0, metric="latency_avg")]
    throughput, latency = scores_of(rows)
    assert (throughput.group, throughput.figures) == ("throughput", 3)
    assert throughput.median_error_pct == pytest.approx(10.0)
    assert throughput.within_20_pct == pytest.approx(200 / 3)
    assert throughput.worst is rows[2]
    assert latency.figures == 1


def test_comparisons_are_between_drives_under_the_same_conditions() -> None:
    other = {"device": "mlc-a-800"}
    rows = [
        _row(1000.0),
        _row(900.0, value=900.0, **other),
        _row(2000.0, outstanding=1, **other),  # another test: no comparison
        _row(2000.0, compressible_pct=100.0, **other),  # nor with other data
        _row(None, device="mlc-b-800"),  # not simulated
        _row(1.0, device="mlc-b-800", value=1000.0),  # equal as published: nobody is better
    ]
    found = comparisons_of(rows)
    pairs = [comparison.drives for comparison in found]
    assert pairs == [("pm863-960", "mlc-a-800"), ("mlc-a-800", "mlc-b-800")]
    assert [comparison.right for comparison in found] == [True, False]


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


def test_rows_come_from_results_and_from_what_is_derived(
    figures: tuple[PublishedFigure, ...], results: Results
) -> None:
    rows = [row_of(figure, results, {"pm863-960 tbw": 990.0}) for figure in figures]
    assert rows[0].simulated == 110_000.0
    assert rows[4].simulated == pytest.approx(100 * (110 / 60 - 1))
    assert rows[5].simulated == 990.0
    assert [row.simulated for row in rows[6:]] == [None, None, None]
    assert rows[7].why == "nothing here corresponds to it"


def test_a_reproduction_gives_the_reason_of_missing_figures(made_up: Reproduction) -> None:
    assert [row.why for row in made_up.missing] == [
        "unknown preset 'hdd-none': see `writecliff device list`",
        "no load 'messenger': single figures are of random and sequential ones",
        "unknown metric 'iosp': did you mean 'iops'?",
    ]
    assert [comparison.right for comparison in made_up.comparisons].count(False) == 1


def test_the_share_of_right_winners() -> None:
    right = PairwiseComparison("i", "iops", "", ("a", "b"), (2.0, 1.0), (2.0, 1.0))
    wrong = replace(right, simulated=(1.0, 2.0))
    assert right_pct([right, right, wrong]) == pytest.approx(200 / 3)
    assert right_pct([]) is None
