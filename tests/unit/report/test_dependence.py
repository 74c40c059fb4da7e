"""Intervals from batches: coverage for series with known dependence, and missing intervals."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from writecliff.report.comparison.noise import level_of, probability
from writecliff.report.dependence import drift, drift_of_few, variance_of_total
from writecliff.report.headline import Headline, Interval
from writecliff.report.student_t import two_sided_t

WIDTHS = np.ones(200)


def _series(random: np.random.Generator, memory: float) -> np.ndarray:
    """Return a first-order autoregressive series whose increments have variance 1."""
    noise = random.standard_normal(len(WIDTHS) + 100)
    values = np.zeros(len(noise))
    for n in range(1, len(noise)):
        values[n] = memory * values[n - 1] + noise[n]
    return values[100:]


@pytest.mark.parametrize("margin", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("memory", [-0.4, 0.0, 0.5, 0.8])
def test_the_error_of_a_mean_covers_what_it_says(memory: float, margin: float) -> None:
    random = np.random.default_rng(7)
    inside = 0
    for _ in range(400):
        values = _series(random, memory)
        variance = variance_of_total(values - values.mean(), WIDTHS, margin=margin)
        assert variance is not None
        error = sqrt(variance.value) / len(values)
        inside += abs(values.mean()) <= two_sided_t(0.95, int(variance.degrees)) * error
    most = 0.98 if margin < 1 else 0.99  # The largest of several variances errs on one side.
    assert 0.92 <= inside / 400 <= most, inside / 400


def test_independent_formulas_would_be_too_narrow() -> None:
    """Series of `test_the_error_of_a_mean_covers_what_it_says`."""
    random = np.random.default_rng(7)
    means = [
        (v := _series(random, 0.8)).mean() / (v.std(ddof=1) / sqrt(len(v))) for _ in range(400)
    ]
    assert np.mean(np.abs(means) <= 1.97) < 0.6


def test_a_drift_is_told_from_noise() -> None:
    random = np.random.default_rng(3)
    noise = random.standard_normal(len(WIDTHS))
    trend = np.linspace(-1, 1, len(WIDTHS))
    assert drift(noise - noise.mean(), WIDTHS) < 3
    assert drift(noise - noise.mean() + trend, WIDTHS) > 10


def test_a_trend_of_a_few_batches_is_told_from_noise() -> None:
    random = np.random.default_rng(3)
    widths = np.ones(8)
    noise = random.standard_normal((400, 8))
    seldom = [drift_of_few(values - values.mean(), widths) < 0.05 for values in noise]
    assert 0.02 < np.mean(seldom) < 0.09, "as often as its level says"
    trend = np.linspace(-4, 4, 8)
    assert drift_of_few(noise[0] - noise[0].mean() + trend, widths) < 0.01
    assert drift_of_few(np.zeros(8), widths) == 1.0


def test_too_few_batches_have_no_error() -> None:
    assert variance_of_total(np.zeros(5), np.ones(5)) is None


def _figure(value: float, half: float, degrees: float | None) -> Headline:
    interval = Interval(value - half, value + half, "repetitions", degrees)
    return Headline(key="k", label="Speed", value=value, unit="IOPS", interval=interval)


def test_two_intervals_that_touch_differ_by_more_than_noise_at_a_level_below_five_percent() -> None:
    touching = probability(_figure(100, 4, 12), _figure(108, 4, 12))
    assert touching is not None
    assert touching < 0.015
    assert probability(_figure(100, 4, 12), _figure(100.1, 4, 12)) == pytest.approx(0.96, abs=0.02)
    assert probability(_figure(100, 4, None), _figure(108, 4, 12)) is None


def test_the_level_falls_with_the_number_of_figures() -> None:
    assert level_of([0.04]) == 0.04
    assert level_of([0.04, 0.5]) == 0.0
    assert level_of([0.012, 0.02, 0.03, 0.9]) == 0.012
    assert level_of([]) == 0.0
