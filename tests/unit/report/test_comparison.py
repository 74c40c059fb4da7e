"""Comparisons: contenders, labels, best values, and statistically significant differences."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic_run import Drive, build_run, identity
from writecliff.cli.main import main
from writecliff.errors import ConfigError
from writecliff.procedures.operating_points import Cell, knee
from writecliff.report.comparison import compare
from writecliff.report.comparison.contenders import RUN_SCHEMA
from writecliff.report.comparison.figures import Figure
from writecliff.report.comparison.groups import as_figures, groups_of, groups_table
from writecliff.report.comparison.verdict import verdict_of
from writecliff.report.headline import Headline, Interval, mean_headline, mean_interval
from writecliff.report.style import log_ticks

SHAPE: dict[str, Any] = {"rounds": 6, "steps_per_round": 2, "step_s": 900.0}
OLD = Drive(noise=0.002)
NEW = Drive(noise=0.002, saturated_iops=14_000.0)


def run(path: Path, drive: Drive = OLD, seed: int = 7, **changes: Any) -> Path:
    """Create a saturation run; `seed` is used for its noise and its manifest."""
    return build_run(path, drive, changes={"seed": seed, **changes}, **{**SHAPE, "seed": seed})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create runs of one drive (two firmware versions, another seed), and of another drive."""
    folder = tmp_path_factory.mktemp("runs")
    run(folder / "old")
    run(folder / "seed", seed=8)
    run(folder / "new", NEW, device=replace(identity(NEW), firmware="S2.0"))
    run(folder / "other", NEW, device=replace(identity(NEW), model="Other"))
    return folder


def single(value: float, half: float | None = None, **more: Any) -> Headline:
    interval = None if half is None else Interval(value - half, value + half, "rounds", 9)
    return Headline(key="k", label="Speed", value=value, unit="IOPS", interval=interval, **more)


@pytest.mark.parametrize("count", [2, 5, 31, 60])
def test_the_interval_of_a_mean_is_students(count: int) -> None:
    from scipy import stats  # Importing scipy takes a second.

    samples = [100.0 + (7 * n) % 11 for n in range(count)]
    mean = sum(samples) / count
    interval = mean_interval(samples, mean)
    low, high = stats.t.interval(0.95, count - 1, loc=mean, scale=stats.sem(samples))
    assert interval is not None
    # On a logarithmic scale, the interval has the same relative width.
    assert log(interval.high / mean) == pytest.approx((high - low) / 2 / mean)
    assert log(mean / interval.low) == pytest.approx((high - low) / 2 / mean)
    assert interval.degrees == count - 1


def test_a_single_value_has_no_interval_and_an_unknown_one_is_no_figure() -> None:
    (single,) = mean_headline("k", "Speed", [5.0], "IOPS")
    assert single.interval is None
    assert mean_headline("k", "Speed", [None, float("nan")], "IOPS") == []
    (weighted,) = mean_headline("k", "Speed", [1.0, 3.0], "IOPS", value=2.5)
    assert weighted.value == 2.5
    assert weighted.interval is not None
    assert weighted.interval.low * weighted.interval.high == pytest.approx(2.5**2)


def test_the_interval_of_a_mean_never_reaches_below_zero() -> None:
    interval = mean_interval([0.1, 0.1, 0.1, 0.1, 7.6], 1.6)
    assert interval is not None
    assert 0 < interval.low < 1.6 < interval.high


@pytest.mark.parametrize(
    ("first", "second", "noise", "best"),
    [
        (single(100, 4), single(110, 4), "more", 1),
        (single(100, 8), single(110, 8), "within", 1),
        (single(100, 4), single(110), "unknown", 1),
        (single(100, 4), single(100, 9), "equal", None),
        (single(1000, 0.1), single(1001, 0.1), "equal", None),
        (single(1000, 0.1), single(1002, 0.1), "more", 1),
        (single(100, 4, higher_is_better=False), single(110, 4, higher_is_better=False), "more", 0),
        (
            single(100, 4, higher_is_better=None),
            single(110, 4, higher_is_better=None),
            "more",
            None,
        ),
        (single(100, 4, at="QD1"), single(110, 4, at="QD8"), "apart", None),
    ],
)
def test_more_than_noise_is_a_test_of_the_difference(
    first: Headline, second: Headline, noise: str, best: int | None
) -> None:
    figure = Figure("wsat", [first, second])
    assert (figure.noise, figure.best) == (noise, best)


