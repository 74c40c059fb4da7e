"""Factors of sweeps: their syntax, and the cells of grids and samples."""

from __future__ import annotations

import math

import pytest

from writecliff.errors import ConfigError
from writecliff.suite.factors import Factor, factor_of, grid, sample


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("queue_depth=1, 8,8,32", Factor("queue_depth", ("1", "8", "32"))),
        ("device.ftl.gc=greedy", Factor("device.ftl.gc", ("greedy",))),
        ("threads=1..16", Factor("threads", (), 1.0, 16.0)),
        ("load.rate_iops=0.5..2e3:log", Factor("load.rate_iops", (), 0.5, 2000.0, True)),
    ],
)
def test_factors_are_lists_or_ranges(text: str, factor: Factor) -> None:
    # NaN does not equal NaN.
    assert factor_of(text) == factor or repr(factor_of(text)) == repr(factor)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queue_depth", "is not KEY=V1,V2"),
        ("=1,2", "is not KEY=V1,V2"),
        ("threads= ", "is not KEY=V1,V2"),
        ("threads=1..x", "the range is not LOW..HIGH"),
        ("threads=1..2..3", "the range is not LOW..HIGH"),
        ("threads=8..1", "ascending"),
        ("threads=1..inf", "ascending"),
        ("threads=0..8:log", "start above 0"),
    ],
)
def test_what_is_neither_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        factor_of(text)


def test_a_grid_has_every_combination_once() -> None:
    factors = [factor_of("a=1,2"), factor_of("b=x,y,z")]
    cells = grid(factors)
    assert cells[:4] == [("1", "x"), ("1", "y"), ("1", "z"), ("2", "x")]
    assert len(set(cells)) == len(cells) == 6
    with pytest.raises(ConfigError, match="c is a range"):
        grid([*factors, factor_of("c=1..2")])
    with pytest.raises(ConfigError, match="limit of 10,000"):
        grid([Factor(key, tuple(map(str, range(30)))) for key in "abc"])


def test_a_latin_hypercube_has_each_part_of_each_range_once() -> None:
    factors = [factor_of("a=0.5..8.5"), factor_of("b=1..9999:log"), factor_of("c=x,y")]
    cells = sample(factors, 40, "latin-hypercube", seed=3)
    assert sample(factors, 40, "latin-hypercube", seed=3) == cells
    assert sample(factors, 40, "latin-hypercube", seed=4) != cells
    parts = [math.floor((float(a) - 0.5) / 8 * 40) for a, _, _ in cells]
    assert sorted(parts) == list(range(40))
    assert sorted(c for _, _, c in cells) == ["x"] * 20 + ["y"] * 20
    decades = [math.floor(math.log10(int(b))) for _, b, _ in cells]
    assert [decades.count(number) for number in range(4)] == [10, 10, 10, 10]


def test_a_random_sample_is_within_its_ranges_and_has_its_ends() -> None:
    cells = sample([factor_of("a=1..3"), factor_of("b=-2.5..-1")], 200, "random", seed=1)
    assert {a for a, _ in cells} == {"1", "2", "3"}
    assert all(-2.5 <= float(b) <= -1 for _, b in cells)
    with pytest.raises(ConfigError, match="at least 1"):
        sample([factor_of("a=1..3")], 0, "random", seed=1)
