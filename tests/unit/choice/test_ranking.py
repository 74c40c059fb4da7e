"""Rankings of given figures, with their reasons."""

from __future__ import annotations

from dataclasses import replace
from math import exp, isclose
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from writecliff.choice.certainty import FigureError, KindError, ModelError, model_error
from writecliff.choice.load_kinds import LoadKinds, kinds_of_jobs
from writecliff.choice.measured import over_seeds
from writecliff.choice.page import error_cell
from writecliff.choice.question import Question
from writecliff.choice.ranking import Ranked, rank, weights_of
from writecliff.errors import ConfigError
from writecliff.published.held_out import (
    cross_validated,
    current_drives,
    mean_kind,
    measured,
    ssd_iq,
)
from writecliff.report.headline import Headline
from writecliff.workload.model import Addresses, HostZones, IoLog, Job

GIB = 1 << 30
MIX = LoadKinds(("mixes",), ("reads", "writes"))
TAILS = ("p99.99 of reads beside writes, at full rate", "p99.99 of writes, at full rate")
KNOWN_ERRORS = ModelError(
    MIX, {kind: KindError(kind, 10.0, 9, "family") for kind in TAILS}, rated_life=True
)
WEIGHTS = {"p99.99": 1.0, "life": 1.0}


def asked(*limits: str, **more: object) -> Question:
    return Question(workload="x", candidates=("a", "b"), limits=limits, **more)  # type: ignore[arg-type]


def figures(
    p9999: float | None = None, life: float | None = None, **more: float
) -> dict[str, Headline]:
    values = {
        "p99.99": (p9999, "ms", False), "life": (life, "years", True),
        **{key: (value, "", key != "price") for key, value in more.items()},
    }  # fmt: skip
    return {
        key: Headline(key=key, label=key, value=value, unit=unit, higher_is_better=higher)
        for key, (value, unit, higher) in values.items()
        if value is not None
    }


def ranked(
    question: Question,
    weights: dict[str, float] = WEIGHTS,
    error: ModelError = KNOWN_ERRORS,
    **drives: dict[str, Headline],
) -> list[Ranked]:
    return rank({name: (name, of, error) for name, of in drives.items()}, question, weights)


def test_the_score_is_the_geometric_mean_of_the_shares_of_the_best() -> None:
    first, second = ranked(asked(), a=figures(1.0, 2.0), b=figures(4.0, 8.0))
    assert (first.name, second.name) == ("a", "b")  # Drives with equal scores are sorted by name.
    assert first.score is not None and isclose(first.score, (1.0 * 0.25) ** 0.5)
    assert second.score is not None and isclose(second.score, (0.25 * 1.0) ** 0.5)
    assert second.why == "score within 2 % of the first"


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
    assert [(row.name, row.rank, row.passes) for row in order] == [
        ("b", 1, True), ("a", 2, False), ("d", 3, False), ("c", 4, False),
    ]  # fmt: skip
    assert order[1].why == "life is 1.000 years, the limit is >= 3.000 years"
    assert "p99.99 is 3.000 ms" in order[3].why and "; life is" in order[3].why


def test_a_limit_has_a_unit_of_its_own() -> None:
    first, second = ranked(asked("p99.99 <= 500 us"), a=figures(0.6, 9.0), b=figures(0.4, 1.0))
    assert (first.name, first.passes, second.passes) == ("b", True, False)


def test_the_reason_of_a_losing_drive_is_its_worst_figure() -> None:
    _, second = ranked(asked(), a=figures(1.0, 8.0), b=figures(2.0, 7.9))
    assert second.why == "p99.99 2.000 ms, the first 1.000 ms"


def test_life_beyond_enough_counts_no_more() -> None:
    first, second = ranked(asked(), a=figures(1.1, 90.0), b=figures(1.0, 11.0))
    assert first.name == "b"
    assert second.shares["life"] == 1.0


def test_a_drive_without_a_figure_that_counts_is_last() -> None:
    order = ranked(asked(), a=figures(None, 9.0), b=figures(5.0, 1.0))
    assert [row.name for row in order] == ["b", "a"]
    assert order[1].score is None and "unknown" in order[1].why


def test_a_weight_of_an_unknown_figure_is_rejected() -> None:
    with pytest.raises(ConfigError, match="lief"):
        ranked(asked(), {"lief": 1.0}, a=figures(1.0, 2.0), b=figures(4.0, 8.0))


@pytest.mark.parametrize(
    ("behind", "error", "sure"),
    [
        (1.05, KNOWN_ERRORS, "within the model's error"),
        (2.0, KNOWN_ERRORS, "clear"),
        (2.0, ModelError(MIX), "error unknown"),
    ],
)
def test_differences_are_compared_with_the_errors_of_the_models(
    behind: float, error: ModelError, sure: str
) -> None:
    first, second = ranked(
        asked(), {"p99.99": 1.0}, error, a=figures(1.0, 2.0), b=figures(behind, 2.0)
    )
    assert (first.sure, second.sure) == (None, sure)