def test_the_best_of_several_is_set_against_the_next() -> None:
    figure = Figure("wsat", [single(100, 1), None, single(150, 1), single(120, 1)])
    assert (figure.best, figure.next_best) == (2, 3)
    assert figure.margin_pct == pytest.approx(25)
    assert "C is best at Speed (25 % higher than D)" in verdict_of("ABCD", [figure])


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            [(single(100, 1), single(112, 1))],
            "B is better at Speed (12 % higher).",
        ),
        (
            [(single(100, 12), single(112, 12))],
            "No difference between A and B is significant.",
        ),
        (
            [(single(100), single(112))],
            "B is better at Speed (12 % higher), by single values without intervals.",
        ),
        (
            [(single(100, 1), single(100, 1))],
            "A and B measured the same in the one figure in common.",
        ),
        (
            [
                (single(130, 1), single(100, 1)),
                (single(200, 1), single(100, 1)),
                (single(100, 9), single(101, 9)),
            ],
            "A is better at 2 of 3 figures, most at Speed (100 % higher); "
            "1 difference is not significant.",
        ),
        (
            [(single(100, 1, higher_is_better=None), single(120, 1, higher_is_better=None))],
            "1 difference is neither better nor worse.",
        ),
    ],
)
def test_the_verdict_is_one_sentence(
    values: list[tuple[Headline, Headline]], sentence: str
) -> None:
    assert verdict_of(["A", "B"], [Figure("wsat", pair) for pair in values]) == sentence


def many(first: float, second: float, count: int, metric: str, **more: Any) -> list[Figure]:
    """Return a campaign's figures for `metric` at `count` loads, with B 0.5 % further off."""
    figures = []
    for number in range(count):
        label, load = f"mixes: random, OIO {number}: {metric}", f"random, OIO {number}"
        of = {"group": "mixes", "load": load, "metric": metric, **more}
        values = [
            Headline(key=label, label=label, value=value, unit="ms", **of)
            for value in (first, second * (1 + 0.005 * number))
        ]
        figures.append(Figure("datacentre", values))
    return figures


LONG = [
    *many(100, 110, 20, "IOPS"),
    *many(10, 5, 20, "maximum response time", higher_is_better=False),
    *many(7, 7, 1, "average"),
]


def test_a_long_list_is_counted_in_groups() -> None:
    less = many(10, 20, 1, "maximum response time", higher_is_better=False)
    figures = [*LONG, *less]
    assert verdict_of(["A", "B"], figures) == (
        "B is better at 40 of 42 figures, most at mixes: random, OIO 0: maximum response time "
        "(50 % lower), A at 1, by single values without intervals; 1 figure is equal."
    )
    shown = groups_table(groups_of(figures), ["A", "B"])
    assert shown.header == ("Group", "Figures", "A better", "B better", "Equal",
                            "Median difference", "Largest difference", "At")  # fmt: skip
    assert shown.rows[0] == ("mixes: IOPS", "20", "0", "20", "0", "15 %",
                             "B 20 % higher: 120.5 against 100.0 ms", "random, OIO 19")  # fmt: skip
    assert shown.rows[1][1:5] == ("21", "1", "20", "0")
    assert shown.rows[2] == ("mixes: average", "1", "0", "0", "1", "-", "-", "")


def test_the_groups_of_a_long_list_are_drawn_by_their_median_and_extremes() -> None:
    iops, slowest, _ = as_figures(groups_of(LONG), ["A", "B"])
    drawn = iops.values[1]
    assert drawn is not None and drawn.interval is not None
    assert (drawn.interval.low, drawn.interval.high) == pytest.approx((1.1, 1.1 * 1.095))
    assert drawn.value == pytest.approx(1.1 * 1.0475)
    lower = slowest.values[1]
    assert lower is not None
    assert lower.value > 1.8, "half the response time is nearly twice as good"


def test_figures_within_noise_are_not_told_apart_in_a_long_list() -> None:
    noisy = [Figure("wsat", [single(100, 9), single(101, 9)]) for _ in range(10)]
    clear = [Figure("wsat", [single(100, 1), single(150, 1)]) for _ in range(31)]
    text = verdict_of(["A", "B"], [*noisy, *clear])
    assert text == (
        "B is better at 31 of 41 figures, most at Speed (50 % higher); "
        "10 differences are not significant."
    )
    (row,) = groups_table(groups_of([*noisy, *clear]), ["A", "B"]).rows
    assert row[:6] == ("wsat", "41", "0", "31", "0", "10")


def test_two_seeds_of_one_drive_are_two_contenders(runs: Path) -> None:
    comparison = compare([runs / "old", runs / "seed"])
    assert comparison.labels == ["old", "seed"]
    assert [(part.what, part.values) for part in comparison.differences] == [("seed", ("7", "8"))]
    saturated = next(
        figure for figure in comparison.figures if figure.sample.key == "saturated_iops"
    )
    assert saturated.noise in ("within", "equal")


def test_two_firmware_versions_differ_by_more_than_noise(runs: Path) -> None:
    comparison = compare([runs / "old", runs / "new"])
    assert comparison.labels == ["old", "new"]
    saturated = next(
        figure for figure in comparison.figures if figure.sample.key == "saturated_iops"
    )
    assert (saturated.noise, saturated.best) == ("more", 1)
    assert saturated.margin_pct == pytest.approx(100 * (14_000 / 11_800 - 1), abs=3)
    assert "new is better at" in comparison.verdict[0].lower() + comparison.verdict[1:]


