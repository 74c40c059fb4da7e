"""Held-out figures by kind of load, winners of drive pairs, and fractions within 10 %."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tools.held_out_page import distributions, replaced, section, share_within
from writecliff.lab.published.predict import table_of_ssd_iq
from writecliff.lab.published.ssd_iq.result import FIGURES, read_rows
from writecliff.published.held_out import (
    FEWEST,
    FRESH,
    FULL_RATE_SHARE,
    KNEE,
    SKEWED,
    STATIC,
    HeldOut,
    by_kind,
    current_drives,
    endurance,
    knees,
    left_out_capacities,
    measured,
    score_of,
    ssd_iq,
    winners,
)
from writecliff.published.left_out import PREDICTIONS as LEFT_OUT
from writecliff.published.left_out import left_out_rows, left_out_texts
from writecliff.published.predictions import (
    SSD_IQ_PREDICTIONS,
    SsdIqPrediction,
    read_ssd_iq_predictions,
)
from writecliff.published.ssd_iq.conditions import load_of

ROOT = Path(__file__).parents[4]
PAGE, README = ROOT / "docs" / "validation.md", ROOT / "README.md"


def figure(drive: str, published: float, simulated: float, **more: str) -> HeldOut:
    given = {"kind": "mixes", "label": "a mix", "unit": "%", **more}
    return HeldOut("SSD-iq", family=drive, drive=drive, published=published,
                   simulated=simulated, **given)  # type: ignore[arg-type]  # fmt: skip


def test_the_page_has_the_section_that_the_predictions_give() -> None:
    """To update the page, run `python tools/held_out_page.py docs/validation.md`."""
    page = PAGE.read_text(encoding="utf-8")
    assert replaced(page) == page
    assert section().count("\n### ") == 9


def test_the_front_page_has_the_errors_of_the_section() -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    flash = [f for f in current_drives() if f.family != "p5800x" and not f.exclusion]
    kinds = {**by_kind(flash), **by_kind(ssd_iq())}
    loads = ("random reads", "random writes", "sequential reads", "sequential writes")
    for kind in (*loads, SKEWED, STATIC):
        score = score_of(kinds[kind])
        assert score is not None
        assert f"{kind} {score.median:.1f} % ({score.figures}" in text
    later = by_kind(figure for figure in measured() if not figure.exclusion)
    for kind in ("random reads", "random writes", FRESH):
        score = score_of(later[kind])
        assert score is not None
        assert f"{kind} {score.median:.1f} % ({score.figures})" in text.partition("Later")[2]


def test_every_figure_of_ssd_iq_has_a_prediction_of_the_drive_as_it_is() -> None:
    predicted = read_ssd_iq_predictions()
    compared = [row for row in read_rows(FIGURES) if row["value"]]
    assert 0.98 * len(compared) <= len(predicted) <= len(compared)
    assert {row.family for row in predicted} >= {"pm9a3", "micron-7450-max"}


def test_a_prediction_of_another_version_of_a_drive_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "predictions.csv"
    lines = SSD_IQ_PREDICTIONS.read_text(encoding="utf-8").splitlines()[:2]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert len(read_ssd_iq_predictions(path)) == 1
    path.write_text("\n".join([lines[0], f"{lines[1]}0"]), encoding="utf-8")
    assert read_ssd_iq_predictions(path) == []


def test_the_table_of_ssd_iq_has_the_figures_that_are_simulated() -> None:
    row = {"condition": "x; uniform", "metric": "WAF", "value": 2.0, "unit": "", "drive": "x"}
    rows = [{**row, "simulated": 2.5}, {**row, "simulated": None}]
    drives = [{"drive": "x", "device_hash": "abc"}]
    table = table_of_ssd_iq(json.dumps({"drives": drives, "rows": rows}))
    assert table.splitlines()[1:] == ["x; uniform,WAF,2,,2.5,abc"]


def test_loads_of_a_drive_count_once_and_tails_by_rate() -> None:
    kinds = by_kind(ssd_iq())
    assert {SKEWED, STATIC, KNEE, "p99.9 of writes, below full rate"} <= set(kinds)
    loads = [(skewed.drive, skewed.label) for skewed in kinds[SKEWED]]
    assert len(loads) == len(set(loads))
    rates = knees(read_ssd_iq_predictions(), simulated=False)
    for tail in kinds["p99 of reads beside writes, below full rate"]:
        rate = float(tail.label.split()[2].replace(",", ""))
        assert rate < FULL_RATE_SHARE * rates[tail.drive]
        assert tail.in_view and tail.unit == "x"


def test_repetitions_and_constants_are_excluded() -> None:
    exclusions = {(f.drive, f.published): f.exclusion for f in current_drives()}
    assert exclusions["micron-9550-max-6400", 14_000.0] == "repeats a figure of its family"
    assert exclusions["micron-7450-15360", 0.015] == "constant of the rule"
    assert exclusions["pm1743-15360", 6_600.0] == "seen before a rule was changed"
    assert exclusions["micron-6500-ion-30720", 5_000.0] == ""


def test_later_figures_are_of_mixes_means_tails_and_new_drives() -> None:
    kinds = by_kind(measured())
    for kind in ("p99.9 of reads alone, at full rate", "mean latency of random reads"):
        assert len([figure for figure in kinds[kind] if not figure.exclusion]) >= FEWEST, kind
    assert {figure.drive for figure in kinds["mixes"]} == {
        "micron-7600-max-3200", "micron-7600-max-12800",
    }  # fmt: skip
    assert all(f.in_view for f in kinds["p99.9 of reads alone, at full rate"])
    fresh = {figure.drive for figure in kinds[FRESH]}
    assert {"cm7-r-3840", "pm9a3-960"} <= fresh
    assert not any(figure.in_view for figure in kinds["mean latency of random reads"])


def test_the_rating_of_a_family_is_predicted_without_it() -> None:
    ratings = endurance()
    needs = {}
    for figure in ratings:
        needs.setdefault(figure.family, []).append(figure.published / figure.simulated)
    assert len(needs) >= 8 and all(figure.in_view for figure in ratings)
    # All drives in a family have the same predicted cycles, which exclude figures for the family.
    by_drive = {figure.drive: figure for figure in ratings}
    small, large = by_drive["micron-9550-max-3200"], by_drive["micron-9550-max-6400"]
    assert large.simulated / small.simulated == pytest.approx(2, rel=0.05)
    score = score_of(ratings)
    assert score is not None and score.median < 15


def test_capacities_are_predicted_from_the_others_of_their_model() -> None:
    drives = {figure.drive for figure in left_out_capacities()}
    # The other families only have figures for a sequential fill of a new drive.
    assert drives == set(left_out_texts()) - {"nm790-2000", "p41-plus-1000"}
    assert {"pm9a3-960", "micron-2400-1000"} <= drives
    # These are the only capacities of their models.
    assert not {"d7-p5500-7680", "d7-p5600-6400"} & drives
    text = left_out_texts()["pm9a3-960"]
    assert "derived by rule from pm9a3-7680" in text and "580,000" not in text


def test_a_prediction_of_a_capacity_of_another_rule_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "predictions.csv"
    lines = LEFT_OUT.read_text(encoding="utf-8").splitlines()[:2]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert len(left_out_rows(path)) == 1
    path.write_text("\n".join([lines[0], f"{lines[1]}0"]), encoding="utf-8")
    assert left_out_rows(path) == []


def test_scores_are_of_percentages_or_factors() -> None:
    score = score_of([figure("a", 100, 110), figure("b", 100, 70), figure("c", 100, 100)])
    assert score is not None
    assert (score.figures, score.median, score.largest) == (3, pytest.approx(10), pytest.approx(30))
    tails = score_of([figure("a", 2, 1, unit="x"), figure("b", 1, 1.4, unit="x")])
    assert tails is not None
    assert (tails.largest, tails.within_pct) == (2, 50)
    assert score_of([]) is None


def test_winners_are_of_clear_pairs_under_the_same_load() -> None:
    drives = [
        figure("a", 100, 50),
        figure("b", 104, 40),
        figure("c", 120, 45),
        figure("d", 400, 90),
    ]
    # All pairs except (a, b) have a clear winner. The simulation has the wrong winner for (a, c).
    compared = winners([*drives, figure("e", 1, 1000, label="another mix")])
    assert (compared.pairs, compared.right) == (5, 4)
    assert winners(drives, most=2.0).pairs == 2
    # The comparison is a draw.
    assert winners([figure("a", 100, 50), figure("b", 200, 50)]).right == 0


def test_the_share_within_ten_per_cent_follows_from_percentiles() -> None:
    """Check that the fraction of latencies within 10 % is interpolated between percentiles.

    The drives are equal up to p99, and one drive is 10 times slower at p99.9. The logarithm of the
    ratio rises linearly in -log10(1 - q), so 10 % are reached at a fraction log10(1.1) of the
    distance.
    """
    equal = {0.5: (10.0, 10.0), 0.99: (100.0, 100.0)}
    assert share_within(equal) == 1.0
    slower = share_within({**equal, 0.999: (200.0, 2000.0)})
    mass = 0.5 - 0.01 * 10 ** -math.log10(1.1)
    assert slower == pytest.approx(mass / (0.5 - 0.001))
    assert share_within({0.5: (10.0, 20.0), 0.99: (100.0, 200.0)}) == 0.0
    crossing = share_within({0.5: (10.0, 5.0), 0.99: (100.0, 200.0)})
    assert 0 < crossing < 0.5


def test_distributions_start_with_the_median() -> None:
    load = load_of("x; open loop at 1000 writes/s")

    def row(metric: str) -> SsdIqPrediction:
        return SsdIqPrediction("x", "x", load, metric, 10.0, 10.0)

    tails = [row(f"read latency {name}") for name in ("p99", "p99.9", "p99.99")]
    assert distributions(tails) == []
    (reads,) = distributions([row("read latency p50"), *tails, row("write latency p50")])
    assert (reads.operation, reads.share_pct, len(reads.latencies)) == ("read", 100.0, 4)
