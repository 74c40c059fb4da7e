"""Browser tests of the dashboard: no foreign content, no overflow, keyboard access, few marks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.dashboard import Served, dashboard
from tests.support.long_run import make_long_run
from tests.support.many_runs import make_many_runs
from tests.support.processes import WAIT_LIMIT_S
from tests.support.run_store import make_run
from tests.support.synthetic_run import Drive, manifest, records
from writecliff.runs.catalogue import Catalogue
from writecliff.runs.place import open_place
from writecliff.store.rundir import RunDirectory
from writecliff.suite.folder import Member, SuiteFolder

EVIL = "<img src=x onerror=alert(1)>$$x$$"
RUN = "/run?name=runs%2Ffirst"
PAGES = ("/", RUN, "/overlay?name=runs%2Ffirst&name=runs%2Fsecond", "/sets",
         "/set?name=sweeps%2Fone", "/run?name=runs%2Fbroken", "/delete?name=runs%2Ffirst",
         "/run?name=nothing")  # fmt: skip
VIEW = "JSON.parse(document.querySelector('.plot-area').dataset.view)"
DRAWN = "document.querySelector('.plot-area')?.dataset.view !== undefined"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("dashboard")
    for number, name in enumerate(("first", "second")):
        make_run(root / "runs" / name, iops=9_000.0 + 2_000 * number, warnings=(EVIL,), title=EVIL)
    make_run(root / "runs" / "broken")
    (root / "runs" / "broken" / "manifest.json").write_text("{")
    members = {f"cell-{n}{EVIL}": Member("wsat", {}, "sim:x", {"queue_depth": str(n), "gc": EVIL})
               for n in range(3)}  # fmt: skip
    SuiteFolder.create(root / "sweeps" / "one", "sweep", "queue_depth,gc", members)
    for number, name in enumerate(members):
        make_run(root / "sweeps" / "one" / name, iops=9_000.0 + 500 * number)
    with dashboard(root, allow_changes=True) as server:
        yield server


class Look:
    """An open page with its requests and error messages."""

    def __init__(self, page: Any, served: Served) -> None:
        self.page, self.served = page, served
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append("a dialog"), dialog.dismiss()))
        page.on("console", self._record)

    def _record(self, message: Any) -> None:
        if "document idle" not in message.text and "status of 404" not in message.text:
            self.complaints.append(message.text)

    def at(self, path: str) -> Any:
        self.page.goto(f"http://127.0.0.1:{self.served.port}{path}")
        return self.page

    def drawn(self, path: str) -> Any:
        """Open the dashboard, and return its page once the plots are drawn."""
        until(self.at(path), DRAWN)
        return self.page


def until(page: Any, expression: str) -> None:
    """Wait until an expression is true. Playwright's method needs `eval`, which pages forbid."""
    end_s = time.monotonic() + WAIT_LIMIT_S
    while not page.evaluate(expression):
        assert time.monotonic() < end_s, expression
        page.wait_for_timeout(50)


@contextmanager
def looking(browser: Any, served: Served, width: int = 1200) -> Iterator[Look]:
    context = browser.new_context(viewport={"width": width, "height": 900})
    # The timeout allows for a machine that also runs other programs.
    context.set_default_timeout(60_000)
    try:
        look = Look(context.new_page(), served)
        look.page.goto(served.address)
        yield look
    finally:
        context.close()


@pytest.mark.parametrize("width", [1200, 400])
def test_nothing_is_foreign_complained_about_or_cut(
    browser: Any, served: Served, width: int
) -> None:
    with looking(browser, served, width) as look:
        for path in PAGES:
            page = look.at(path)
            if page.query_selector(".plot-area"):
                until(page, DRAWN)
            if page.query_selector(".coordinates"):
                page.wait_for_selector(".coordinates[data-runs='3']")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            wide = page.evaluate(
                """width => [...document.querySelectorAll('main *')]
                    .filter(e => !e.closest('.table, .coordinates, .hidden, .canvas'))
                    .filter(e => e.getBoundingClientRect().right > width + 0.5)
                    .map(e => e.outerHTML.slice(0, 80))""",
                width,
            )
            assert wide == [], path
        assert look.complaints == []
        origins = (f"http://127.0.0.1:{served.port}/", "data:", "blob:")
        assert [url for url in look.requests if not url.startswith(origins)] == []


