"""Table of current drives: sources, split, and the phases of a sequential fill."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from writecliff.devices import TODAY, drives_of_today, show_device
from writecliff.devices.families import FOLDER, variants
from writecliff.devices.sheet import DataSheet
from writecliff.lab.published.modern_families import families
from writecliff.lab.published.modern_page import page
from writecliff.lab.published.reproduce import PARTS, Reproduction, choose, fill_metrics, phases
from writecliff.lab.published.tables import parts_tables
from writecliff.published import modern_sheets
from writecliff.published.figures import read_figures
from writecliff.published.measure import ComparedDrive, shortened_s
from writecliff.published.modern import (
    MODERN,
    family_of,
    is_stated,
    measured_figures,
    modern_figures,
    modern_sources,
    part_scores,
    parts_of_figures,
    split,
)
from writecliff.published.modern_sheets import _phases, drives, facts, with_siblings
from writecliff.published.modern_usual import RULES, usual_ratio, with_usual
from writecliff.published.predictions import (
    MEASURED_PREDICTIONS,
    MODERN_PREDICTIONS,
    device_hashes,
    read_predictions,
)
from writecliff.published.scores import Row
from writecliff.published.sheet_check import fitting_scale


def test_every_figure_has_a_source_with_title_address_and_section() -> None:
    sources = modern_sources()
    used = {figure.source for figure in (*modern_figures(), *measured_figures())}
    assert used == set(sources)
    for source in sources.values():
        assert (
            source.title and source.section and source.address.startswith(("http://", "https://"))
        )


def test_every_figure_says_how_it_stands_in_its_source() -> None:
    assert all(figure.note for figure in (*modern_figures(), *measured_figures()))


def test_a_third_of_each_family_is_kept_aside_and_at_least_one() -> None:
    figures = modern_figures()
    parts = parts_of_figures(figures)
    counts: dict[str, Counter[str]] = {}
    for figure, part in zip(figures, parts, strict=True):
        counts.setdefault(family_of(figure.device), Counter())[part] += 1
    assert len(counts) >= 14
    for family, members in counts.items():
        measured = members["fit"] + members["aside"]
        if measured:
            assert members["aside"] == max(1, measured // 3), family


def test_the_split_depends_on_no_value_and_no_order() -> None:
    figures = modern_figures()
    split = dict(zip(figures, parts_of_figures(figures), strict=True))
    others = [replace(figure, value=2 * figure.value) for figure in reversed(figures)]
    again = parts_of_figures(others)
    assert again == [split[figure] for figure in reversed(figures)]


def test_stated_figures_are_in_neither_part() -> None:
    figures = modern_figures()
    for figure, part in zip(figures, parts_of_figures(figures), strict=True):
        assert (part == "stated") == is_stated(figure)


def test_only_depths_that_a_source_gives_are_in_the_table() -> None:
    rows = {id(figure): figure for figure in read_figures(MODERN) if figure.access == "random"}
    assert any(row.outstanding is None for row in rows.values())
    assert all(figure.outstanding for figure in modern_figures() if figure.access == "random")


def test_phases_of_a_cache_then_direct_writes_then_folding() -> None:
    rates = [5000.0] * 40 + [3000.0] + [2000.0] * 100 + [500.0] * 59
    assert len(rates) == PARTS
    metrics = phases(rates, 1000.0, 800.0)
    assert metrics == {
        "fill_throughput": 1250.0,
        "fill_volume": pytest.approx(200.0),
        "fill_throughput_after": 2000.0,
        "fill_volume_after": pytest.approx(705.0),
        "fill_throughput_late": 500.0,
    }


def test_a_drive_without_a_cache_has_one_phase() -> None:
    metrics = phases([1000.0] * PARTS, 100.0, 100.0)
    assert metrics == {"fill_throughput": 1000.0, "fill_volume": 100.0}


def test_a_single_slow_part_is_no_late_phase() -> None:
    rates = [5000.0] * 40 + [2000.0] * 80 + [500.0] + [2000.0] * 79
    metrics = phases(rates, 1000.0, 800.0)
    assert "fill_volume_after" not in metrics


def test_the_families_are_what_the_rule_derives() -> None:
    for name, text in families().items():
        assert (FOLDER / f"{name}.toml").read_text(encoding="utf-8") == text, name
        assert not re.search(r"(?<![\d,.])0 (MB/s|reads)", text), name


def test_figures_that_are_kept_aside_change_no_family(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = modern_figures()
    parts = parts_of_figures(figures)
    changed = tuple(
        replace(f, value=3 * f.value) if part == "aside" else f
        for f, part in zip(figures, parts, strict=True)
    )
    before = families()
    monkeypatch.setattr(modern_sheets, "modern_figures", lambda: changed)
    assert families() == before


def test_what_is_usual_for_a_drive_is_of_other_families() -> None:
    sheets = {family: [drive.sheet for drive in members] for family, members in drives().items()}
    for family, members in sheets.items():
        others = {name: more for name, more in sheets.items() if name != family}
        half = [
            replace(s, **{f: getattr(s, f) / 2 for f in RULES if getattr(s, f)}) for s in members
        ]  # fmt: skip
        for sheet in members:
            usual = with_usual(family, sheet, others)
            assert usual == with_usual(family, sheet, sheets)
            assert usual == with_usual(family, sheet, {**others, family: half})


def test_usual_is_the_median_of_the_families_of_a_class() -> None:
    sheets = {family: [drive.sheet for drive in members] for family, members in drives().items()}
    of = "data-centre drives"
    assert usual_ratio("write_latency", "cd7", sheets, of) == 15_000
    fast = {name: sheets[name] for name in ("sn770", "t500", "990-evo")}
    assert usual_ratio("sequential_write", "", fast, "client drives without DRAM") == (
        pytest.approx((4900 / 5150 + 4200 / 5000) / 2)
    )
    some = {"t500": sheets["t500"], "cd7": sheets["cd7"]}
    assert usual_ratio("write_latency", "t500", some, "client drives with DRAM") == 14_000


def test_a_capacity_between_two_others_has_figures_between_theirs() -> None:
    (family,) = (members for name, members in drives().items() if name == "micron-9550-max")
    (middle,) = (drive for drive in family if drive.name == "micron-9550-max-6400")
    assert middle.sheet.random_write is None, "it is kept aside"
    sheet, origins = with_siblings(middle, family)
    assert sheet.random_write == pytest.approx((540_000 * 820_000) ** 0.5)
    assert origins["random_write"] == "from micron-9550-max-3200 and micron-9550-max-12800"


def client(**more: float) -> DataSheet:
    return DataSheet(interface="pcie4", capacity=2e12, year=2023, cell="tlc", **more)


def test_phases_of_a_filled_drive_follow_from_each_other() -> None:
    """A 2 TB TLC drive: 400 GB in the cache at 5 GB/s, 800 GB past it at 2, 800 GB folding at 1."""
    late = _phases(client(), {"volume_after": 1.2e12, "after": 2e9, "late": 1e9})
    assert (late.slc_cache, late.write_after_cache, late.write_while_folding) == (4e11, 2e9, 1e9)
    mean = 2e12 / (4e11 / 5e9 + 1.6e12 / 2e9)
    of_mean = _phases(client(sequential_write=5e9), {"after": 2e9, "mean": mean})
    assert of_mean.slc_cache == pytest.approx(4e11)
    whole = {"volume": 2e12 / 3, "burst": 5e9, "mean": 1e9}
    folded = _phases(client(), whole)
    seconds = 2e12 / 3 / 5e9 + (4e12 / 3) / (folded.write_while_folding or 1)
    assert folded.write_after_cache is None and 2e12 / seconds == pytest.approx(1e9)


def test_drives_of_today_are_derived_from_three_figures_or_more_and_can_be_opened() -> None:
    counts = Counter(
        variants()[figure.device].family.stem
        for figure, part in split().items()
        if part == "fit" and figure.device in variants()
    )
    enough = {family for family, count in counts.items() if count >= 3}
    of_ssd_iq = {name for name, fact in facts().items() if "ssd_iq" in fact}
    assert {"pm9d3a", *of_ssd_iq, *(enough & set(families()))} == TODAY
    names = drives_of_today()
    assert len(names) >= 30
    for name in names:
        described = show_device(name)
        assert described.kind == ("scm" if name.startswith("p5800x") else "ssd"), name
        assert (described.raw_bytes is None) == (described.kind == "scm"), name


def test_the_page_of_figures_is_up_to_date() -> None:
    root = FOLDER.parents[3]
    assert (root / "docs/reference/current-drives.md").read_text(encoding="utf-8") == page()


def test_scores_of_parts() -> None:
    figures = split()
    fit = next(f for f, part in figures.items() if part == "fit" and f.metric == "iops")
    aside = next(f for f, part in figures.items() if part == "aside" and f.metric == "iops")
    rows = (Row(fit, fit.value * 1.04), Row(aside, aside.value * 0.8))
    scores = part_scores(rows)
    assert [(s.part, s.kind, s.figures, s.reached) for s in scores] == [
        ("fit", "rates", 1, True),
        ("aside", "rates", 1, False),
    ]
    assert [s.value for s in scores] == [pytest.approx(4.0), pytest.approx(20.0)]
    (shown,) = parts_tables(Reproduction("modern", "", rows, (), (), (), 0.0))
    assert [list(row) for row in shown.rows] == [
        ["fit", "rates", "1", "set by the rule", ""],
        ["aside", "rates", "1", "20.0 %", "12 %"],
    ]


def test_a_drive_and_a_family_have_their_figures() -> None:
    drive, family = choose("t500-1000"), choose("t500")
    assert {f.device for f in drive.figures} == {"t500-1000"}
    assert {f.device for f in family.figures} == {"t500-1000", "t500-2000"}
    assert drive.small_bytes > 0 and not any(is_stated(f) for f in family.figures)


def test_predictions_are_of_the_drives_as_they_are() -> None:
    predictions = read_predictions(MODERN_PREDICTIONS)
    assert all(
        prediction.device_hashes == device_hashes(figure)
        for figure, prediction in predictions.items()
    )
    loaded = [f for f, part in split().items() if part != "stated" and f.device in variants()]
    assert {(f.device, f.metric, f.value) for f in predictions} == {
        (f.device, f.metric, f.value) for f in loaded
    }


def test_figures_that_came_later_are_of_drives_that_can_be_opened() -> None:
    figures = measured_figures()
    assert not set(figures) & {f for f, part in split().items() if part != "stated"}
    for name in {figure.device for figure in figures}:
        assert show_device(name).kind == "ssd"
    rated = {f.device for f in figures if f.metric.startswith("power_")}
    assert {"micron-7600-max-6400", "d7-p5500-7680", "pm9a3-7680"} <= rated


def test_predictions_of_later_figures_are_of_the_drives_as_they_are() -> None:
    predictions = read_predictions(MEASURED_PREDICTIONS)
    assert len(predictions) > 0.85 * len(measured_figures())
    assert all(
        prediction.device_hashes == device_hashes(figure)
        for figure, prediction in predictions.items()
    )


def test_sequential_writes_on_pcie_5_are_a_class_of_their_own() -> None:
    """Check two families that write half as fast as they read, on a link that is twice as fast."""
    sheets = {
        name: [sheet(name, reads, writes)]
        for name, reads, writes in (("a", 6e9, 5e9), ("b", 7e9, 6e9), ("c", 12e9, 6e9))
    }
    slow, _ = with_usual("x", sheet("x", 7.2e9, None), sheets)
    fast, origins = with_usual("x", sheet("x", 13e9, None), sheets)
    assert slow.sequential_write == pytest.approx(7.2e9 * 5 / 6)
    assert fast.sequential_write == pytest.approx(6.5e9)
    assert "NVMe PCIe 5.0 x4" in origins["sequential_write"]


def sheet(name: str, reads: float, writes: float | None) -> DataSheet:
    return DataSheet(
        name=name, interface="pcie5", capacity=7.68e12, year=2023, cell="tlc",
        power_loss_protection=True, sequential_read=reads, sequential_write=writes,
    )  # fmt: skip


def test_a_short_reproduction_has_whole_bursts() -> None:
    """Check that a tenth of the 0.1 s burst would measure the buffer instead of the cache."""
    assert shortened_s(0.1, 0.1) == 0.1
    assert shortened_s(60.0, 0.1) == 6.0
    assert shortened_s(0.1, 1.0) == 0.1


def test_a_filled_drive_shows_the_volume_of_its_cache() -> None:
    """The cache of a client drive takes all free flash, a third of it at one of three bits."""
    drive = ComparedDrive.preset("t500-2000")
    scale = fitting_scale(drive.text, drive.file_name, 8e9)
    metrics = fill_metrics(drive.scaled(scale))
    assert metrics["fill_volume"] == pytest.approx(2000 / 3, rel=0.02)
    assert metrics["fill_throughput_after"] < metrics["fill_throughput"]
    assert "fill_volume_after" not in metrics
    # The figures include 500 MB/s, the rate while the firmware folds.
    assert metrics["fill_throughput_after"] == pytest.approx(500, rel=0.05)
