"""PDF output of a `ReportModel` or `Page`: the printed HTML page, laid out by WeasyPrint.

Every sheet has the standard's header strip with "Page n of m" and the stamp. Figures remain vector
graphics, and text remains text. Equal runs produce identical bytes on any machine. The file
contains no date and no identity, and it uses matplotlib's fonts, for which the figures were laid
out.


WeasyPrint is the optional dependency `pdf` (`pip install "writecliff[pdf]"`) and requires the
system library Pango.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import WritecliffError, encoded
from writecliff.report.pages import Page, render_html, render_page

if TYPE_CHECKING:
    from writecliff.report.model import ReportModel

_FAMILY, _MONO = "Report Sans", "Report Mono"
_FONTS = (
    (_FAMILY, "normal", "DejaVuSans.ttf"),
    (_FAMILY, "bold", "DejaVuSans-Bold.ttf"),
    (_MONO, "normal", "DejaVuSansMono.ttf"),
)


class PdfUnavailableError(WritecliffError):
    """Raised if WeasyPrint, or the system library that it requires, is not installed."""


def render_pdf(model: ReportModel | Page) -> bytes:
    """Return a report or page as PDF; equal inputs produce identical files.

    Raises:
        PdfUnavailableError: If WeasyPrint or Pango is missing.
    """
    weasyprint = _weasyprint()
    fonts = _font_files()
    sheet = "".join(
        f"@font-face {{ font-family: '{family}'; font-weight: {weight}; src: url({url}); }}\n"
        for (family, weight, _), url in zip(_FONTS, fonts, strict=True)
    )
    sheet += f":root {{ --font: '{_FAMILY}'; }} footer dd, code {{ font-family: '{_MONO}'; }}\n"
    html = (
        render_page(model, paper=sheet)
        if isinstance(model, Page)
        else render_html(model, paper=sheet)
    )
    # File names may not be valid UTF-8.
    page = encoded(_shortened(_literal(html))).decode()
    document = weasyprint.HTML(string=page, url_fetcher=_fetcher(fonts))
    data: bytes = document.write_pdf(pdf_identifier=b"writecliff")
    return data


def _weasyprint() -> Any:
    try:
        import weasyprint
    except ImportError:
        raise PdfUnavailableError(
            "PDF reports require WeasyPrint, which is not installed",
            hint='pip install "writecliff[pdf]"',
        ) from None
    except OSError as error:  # cffi raises this error if a library is missing.
        raise PdfUnavailableError(
            f"PDF reports require the Pango library: {str(error).splitlines()[0]}",
            hint="on Debian: apt-get install libpango-1.0-0 libpangoft2-1.0-0",
        ) from None
    logger = logging.getLogger("weasyprint")
    logger.setLevel(logging.ERROR)  # WeasyPrint warns about rules for browsers.
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    return weasyprint


def _font_files() -> list[str]:
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return [(folder / name).as_uri() for _, _, name in _FONTS]


def _fetcher(allowed: list[str]) -> Any:
    """Return a URL fetcher that serves the fonts and rejects all other URLs."""
    from weasyprint.urls import URLFetcher

    class Fonts(URLFetcher):  # type: ignore[misc]
        def fetch(self, url: str, headers: Any = None) -> Any:
            if url not in allowed:
                raise ValueError(f"a report must not load {url}")
            return super().fetch(url, headers)

    return Fonts(allowed_protocols=("file",))


_LONG_VALUE = re.compile(r"(<dd[^<>]*>(?:&[#\w]+;|[^<>&]){400})[^<>]+")


def _shortened(page: str) -> str:
    """Return the page with long values truncated after 400 characters.

    Such values come from outside the program, and WeasyPrint takes minutes to lay out a few
    thousand characters.
    """
    return _LONG_VALUE.sub("\\1…", page)


_VARIABLE = re.compile(r"var\(--(\w+), ([^()]*)\)")


def _literal(page: str) -> str:
    """Return the page with the figures' colours and fonts inserted by value.

    WeasyPrint ignores CSS variables in SVG.
    """
    return _VARIABLE.sub(lambda match: _FAMILY if match[1] == "font" else match[2], page)
