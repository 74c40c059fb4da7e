"""Browser tests of comparison tables with many figures, which must fit into the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.browser.visit import Visit
from writecliff.lab.published.ssd_iq.page import page_of
from writecliff.lab.published.ssd_iq.result import Comparison as Published
from writecliff.lab.published.ssd_iq.result import Row
from writecliff.report.comparison import Comparison
from writecliff.report.comparison.contenders import Contender
from writecliff.report.comparison.page import comparison_page
from writecliff.report.comparison.runs import Run
from writecliff.report.headline import Headline
from writecliff.report.pages import render_page

METRICS = ("IOPS of reads", "99.99 % response time of reads", "maximum response time of writes")


def drive(label: str, factor: float) -> Contender:
    """Create a drive with as many figures as in a campaign."""
    headlines = [
        Headline(
            key=f"mixes: {load}: {metric}",
            label=f"mixes: {load}: {metric}",
            group="mixes",
            load=load,
            metric=metric,
            value=1000 * factor * (1 + number),
            unit="IOPS",
        )
        for number in range(30)
        for load in (f"random, 4 KiB, 100 % read, OIO {number}",)
        for metric in METRICS
    ]
    created = "2026-01-01T00:00:00+00:00"
    run = Run(Path(label), "datacentre", created, {"drive": label}, headlines)
    return Contender({"datacentre": run}, label)


def test_no_column_of_many_figures_is_cut_off(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    comparison = Comparison([drive("pm853t-480", 1.0), drive("pm863-480", 1.2345)])
    path.write_text(render_page(comparison_page(comparison)))
    with Visit(browser, path, 1100) as visit:
        tables = visit.page.locator(".table")
        assert tables.count() >= 3
        assert (
            tables.evaluate_all(
                "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
            )
            == []
        )
        assert visit.page.get_by_text("90 figures in 3 groups").is_visible()
        assert visit.complaints == []


def test_no_reason_is_cut_off_on_a_phone(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    condition = (
        "Acme 960 GB (PCIe 4); 80 % of pages get 0 % of writes, 20 % of pages get 100 % of writes"
    )
    reason = (
        "cannot simulate the load: workload: its threads need 149 GB of memory for queue depths"
    )
    row = Row(condition, "write rate relative to uniform on the same unit", 1.0, "x", None, reason)
    path.write_text(render_page(page_of(Published((row,), (), (), 0.0))))
    with Visit(browser, path, 420) as visit:
        cell = visit.page.get_by_role("cell", name=reason)
        box = cell.bounding_box()
        assert box is not None and box["x"] > 0 and box["x"] + box["width"] <= 420
        assert cell.evaluate("cell => getComputedStyle(cell).textAlign") == "left"
        assert visit.complaints == []
