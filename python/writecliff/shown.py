"""How results show themselves: as text, and as HTML in a notebook.

A class says once what it shows (`Shows._shown`): a title, lines, grids of cells. Everything in them
is data, names of runs and drives too, so all of it is escaped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from writecliff.errors import printable

ROWS = 20  # of a grid; a notebook with thousands of rows helps nobody
_CELL = "padding:.15em .8em;border-bottom:1px solid rgba(128,128,128,.35)"
_ALIGN = {"l": "left", "r": "right"}


class Grid(NamedTuple):
    """Cells under a head. `align` has "l" or "r" for each column. `total`: rows in all, where the
    grid has only the first of them.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str
    total: int | None = None

    def html(self) -> str:
        """A table."""
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
        """Lines with columns of one width."""
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
        return f"… {self.total:,} rows in all"


class Shown(NamedTuple):
    """What is shown of a thing."""

    title: str = ""
    lines: Sequence[str] = ()
    grids: Sequence[Grid] = ()

    def html(self) -> str:
        """A part of a page, without scripts; its colours are those of the page around."""
        parts = [f"<strong>{escape(self.title)}</strong>"] if self.title else []
        parts += [f"<div>{escape(line)}</div>" for line in self.lines if line]
        parts += [grid.html() for grid in self.grids]
        return "<div>" + "\n".join(parts) + "</div>"

    def text(self) -> str:
        """The same on a terminal."""
        head = "\n".join(map(printable, filter(None, [self.title, *self.lines])))
        return "\n\n".join(filter(None, [head, *(grid.text() for grid in self.grids)]))


class Shows(ABC):
    """Has `str()` and notebooks show what `_shown` says."""

    __slots__ = ()

    @abstractmethod
    def _shown(self) -> Shown: ...

    def __str__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return self._shown().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython prints on a terminal."""
        printer.text(str(self))
