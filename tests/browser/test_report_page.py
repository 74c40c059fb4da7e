"""Browser tests of the report: nothing loaded, no errors, no overlaps, at any width."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from tests.browser.visit import Visit
from tests.support.bad_runs import killed_early_run, unsteady_real_run
from tests.support.sample_report import STAMP
from tests.support.synthetic_run import build_run
from writecliff.report import write_report

KINDS = ("good", "unsteady", "early")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    runs = {
        "good": build_run(folder / "wsat-good"),
        "unsteady": unsteady_real_run(folder / "unsteady"),
        "early": killed_early_run(folder / "early"),
    }
    return {kind: write_report(run) for kind, run in runs.items()}


@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_fetched_complained_about_or_cut(
    browser: Any, reports: dict[str, Path], kind: str, width: int
) -> None:
    with Visit(browser, reports[kind], width) as visit:
        assert [url for url in visit.requests if not url.startswith("data:")] == [
            reports[kind].as_uri()
        ]
        assert visit.complaints == []
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        wide = visit.page.evaluate(
            """width => [...document.querySelectorAll('main *:not(svg *)')]
                .filter(e => !e.closest('.table') && e.getBoundingClientRect().right > width + 0.5)
                .map(e => e.outerHTML.slice(0, 80))""",
            width,
        )
        assert wide == []


@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_is_visible_and_drawn(
    browser: Any, reports: dict[str, Path], kind: str, width: int
) -> None:
    with Visit(browser, reports[kind], width) as visit:
        figures = visit.page.query_selector_all("figure")
        assert len(figures) == {"good": 11, "unsteady": 10, "early": 10}[kind]
        for figure in figures:
            svg = figure.query_selector("svg")
            assert svg is not None
            if view := visit.page.query_selector(f"label[for=view-{figure.get_attribute('id')}]"):
                view.click()
            assert svg.is_visible()
            box = svg.bounding_box()
            assert box["width"] >= 0.85 * min(width - 40, 540)
            assert box["height"] > 200 * box["width"] / 560
            shapes = svg.evaluate(
                """svg => [...svg.querySelectorAll('path, use')].filter(e => {
                    const b = e.getBoundingClientRect(); return b.width + b.height > 2 }).length"""
            )
            assert shapes > 5


TEXTS = """svg => {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].map(e => ({
        text: e.textContent.trim(), box: e.getBoundingClientRect() })).filter(t => t.text);
    const problems = [];
    for (const {text, box} of texts)
        if (box.left < frame.left - 1 || box.right > frame.right + 1
            || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
            problems.push('cut: ' + text);
    for (let i = 0; i < texts.length; i++)
        for (let j = i + 1; j < texts.length; j++) {
            const a = texts[i].box, b = texts[j].box;
            const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (x > 1 && y > 0.35 * Math.min(a.height, b.height))
                problems.push('overlap: ' + texts[i].text + ' / ' + texts[j].text);
        }
    return problems;
}"""


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_figure_is_cut_or_on_other_text(
    browser: Any, reports: dict[str, Path], kind: str
) -> None:
    with Visit(browser, reports[kind], 1200) as visit:
        for figure in visit.page.query_selector_all("figure"):
            svg = figure.query_selector("svg")
            assert (figure.get_attribute("id"), svg.evaluate(TEXTS)) == (
                figure.get_attribute("id"),
                [],
            )


def test_header_block_and_verdict(browser: Any, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["good"], 1200) as visit:
        page = visit.page
        assert page.title() == "Write Saturation Test: Example SATA TLC 120, 120 GB"
        assert (
            page.inner_text("#verdict h2")
            == "It sustains 11,904 IOPS, 14 % of its rate when new, with a p99.99 of 203 ms."
        )
        columns = page.query_selector_all(".block .column")
        assert [column.query_selector("h3").inner_text() for column in columns] == [
            "Test Platform", "Device Under Test", "Set Up Parameters", "Test Parameters",
        ]  # fmt: skip
        for column in columns:
            labels = [e.inner_text().strip() for e in column.query_selector_all("dt")]
            values = [e.inner_text().strip() for e in column.query_selector_all("dd")]
            assert 4 <= len(labels) == len(values) <= 10
            assert not any(value.startswith("N/A") for value in values)
            assert all(labels)
            assert all(values)
        dates = page.inner_text(".strip")
        assert "Test Run Date\n03/02/2026 03:30 PM UTC" in dates
        assert "Report Run Date" in dates
        tops = {e.bounding_box()["y"] for e in columns}
        assert len(tops) == 1  # The four columns are side by side.


def test_the_first_screen_has_answer_figures_plot_and_disclosures(
    browser: Any, reports: dict[str, Path]
) -> None:
    with Visit(browser, reports["unsteady"], 1280) as visit:
        page = visit.page
        assert "not in steady state" in page.title()
        assert "not in steady state" in page.inner_text("h1")
        assert page.inner_text("#verdict .question").endswith("?")
        assert 2 <= len(page.inner_text("#verdict h2").split()) <= 20
        assert 3 <= len(page.query_selector_all(".keys.main .key")) <= 5
        assert len(page.query_selector_all(".disclosures li")) == 6
        for part in ("#verdict", ".keys.main", ".lead figure", ".disclosures"):
            box = page.query_selector(part).bounding_box()
            assert 0 < box["y"] < 900
    with Visit(browser, reports["good"], 1200) as visit:
        assert visit.page.query_selector(".disclosures") is None


def test_data_links_download_what_they_say(
    browser: Any, reports: dict[str, Path], tmp_path: Path
) -> None:
    with Visit(browser, reports["good"], 1200, accept_downloads=True) as visit:
        with visit.page.expect_download() as download:
            visit.page.click("text=steps.csv")
        download.value.save_as(tmp_path / "steps.csv")
        lines = (tmp_path / "steps.csv").read_text().splitlines()
        assert lines[0].startswith("seq,phase,round,step,label,sample,")
        assert len(lines) == 1 + 186


def test_dark_and_light(browser: Any, reports: dict[str, Path]) -> None:
    def luminance(colour: str) -> float:
        parts = colour.partition("(")[2].rstrip(")").split(",")[:3]
        red, green, blue = (int(part) / 255 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for scheme, dark in (("light", False), ("dark", True)):
        with Visit(browser, reports["good"], 1200, color_scheme=scheme) as visit:
            page = luminance(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
            text = luminance(
                visit.page.evaluate("getComputedStyle(document.querySelector('figure text')).fill")
            )
            assert (page < text) is dark
            assert abs(page - text) > 0.6


def test_the_badge_leads_to_the_disclosures(browser: Any, sample: Path) -> None:
    with Visit(browser, sample, 1200) as visit:
        assert visit.page.inner_text(".stamp") == STAMP
        assert visit.page.inner_text("body").count(STAMP) == 1
        target = visit.page.query_selector(".stamp").get_attribute("href")
        assert "1 s instead of 60 s" in visit.page.inner_text(target)


def test_a_switch_shows_a_view_at_a_time(browser: Any, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["good"], 1200) as visit:
        page = visit.page
        assert page.is_visible("#iops-time-linear")
        assert not page.is_visible("#iops-time-log")
        page.click(".views label:text-is('time, log')")
        assert page.is_visible("#iops-time-log")
        assert not page.is_visible("#iops-time-linear")
        page.emulate_media(media="print")
        assert page.is_visible("#iops-time-linear")
        assert page.is_visible("#iops-volume-log")


def test_wide_figures_take_the_width(browser: Any, sample: Path) -> None:
    with Visit(browser, sample, 1200) as visit:
        page = visit.page
        widths = [e.bounding_box()["width"] for e in page.query_selector_all("figure")]
        assert sorted({round(width, -2) for width in widths}) == [500, 700, 1100]
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200


@pytest.mark.parametrize("kind", ["good", "sample"])
def test_print_has_the_header_block_once_and_fills_its_pages(
    browser: Any, reports: dict[str, Path], sample: Path, kind: str
) -> None:
    """Check that the page is complete without scripts."""
    pypdf = pytest.importorskip("pypdf", reason="reads the PDF")
    path = sample if kind == "sample" else reports[kind]
    with Visit(browser, path, 1200, java_script_enabled=False) as visit:
        pdf = visit.page.pdf(prefer_css_page_size=True)
    pages = [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(pdf)).pages]
    assert len(pages) == {"good": 5, "sample": 5}[kind]
    for number, text in enumerate(pages, 1):
        assert f"Page {number} of {len(pages)}" in text
        assert text.count(STAMP) == (kind == "sample")
    whole = "\n".join(pages)
    assert whole.count("Purge Method") == 1
    assert "Point at a plot" not in whole