def test_plots_are_drawn_in_colours_of_the_reports(browser: Any, served: Served) -> None:
    with looking(browser, served) as look:
        page = look.drawn(RUN)
        titles = page.locator(".plot h3").all_inner_texts()
        assert [title.split("\n")[0] for title in titles][:2] == [
            "I/Os per second (IOPS)", "Throughput (MB/s)"]  # fmt: skip
        painted = page.evaluate(
            """() => { const seen = new Set();
                const walk = (root) => root.querySelectorAll('*').forEach((e) => {
                    if (e.shadowRoot) walk(e.shadowRoot);
                    if (e.localName === 'canvas' && e.width) {
                        const d = e.getContext('2d').getImageData(0, 0, e.width, e.height).data;
                        for (let i = 0; i < d.length; i += 4)
                            if (d[i + 3] === 255) seen.add(d.slice(i, i + 3).join());
                    } });
                walk(document.querySelector('.canvas')); return [...seen]; }"""
        )
        assert "29,79,145" in painted  # The colour is --s1 in report.css.


def test_the_list_is_used_by_keyboard(browser: Any, served: Served) -> None:
    with looking(browser, served) as look:
        page = look.at("/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        for _ in range(5):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.name") == "q":
                break
        page.keyboard.type("runs/second")
        page.keyboard.press("Enter")
        page.wait_for_url("**q=runs*")
        page.keyboard.press("Tab")
        stops = 0
        while page.evaluate("document.activeElement.textContent") != "runs/second":
            page.keyboard.press("Tab")
            stops += 1
            assert stops < 40
        style = "getComputedStyle(document.activeElement)"
        assert page.evaluate(f"{style}.outlineStyle") != "none"
        assert page.evaluate(f"parseFloat({style}.outlineWidth)") >= 1
        page.keyboard.press("Enter")
        page.wait_for_url("**/run?name=runs%2Fsecond")
        unnamed = page.evaluate(
            """[...document.querySelectorAll('input:not([type=hidden]), select, button, a')]
                .filter(e => !(e.labels?.length || e.ariaLabel || e.textContent.trim()))
                .map(e => e.outerHTML)"""
        )
        assert unnamed == []


def test_plots_are_zoomed_and_moved_by_keyboard(browser: Any, served: Served) -> None:
    with looking(browser, served) as look:
        page = look.drawn(RUN)
        whole = page.evaluate(VIEW)
        page.locator(".plots-here").focus()
        views = [whole]
        for key in ("+", "ArrowRight", "ArrowLeft", "-", "+", "Home"):
            page.keyboard.press(key)
            until(page, f"JSON.stringify({VIEW}) !== JSON.stringify({json.dumps(views[-1])})")
            views.append(page.evaluate(VIEW))
        width = whole[1] - whole[0]
        assert views[1][1] - views[1][0] == pytest.approx(width / 2)
        assert views[2][0] > views[1][0] and views[3] == pytest.approx(views[1])
        assert views[-1] == whole
        page.get_by_role("button", name="Zoom in").press("Enter")
        until(page, f"{VIEW}[0] > {whole[0]}")
        page.get_by_text("Values in view").press("Enter")
        assert page.locator(".values tbody tr").count() >= 5


