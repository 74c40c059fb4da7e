"""CSV files with comma separators, decimal points, and empty cells for unknown values.

Column names include the unit (`_ns`, `_bytes`, `_bytes_per_s`, `iops`).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.csv_cells import cell
from writecliff.report.model import Section
from writecliff.report.table import Data, DataFile, Table

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.report.axes import Line

Value = str | float | int | None


# Maximum name length in bytes. File systems allow 255 bytes, which leaves room for a suffix.
_NAME_BYTES = 200


def data_file(name: str, head: Iterable[str], rows: Iterable[Iterable[Value]]) -> DataFile:
    """Return a file that consists of one header line and `rows`."""
    return DataFile(name, csv_text(head, rows))


def csv_text(head: Iterable[str], rows: Iterable[Iterable[Value]]) -> str:
    """Return one header line and the rows as CSV.

    None and NaN become empty cells, and floats have nine digits.
    """
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(map(cell, head))
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return sink.getvalue()


def _cell(value: Value) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:.9g}" if isinstance(value, float) else cell(str(value))


def lines_csv(series: Iterable[Line], label: str, x: str, y: str) -> str:
    """Return series in long form: a row per point, with the series label first.

    >>> from writecliff.report.axes import Line
    >>> line = Line("65/35", [4096], [31000.5])
    >>> print(lines_csv([line], "rw_mix", "block_bytes", "iops"), end="")
    rw_mix,block_bytes,iops
    65/35,4096,31000.5
    """
    points = (
        (line.label, _plain(px), _plain(py))
        for line in series
        for px, py in zip(line.x, line.y, strict=True)
    )
    return csv_text((label, x, y), points)


def _plain(value: float | int | None) -> Value:
    """Convert a numpy number to a Python number."""
    return value if value is None or isinstance(value, int) else float(value)


def histogram_csv(histogram: Histogram) -> str:
    """Return the lower and upper limits (inclusive, in ns) and I/O counts of non-empty buckets."""
    columns = (column.tolist() for column in histogram.buckets())
    return csv_text(("lower_ns", "upper_ns", "count"), zip(*columns, strict=True))


def histograms_csv(histograms: Mapping[str, Histogram]) -> str:
    """Return the buckets of several histograms, where each row starts with a name ("read")."""
    rows = (
        (name, *row)
        for name, histogram in histograms.items()
        for row in zip(*(column.tolist() for column in histogram.buckets()), strict=True)
    )
    return csv_text(("operation", "lower_ns", "upper_ns", "count"), rows)


def with_data(
    sections: Sequence[Section], files: Iterable[DataFile] = ()
) -> tuple[tuple[Section, ...], tuple[DataFile, ...]]:
    """Return the sections with a data file for every figure and table, and all files.

    Each file is listed once. `files` come first, followed by the data files of figures and tables
    in page order. A table without data gets a file with the table's cells. An unnamed file is named
    after its table's title.

    Raises:
        KeyError: If a figure or table names a file that does not exist.
    """
    by_name = {file.name: file for file in files}

    def registered(data: Data) -> Data:
        """Return `data`, or the page's existing file with the same name."""
        return data if isinstance(data, str) else by_name.setdefault(data.name, data)

    def named(table: Table, heading: str) -> Data:
        given = table.data
        if isinstance(given, str) or (given is not None and given.name):
            return registered(given)
        if table.file:
            return registered(DataFile(table.file, table_csv(table)))
        stem = _hyphenated(table.title or heading)
        names = (f"table-{stem or 'table'}{end}.csv" for end in _endings())
        name = next(name for name in names if name not in by_name)
        return registered(DataFile(name, table_csv(table) if given is None else given.text))

    done = tuple(
        replace(
            part,
            figures=tuple(replace(figure, data=registered(figure.data)) for figure in part.figures),
            tables=tuple(replace(table, data=named(table, part.title)) for table in part.tables),
        )
        for part in sections
    )
    whole = tuple(
        replace(
            part,
            figures=tuple(replace(f, data=_file(f.data, by_name)) for f in part.figures),
            tables=tuple(replace(t, data=_file(t.data, by_name)) for t in part.tables),
        )
        for part in done
    )
    return whole, tuple(by_name.values())


def _file(data: Data | None, files: Mapping[str, DataFile]) -> DataFile:
    return data if isinstance(data, DataFile) else files[str(data)]


def table_csv(table: Table) -> str:
    """Return a table's values as CSV, with units in the header; unknown values are empty."""
    columns = table.data_columns()
    return csv_text((name for name, _ in columns), zip(*(v for _, v in columns), strict=True))


def _hyphenated(text: str) -> str:
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in text.lower())
    return "-".join(words.split())


def _endings() -> Iterator[str]:
    yield ""
    number = 2
    while True:
        yield f"-{number}"
        number += 1


def plain_name(name: str) -> str:
    """Return a file name made from arbitrary text; the file name cannot escape its folder."""
    text = name.encode("utf-8", "backslashreplace")[:_NAME_BYTES].decode("utf-8", "ignore")
    plain = "".join("-" if letter < " " or letter in "/\\" else letter for letter in text)
    return plain if plain.strip(".") else "-"


def write_files(files: Iterable[DataFile], folder: Path) -> None:
    """Write `files` to `folder`, creating the folder if its parent exists.

    Each file is written atomically, and other files in the folder are preserved.

    Raises:
        StoreError: If `folder` is not a folder or is not writable.
    """
    from writecliff.store.files import store_error, write_atomically

    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise store_error(error, folder) from error
    for file in files:
        write_atomically(folder / plain_name(file.name), file.text.encode("utf-8", "replace"))