@pytest.mark.parametrize(("value", "sure"), [(2.1, "within the model's error"), (4.0, "clear")])
def test_a_missed_limit_is_compared_with_the_error_of_the_model(value: float, sure: str) -> None:
    _, second = ranked(asked("p99.99 <= 2 ms"), a=figures(1.0, 2.0), b=figures(value, 2.0))
    assert second.sure == sure


def test_a_limit_of_life_or_price_needs_no_model() -> None:
    rated = ModelError(replace(MIX, writes_per_day=True), rated_life=True)
    limit, drives = asked("life >= 3 years"), {"a": figures(1.0, 4.0), "b": figures(1.0, 2.9)}
    assert ranked(limit, error=rated, **drives)[1].sure == "clear"
    # This lifetime depends on the write amplification.
    by_cycles = replace(rated, rated_life=False)
    assert ranked(limit, error=by_cycles, **drives)[1].sure == "error unknown"


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
    # Student's t with 1 degree of freedom, on a logarithmic scale, is 12.706 * 0.5 / 1.5.
    assert interval is not None
    assert interval.high / 1.5 == pytest.approx(exp(12.706 * 0.5 / 1.5), rel=1e-3)
    assert interval.low * interval.high == pytest.approx(1.5**2)
    assert (interval.degrees, interval.of) == (1, "mean over 2 seeds")
    life = both["life"].interval
    assert life is not None
    assert life.low == life.high == 3.0


def kinds(**job: object) -> LoadKinds:
    return kinds_of_jobs([Job(**job)], 100 * GIB)  # type: ignore[arg-type]


def test_a_lower_bound_of_an_error_explains_a_difference_but_makes_none_clear() -> None:
    seen = {kind: KindError(kind, 10.0, 9, "family", in_view=True) for kind in TAILS}
    bound = ModelError(MIX, seen)
    for behind, sure in ((1.05, "within the model's error"), (2.0, "error unknown")):
        _, second = ranked(
            asked(), {"p99.99": 1.0}, bound, a=figures(1.0, 2.0), b=figures(behind, 2.0)
        )
        assert second.sure == sure


def test_loads_have_the_kinds_of_their_figures() -> None:
    zipf = Addresses("zipf", theta=0.8)
    assert kinds(read_pct=100).rates == ("random reads",)
    assert kinds(pattern="sequential").rates == ("sequential writes",)
    assert kinds(read_pct=70).rates == ("mixes",)
    assert kinds(read_pct=70, addresses=zipf).rates == ("mixes", "skewed writes")
    assert kinds(read_pct=100, addresses=zipf).rates == ("random reads",)
    assert kinds(addresses=zipf).rates == ("skewed writes",)
    assert kinds(addresses=zipf, range_bytes=20 * GIB).rates == (
        "skewed writes", "partly static data",
    )  # fmt: skip
    assert kinds(range_bytes=20 * GIB).rates == ("partly static data",)
    assert kinds(pattern="sequential", range_bytes=20 * GIB).rates == ("sequential writes",)
    assert kinds(host_zones=HostZones(size_bytes=GIB)).rates == ("zones written in order",)
    assert kinds(log=IoLog("w", (0,), (4096,))).rates == ("replayed traces",)
    assert kinds(read_pct=70).kinds_of("p99.9") == (
        "p99.9 of reads beside writes, at full rate", "p99.9 of writes, at full rate",
    )  # fmt: skip
    assert kinds(read_pct=100, rate_iops=1e4).kinds_of("reads/service/p99") == (
        "p99 of reads alone, below full rate",
    )
    assert kinds(read_pct=70).kinds_of("reads/mean") == ("mean latency of reads beside writes",)
    assert kinds().kinds_of("flush/p99") == ("flushes",)  # No source publishes flush latencies.
    assert kinds().kinds_of("life") == ("endurance", "random writes")
    assert kinds(rate_iops=1e4).kinds_of("life", rated_life=True) == ()


def test_the_error_of_a_model_is_that_of_the_load_on_its_family() -> None:
    """Cross-validation predicts at least 3 rates of mixes of `pm863`, but not its endurance."""
    mix = model_error("pm863-960", kinds(read_pct=70)).of("iops")
    assert mix == model_error("pm863-480", kinds(read_pct=70)).of("iops")
    assert mix.pct is not None and mix.kinds[0].scope == "family"
    errors = [f.error_pct for f in cross_validated() if (f.family, f.kind) == ("pm863", "mixes")]
    assert mix.pct == median(errors) and mix.kinds[0].figures == len(errors)
    assert model_error("pm863-960", kinds(read_pct=70)).of("life").pct is None
    assert model_error("./my-drive.toml", MIX).of("iops").pct is None


def test_the_life_of_data_centre_drives_has_the_error_of_their_ratings() -> None:
    life = model_error("pm9a3-960", kinds()).of("life")
    assert [kind.kind for kind in life.kinds] == ["endurance", "random writes"]
    assert life.pct is not None and life.kinds[0].in_view
    # The model derives this error on request.
    other = model_error("pm9a3-1920", kinds()).of("life")
    assert other == life
    assert model_error("990-pro-2000", kinds()).of("life").pct is None


