"""Tables and figures for notebooks, with a display format and conversions to pandas and polars."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from writecliff.errors import ConfigError
from writecliff.shown import ROWS, Grid, Shown, Shows

if TYPE_CHECKING:
    import pyarrow as pa

    from writecliff.report.headline import Headline


def _library(name: str) -> Any:
    """Import pandas or polars. Raises ConfigError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        hint = f"pip install 'writecliff[{name}]'"
        raise ConfigError(f"{name} is not installed", hint=hint) from None


class Table(Shows):
    """An Arrow table with a notebook display and all attributes of `pyarrow.Table`.

    `arrow` is the wrapped table. Libraries that accept the Arrow stream interface accept this table
    directly.

    >>> import pyarrow
    >>> table = Table(pyarrow.table({"test": ["wsat", "iops"], "rounds": [26, 5]}))
    >>> print(table)
    test  rounds
    wsat      26
    iops       5
    >>> table.column("rounds").to_pylist()
    [26, 5]
    """

    def __init__(self, arrow: pa.Table, title: str = "", shown: Sequence[str] = ()) -> None:
        """Wrap the Arrow table `arrow`, and display `title` above it.

        `shown` contains the names of the displayed columns (default: all columns).
        """
        self.arrow = arrow
        self._title = title
        self._columns = shown

    def wide(self) -> Table:
        """Return the table with all columns displayed."""
        return Table(self.arrow, self._title)

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`. Raises ConfigError if pandas is not installed."""
        _library("pandas")
        return self.arrow.to_pandas()

    def to_polars(self) -> Any:
        """Return a `polars.DataFrame`. Raises ConfigError if polars is not installed."""
        return _library("polars").from_arrow(self.arrow)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.arrow.num_rows)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped Arrow table."""
        if name.startswith("_") and name not in ("__arrow_c_stream__", "__dataframe__"):
            raise AttributeError(name)
        return getattr(self.arrow, name)

    def __repr__(self) -> str:
        """Return the table formatted as text."""
        return str(self)

    def _shown(self) -> Shown:
        shown = self.arrow.select(self._columns) if self._columns else self.arrow
        head = [str(name) for name in shown.column_names]
        if not head:
            return Shown(self._title, ["no columns"])
        total = self.arrow.num_columns
        lines = [f"{len(head)} of {total} columns; .wide() displays all"] * (len(head) < total)
        first = shown.slice(0, ROWS)
        columns = [[_cell(value) for value in column.to_pylist()] for column in first.columns]
        rows = list(zip(*columns, strict=True))
        align = "".join("r" if _is_number(field.type) else "l" for field in shown.schema)
        return Shown(self._title, lines, [Grid(head, rows, align, self.arrow.num_rows)])


def _is_number(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | dict):
        return json.dumps(value, default=str)
    return str(value)


class Figures(tuple["Headline", ...], Shows):
    """A tuple of a run's headline figures, which notebooks display as a table.

    >>> from writecliff.report.headline import Headline
    >>> figures = Figures([Headline(key="iops", label="Saturated", value=7496.0, unit="IOPS")])
    >>> print(figures)
    figure     value  95 % interval  unit
    Saturated  7,496                 IOPS
    >>> figures["iops"].value
    7496.0
    """

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        """Return the figure at an index, or the first figure with a key. Raises KeyError."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        for figure in self:
            if figure.key == key:
                return figure
        raise KeyError(key)

    def table(self) -> Table:
        """Return a table that has one row per figure.

        The columns are key, label, value, unit, low, high and higher_is_better; low and high are
        the bounds of the 95 % interval, or null.
        """
        import pyarrow as pa

        rows = [*self]
        intervals = [figure.interval for figure in rows]
        return Table(pa.table({
            "key": pa.array([figure.key for figure in rows], pa.string()),
            "label": pa.array([figure.label for figure in rows], pa.string()),
            "value": pa.array([figure.value for figure in rows], pa.float64()),
            "unit": pa.array([figure.unit for figure in rows], pa.string()),
            "low": pa.array([interval and interval.low for interval in intervals], pa.float64()),
            "high": pa.array([interval and interval.high for interval in intervals], pa.float64()),
            "higher_is_better": pa.array([f.higher_is_better for f in rows], pa.bool_()),
        }))  # fmt: skip

    def to_pandas(self) -> Any:
        """Return `table()` as a `pandas.DataFrame`. Raises ConfigError without pandas."""
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        """Return `table()` as a `polars.DataFrame`. Raises ConfigError without polars."""
        return self.table().to_polars()

    def _shown(self) -> Shown:
        return Shown("", (), [figures_grid(self)])


def figures_grid(figures: Sequence[Headline]) -> Grid:
    """Return a text table that has one row per figure."""
    from writecliff.report.headline import interval_text, value_text

    rows = [
        (
            figure.label,
            value_text(figure.value),
            interval_text(figure.interval).strip(" ()"),
            figure.unit,
        )
        for figure in figures
    ]
    return Grid(("figure", "value", "95 % interval", "unit"), rows, "lrrl")
