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
        lines = ["<table style='border-collapse:collapse'>", "<thead><tr>"]
        lines += [
            f"<th style='{s}'>{escape(t)}</th>" for s, t in zip(styles, self.head, strict=True)
        ]
        lines.append("</tr></thead><tbody>")
        for row in self.rows:
            cells = zip(styles, row, strict=True)
            inside = "".join(f"<td style='{style}'>{escape(t)}</td>" for style, t in cells)
            lines.append(f"<tr>{inside}</tr>")
        lines.append("</tbody></table>")
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


class Shown(NamedTuple):
    """The displayed content of an object."""

    title: str = ""
    lines: Sequence[str] = ()
    grids: Sequence[Grid] = ()

    def html(self) -> str:
        """Return the content as HTML without scripts, using the colours of the surrounding page."""
        parts = [f"<strong>{escape(self.title)}</strong>"] if self.title else []
        parts += [f"<div>{escape(line)}</div>" for line in self.lines if line]
        parts += [grid.html() for grid in self.grids]
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

    def __str__(self) -> str:
        """Return the content as text."""
        return self._shown().text()

    def _repr_html_(self) -> str:
        return self._shown().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the content in IPython on a terminal."""
        printer.text(str(self))
