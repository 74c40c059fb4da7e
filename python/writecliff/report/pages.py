"""Pages, of a run or about several, as self-contained HTML: nothing loaded from anywhere, and whole
without the script, which only adds values under the pointer, zoom, and series on and off.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from writecliff.errors import ConfigError, encoded
from writecliff.report.csvs import with_data, write_files
from writecliff.report.model import ReportModel, Section
from writecliff.report.table import DataFile
from writecliff.store.files import write_atomically

SVG_STYLE = "*{stroke-linejoin: round; stroke-linecap: butt}"  # matplotlib begins each figure so
_BEGIN_BYTES = 64  # in which a page says what it is


@dataclass(frozen=True)
class Link:
    """A link to a report beside the page; `href` is relative, so that folders can be mailed."""

    text: str
    href: str
    note: str = ""


@dataclass(frozen=True)
class Page:
    """A page about several runs; `data` are files besides those of its figures and tables."""

    title: str
    intro: str
    sections: tuple[Section, ...]
    summary: dict[str, Any]  # inside the page as JSON
    data: tuple[DataFile, ...] = ()
    disclosures: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    stamp: str = ""
    verdict: str = ""  # the answer in one sentence, in a box before all else


def render_html(model: ReportModel, *, paper: str = "") -> str:
    """The page of a run. The same model gives the same bytes. `paper` is a style sheet on top of
    the page's own, which a renderer for paper may need.
    """
    figures = [figure.name for part in model.sections for figure in part.figures]
    # Figures are numbered through the page, as in the standard's "Plot A.n".
    numbered = {name: number for number, name in enumerate(figures, 1)}
    return rendered("report.html.j2", model=model, paper=Markup(paper), numbered=numbered)


def whole(page: Page) -> Page:
    """The page without empty sections, and with the files of all of its figures and tables."""
    shown = [part for part in page.sections if part.figures or part.tables]
    sections, files = with_data(shown, page.data)
    return replace(page, sections=sections, data=files)


def render_page(page: Page, *, paper: str = "") -> str:
    """The page as HTML. The same page gives the same bytes. `paper`: see `render_html`."""
    return rendered("comparison.html.j2", page=whole(page), paper=Markup(paper))


def write_page(page: Page, path: Path, *, pdf: Path | None = None, csv: Path | None = None) -> Path:
    """Write the page to `path` and return it; an existing file is replaced atomically. `pdf` is a
    file for the same page as PDF, `csv` a folder for the numbers of its figures and tables.

    Raises StoreError: not writable; PdfUnavailableError, before anything is written.
    """
    check_page(path)
    files = {path: encoded(render_page(page))}
    if pdf is not None:
        from writecliff.report.pdf import render_pdf

        files[pdf] = render_pdf(page)
    for file, data in files.items():
        write_atomically(file, data)
    if csv is not None:
        write_files(whole(page).data, csv)
    return path


def check_page(path: Path) -> None:
    """Raise ConfigError if the file at `path` is no page: a trace or a manifest that is named by
    mistake stays. A folder or nothing there is the caller's to judge.
    """
    begin = b""
    if path.is_file():
        with suppress(OSError), path.open("rb") as file:
            begin = file.read(_BEGIN_BYTES).lstrip().lower()
    if begin and not begin.startswith(b"<!doctype html"):
        raise ConfigError(f"{path} exists and is no page", hint="give another name")


def rendered(template: str, **values: Any) -> str:
    """A template with the house style sheet; a name that is not given is an error."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("writecliff.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["zipped"] = lambda parts: zip(*parts, strict=True)
    style = environment.get_template("report.css").render()
    script = environment.get_template("figures.js").render()

    def sheet(title: str, stamp: str) -> Markup:
        return Markup(f"\n{style}\n{_at_page(title, stamp)}\n")

    def policy(title: str, stamp: str, paper: str) -> str:
        return page_policy(script, (sheet(title, stamp), SVG_STYLE, *([paper] if paper else [])))

    environment.globals.update(
        sheet=sheet,
        policy=policy,
        script=Markup(script),
        data_uri=data_uri,
        svg=Markup,  # drawn by us from numbers; its only text from outside is escaped there
        json=json_in_html,
    )
    return environment


def page_policy(script: str, sheets: Iterable[str]) -> str:
    """The Content-Security-Policy of a page: nothing is loaded or sent, and no script runs but
    `script`, which is known by its hash, so that the same page has the same bytes.

    Figures have `style` attributes without number; these can neither run nor load anything.
    """
    styles = " ".join(_hash_source(sheet) for sheet in sheets)
    return (
        f"default-src 'none'; script-src {_hash_source(script)}; style-src-elem {styles}; "
        "style-src-attr 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash_source(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _at_page(title: str, stamp: str) -> str:
    """What the margins of printed sheets say."""
    margins = (
        f"@top-left {{ content: {quoted(title)}; }} @top-center {{ content: {quoted(stamp)}; }}"
    )
    return f"@page {{ {margins} }}"


def linked(path: str) -> str:
    """A relative path as a link; "./" keeps a name with a colon from being a scheme."""
    return "./" + quote(path, errors="surrogateescape")


def data_uri(file: DataFile) -> str:
    """A download link: base64, because spreadsheets are picky about percent-encoding."""
    return "data:text/csv;base64," + base64.b64encode(encoded(file.text)).decode()


def quoted(text: str) -> Markup:
    """A string of a style sheet; it cannot end the element that it stands in."""
    said = "".join(f"\\{ord(c):06x}" if c in '"\\<\n\r\0' else c for c in text)
    return Markup(f'"{said}"')


def json_in_html(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, indent=1, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))
