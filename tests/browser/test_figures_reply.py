"""Browser tests of figures: values under the pointer, zoom, series switches, and no scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.visit import Visit
from tests.support.figure_gallery import GALLERY

KINDS = list(GALLERY)


@pytest.fixture
def page(browser: Any, sample: Path) -> Any:
    with Visit(browser, sample, 1200) as visit:
        yield visit.page
        assert visit.complaints == []


def plot(page: Any, kind: str) -> Any:
    """Return the drawing of a given kind, scrolled into view."""
    svg = page.locator(f"#f{KINDS.index(kind)} svg")
    svg.scroll_into_view_if_needed()
    return svg


POINT = r"""(svg, [series, index]) => {
    const parts = JSON.parse(svg.dataset.plots).plots.flatMap(plot => plot.parts);
    const id = parts.find(part => part.values && part.series === series).id;
    const group = svg.querySelector(`[id$=-${id}]`), marks = group.querySelectorAll('use');
    const [x, y] = marks.length
        ? [marks[index].getAttribute('x'), marks[index].getAttribute('y')]
        : group.querySelector('path').getAttribute('d').match(/[-\d.]+/g).slice(2 * index);
    const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
    return [at.x, at.y];
}"""


def point_at(page: Any, svg: Any, series: str, index: int) -> str:
    """Return the text that is shown while the pointer is on a point of a series."""
    page.mouse.move(*svg.evaluate(POINT, [series, index]))
    text: str = page.locator(".tip").inner_text()
    return text


def test_a_point_says_its_values_with_units(page: Any) -> None:
    svg = plot(page, "iops v block size")
    assert point_at(page, svg, "0/100", 1) == "0/100\nIOPS: 12,000\nBlock size: 4 KiB"
    svg = plot(page, "throughput v time")
    answer = "throughput of a minute\nThroughput: 480 MB/s\nTime: 1.667 h"
    assert point_at(page, svg, "throughput of a minute", 100) == answer
    svg = plot(page, "confidence")
    answer = "nines\nShare of I/Os completed within: 99.99 %\nResponse time: "
    assert point_at(page, svg, "nines", 3).startswith(answer)
    page.mouse.move(5, 5)
    assert page.locator(".tip").is_hidden()


def test_a_second_axis_has_its_own_values(page: Any) -> None:
    svg = plot(page, "two axes")
    assert "Throughput: 509.3 MB/s\n" in point_at(page, svg, "TP (left)", 599)
    assert "Response time: 62.83 ms\n" in point_at(page, svg, "ART (right)", 599)


def test_bars_and_columns_say_their_values(page: Any) -> None:
    svg = plot(page, "bars")
    svg.locator(".has-tip").first.hover()
    assert page.locator(".tip").inner_text() == "1024 KiB, 0/100 (write): 512.0 MB/s"
    svg = plot(page, "3-D columns")
    svg.locator(".has-tip").last.hover()
    assert page.locator(".tip").inner_text().startswith("0/100, 0.5: 12,000")


TICKS = """svg => [...svg.querySelectorAll('[id$=plot0-x] text')]
    .filter(e => e.getBoundingClientRect().width).map(e => e.textContent)"""


BOX = """svg => {
    const [x, y, width, height] = JSON.parse(svg.dataset.plots).plots[0].box;
    const matrix = svg.getScreenCTM(), at = (x, y) => new DOMPoint(x, y).matrixTransform(matrix);
    const begin = at(x, y), end = at(x + width, y + height);
    return [begin.x, begin.y, end.x - begin.x, end.y - begin.y];
}"""


def drag(page: Any, svg: Any, begin: float, end: float) -> None:
    """Drag across a fraction of the plot's width."""
    x, y, width, height = svg.evaluate(BOX)
    page.mouse.move(x + begin * width, y + height / 2)
    page.mouse.down()
    page.mouse.move(x + end * width, y + height / 2 + 2, steps=3)
    page.mouse.up()


@pytest.mark.parametrize("kind", ["throughput v time", "histogram", "iops v block size"])
def test_zoom_and_back(page: Any, kind: str) -> None:
    paths = "svg => [...svg.querySelectorAll('path')].map(e => e.getAttribute('d'))"
    svg = plot(page, kind)
    whole, before = svg.evaluate(paths), svg.evaluate(TICKS)
    drag(page, svg, 0.3, 0.5)
    assert svg.evaluate(TICKS) != before
    button = page.get_by_role("button", name="whole plot")
    button.click()
    assert button.is_hidden()
    assert (svg.evaluate(paths), svg.evaluate(TICKS)) == (whole, before)


def test_values_and_ticks_are_right_in_a_zoomed_plot(page: Any) -> None:
    svg = plot(page, "throughput v time")  # Plot of a ten-hour run.
    drag(page, svg, 0.3, 0.5)
    hours = [float(text) for text in svg.evaluate(TICKS) if text[0].isdigit()]
    assert len(hours) >= 3
    assert 2.9 < min(hours) < max(hours) < 5.1
    x, y, width, height = svg.evaluate(BOX)
    page.mouse.move(x + 0.5 * width, y + 0.1 * height)
    text = page.locator(".tip").inner_text()
    assert "Throughput: 480 MB/s" in text
    assert float(text.partition("Time: ")[2].split()[0]) == pytest.approx(4, abs=0.1)


def test_a_series_is_hidden_and_shown(page: Any) -> None:
    svg = plot(page, "iops v block size")
    line = svg.locator("g[id$=plot0-0]")
    switch = svg.get_by_role("button", name="0/100", exact=True)
    switch.click()
    assert line.is_hidden()
    assert switch.get_attribute("aria-pressed") == "false"
    assert point_at(page, svg, "0/100", 1).startswith("5/95\n")
    switch.press("Enter")
    assert line.is_visible()
    assert switch.get_attribute("aria-pressed") == "true"
