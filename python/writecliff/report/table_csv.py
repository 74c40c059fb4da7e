"""The cells of a table as CSV: columns of numbers, with the unit in the header.

Tables are made of finished text ("4.32 ms"). A column whose cells are numbers of one kind becomes a
column of plain numbers in one unit; an interval becomes two. A table whose rows have a unit each
(quantities below each other) is turned, so that they become columns. Other text stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from writecliff import units
from writecliff.report.csvs import csv_text
from writecliff.report.table import Table

_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_UNIT = r"(?: (?P<unit>[^\s\d,.()+-][^\s,()]*))?"
_VALUE = re.compile(rf"(?P<number>{_NUMBER}){_UNIT}")
_INTERVAL = re.compile(r"up to (?P<most>.+)|(?P<low>.+) to (?P<high>.+)|(?P<least>.+) or more")
_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NOTHING = {"", units.UNKNOWN, units.NOT_ENOUGH, "not yet", "not measured"}
_KINDS = (units.LATENCY_UNITS, units.SIZE_UNITS, units.TIME_UNITS)

Cells = Sequence[str]
Column = tuple[str, Cells]  # header and cells


def table_csv(table: Table) -> str:
    """The table with numbers as numbers; what is unknown is empty."""
    if not table.rows:
        return csv_text(table.header, ())
    columns = list(zip(table.header, zip_longest(*table.rows), strict=True))
    found = [_numbers(*column) for column in columns]
    if not all(found[1:]):
        turned = [(row[0], row[1:]) for row in table.rows]
        by_row = [_numbers(*row) for row in turned]
        if len(table.header) > 2 and all(by_row):
            columns, found = [("", table.header[1:]), *turned], [None, *by_row]
    whole = [part for old, new in zip(columns, found, strict=True) for part in new or [_text(old)]]
    return csv_text((head for head, _ in whole), zip(*(cells for _, cells in whole), strict=True))


def _text(column: Column) -> Column:
    """A column that is no column of numbers; thousands have no separators there either."""
    return column[0], [_SEPARATOR.sub("", cell) for cell in column[1]]


def _numbers(head: str, cells: Cells) -> list[Column] | None:
    """The cells as one column of numbers, or as two for intervals; None if they are none."""
    one = _in_one_unit(cells)
    if one is not None:
        return [(_headed(head, one[0]), one[1])]
    ends = list(map(_ends, cells))
    if not all(end or cell in _NOTHING for end, cell in zip(ends, cells, strict=True)):
        return None
    both = _in_one_unit([end[which] if end else "" for which in (0, 1) for end in ends])
    if both is None:
        return None
    unit, values = both
    return [
        (_headed(f"{head}, low", unit), values[: len(cells)]),
        (_headed(f"{head}, high", unit), values[len(cells) :]),
    ]


def _ends(cell: str) -> tuple[str, str] | None:
    """Both ends of an interval; one that is open is empty."""
    found = _INTERVAL.fullmatch(cell)
    if found is None:
        return None
    return found["low"] or found["least"] or "", found["high"] or found["most"] or ""


def _in_one_unit(cells: Cells) -> tuple[str, Cells] | None:
    """The cells without their units, in the smallest of them; None if one is no number, if their
    units have nothing in common, or if there is no number at all."""
    known = [_VALUE.fullmatch(cell) for cell in cells if cell not in _NOTHING]
    names = {found["unit"] or "" for found in known if found is not None}
    if not known or not all(known) or not names:
        return None
    kind = next((kind for kind in _KINDS if names <= {unit.name for unit in kind}), ())
    sizes = {unit.name: unit.size for unit in kind}
    if len(names) > 1 and not sizes:
        return None
    least = min(names, key=lambda name: sizes.get(name, 1.0))
    return least, list(_converted(cells, sizes, sizes.get(least, 1.0)))


def _converted(cells: Cells, sizes: dict[str, float], least: float) -> Iterator[str]:
    for cell in cells:
        found = _VALUE.fullmatch(cell)
        if found is None:
            yield ""
            continue
        digits = found["number"].replace(",", "")
        factor = sizes.get(found["unit"] or "", 1.0) / least
        yield digits if factor == 1 else f"{float(digits) * factor:.9g}"


def _headed(head: str, unit: str) -> str:
    return f"{head} ({unit})".strip() if unit and f"({unit})" not in head else head
