"""The table of drives of today: sources, the split, and the phases of a drive that is filled."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from writecliff.published.figures import read_figures
from writecliff.published.filling import PARTS, phases
from writecliff.published.modern import (
    MODERN,
    family_of,
    is_stated,
    modern_figures,
    modern_sources,
    parts_of_figures,
)


def test_every_figure_has_a_source_with_title_address_and_section() -> None:
    sources = modern_sources()
    used = {figure.source for figure in modern_figures()}
    assert used == set(sources)
    for one in sources.values():
        assert one.title and one.section and one.address.startswith(("http://", "https://"))


def test_every_figure_says_how_it_stands_in_its_source() -> None:
    assert all(figure.note for figure in modern_figures())


def test_a_third_of_each_family_is_kept_aside_and_at_least_one() -> None:
    figures = modern_figures()
    parts = parts_of_figures(figures)
    counts: dict[str, Counter[str]] = {}
    for figure, part in zip(figures, parts, strict=True):
        counts.setdefault(family_of(figure.device), Counter())[part] += 1
    assert len(counts) >= 14
    for family, own in counts.items():
        measured = own["fit"] + own["aside"]
        if measured:
            assert own["aside"] == max(1, measured // 3), family


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
    rows = {id(one): one for one in read_figures(MODERN) if one.access == "random"}
    assert any(one.outstanding is None for one in rows.values())
    assert all(one.outstanding for one in modern_figures() if one.access == "random")


def test_phases_of_a_cache_then_direct_writes_then_folding() -> None:
    rates = [5000.0] * 40 + [3000.0] + [2000.0] * 100 + [500.0] * 59
    assert len(rates) == PARTS
    found = phases(rates, 1000.0, 800.0)
    assert found == {
        "fill_throughput": 1250.0,
        "fill_volume": pytest.approx(200.0),
        "fill_throughput_after": 2000.0,
        "fill_volume_after": pytest.approx(705.0),
        "fill_throughput_late": 500.0,
    }


def test_a_drive_without_a_cache_has_one_phase() -> None:
    found = phases([1000.0] * PARTS, 100.0, 100.0)
    assert found == {"fill_throughput": 1000.0, "fill_volume": 100.0}


def test_a_single_slow_part_is_no_late_phase() -> None:
    rates = [5000.0] * 40 + [2000.0] * 80 + [500.0] + [2000.0] * 79
    found = phases(rates, 1000.0, 800.0)
    assert "fill_volume_after" not in found
