"""A `ReportModel` as one HTML file: no scripts needed, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from writecliff.report.model import DataFile, ReportModel


def render_html(model: ReportModel, *, paper: str = "") -> str:
    """The page. The same model gives the same bytes. `paper` is a style sheet on top of the page's
    own, which a renderer for paper may need."""
    figures = [figure.name for part in model.sections for figure in part.figures]
    # Figures are numbered through the page, as in the standard's "Plot A.n".
    numbered = {name: number for number, name in enumerate(figures, 1)}
    return rendered("report.html.j2", model=model, paper=Markup(paper), numbered=numbered)


def rendered(template: str, **values: Any) -> str:
    """A template with the house style sheet; a name that is not given is an error."""
    environment = Environment(
        loader=PackageLoader("writecliff.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["zipped"] = lambda parts: zip(*parts, strict=True)
    environment.globals.update(
        style=Markup(environment.get_template("report.css").render()),
        data_uri=data_uri,
        svg=Markup,  # drawn by us from numbers; its only text from outside is escaped there
        json=json_in_html,
    )
    return environment.get_template(template).render(**values)


def data_uri(file: DataFile) -> str:
    """A download link: base64, because spreadsheets are picky about percent-encoding."""
    return "data:text/csv;base64," + base64.b64encode(file.text.encode()).decode()


def json_in_html(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, indent=1, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))