def test_a_run_of_a_million_intervals_has_few_marks(browser: Any, tmp_path: Path) -> None:
    make_long_run(tmp_path / "runs" / "long", 1_000_000)
    with dashboard(tmp_path) as served, looking(browser, served) as look:
        page = look.drawn("/run?name=runs%2Flong")
        area = page.locator(".plot-area")
        assert int(area.get_attribute("data-marks")) <= 5_000
        assert area.get_attribute("data-whole") == "false"
        box = page.locator(".canvas").first.bounding_box()
        middle, y = box["x"] + 64 + (box["width"] - 70) / 2, box["y"] + 60
        for _ in range(6):  # Drag across the middle of the visible range.
            before = page.evaluate(VIEW)
            page.mouse.move(middle - 20, y)
            page.mouse.down()
            page.mouse.move(middle, y, steps=3)
            page.mouse.move(middle + 20, y, steps=3)
            page.mouse.up()
            until(page, f"{VIEW}[1] - {VIEW}[0] < {(before[1] - before[0]) * 0.6}")
            assert int(area.get_attribute("data-marks")) <= 5_000
            if area.get_attribute("data-whole") == "true":
                break
        assert "every interval is drawn" in page.locator(".plot-area .shown").inner_text()
        page.keyboard.press("Escape")
        assert look.complaints == []


def test_ten_thousand_runs_are_listed(browser: Any, tmp_path: Path) -> None:
    make_many_runs(tmp_path, 10_000)
    Catalogue(open_place(str(tmp_path))).refresh()
    with dashboard(tmp_path) as served, looking(browser, served) as look:
        page = look.at("/?sort=run")
        assert "10,000 runs, 1 to 100" in page.locator(".above").inner_text()
        assert page.locator("tbody tr").count() == 100
        page.get_by_role("link", name="Last").click()
        page.wait_for_url("**page=100*")
        assert page.locator("tbody .name").last.inner_text() == "runs/run-09999"
        page.get_by_label("Search").fill("drive 7")
        page.get_by_label("Tag").fill("nightly")
        page.keyboard.press("Enter")
        page.wait_for_url("**tag=nightly*")
        assert "83 runs" in page.locator(".above").inner_text()
        assert look.complaints == []


def test_quantities_and_normalisation_are_chosen(browser: Any, served: Served) -> None:
    with looking(browser, served) as look:
        page = look.at("/")
        for name in ("runs/first", "runs/second"):
            page.get_by_label(f"Select {name}").check()
        page.get_by_role("button", name="Overlay selected").click()
        until(page, DRAWN)
        page.get_by_label("Values").select_option("maximum")
        until(page, "document.querySelector('.plot h3').textContent.includes('maximum')")
        page.get_by_label("Quantity").select_option("latency_mean.write")
        until(page, "document.querySelector('.plot h3').textContent.includes('latency')")
        assert page.locator(".values tbody tr").count() == 2
        assert look.complaints == []


def test_a_run_that_goes_on_is_followed(browser: Any, tmp_path: Path) -> None:
    drive = Drive(capacity_bytes=120_000_000_000)
    steps = records(drive, rounds=2, steps_per_round=3, step_s=2.0)
    phase = {"name": "rounds", "detail": "4 KiB writes", "started": "2026-03-02T15:30:00+00:00"}
    (tmp_path / "runs").mkdir()
    with RunDirectory.create(tmp_path / "runs" / "now", manifest(drive, phases=(phase,))) as run:
        run.append_round(next(steps))
        with dashboard(tmp_path) as served, looking(browser, served) as look:
            page = look.drawn("/run?name=runs%2Fnow")
            doing = page.locator("#doing")
            assert "running, rounds (4 KiB writes), 1 step complete" in doing.inner_text()
            first = page.evaluate(VIEW)
            for record in steps:
                run.append_round(record)
            until(page, f"{VIEW}[1] > {first[1]}")
            until(page, "document.getElementById('doing').textContent.includes('6 steps complete')")
            run.finish("complete")
            until(page, "document.getElementById('status').textContent === 'complete'")
            assert look.complaints == []
