"""Pages about one or several runs, as self-contained HTML.

Pages load no resources and are complete without their script, which adds values under the pointer,
zoom and a switch for each series.
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
from writecliff.report.model import Figure, ReportModel, Section, with_lead
from writecliff.report.table import DataFile
from writecliff.shown import Screen
from writecliff.store.files import write_atomically

# Style that matplotlib writes into each figure.
SVG_STYLE = "*{stroke-linejoin: round; stroke-linecap: butt}"
_IMAGE_PX_PER_PT = 1.7  # Scale of a plot that is shown as an image, in CSS pixels per point.
_BEGIN_BYTES = 64  # Number of bytes at the start of a page that contain its document type.


@dataclass(frozen=True)
class Link:
    """A link to a report in a nearby folder; `href` is relative to the page's folder."""

    text: str
    href: str
    note: str = ""


@dataclass(frozen=True)
class Page:
    """A page about several runs; `data` holds additional data files."""

    title: str
    intro: str
    sections: tuple[Section, ...]
    summary: dict[str, Any]  # Run summary, embedded in the page as JSON.
    data: tuple[DataFile, ...] = ()
    disclosures: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    stamp: str = ""
    verdict: str = ""  # One-sentence verdict in a box at the top.
    lead: Section = Section("", "")  # First figure of the sections, which `whole` moves to the top.


def render_html(model: ReportModel, *, paper: str = "") -> str:
    """Return a run's HTML page; equal models produce identical bytes.

    Args:
        model: Report of the run to render.
        paper: Additional style sheet for print renderers.
    """
    # Figures are numbered throughout the page, like the standard's "Plot A.n".
    numbered = {figure.name: number for number, figure in enumerate(model.figures, 1)}
    return rendered("report.html.j2", model=model, paper=Markup(paper), numbered=numbered)


def whole(page: Page) -> Page:
    """Return the page without empty sections, but with the data files of all figures and tables.

    The page's first figure moves to the top.
    """
    shown = [part for part in page.sections if part.figures or part.tables]
    sections, files = with_data(shown, page.data)
    lead, sections = with_lead(sections)
    return replace(page, lead=lead, sections=sections, data=files)


def render_page(page: Page, *, paper: str = "") -> str:
    """Return the page as HTML; equal pages produce identical bytes.

    Args:
        page: Page to render.
        paper: See `render_html`.
    """
    return rendered("comparison.html.j2", page=whole(page), paper=Markup(paper))


def first_screen(page: ReportModel | Page) -> Screen:
    """Return the first screen of a page or report, with a single plot."""
    figures: list[tuple[str, str, str]] = []
    if isinstance(page, Page):
        question, lead, obtained = page.title, whole(page).lead, [page.stamp, page.intro]
    else:
        question, lead, verdict = page.question, page.lead, page.verdict
        obtained = [page.stamp, f"{verdict.headline}.", *verdict.meaning]
        for key in page.key_figures[:5]:
            figures.append((key.label, f"{key.value} {key.unit}".rstrip(), key.note))
    plot, title = "", ""
    if lead.figures:
        plot, title = image_uri(lead.figures[0]), lead.figures[0].title
    return Screen(question, figures, plot, title, obtained, page.disclosures)


def write_page(page: Page, path: Path, *, pdf: Path | None = None, csv: Path | None = None) -> Path:
    """Write the page to `path`, replacing an existing file atomically, and return the path.

    Args:
        page: Page to write.
        path: HTML file.
        pdf: PDF file for the same page.
        csv: Folder for CSV files of the page's figures and tables.

    Raises:
        StoreError: If a file cannot be written.
        PdfUnavailableError: If the PDF cannot be rendered; no file has been written in this case.
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
    """Refuse to overwrite a file that is not a page, such as a trace or manifest.

    The caller checks for folders and nonexistent files.

    Raises:
        ConfigError: If the file at `path` is not a page.
    """
    begin = b""
    if path.is_file():
        with suppress(OSError), path.open("rb") as file:
            begin = file.read(_BEGIN_BYTES).lstrip().lower()
    if begin and not begin.startswith(b"<!doctype html"):
        raise ConfigError(f"{path} exists and is not an HTML page", hint="choose another file name")


def rendered(template: str, **values: Any) -> str:
    """Return a template rendered with the house style sheet.

    Every name used in the template must be given.
    """
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
    environment.filters["switched"] = _switched
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
        svg=Markup,  # The drawing is generated from numbers, and its text is escaped.
        json=json_in_html,
    )
    return environment


def _switched(figures: Iterable[Figure]) -> list[list[Figure]]:
    """Return groups of figures, each with the views of a switch or a single figure."""
    groups: dict[str, list[Figure]] = {}
    for figure in figures:
        groups.setdefault(figure.switch or f"figure {figure.name}", []).append(figure)
    return list(groups.values())


def page_policy(script: str, sheets: Iterable[str]) -> str:
    """Return a page's Content-Security-Policy.

    The policy forbids loading, sending, and all scripts except `script`, which is identified by its
    hash. Figures may have any number of `style` attributes, because these can neither run nor load
    anything.
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
    """Return the margin style for printed sheets."""
    margins = (
        f"@top-left {{ content: {quoted(title)}; }} @top-center {{ content: {quoted(stamp)}; }}"
    )
    return f"@page {{ {margins} }}"


def linked(path: str) -> str:
    """Return a relative path as a link.

    The prefix "./" prevents a name that contains a colon from being read as a URL scheme.
    """
    return "./" + quote(path, errors="surrogateescape")


def data_uri(file: DataFile) -> str:
    """Return a download link in base64, because spreadsheets mishandle percent-encoding."""
    return "data:text/csv;base64," + base64.b64encode(encoded(file.text)).decode()


def image_uri(figure: Figure) -> str:
    """Return the figure as a data URI of an SVG image with a fixed size and both colour schemes."""
    # The style sheet defines the colours before its first rule for `*`.
    colours, _, _ = _environment().get_template("report.css").render().partition("* {")
    style = f"<style>{colours}:root {{ background: var(--page); }}</style>"
    opening, _, rest = figure.svg.partition(' data-plots="')  # Only the page's script uses it.
    drawing = rest.partition('">')[2]
    points = opening.partition('viewBox="0 0 ')[2].partition('"')[0].split()
    width, height = (f"{_IMAGE_PX_PER_PT * float(number):.0f}" for number in points)
    svg = f'{opening} width="{width}" height="{height}">{style}{drawing}'
    return "data:image/svg+xml;base64," + base64.b64encode(encoded(svg)).decode()


def quoted(text: str) -> Markup:
    """Return a CSS string literal that cannot close its `style` element."""
    escaped = "".join(f"\\{ord(c):06x}" if c in '"\\<\n\r\0' else c for c in text)
    return Markup(f'"{escaped}"')


def json_in_html(value: Any) -> Markup:
    """Return JSON that cannot close its `script` element."""
    text = json.dumps(value, indent=1, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))