def test_current_drives_have_errors_of_mixes_means_and_tails_of_reads() -> None:
    mixes = model_error("cd8-7680", kinds(read_pct=70)).of("iops")
    assert mixes.pct is not None and mixes.is_bound
    reads = model_error("cd8-7680", kinds(read_pct=100))
    assert reads.of("mean").pct is not None and reads.of("p99.9").pct is not None


def test_current_drives_have_the_errors_of_their_held_out_figures_by_kind() -> None:
    reads = model_error("t500-1000", kinds(read_pct=100)).of("iops")
    counted = [
        figure.error_pct
        for figure in (*current_drives(), *measured())
        if figure.kind == "random reads" and figure.family != "p5800x" and not figure.exclusion
    ]
    assert (reads.kinds[0].scope, reads.kinds[0].figures) == ("other drives", len(counted))
    assert reads.pct == median(counted)
    assert model_error("t500-1000", kinds(read_pct=70)).by_kind.get("mean latency of mixes") is None
    skew = model_error("pm9a3-7680", kinds(addresses=Addresses("zipf", theta=0.8)))
    assert skew.by_kind["skewed writes"].scope == "family"
    errors = [f.error_pct for f in ssd_iq() if (f.family, f.kind) == ("pm9a3", "skewed writes")]
    assert skew.of("iops").pct == median(errors)
    tail = skew.of("p99.99")
    assert tail.is_bound and tail.pct is not None  # These figures determined the class defaults.


def test_a_current_drive_wins_no_mix_clearly() -> None:
    """Check that two mixes of current drives, both seen before a fit, are too few for an error."""
    error = model_error("t500-1000", kinds(read_pct=70))
    fast, slow = figures(1.0, 2.0, iops=100.0), figures(1.0, 2.0, iops=10.0)
    _, second = ranked(asked(), {"iops": 1.0}, error, a=fast, b=slow)
    assert second.sure == "error unknown"


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
    measurable = {"p99.99", "life", "iops", "flush/mean", "flush/p99"}
    assert weights_of(asked(), open_loop=True, available=measurable) == {
        "p99.99": 1.0, "life": 1.0, "flush/p99": 1.0,
    }  # fmt: skip


def test_figures_that_test_nothing_do_not_count() -> None:
    """Check that three 15 µs writes at queue depth 1 count as constants or a repetition."""
    kind = mean_kind("random writes")
    means = [figure for figure in current_drives() if figure.kind == kind]
    assert [bool(figure.exclusion) for figure in means].count(True) == 3
    counted = [f for f in (*means, *measured()) if f.kind == kind and not f.exclusion]
    error = model_error("micron-9550-max-3200", kinds()).of("mean")
    assert error.kinds[0].figures == len(counted)
    assert error.pct == median(figure.error_pct for figure in counted)
    repeated = [f for f in current_drives() if f.exclusion == "repeats a figure of its family"]
    assert {(f.drive, f.published) for f in repeated} >= {("micron-9550-max-3200", 14_000.0)}


def test_drives_without_flash_have_no_error_of_drives_with_flash() -> None:
    assert model_error("p5800x-1600", kinds(read_pct=100)).of("iops").pct is None
    assert model_error("nvme-tlc-960", kinds(read_pct=100)).of("iops").pct is not None


def test_a_short_load_is_ranked_by_the_highest_percentile_that_it_has() -> None:
    question = asked()
    short = weights_of(question, open_loop=True, available={"p99", "mean", "life"})
    assert short == {"life": 1.0, "p99": 1.0}
    assert "p99.99" in weights_of(question, open_loop=True, available={"p99.99", "p99", "life"})
    given = asked(weights={"p99.99": 2.0})
    assert weights_of(given, open_loop=True, available={"p99"}) == {"p99.99": 2.0}


@pytest.mark.parametrize("words", ["held out", "kept aside"])
def test_the_error_of_a_twin_is_that_of_its_held_out_figures(tmp_path: Path, words: str) -> None:
    path = tmp_path / "mine.toml"
    line = f"# {words}: 25 figures; median errors: rates 2.0 %, 99th percentiles 6.6 %\n"
    path.write_text(line + 'name = "mine"\n')
    error = model_error(str(path), MIX)
    assert (error.of("iops").pct, error.of("mean").pct, error.of("p99").pct) == (2.0, None, 6.6)
    assert error.of("p99.99").pct is None and error.of("iops").kinds[0].figures == 25
    path.write_text('name = "mine"\n')
    assert model_error(str(path), MIX).by_kind == {}


@pytest.mark.parametrize(
    ("pct", "in_view", "text"),
    [
        (0.4, True, "less than 1 % (mixes; 5 figures)"),
        (99.4, False, "99 % (mixes; 5 figures)"),
        (184.0, True, "at least 2.84 x (mixes; 5 figures)"),
        (13131.0, True, "at least 132 x (mixes; 5 figures)"),
        (None, False, "not known (mixes)"),
    ],
)
def test_the_page_shows_large_errors_as_factors(
    pct: float | None, in_view: bool, text: str
) -> None:
    assert error_cell(FigureError((KindError("mixes", pct, 5, "family", in_view),))) == text
