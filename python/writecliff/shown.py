"""Display of results as text, and as HTML in notebooks.

A class defines its content once (`Shows._shown`), as a title, lines, and cell grids. All text,
including run and drive names, is escaped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from writecliff.errors import printable

ROWS = 20  # Maximum number of rows in a grid.
_CELL = "padding:.15em .8em;border-bottom:1px solid rgba(128,128,128,.35)"
_ALIGN = {"l": "left", "r": "right"}
_MUTED = "font-size:90%;opacity:.75"
_SMALL = "font-size:90%;max-width:52em"
_PLOT = "display:block;max-width:100%;height:auto;margin:0"


def _block(text: str, style: str) -> str:
    return f"<div style='{style}'>{escape(text)}</div>"


def _card(label: str, value: str, note: str) -> str:
    inside = _block(label, _MUTED) + _block(value, "font-size:150%") + _block(note, _MUTED)
    style = "display:inline-block;vertical-align:top;max-width:10em;padding:.6em 1.2em .6em 0"
    return f"<div style='{style}'>{inside}</div>"


class Grid(NamedTuple):
    """A cell grid below a header row.

    `align` contains "l" or "r" for each column. `total` is the total row count if the grid contains
    only the first rows.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str
    total: int | None = None

    def html(self) -> str:
        """Return the grid as an HTML table."""
        styles = [f"{_CELL};text-align:{_ALIGN[side]}" for side in self.align]
        lines = ["<div style='overflow-x:auto'>", "<table style='border-collapse:collapse'>"]
        lines.append("<thead><tr>")
        lines += [
            f"<th style='{s}'>{escape(t)}</th>" for s, t in zip(styles, self.head, strict=True)
        ]
        lines.append("</tr></thead><tbody>")
        for row in self.rows:
            cells = zip(styles, row, strict=True)
            inside = "".join(f"<td style='{style}'>{escape(t)}</td>" for style, t in cells)
            lines.append(f"<tr>{inside}</tr>")
        lines.append("</tbody></table></div>")
        if more := self._more():
            lines.append(f"<div>{escape(more)}</div>")
        return "\n".join(lines)

    def text(self) -> str:
        """Return the grid as lines with aligned columns."""
        lines = [self.head, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        sides = [{"l": "<", "r": ">"}[side] for side in self.align]
        shape = list(zip(sides, widths, strict=True))
        text = [
            "  ".join(
                f"{printable(c):{s}{w}}" for c, (s, w) in zip(line, shape, strict=True)
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*text, *filter(None, [self._more()])])

    def _more(self) -> str:
        if self.total is None or self.total <= len(self.rows):
            return ""
        return f"… {self.total:,} rows in total"


class Screen(NamedTuple):
    """First screen of a page: question, key figures, plot, and how they were obtained."""

    question: str
    figures: Sequence[tuple[str, str, str]]  # Label, value with unit, and note of each figure.
    plot: str  # Image as a data URI, or "".
    plot_title: str
    obtained: Sequence[str]
    disclosures: Sequence[str]


class Shown(NamedTuple):
    """The displayed content of an object; only HTML includes `screen`."""

    title: str = ""
    lines: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    screen: Screen = Screen("", (), "", "", (), ())

    def html(self) -> str:
        """Return the content as HTML without scripts, using the colours of the surrounding page.

        The styles are attributes and the plot is an image, because notebooks remove style sheets
        and SVG elements from output that they do not trust.
        """
        screen = self.screen
        parts = [_block(screen.question, _MUTED)] if screen.question else []
        parts += [f"<strong>{escape(self.title)}</strong>"] if self.title else []
        parts += [f"<div>{escape(line)}</div>" for line in self.lines if line]
        parts += ["<div>", *(_card(*figure) for figure in screen.figures), "</div>"]
        parts += [grid.html() for grid in self.grids]
        if screen.plot:
            alt = escape(screen.plot_title)
            parts.append(_block(screen.plot_title, _MUTED))
            parts.append(f"<img style='{_PLOT}' alt='{alt}' src='{escape(screen.plot)}'>")
        parts += [_block(text, _SMALL) for text in screen.obtained if text]
        if screen.disclosures:
            items = "".join(f"<li>{escape(text)}</li>" for text in screen.disclosures)
            summary = f"Disclosures ({len(screen.disclosures)})"
            parts.append(f"<details style='{_SMALL}'><summary>{summary}</summary><ul>{items}</ul>")
            parts.append("</details>")
        return "<div>" + "\n".join(parts) + "</div>"

    def text(self) -> str:
        """Return the content as text for a terminal."""
        head = "\n".join(map(printable, filter(None, [self.title, *self.lines])))
        return "\n\n".join(filter(None, [head, *(grid.text() for grid in self.grids)]))


class Shows(ABC):
    """Base class for objects that `str()` and notebooks display through `_shown`."""

    __slots__ = ()

    @abstractmethod
    def _shown(self) -> Shown: ...

    def _shown_in_notebook(self) -> Shown:
        return self._shown()

    def __str__(self) -> str:
        """Return the content as text."""
        return self._shown().text()

    def __repr__(self) -> str:
        """Return the class and title."""
        return f"<{type(self).__name__}: {printable(self._shown().title)}>"

    def _repr_html_(self) -> str:
        return self._shown_in_notebook().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the content in IPython on a terminal."""
        printer.text(str(self))
