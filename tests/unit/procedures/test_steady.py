"""The steady-state rule: worked examples of the standard's definition, limits, invariances."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from writecliff.procedures.steady import SteadyStateTracker, judge

FIRST_FIVE = (1, 2, 3, 4, 5)

# Fields: values, average, data excursion and its percentage, slope, intercept, slope excursion and
# its percentage, r, (data ok, slope ok).
VECTORS = [
    (
        (10200, 9900, 10050, 9800, 9950),
        (9980, 400, 4.01, -60, 10160, 240, 2.40, -0.6222, (True, True)),
    ),
    (
        (10800, 10500, 10100, 9700, 9400),
        (10100, 1400, 13.86, -360, 11180, 1440, 14.26, -0.9985, (True, False)),
    ),
    (
        (10000, 11999, 10000, 10000, 10000),
        (10399.8, 1999, 19.22, -199.9, 10999.5, 799.6, 7.69, -0.3536, (True, True)),
    ),
    (
        (9000, 11100, 9000, 11100, 9000),
        (9840, 2100, 21.34, 0, 9840, 0, 0, 0, (False, True)),
    ),
]


@pytest.mark.parametrize(("values", "expected"), VECTORS)
def test_worked_vectors(values: tuple[float, ...], expected: tuple) -> None:
    average, data, data_pct, slope, intercept, excursion, slope_pct, r, verdict = expected
    state = judge(values, FIRST_FIVE)
    assert state.average == pytest.approx(average)
    assert state.data_excursion == pytest.approx(data)
    assert state.data_excursion_allowed == pytest.approx(average * 0.2)
    assert state.data_excursion_pct == pytest.approx(data_pct, abs=0.005)
    assert state.slope == pytest.approx(slope)
    assert state.intercept == pytest.approx(intercept)
    assert state.slope_excursion == pytest.approx(excursion)
    assert state.slope_excursion_allowed == pytest.approx(average * 0.1)
    assert state.slope_excursion_pct == pytest.approx(slope_pct, abs=0.005)
    assert state.r == pytest.approx(r, abs=0.00005)
    assert (state.data_ok, state.slope_ok) == verdict
    assert state.steady is all(verdict)
    assert state.rounds == FIRST_FIVE


def test_formula() -> None:
    assert judge(VECTORS[0][0], FIRST_FIVE).formula == "-60 * R + 10160"
    assert judge(VECTORS[2][0], FIRST_FIVE).formula == "-199.9 * R + 10999.5"
    assert judge(VECTORS[3][0], FIRST_FIVE).formula == "0 * R + 9840"
    assert judge((1, 2, 3, 4, 5), (11, 12, 13, 14, 15)).formula == "1 * R - 10"
    assert judge((1000 / 3,) * 5, FIRST_FIVE).formula == "0 * R + 333.333"


def test_line_is_the_fit_and_not_through_the_end_points() -> None:
    state = judge((10000, 11999, 10000, 10000, 10000), FIRST_FIVE)
    assert state.fitted(1) == pytest.approx(10799.6)
    assert state.fitted(5) == pytest.approx(10000.0)


def test_the_limits_belong_to_the_allowed_side() -> None:
    at_data_limit = judge((90, 100, 110, 100, 100), FIRST_FIVE)
    assert at_data_limit.data_excursion == at_data_limit.data_excursion_allowed == 20
    assert at_data_limit.data_ok
    assert not judge((90, 100, 110.0000001, 100, 100), FIRST_FIVE).data_ok
    at_slope_limit = judge((95, 97.5, 100, 102.5, 105), FIRST_FIVE)
    assert at_slope_limit.slope_excursion == at_slope_limit.slope_excursion_allowed == 10
    assert at_slope_limit.slope_ok
    assert not judge((94.9999, 97.5, 100, 102.5, 105.0001), FIRST_FIVE).slope_ok


def test_equality_is_not_lost_to_rounding() -> None:
    # The slope excursion is exactly a tenth of the average, which binary floats cannot represent.
    for average in range(20, 20_000, 20):
        values = [average + step * average / 20 for step in (-1, -0.5, 0, 0.5, 1)]
        assert judge(values, FIRST_FIVE).slope_ok, average


def test_equal_values_have_no_correlation() -> None:
    state = judge((7, 7, 7, 7, 7), FIRST_FIVE)
    assert state.steady
    assert state.r is None


@pytest.mark.parametrize(
    ("values", "rounds", "message"),
    [
        ((1, 2, 3), (1, 2), "3 values for 2 rounds"),
        ((1,), (1,), "at least two"),
        ((1, 2, 3), (1, 2, 4), "consecutive"),
        ((1, 2, 3), (3, 2, 1), "consecutive"),
        ((1, math.nan, 3), (1, 2, 3), "finite"),
        ((1, math.inf, 3), (1, 2, 3), "finite"),
    ],
)
def test_no_window(values: tuple, rounds: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        judge(values, rounds)


WINDOW = st.lists(st.integers(1, 10**7).map(lambda n: n / 8), min_size=5, max_size=5)


@given(WINDOW, st.integers(-30, 30))
def test_verdict_does_not_depend_on_the_unit(values: list[float], power: int) -> None:
    scale = 2.0**power  # These values are exact in binary floating point.
    plain = judge(values, FIRST_FIVE)
    scaled = judge([value * scale for value in values], FIRST_FIVE)
    assert (scaled.data_ok, scaled.slope_ok) == (plain.data_ok, plain.slope_ok)
    assert scaled.average == pytest.approx(plain.average * scale)
    assert scaled.r == plain.r


@given(WINDOW, st.integers(0, 10**9))
def test_verdict_does_not_depend_on_the_round_numbers(values: list[float], shift: int) -> None:
    plain = judge(values, FIRST_FIVE)
    moved = judge(values, [number + shift for number in FIRST_FIVE])
    assert replace(moved, rounds=FIRST_FIVE, intercept=plain.intercept) == plain
    assert moved.fitted(3 + shift) == pytest.approx(plain.average, rel=1e-4)


@given(WINDOW)
def test_time_reversal_only_turns_the_slope(values: list[float]) -> None:
    plain, turned = judge(values, FIRST_FIVE), judge(values[::-1], FIRST_FIVE)
    assert turned.slope == -plain.slope
    assert turned.steady == plain.steady


@given(WINDOW)
def test_excursions_match_their_definition(values: list[float]) -> None:
    state = judge(values, FIRST_FIVE)
    line = [state.fitted(number) for number in FIRST_FIVE]
    assert state.slope_excursion == pytest.approx(max(line) - min(line), rel=1e-6, abs=1e-6)
    assert state.slope_excursion == pytest.approx(abs(state.slope) * 4)
    assert sum(line) / 5 == pytest.approx(state.average)


def test_tracker_decides_after_round_five_at_the_earliest() -> None:
    tracker = SteadyStateTracker()
    assert [tracker.add(100) for _ in range(4)] == ["undecided"] * 4
    assert tracker.current is None
    assert tracker.add(100) == "steady"
    assert tracker.first_steady is not None
    assert tracker.first_steady.rounds == FIRST_FIVE


def test_tracker_shows_excursions_while_failing_and_reports_the_first_success() -> None:
    tracker = SteadyStateTracker()
    for value in (8000, 4000, 2000, 1000, 1000):
        tracker.add(value)
    assert tracker.verdict == "not steady"
    assert tracker.current is not None
    state = tracker.current.states["IOPS"]
    assert (state.data_excursion, state.data_excursion_allowed) == (7000, 640)
    assert not state.slope_ok
    while tracker.add(1000) != "steady":
        pass
    assert tracker.first_steady is not None
    assert tracker.first_steady.rounds == (4, 5, 6, 7, 8)
    tracker.add(300)
    assert tracker.verdict == "not steady"
    assert tracker.last_steady == tracker.first_steady


def test_all_variables_must_be_steady_in_one_window() -> None:
    tracker = SteadyStateTracker(("a", "b"))
    rows = [(100, 10), (100, 20), (100, 30), (100, 30), (100, 30), (200, 30), (200, 30)]
    verdicts = [tracker.add({"a": a, "b": b}) for a, b in rows]
    assert verdicts[4:] == ["not steady", "not steady", "not steady"]
    # Cell b alone is steady in rounds 3..7 and cell a alone in rounds 1..5, so they are never
    # steady together.
    assert tracker.decisions[0].states["a"].steady
    assert tracker.decisions[2].states["b"].steady
    assert tracker.first_steady is None


def test_not_achieved_is_a_result() -> None:
    tracker = SteadyStateTracker(max_rounds=6)
    verdicts = [tracker.add(2.0**-number) for number in range(8)]
    assert verdicts == ["undecided"] * 4 + ["not steady"] + ["not achieved"] * 3
    assert tracker.current is not None
    assert tracker.current.rounds == (4, 5, 6, 7, 8)


def test_window_and_percentages_are_parameters() -> None:
    tight = SteadyStateTracker(window_rounds=3, data_excursion_pct=1, slope_excursion_pct=0.5)
    assert [tight.add(v) for v in (100, 101, 100)] == ["undecided", "undecided", "steady"]
    assert tight.add(102) == "not steady"


def test_rounds_may_start_anywhere_but_have_no_gaps() -> None:
    tracker = SteadyStateTracker()
    tracker.add(1, 11)
    tracker.add(1)
    assert tracker.rounds == [11, 12]
    with pytest.raises(ValueError, match="expected round 13, not 14"):
        tracker.add(1, 14)
    with pytest.raises(ValueError, match="expected a value"):
        tracker.add({"other": 1})
    with pytest.raises(ValueError, match="not finite"):
        tracker.add(math.nan)
    assert tracker.rounds == [11, 12]


def test_five_rounds_of_zero_are_not_steady() -> None:
    state = judge([0.0] * 5, [1, 2, 3, 4, 5])
    assert not state.steady
    tracker = SteadyStateTracker(max_rounds=5)
    for _ in range(5):
        tracker.add(0.0)
    assert tracker.verdict == "not achieved"


def test_a_window_that_begins_fresh_is_not_steady() -> None:
    tracker = SteadyStateTracker()
    for number in range(7):
        tracker.add(100.0, fresh=number < 2)
    assert [decision.met for decision in tracker.decisions] == [True] * 3
    assert [decision.steady for decision in tracker.decisions] == [False, False, True]
    assert tracker.first_steady is not None
    assert tracker.first_steady.rounds == (3, 4, 5, 6, 7)
