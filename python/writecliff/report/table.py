"""Tables of values, which hold numbers for the renderers to format.

A column's kind (`kinds.py`) determines the format of its values and the unit used in files. The
HTML page, the terminal (`Table.grid`) and the CSV file (`csvs.table_csv`) render the same table. A
`Quantity` is a value with its own kind in a text column, for tables with one quantity per row. Text
in a number column explains a missing number, and becomes an empty cell in files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

from writecliff.report import kinds
from writecliff.report.kinds import Align, Kind, Span
from writecliff.shown import Grid

T = TypeVar("T")
CellMark = Literal["best", "better", "worse"]  # Mark on a cell in a comparison.


@dataclass(frozen=True)
class DataFile:
    """Numbers behind a figure or table, which the page offers for download."""

    name: str
    text: str  # CSV with one header line; column names include the units.


# Figure or table data, or the name of a data file that the page already contains.
Data = DataFile | str


class Quantity(NamedTuple):
    """A value with its own kind, in a text column."""

    value: float | int | Span | None
    kind: Kind

    def __str__(self) -> str:
        """Format the value according to its kind."""
        return self.kind.text(self.value)


Value = float | int | str | Span | Quantity | None


class Column(NamedTuple):
    """A table column."""

    title: str
    kind: Kind = kinds.TEXT
    key: str = ""  # Name in files; the title and unit by default.

    def cell(self, value: Value) -> str:
        """Return a value's text."""
        if isinstance(value, Quantity) or (isinstance(value, str) and self.kind.number):
            return str(value)
        return self.kind.text(value)

    def named(self, part: str = "") -> str:
        """Return the column's name used in files."""
        return self.key or _headed(f"{self.title}{part}", self.kind.unit)


_TEXTS = {"l": kinds.TEXT, "w": kinds.WHOLE, "r": kinds.RIGHT}
Head = tuple[Column | str, ...]


@dataclass(frozen=True)
class Table:
    """A table on a page (see `table`)."""

    title: str
    columns: tuple[Column, ...]
    values: tuple[tuple[Value, ...], ...]  # Cell values by row.
    note: str = ""
    data: Data | None = None  # Data; `None` writes the values to a file named after the title.
    file: str = ""  # Name of the data file.
    # Row above the header: text and number of spanned columns.
    groups: tuple[tuple[str, int], ...] = ()
    # Marks by row and column.
    marks: Mapping[tuple[int, int], CellMark] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        title: str,
        items: Iterable[T],
        *columns: tuple[str, Kind, Callable[[T], Value]],
        note: str = "",
        data: Data | None = None,
    ) -> Table:
        """Return a table with a row per item.

        Args:
            title: Table title.
            items: Items, one per row.
            columns: Title, kind and cell function of each column.
            note: Text below the table.
            data: Table data (default: the table's values).
        """
        rows = (tuple(cell(item) for _, _, cell in columns) for item in items)
        head = [Column(title, kind) for title, kind, _ in columns]
        return table(title, head, rows, note=note, data=data)

    @property
    def header(self) -> tuple[str, ...]:
        """Column titles of the table."""
        return tuple(column.title for column in self.columns)

    @property
    def align(self) -> tuple[Align, ...]:
        """Alignment of each column."""
        return tuple(column.kind.align for column in self.columns)

    @cached_property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Formatted cells, by row."""
        return tuple(
            tuple(column.cell(value) for column, value in zip(self.columns, row, strict=True))
            for row in self.values
        )

    def grid(self) -> Grid:
        """Return the table for a terminal or notebook."""
        align = "".join("r" if side == "right" else "l" for side in self.align)
        return Grid(self.header, self.rows, align)

    def data_columns(self) -> list[tuple[str, Sequence[Any]]]:
        """Return the names and values of the CSV file's columns, where None is unknown."""
        columns = [
            (column, [row[at] for row in self.values]) for at, column in enumerate(self.columns)
        ]
        if len(columns) > 2 and _is_turned(self.values):
            columns = [
                (Column(""), list(self.header[1:])),
                *(
                    (Column(str(row[0]), next(iter(_kinds(row)), kinds.TEXT)), list(row[1:]))
                    for row in self.values
                ),
            ]
        return [part for column, values in columns for part in _parts(column, values)]


def _kinds(row: Sequence[Value]) -> set[Kind]:
    """Return the kinds of the values after the first column."""
    return {v.kind if isinstance(v, Quantity) else kinds.TEXT for v in row[1:] if v is not None}


def _is_turned(rows: Sequence[Sequence[Value]]) -> bool:
    """Return `True` for one kind per row and any quantity; files transpose such tables."""
    kinds_by_row = [_kinds(row) for row in rows]
    return all(len(row) <= 1 for row in kinds_by_row) and any(
        row - {kinds.TEXT} for row in kinds_by_row
    )


def _parts(column: Column, values: Sequence[Value]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the file columns that represent a table column."""
    quantities = {v.kind for v in values if isinstance(v, Quantity)}
    bare = [v.value if isinstance(v, Quantity) else v for v in values]
    if not column.kind.number and quantities:  # Each value has a separate unit.
        kinds = [v.kind if isinstance(v, Quantity) else None for v in values]
        yield column.named() or "value", [_joined(value) for value in bare]
        yield (
            f"{column.named()} unit".strip(),
            ["" if kind is None else kind.unit for kind in kinds],
        )
    elif column.kind.ends:
        spans = [value if isinstance(value, Span) else Span(None, None) for value in bare]
        yield column.named(", low"), [value.low for value in spans]
        yield column.named(", high"), [value.high for value in spans]
    elif column.kind.number:
        yield column.named(), [_scaled(value, column.kind.scale) for value in bare]
    else:
        yield column.named(), bare


def _scaled(value: Value, scale: float) -> Any:
    if value is None or isinstance(value, str):
        return None
    return value if scale == 1 else value * scale  # type: ignore[operator]  # a number


def _joined(value: Any) -> Any:
    return f"{value.low:.9g} to {value.high:.9g}" if isinstance(value, Span) else value


def _headed(head: str, unit: str) -> str:
    return f"{head} ({unit})".strip() if unit and f"({unit})" not in head else head


def table(
    title: str,
    columns: Sequence[Column | str],
    rows: Iterable[Sequence[Value]],
    align: str = "",
    *,
    note: str = "",
    data: Data | None = None,
    file: str = "",
    groups: Sequence[tuple[str, int]] = (),
    marks: Mapping[tuple[int, int], CellMark] | None = None,
) -> Table:
    """Return a table.

    A string in `columns` is a text column's title. A column's letter in `align` is "l" (left), "r"
    (right) or "w" (left, never wrapped). A column without a letter is aligned right, except for the
    first column, which is aligned left.
    """
    letters = (align or "l").ljust(len(columns), "r")
    return Table(
        title,
        tuple(
            Column(column, _TEXTS[letter]) if isinstance(column, str) else column
            for column, letter in zip(columns, letters, strict=True)
        ),
        tuple(map(tuple, rows)),
        note,
        data,
        file,
        tuple(groups),
        marks or {},
    )