def test_drives_are_called_by_name_and_their_versions_too(runs: Path) -> None:
    comparison = compare([runs / "old", runs / "new", runs / "other"])
    assert comparison.labels == [
        "Example SATA TLC 120, old",
        "Example SATA TLC 120, new",
        "Example Other",
    ]


def test_runs_of_equal_set_up_are_called_what_was_given(runs: Path, tmp_path: Path) -> None:
    run(tmp_path / "again", created="2026-03-03T15:30:00+00:00")
    run(tmp_path / "at-once")
    comparison = compare([runs / "old", tmp_path / "again", tmp_path / "at-once"])
    assert comparison.labels == ["old", "again", "at-once"]
    assert comparison.differences == []
    assert comparison.verdict.startswith("old, again and")


def test_a_folder_of_runs_is_all_of_them(runs: Path) -> None:
    assert len(compare([runs]).contenders) == 4


def test_what_cannot_be_compared_is_said_in_one_line(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="only one contender to compare"):
        compare([runs / "old", runs / "old"])
    with pytest.raises(ConfigError, match="contains no run"):
        compare([runs / "old", tmp_path])
    assert main(["compare", str(runs / "old"), "--output", str(tmp_path / "c.html")]) != 0
    assert not (tmp_path / "c.html").exists()


def test_the_json_has_what_scripts_rely_on(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "c.html"
    words = ["compare", str(runs / "old"), str(runs / "new"), "--output", str(page)]
    assert main([*words, "--json"]) == 0
    answer_ = json.loads(capsys.readouterr().out)
    assert answer_["schema"] == "writecliff/comparison/2"
    keys = [figure["key"] for figure in answer_["figures"]]
    assert keys == ["saturated_iops", "latency_p9999", "latency_mean", "waf", "fob_iops"]
    value = answer_["figures"][0]["values"][1]
    assert value["low"] < value["value"] < value["high"]
    assert {"what": "firmware", "values": ["S1.0", "S2.0"], "tests": []} in answer_["differences"]
    assert main(words) == 0
    text = capsys.readouterr().out.splitlines()
    assert text[-1] == answer_["verdict"]
    assert answer_["verdict"] in page.read_text()
    assert page.read_text().count("<figure") == 5


def test_the_knee_is_the_least_load_that_brings_nearly_all_iops() -> None:
    cells = [Cell(1, 1, 10_000, 1e5), Cell(1, 8, 46_000, 2e5), Cell(4, 8, 50_000, 6e5),
             Cell(2, 4, 45_500, 2e5)]  # fmt: skip
    best = knee(cells)
    assert best is not None and (best.threads, best.queue_depth) == (1, 8)
    assert knee([]) is None


@pytest.mark.parametrize(
    ("low", "high"), [(33_000, 34_000), (7_000, 41_000), (0.9, 1.3), (3.1, 4.4), (1, 90), (6, 600)]
)
def test_a_logarithmic_axis_has_three_labels(low: float, high: float) -> None:
    ticks = log_ticks(low, high)
    assert len(ticks) >= 3
    assert all(low <= tick <= high for tick in ticks)


def answer(path: Path, iops: float, seed: int = 1) -> Path:
    """Write the compared sections of the output of `run --json`."""
    percentiles = [{"pct": pct, "value_ns": 900_000, "low_ns": 8e5 * 100 / iops,
                    "high_ns": 9e5 * 100 / iops} for pct in (50, 99, 99.9)]  # fmt: skip
    service = {"mean_ns": 1e5, "max_ns": 2e6, "percentiles": percentiles}
    done = {"iops": iops, "bytes_per_s": 4096 * iops, "service": service}
    jobs = [{"name": "log", "operations": {"write": done}}]
    step = {"workload": "w", "seed": seed, "waf": None, "jobs": jobs}
    made = {"schema": RUN_SCHEMA, "file": "w.fio", "target": "sim:x", "steps": [step]}
    path.write_text(json.dumps(made))
    return path


def test_saved_answers_of_run_are_compared(tmp_path: Path) -> None:
    comparison = compare(
        [answer(tmp_path / "a.json", 100.0), answer(tmp_path / "b.json", 125.0, 2)]
    )
    assert comparison.labels == ["a.json", "b.json"]
    by_key = {figure.sample.key: figure for figure in comparison.figures}
    speed = by_key["/log/writes/iops"]
    assert (speed.best, speed.noise, speed.margin_pct) == (1, "unknown", pytest.approx(25))
    assert by_key["/log/writes/p99.9"].values[0].interval is not None  # type: ignore[union-attr]
    assert "/log/writes/p50" not in by_key


def test_a_file_that_is_no_answer_is_said_to_be_none(tmp_path: Path) -> None:
    other = tmp_path / "x.json"
    unknown = '{"schema": "writecliff/bench-sim/1"}'
    result = "a saved result"
    texts = {"{}": result, "no JSON": "JSON", unknown: result, "[1]": result}
    for text, kind in texts.items():
        other.write_text(text)
        with pytest.raises(ConfigError, match=rf"x\.json is not {kind}"):
            compare([other, answer(tmp_path / "a.json", 100.0)])
