"""Reduced points that cover the same pixels as all points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from writecliff.ui.marks import MOST, columns_for, numbers, within

VALUES = st.one_of(st.floats(-1e9, 1e9), st.just(float("nan")))


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(1, 1000), VALUES), min_size=1, max_size=300),
    st.integers(1, 40),
    st.floats(-0.2, 1.2),
    st.floats(-0.2, 1.2),
)
def test_extremes_are_kept_and_nothing_is_invented(
    steps: list[tuple[int, float]], columns: int, begin: float, end: float
) -> None:
    x = np.cumsum([float(step) for step, _ in steps])
    y = np.array([value for _, value in steps])
    low, high = sorted((begin * x[-1], end * x[-1]))
    shown_x, shown_y, whole = within(x, y, low, high, columns)
    points = dict(zip(x.tolist(), y.tolist(), strict=True))
    assert all(
        points[at] == value or (np.isnan(points[at]) and np.isnan(value))
        for at, value in zip(shown_x.tolist(), shown_y.tolist(), strict=True)
    )
    assert (np.diff(shown_x) > 0).all()
    assert len(shown_x) <= 2 * columns
    inside = y[(x >= low) & (x <= high)]
    inside = inside[~np.isnan(inside)]
    if len(inside):
        assert np.nanmin(shown_y) <= inside.min()
        assert np.nanmax(shown_y) >= inside.max()
    if whole:
        assert set(x[(x >= low) & (x <= high)]) <= set(shown_x)


@pytest.mark.parametrize("lines", [1, 2, 7, 30, 500, 2499])
@pytest.mark.parametrize("wanted", [1, 300, 4000, 10**6])
def test_all_lines_together_stay_below_the_limit(lines: int, wanted: int) -> None:
    assert lines * 2 * columns_for(lines, wanted) <= MOST
    assert columns_for(lines, wanted) <= wanted


def test_a_single_spike_among_a_million_is_drawn() -> None:
    x = np.arange(1e6)
    y = np.zeros(1_000_000)
    y[777_777] = 5.0
    shown_x, shown_y, whole = within(x, y, 0, 1e6, 500)
    assert not whole
    assert shown_x[shown_y == 5.0].tolist() == [777_777.0]


def test_unknown_values_become_null_in_json() -> None:
    assert numbers(np.array([1.23456789, np.nan, np.inf, 2.0])) == [1.234568, None, None, 2.0]
