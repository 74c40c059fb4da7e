"""Browser tests of the drive selector on a comparison page, which shows all drives or one drive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.browser.visit import Visit
from writecliff.report.axes import Axis, time_axis
from writecliff.report.compared import Curve
from writecliff.report.comparison.contenders import Contender
from writecliff.report.comparison.pictures import curves_section
from writecliff.report.comparison.runs import Run
from writecliff.report.pages import Page, render_page

DRIVES = ('Drive "A"', "Drive B", "Drive C")


def contender(label: str, iops: float) -> Contender:
    """Create a drive with two curves."""
    points = [(n * 60e9, iops / n) for n in range(1, 9)]
    curves = [
        Curve(name, name, time_axis(8 * 60e9), Axis("IOPS"), points, name == "relative")
        for name in ("absolute", "relative")
    ]
    run = Run(Path(label), "wsat", "2026-01-01T00:00:00+00:00", {"drive": label}, [], curves)
    return Contender({"wsat": run}, label)


def test_one_drive_can_be_shown_alone(browser: Any, tmp_path: Path) -> None:
    part = curves_section([contender(name, 1e4 * n) for n, name in enumerate(DRIVES, 1)])
    path = tmp_path / "page.html"
    path.write_text(render_page(Page("t", "", (part,), {})))
    with Visit(browser, path, 1200) as visit:
        select = visit.page.get_by_role("combobox")
        assert select.locator("option").all_inner_texts() == ["all", *DRIVES]

        def shown() -> list[list[str]]:
            """Return the drives shown in each plot, read from the switches in its legend."""
            return [
                [name for name in DRIVES
                 if svg.get_by_role("button", name=name, exact=True).get_attribute("aria-pressed")
                 == "true"]
                for svg in visit.page.locator("figure svg").all()
            ]  # fmt: skip

        assert shown() == [list(DRIVES)] * 2
        select.select_option(DRIVES[1])
        assert shown() == [[DRIVES[1]]] * 2
        select.select_option("all")
        assert shown() == [list(DRIVES)] * 2
        assert visit.complaints == []
