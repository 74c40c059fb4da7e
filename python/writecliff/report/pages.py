"""Pages about several runs: plain data, and how it becomes one self-contained HTML file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from writecliff.report.csvs import with_data
from writecliff.report.model import DataFile, Section
from writecliff.report.render import rendered
from writecliff.store.files import write_atomically


@dataclass(frozen=True)
class Link:
    """A link to a report beside the page; `href` is relative, so that folders can be mailed."""

    text: str
    href: str
    note: str = ""


@dataclass(frozen=True)
class Page:
    """A page; `data` are files besides those of its figures and tables."""

    title: str
    intro: str
    sections: tuple[Section, ...]
    summary: dict[str, Any]  # inside the page as JSON
    data: tuple[DataFile, ...] = ()
    disclosures: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    stamp: str = ""


def render_page(page: Page) -> str:
    """The page as HTML. The same page gives the same bytes."""
    shown = [part for part in page.sections if part.figures or part.tables]
    sections, files = with_data(shown, page.data)
    return rendered("comparison.html.j2", page=replace(page, sections=sections, data=files))


def write_page(page: Page, path: Path) -> Path:
    """Write the page to `path` and return it; an existing file is replaced atomically."""
    write_atomically(path, render_page(page).encode())
    return path
