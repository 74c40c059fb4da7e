"""Pages about several runs: plain data, and how it becomes one self-contained HTML file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from writecliff.report.model import DataFile, Section
from writecliff.report.render import data_uri, json_in_html, templates


@dataclass(frozen=True)
class Link:
    """To a report beside the page; `href` is relative, so that folders can be mailed."""

    text: str
    href: str
    note: str = ""


@dataclass(frozen=True)
class Page:
    title: str
    intro: str
    sections: tuple[Section, ...]
    data: tuple[DataFile, ...]
    summary: dict[str, Any]  # inside the page as JSON
    disclosures: tuple[str, ...] = ()
    links: tuple[Link, ...] = field(default_factory=tuple)
    stamp: str = ""


def render_page(page: Page) -> str:
    """The same page gives the same bytes."""
    environment = templates()
    style = environment.get_template("report.css").render()
    return environment.get_template("comparison.html.j2").render(
        page=page,
        style=Markup(style),
        data_uri=data_uri,
        svg=Markup,
        json=json_in_html,
    )
