"""Who is first, and why: on figures that are given."""

from __future__ import annotations

from math import exp, isclose
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from writecliff.choice.certainty import ModelError, family_of, model_error
from writecliff.choice.measured import over_seeds
from writecliff.choice.question import Question
from writecliff.choice.ranking import Ranked, rank, weights_of
from writecliff.errors import ConfigError
from writecliff.report.headline import Headline

KNOWN = ModelError(rates_pct=5.0, means_pct=5.0, tails_pct=10.0, figures=9)
WEIGHTS = {"p99.99": 1.0, "life": 1.0}


def asked(*limits: str, **more: object) -> Question:
    return Question(workload="x", candidates=("a", "b"), limits=limits, **more)  # type: ignore[arg-type]


def figures(
    p9999: float | None = None, life: float | None = None, **more: float
) -> dict[str, Headline]:
    found = {
        "p99.99": (p9999, "ms", False), "life": (life, "years", True),
        **{key: (value, "", key != "price") for key, value in more.items()},
    }  # fmt: skip
    return {
        key: Headline(key=key, label=key, value=value, unit=unit, higher_is_better=higher)
        for key, (value, unit, higher) in found.items()
        if value is not None
    }


def ranked(
    question: Question,
    weights: dict[str, float] = WEIGHTS,
    error: ModelError = KNOWN,
    **drives: dict[str, Headline],
) -> list[Ranked]:
    return rank({name: (name, of, error) for name, of in drives.items()}, question, weights)


def test_the_score_is_the_geometric_mean_of_the_shares_of_the_best() -> None:
    one, two = ranked(asked(), a=figures(1.0, 2.0), b=figures(4.0, 8.0))
    assert (one.name, two.name) == ("a", "b")  # equal scores: by name
    assert one.score is not None and isclose(one.score, (1.0 * 0.25) ** 0.5)
    assert two.score is not None and isclose(two.score, (0.25 * 1.0) ** 0.5)
    assert two.why == "score within 2 % of the first"


def test_weights_decide() -> None:
    first, _ = ranked(
        asked(), {"p99.99": 1.0, "life": 3.0}, a=figures(1.0, 2.0), b=figures(4.0, 8.0)
    )
    assert first.name == "b"
    assert first.why == "best life 8.000 years"


def test_drives_that_meet_the_limits_come_first() -> None:
    order = ranked(
        asked("p99.99 <= 2 ms", "life >= 3 years"),
        a=figures(0.1, 1.0), b=figures(1.9, 3.5), c=figures(3.0, 1.0), d=figures(2500.0, 9.0),
    )  # fmt: skip
    assert [(one.name, one.rank, one.passes) for one in order] == [
        ("b", 1, True), ("a", 2, False), ("d", 3, False), ("c", 4, False),
    ]  # fmt: skip
    assert order[1].why == "life is 1.000 years, the limit is >= 3.000 years"
    assert "p99.99 is 3.000 ms" in order[3].why and "; life is" in order[3].why


def test_a_limit_has_a_unit_of_its_own() -> None:
    first, second = ranked(asked("p99.99 <= 500 us"), a=figures(0.6, 9.0), b=figures(0.4, 1.0))
    assert (first.name, first.passes, second.passes) == ("b", True, False)


def test_a_loser_hears_where_it_is_behind() -> None:
    _, second = ranked(asked(), a=figures(1.0, 8.0), b=figures(2.0, 7.9))
    assert second.why == "p99.99 2.000 ms, the first 1.000 ms"


def test_life_beyond_enough_counts_no_more() -> None:
    first, second = ranked(asked(), a=figures(1.1, 90.0), b=figures(1.0, 11.0))
    assert first.name == "b"
    assert second.shares["life"] == 1.0


def test_a_drive_without_a_figure_that_counts_is_last() -> None:
    order = ranked(asked(), a=figures(None, 9.0), b=figures(5.0, 1.0))
    assert [one.name for one in order] == ["b", "a"]
    assert order[1].score is None and "unknown" in order[1].why


def test_a_weight_of_no_figure_is_refused() -> None:
    with pytest.raises(ConfigError, match="lief"):
        ranked(asked(), {"lief": 1.0}, a=figures(1.0, 2.0), b=figures(4.0, 8.0))


@pytest.mark.parametrize(
    ("behind", "error", "sure"),
    [
        (1.05, KNOWN, "within the model's error"),
        (2.0, KNOWN, "clear"),
        (2.0, ModelError(), "error unknown"),
    ],
)
def test_a_difference_is_held_against_the_errors_of_the_models(
    behind: float, error: ModelError, sure: str
) -> None:
    first, second = ranked(
        asked(), {"p99.99": 1.0}, error, a=figures(1.0, 2.0), b=figures(behind, 2.0)
    )
    assert (first.sure, second.sure) == (None, sure)


@pytest.mark.parametrize(("value", "sure"), [(2.1, "within the model's error"), (4.0, "clear")])
def test_so_is_a_missed_limit(value: float, sure: str) -> None:
    _, second = ranked(asked("p99.99 <= 2 ms"), a=figures(1.0, 2.0), b=figures(value, 2.0))
    assert second.sure == sure


def test_a_limit_of_life_or_price_needs_no_model() -> None:
    _, second = ranked(
        asked("life >= 3 years"), error=ModelError(), a=figures(1.0, 4.0), b=figures(1.0, 2.9)
    )
    assert second.sure == "clear"


