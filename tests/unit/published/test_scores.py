"""Errors, groups, goals and duels, on figures and results made up for the purpose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from writecliff.published.figures import PublishedFigure
from writecliff.published.goals import Goal, goals_of, right_pct
from writecliff.published.reproduce import Reproduction
from writecliff.published.scores import Duel, Results, Row, duels_of, row_of, scores_of

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


def test_duels_are_between_drives_under_the_same_conditions() -> None:
    other = {"device": "mlc-a-800"}
    rows = [
        _row(1000.0),
        _row(900.0, value=900.0, **other),
        _row(2000.0, outstanding=1, **other),  # another test: no duel
        _row(2000.0, compressible_pct=100.0, **other),  # nor with other data
        _row(None, device="mlc-b-800"),  # not simulated
        _row(1.0, device="mlc-b-800", value=1000.0),  # equal as published: nobody is better
    ]
    found = duels_of(rows)
    pairs = [duel.drives for duel in found]
    assert pairs == [("pm863-960", "mlc-a-800"), ("mlc-a-800", "mlc-b-800")]
    assert [duel.right for duel in found] == [True, False]


def test_two_names_of_one_drive_are_no_duel() -> None:
    assert duels_of([_row(1.0), _row(2.0, device="pm863", value=2.0)]) == []


def test_a_lower_latency_wins() -> None:
    rows = [
        _row(3.0, metric="latency_max", value=10.0),
        _row(4.0, metric="latency_max", value=20.0, device="mlc-a-800"),
    ]
    assert [duel.right for duel in duels_of(rows)] == [True]
    worse = [replace(rows[0], simulated=5.0), rows[1]]
    assert [duel.right for duel in duels_of(worse)] == [False]


def test_a_draw_is_wrong_whoever_was_better() -> None:
    duel = Duel("i", "iops", "", ("a", "b"), (2.0, 1.0), (3.0, 3.0))
    assert not duel.right and not replace(duel, published=(1.0, 2.0)).right


def test_an_improvement_is_a_duel_in_itself() -> None:
    row = _row(-1.0, metric="iops_improvement", value=5.0, unit="%", baseline="mlc-a-800")
    (duel,) = duels_of([row])
    assert (duel.metric, duel.right) == ("iops", False)
    assert duel.published == (1.05, 1.0)


def test_rows_come_from_results_and_from_what_is_derived(
    figures: tuple[PublishedFigure, ...], results: Results
) -> None:
    rows = [row_of(figure, results, {"pm863-960 tbw": 990.0}) for figure in figures]
    assert rows[0].simulated == 110_000.0
    assert rows[4].simulated == pytest.approx(100 * (110 / 60 - 1))
    assert rows[5].simulated == 990.0
    assert [row.simulated for row in rows[6:]] == [None, None, None]
    assert rows[7].why == "nothing here corresponds to it"


def test_a_reproduction_tells_why_figures_are_missing(made_up: Reproduction) -> None:
    assert [row.why for row in made_up.missing] == [
        "unknown preset 'hdd-none': see `writecliff device list`",
        "no load 'messenger': single figures are of random and sequential ones",
        "unknown metric 'iosp': did you mean 'iops'?",
    ]
    assert [duel.right for duel in made_up.duels].count(False) == 1


def test_goals_are_met_or_short_by_points() -> None:
    at_most = Goal("error", 6.0, False, 8.5)
    at_least = Goal("share", 90.0, True, 88.0)
    assert (at_most.met, at_most.short_by_pct, at_most.verdict) == (
        False,
        2.5,
        "short by 2.5 points",
    )
    assert (at_least.met, at_least.short_by_pct) == (False, 2.0)
    assert replace(at_most, reached_pct=6.0).verdict == "met"
    assert replace(at_least, reached_pct=90.0).met
    nothing = replace(at_least, reached_pct=None)
    assert (nothing.met, nothing.short_by_pct, nothing.verdict) == (None, None, "nothing to judge")


def test_goals_take_their_groups_and_the_duels() -> None:
    rows = [_row(1000.0), _row(1300.0), _row(2.0, metric="latency_p99", value=1.0)]
    right = Duel("i", "iops", "", ("a", "b"), (2.0, 1.0), (2.0, 1.0))
    wrong = replace(right, simulated=(1.0, 2.0))
    reached = [goal.reached_pct for goal in goals_of(scores_of(rows), [right, right, wrong])]
    assert reached == pytest.approx([15.0, 50.0, None, 100.0, 200 / 3])
    assert right_pct([]) is None
