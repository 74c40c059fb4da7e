"""Documentation site: built without warnings, complete offline, with all functions and reports."""

from __future__ import annotations

import dataclasses
import fcntl
import html
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

import writecliff
from docs._ext import gallery, versions
from docs._ext.fields import fields_of
from tests.browser.visit import Visit

ROOT = Path(__file__).parents[3]
KINDS = ("tutorial", "guides", "reference", "explanation")
# Attributes that, unlike links, make a browser fetch a file when it displays the page.
FETCHING = {
    ("script", "src"), ("img", "src"), ("img", "srcset"), ("iframe", "src"), ("source", "src"),
    ("embed", "src"), ("object", "data"), ("video", "src"), ("audio", "src"), ("use", "href"),
}  # fmt: skip


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make site` does, without gallery reports; once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _build(folder.with_suffix(".part")).rename(folder)
    return folder


def _build(folder: Path) -> Path:
    words = ["-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "--builder", "html"]
    done = subprocess.run(
        [sys.executable, *words, "docs", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


class _Page(HTMLParser):
    """Files that a page fetches, its links, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) in FETCHING or (tag == "link" and name == "href"):
                self.fetched.append(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")
            elif name in ("id", "name"):
                self.anchors.add(value or "")


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, _Page]:
    return {path: _Page(path) for path in site.rglob("*.html") if "gallery/" not in str(path)}


def test_nothing_is_fetched_from_elsewhere(site: Path, pages: dict[Path, _Page]) -> None:
    fetched = [url for page in pages.values() for url in page.fetched]
    assert len(fetched) > 100
    assert [url for url in fetched if re.match(r"(?:\w+:)?//", url)] == []
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert re.findall(r"url\(\s*['\"]?(?:https?:)?//|@import", text) == [], sheet.name
    for script in site.rglob("*.js"):
        text = script.read_text(encoding="utf-8")
        assert re.findall(r"(?:fetch|import|src ?=)\s*\(?\s*['\"`](?:https?:)?//", text) == []


@pytest.mark.parametrize(
    ("line", "fetched"),
    [
        ('<script src="https://example.org/a.js"></script>', ["https://example.org/a.js"]),
        ('<link rel="stylesheet" href="//example.org/a.css">', ["//example.org/a.css"]),
        ('<a href="https://example.org">there</a>', []),
    ],
)
def test_what_a_page_fetches_is_seen(line: str, fetched: list[str], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(line, encoding="utf-8")
    assert _Page(path).fetched == fetched


def test_every_link_within_the_site_leads_somewhere(pages: dict[Path, _Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"\w+:|//", link):
                continue
            name, anchor = urldefrag(unquote(link))
            to = (path.parent / name).resolve() if name else path
            if not to.is_file() or (anchor and to in pages and anchor not in pages[to].anchors):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_every_page_is_reached_and_of_a_kind(site: Path, pages: dict[Path, _Page]) -> None:
    first = pages[site / "index.html"]
    for kind in KINDS:
        assert f"{kind}/index.html" in first.links
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert {site / path.with_suffix(".html") for path in sources} <= pages.keys()


def test_every_name_of_the_package_is_in_the_reference(site: Path) -> None:
    page = _Page(site / "reference" / "python-api.html")
    documented = {anchor.rpartition(".")[2] for anchor in page.anchors}
    assert documented >= {*writecliff.__all__}


def test_every_field_of_a_job_is_in_the_reference_with_its_comment(site: Path) -> None:
    fields = fields_of(writecliff.Job)
    assert {name for name, _, _ in fields} >= {
        field.name for field in dataclasses.fields(writecliff.Job)
    }
    text = (site / "reference" / "python-api.html").read_text(encoding="utf-8")
    for name, declared, _ in fields:
        assert f"{name}: {declared}" in html.unescape(re.sub("<[^>]+>", "", text)), name
    assert ("read_pct", "float = 0.0") in {(name, declared) for name, declared, _ in fields}


def test_notes_for_the_tests_are_not_on_the_site(site: Path) -> None:
    text = (site / "guides" / "wsat.html").read_text(encoding="utf-8")
    assert "needs a real drive" in (ROOT / "docs/guides/wsat.md").read_text(encoding="utf-8")
    assert "not-run" not in text and "needs a real drive" not in text


def test_versions_are_listed_newest_first(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    for version in ("0.9.0", "0.10.0", "0.10.0"):
        names = versions.add(tmp_path / "site", tmp_path / "all", version)
    assert names == ["0.10.0", "0.9.0"]
    text = (tmp_path / "all/versions.js").read_text(encoding="utf-8")
    assert text == 'showVersions(["0.10.0", "0.9.0"]);\n'


def test_pages_show_their_version(site: Path) -> None:
    page = (site / "guides/wsat.html").read_text(encoding="utf-8")
    assert f'<option value="{versions.version()}">' in page
    assert 'data-page="guides/wsat.html"' in page and "_static/versions.js" in page


def test_the_gallery_has_every_entry_with_its_commands(site: Path) -> None:
    page = (site / "gallery.html").read_text(encoding="utf-8")
    text = page.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    assert len(gallery.entries()) >= 6
    for entry in gallery.entries():
        assert entry.about.split(":")[0] in text
        assert entry.pages


def test_reports_that_have_been_made_are_shown_with_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "MADE", tmp_path)
    entry = gallery.Entry("one", "about", "true", (("A & B", "run/report.html"),))
    assert "not in this build" in gallery.html_of(entry)
    page = entry.folder / "run" / "report.html"
    page.parent.mkdir(parents=True)
    page.touch()
    page.with_suffix(".png").touch()
    shown = gallery.html_of(entry)
    assert 'href="gallery/one/run/report.html"' in shown and "A &amp; B" in shown
    assert 'src="gallery/one/run/report.png"' in shown


@pytest.mark.parametrize("name", ["index", "guides/devices", "reference/glossary", "gallery"])
def test_a_page_fits_a_narrow_screen_and_asks_nobody(browser: Any, site: Path, name: str) -> None:
    with Visit(browser, site / f"{name}.html", 400) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 400
        assert [url for url in visit.requests if not url.startswith("file:")] == []


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("knee", "4. The answer"),
        ("choose drive", "Choosing a drive"),
        ("which SSD", "Choosing a drive"),
    ],
)
def test_the_search_needs_no_server(browser: Any, site: Path, query: str, page: str) -> None:
    with Visit(browser, site / "index.html", 1300) as visit:
        visit.page.fill("input[name=q]", query)
        visit.page.press("input[name=q]", "Enter")
        visit.page.wait_for_selector("#search-results li a", timeout=30_000)
        assert visit.page.inner_text("#search-results li a") == page
        assert [url for url in visit.requests if not url.startswith("file:")] == []