def test_iops_count_where_drives_run_as_fast_as_they_can() -> None:
    assert weights_of(asked(), open_loop=True) == WEIGHTS
    assert weights_of(asked(), open_loop=False) == {**WEIGHTS, "iops": 1.0}
    priced = asked(prices={"a": 1.0, "b": 2.0})
    assert "price" in weights_of(priced, open_loop=True)
    given = asked(weights={"iops": 2.0, "life": 0.0})
    assert weights_of(given, open_loop=True) == {"iops": 2.0}


def test_figures_of_several_seeds_have_the_interval_of_their_mean() -> None:
    both = over_seeds([figures(1.0, 3.0), figures(2.0, 3.0)])
    assert both["p99.99"].value == 1.5
    interval = both["p99.99"].interval
    # Student's t with 1 degree of freedom, on a logarithmic scale: 12.706 * 0.5 / 1.5.
    assert interval is not None
    assert interval.high / 1.5 == pytest.approx(exp(12.706 * 0.5 / 1.5), rel=1e-3)
    assert interval.low * interval.high == pytest.approx(1.5**2)
    assert (interval.degrees, interval.of) == (1, "mean over 2 seeds")
    life = both["life"].interval
    assert life is not None
    assert life.low == life.high == 3.0


def test_the_error_of_a_model_is_that_of_its_family() -> None:
    assert family_of("pm863-960") == family_of("pm863-120") == "pm863"
    error = model_error("pm863-960")
    assert error.figures > 5 and error == model_error("pm863-480")
    assert error.of("iops") == error.rates_pct and error.of("reads/p99.9") == error.tails_pct
    assert error.of("mean") == error.means_pct and error.of("life") is None
    assert model_error("./my-drive.toml") == ModelError()


def test_the_error_of_a_drive_of_today_is_that_of_its_figures_kept_aside() -> None:
    error = model_error("t500-1000")
    assert error.figures > 0 and "rates" not in error.of_all
    assert error == model_error("t500-2000")


@given(st.lists(st.tuples(*[st.floats(0.9, 1.2)] * 3), min_size=2, max_size=6), st.booleans())
def test_no_reason_contradicts_the_table(
    values: list[tuple[float, float, float]], limited: bool
) -> None:
    rows = ranked(
        asked(*(["p99.99 <= 1 ms"] if limited else [])),
        {"p99.99": 1.0, "life": 1.0, "price": 1.0},
        **{f"d{n}": figures(a, 10 * b, price=c) for n, (a, b, c) in enumerate(values)},
    )  # fmt: skip
    for row in rows:
        best = row.why.removeprefix("best ").split(" and ") if row.why.startswith("best ") else []
        for text in best:
            figure = row.figures[text.split()[0]]
            pick = max if figure.higher_is_better else min
            assert figure.value == pick(other.figures[figure.key].value for other in rows)
        for text in row.why.split("; ") if ", the first " in row.why else []:
            mine, first = row.figures[text.split()[0]], rows[0].figures[text.split()[0]]
            assert (mine.value < first.value) is (mine.higher_is_better is True)
            assert mine.value != first.value
    assert rows[0].why


def test_a_drive_within_two_per_cent_of_the_best_is_not_called_the_best() -> None:
    first, _ = ranked(asked(), a=figures(1.01, 9.0), b=figures(1.0, 2.0))
    assert (first.name, first.why) == ("a", "best life 9.000 years")


def test_flushes_count_where_the_load_has_some() -> None:
    known = {"p99.99", "life", "iops", "flush/mean", "flush/p99"}
    assert weights_of(asked(), open_loop=True, known=known) == {
        "p99.99": 1.0, "life": 1.0, "flush/p99": 1.0,
    }  # fmt: skip
    assert KNOWN.of("flush/p99") is None  # nobody publishes them


def test_constants_of_the_model_are_no_predictions() -> None:
    error = model_error("micron-9550-max-3200")
    assert "means" in error.of_all and error.means_pct is not None and error.means_pct > 5
    assert error.tails_pct is None and error.counts["means"] == 2


def test_a_family_without_figures_of_a_kind_has_the_median_of_all_and_says_so() -> None:
    error = model_error("t500-1000")
    assert set(error.of_all) == {"means"}
    assert error.means_pct == model_error("sn770-1000").means_pct
    assert error.tails_pct is None and model_error("pm9d3a-3840").tails_pct is None
    assert model_error("nvme-tlc-960").of_all == ("rates", "means", "tails")


def test_a_short_load_is_ranked_by_the_highest_percentile_that_it_has() -> None:
    question = asked()
    short = weights_of(question, open_loop=True, known={"p99", "mean", "life"})
    assert short == {"life": 1.0, "p99": 1.0}
    assert "p99.99" in weights_of(question, open_loop=True, known={"p99.99", "p99", "life"})
    given = asked(weights={"p99.99": 2.0})
    assert weights_of(given, open_loop=True, known={"p99"}) == {"p99.99": 2.0}


def test_the_error_of_a_twin_is_that_of_what_it_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    line = "# kept aside: 25 figures; median errors: rates 2.0 %, 99th percentiles 6.6 %\n"
    path.write_text(line + 'name = "mine"\n')
    found = model_error(str(path))
    assert (found.rates_pct, found.means_pct, found.tails_pct) == (2.0, None, 6.6)
    assert found.figures == 25
    path.write_text('name = "mine"\n')
    assert model_error(str(path)).figures == 0
