"""Numbers of a report as CSV: one header line, comma, full stop, unknown is empty.

Units are in the names of the columns (`_ns`, `_bytes`, `_bytes_per_s`, `iops`). Modules of reports
build their `DataFile`s with the functions here; tables that name none get one from their cells.

    csv_text      any rows
    lines_csv     the series of `plots.lines` and `figures.convergence`
    grid_csv      the values of `figures3d.columns_3d` or a table of two categories
    histogram_csv the buckets behind a response-time histogram and a confidence plot
    data_files    all files of a report, tables included
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.report.model import DataFile, ReportModel, Table

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.report.axes import Line

Value = str | float | int | None


def csv_text(head: Iterable[str], rows: Iterable[Iterable[Value]]) -> str:
    """One header line, then the rows; None and NaN are empty, floats have nine digits."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return sink.getvalue()


def _cell(value: Value) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def lines_csv(series: Iterable[Line], label: str, x: str, y: str) -> str:
    """Long form: a row a point, with the series' label first.

    >>> from writecliff.report.axes import Line
    >>> one = Line("65/35", [4096], [31000.5])
    >>> print(lines_csv([one], "rw_mix", "block_bytes", "iops"), end="")
    rw_mix,block_bytes,iops
    65/35,4096,31000.5
    """
    points = (
        (line.label, _plain(px), _plain(py))
        for line in series
        for px, py in zip(line.x, line.y, strict=True)
    )
    return csv_text((label, x, y), points)


def grid_csv(
    corner: str,
    rows: Sequence[Value],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
) -> str:
    """A row for each of `rows`, a column for each of `columns`; `corner` heads the first one."""
    found = ((row, *map(_plain, cells)) for row, cells in zip(rows, values, strict=True))
    return csv_text((corner, *columns), found)


def _plain(value: float | int | None) -> Value:
    """Numbers of numpy as Python's."""
    if value is None or isinstance(value, int):
        return value
    return float(value)


def histogram_csv(histogram: Histogram) -> str:
    """Non-empty buckets: lower and upper limit (both inclusive, ns) and number of I/Os."""
    columns = (column.tolist() for column in histogram.buckets())
    return csv_text(("lower_ns", "upper_ns", "count"), zip(*columns, strict=True))


_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def table_csv(table: Table) -> str:
    """The cells as shown, numbers without their thousands separators."""
    return csv_text(table.header, ([_SEPARATOR.sub("", cell) for cell in r] for r in table.rows))


def named_tables(model: ReportModel) -> tuple[ReportModel, tuple[DataFile, ...]]:
    """The model with every table naming its data, and the files made for those that named none."""
    taken = {file.name for file in model.data}
    made: list[DataFile] = []

    def named(table: Table) -> Table:
        if table.data:
            return table
        stem = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-") or "table"
        name, number = f"table-{stem}.csv", 1
        while name in taken:
            number += 1
            name = f"table-{stem}-{number}.csv"
        taken.add(name)
        made.append(DataFile(name, table_csv(table)))
        return replace(table, data=name)

    sections = tuple(
        replace(section, tables=tuple(named(table) for table in section.tables))
        for section in model.sections
    )
    whole = (*model.data, *made)
    return replace(model, sections=sections, data=whole), whole


def data_files(model: ReportModel) -> tuple[DataFile, ...]:
    """The numbers of every figure and every table."""
    return named_tables(model)[1]


def write_files(files: Iterable[DataFile], folder: Path) -> None:
    """Write `files` to `folder`, which is made if its parent is there.

    Each file is whole or not there; files of other names are left alone. Raises StoreError: not a
    folder, not writable.
    """
    from writecliff.store.files import store_error, write_atomically

    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise store_error(error, folder) from error
    for file in files:
        write_atomically(folder / file.name, file.text.encode())
