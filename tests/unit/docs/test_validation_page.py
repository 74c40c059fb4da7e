"""Validation page: it states the results of the files, and which are missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from writecliff.lab.published.notes import note_of
from writecliff.lab.published.tables import label_of
from writecliff.published.figures import OTHERS, PublishedFigure, read_figures
from writecliff.published.kinds import PURE, kind_of

ROOT = Path(__file__).parents[3]
PURE_FIGURES = [
    figure for figure in read_figures() if kind_of(figure) is PURE and not figure.baseline
]
OTHER_FIGURES = [figure for figure in read_figures(OTHERS) if kind_of(figure) is PURE]
NOTED = next(figure for figure in read_figures() if note_of(figure))


def _page(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "validation-page"), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _rows(page: str, heading: str) -> list[list[str]]:
    part = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][1:]


def _reproduction(figures: list[tuple[PublishedFigure, float | None]]) -> str:
    rows = [{**f.columns, "simulated": simulated, "why": ""} for f, simulated in figures]
    return json.dumps({"figures": rows})


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write the page of a validation with known errors.

    Theory misses its tolerance once. Fitted figures are 10 % too high, the first is 100 % too
    high. Figures of other sources are 30 % too low. The data contain no streams.
    """
    folder = tmp_path_factory.mktemp("validation")
    rows = [{"error_pct": -0.2}, {"error_pct": 0.7}]
    (folder / "waf.json").write_text(json.dumps({"tolerance_pct": 0.5, "rows": rows}))
    (folder / "reduction.json").write_text(json.dumps({"tolerance_pct": 0.5, "rows": rows[:1]}))
    first, *rest = PURE_FIGURES[:5]
    fitted = [
        (first, 2 * first.value),
        *((figure, 1.1 * figure.value) for figure in rest),
        (NOTED, None),
    ]
    (folder / "reproduce-all.json").write_text(_reproduction(fitted))
    others = [(figure, 0.7 * figure.value) for figure in OTHER_FIGURES]
    (folder / "reproduce-others.json").write_text(_reproduction(others))
    return _page(folder)


def test_it_holds_theory_to_its_tolerance(page: str) -> None:
    waf, reduction = _rows(page, "Theory")
    assert waf[1:] == ["2", "0.7 %", "1"]
    assert reduction[1:] == ["1", "0.2 %", "0"]


def test_it_has_fitted_and_foreign_figures_side_by_side(page: str) -> None:
    (row,) = (row for row in _rows(page, "By kind of figure") if row[0] == PURE.name)
    assert row[1:4] == ["median, %", "≤ 5", "10 (5)"]
    assert row[5] == f"30 ({len(OTHER_FIGURES)})"


def test_it_names_the_largest_errors_and_what_is_known_of_them(page: str) -> None:
    (row,) = (row for row in _rows(page, "Largest errors: fitted") if row[0] == PURE.name)
    assert row[1:3] == [PURE_FIGURES[0].device, label_of(PURE_FIGURES[0])]
    assert row[5] == "+100.0 %"
    assert [NOTED.device, "not simulated", note_of(NOTED)] in _rows(page, "Known errors")


def test_it_says_what_was_not_run(page: str) -> None:
    assert page.endswith("Not run for this page: streams.json.\n")


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"has none of waf\.json"):
        _page(tmp_path)


def test_every_figure_is_on_the_page_of_figures(tmp_path: Path) -> None:
    """Use one row of theory and one fitted figure that is 10 % too high."""
    row = {"policy": "greedy", "overprovision": 0.07, "pages_per_block": 256}
    row |= {"waf_measured": 7.6, "waf_theory": 7.5, "error_pct": 1.33}
    (tmp_path / "waf.json").write_text(json.dumps({"tolerance_pct": 0.5, "rows": [row]}))
    first = PURE_FIGURES[0]
    fitted = _reproduction([(first, 1.1 * first.value)])
    (tmp_path / "reproduce-all.json").write_text(fitted)
    cuts = {"ok": True, "failure": None, "rows": [{"cuts": 700}, {"cuts": 800}]}
    (tmp_path / "power-cuts.json").write_text(json.dumps(cuts))
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "validation-figures"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    page = done.stdout
    assert "| greedy | 7 % | 256 | 7.6 | 7.5 | +1.3 % | 0.5 % |" in page
    assert "1,500 cuts at random moments, of 2 kinds" in page
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    assert len([line for line in lines if "+10.0 %" in line and first.source in line]) == 1
    assert len(lines) > len(read_figures())
    assert page.endswith(
        "Not run for this page: reduction.json, streams.json, reproduce-others.json.\n"
    )
