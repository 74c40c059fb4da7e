"""A `ReportModel` as one HTML file: no scripts needed, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from writecliff.report.csvs import named_tables
from writecliff.report.model import DataFile, ReportModel


def render_html(model: ReportModel, *, paper: str = "") -> str:
    """The page. The same model gives the same bytes. `paper` is a style sheet on top of the page's
    own, which a renderer for paper may need."""
    model, _ = named_tables(model)
    environment = templates()
    environment.filters["zipped"] = lambda parts: zip(*parts, strict=True)
    style = environment.get_template("report.css").render()
    return environment.get_template("report.html.j2").render(
        model=model,
        style=Markup(style),
        paper=Markup(paper),
        data_uri=data_uri,
        svg=Markup,  # drawn by us from numbers; its only text from outside is escaped there
        json=json_in_html,
        numbered=_numbered(model),
    )


def templates() -> Environment:
    """The templates of all pages; a name that a page does not have is an error."""
    return Environment(
        loader=PackageLoader("writecliff.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def data_uri(file: DataFile) -> str:
    """For a download link: base64, because spreadsheets are picky about percent-encoding."""
    return "data:text/csv;base64," + base64.b64encode(file.text.encode()).decode()


def json_in_html(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, indent=1, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))


def _numbered(model: ReportModel) -> dict[str, int]:
    """Figures are numbered through the page, as in the standard's "Plot A.n"."""
    names = [figure.name for section in model.sections for figure in section.figures]
    return {name: number for number, name in enumerate(names, 1)}
