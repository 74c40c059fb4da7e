"""The gallery of reports: what is in it, where `tools/gallery` puts it, and how a page shows it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIST = ROOT / "docs" / "gallery.toml"
MADE = ROOT / ".cache" / "gallery"
"""A folder for each entry: its reports, and a picture of each (`NAME.png` beside `NAME.html`)."""
NOT_MADE = "These reports are not in this build: <code>make site</code> makes them."


@dataclass(frozen=True)
class Entry:
    """Commands, and the reports that they leave."""

    name: str
    about: str
    commands: str
    """Lines for the shell; they run in a folder with the files of the tutorial."""

    pages: tuple[tuple[str, str], ...]
    """Title and path of each report that is shown."""

    @property
    def folder(self) -> Path:
        """Folder of the reports."""
        return MADE / "pages" / "gallery" / self.name


def entries() -> list[Entry]:
    """Return the entries of docs/gallery.toml, in order."""
    tables = tomllib.loads(LIST.read_text(encoding="utf-8"))["entry"]
    return [
        Entry(table["name"], table["about"], table["commands"], tuple(table["pages"].items()))
        for table in tables
    ]


def picture(page: str) -> str:
    """Return the path of the picture of a report."""
    return f"{page.removesuffix('.html')}.png"


def html_of(entry: Entry) -> str:
    """Return pictures with links to the reports, or a note if they have not been made."""
    cards = [
        f'<a class="card" href="gallery/{entry.name}/{page}">'
        f'<img src="gallery/{entry.name}/{picture(page)}" alt="{escape(title)}" loading="lazy" '
        f'width="640" height="440"><span>{escape(title)}</span></a>'
        for title, page in entry.pages
        if (entry.folder / page).is_file() and (entry.folder / picture(page)).is_file()
    ]
    if not cards:
        return f'<p class="missing">{NOT_MADE}</p>'
    return f'<div class="gallery">{"".join(cards)}</div>'


def setup(app: Any) -> dict[str, Any]:
    """Register the directive `gallery` with Sphinx."""
    from docutils import nodes
    from docutils.parsers.rst import Directive

    class Gallery(Directive):
        """All entries, each with its subject, its reports and the commands that made them."""

        def run(self) -> list[nodes.Node]:
            rendered: list[nodes.Node] = []
            for entry in entries():
                commands = nodes.literal_block(entry.commands, entry.commands, language="sh")
                rendered += [
                    nodes.paragraph(text=entry.about),
                    nodes.raw("", html_of(entry), format="html"),
                    commands,
                ]
            return rendered

    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True}
