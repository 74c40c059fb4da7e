"""Published figures: the shipped tables and users' tables.

Columns of the CSV file: `source, item, device, baseline, access, block_kib, read_pct, oio, metric,
value, unit, note`. `oio` is the number of outstanding I/Os of the whole load, or a range
(`QD1-QD128`). The optional column `compressible_pct` is the percentage by which compression reduces
the data; empty cells mean random data. The optional column `state` is the drive state before the
load: `fresh`, `fill`, `sustained`, `client` or `overwritten:73%`. Cells that the source does not
specify are empty. Units are those of `unit_of`.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from writecliff.errors import ConfigError
from writecliff.input_files import read_text

SHIPPED = Path(__file__).parent / "figures.csv"
# Figures from other sources. No fit uses these figures, so they test predictions for the fitted
# drives.
OTHERS = Path(__file__).parent / "others.csv"
OTHERS_NAME, OTHERS_ABOUT = "others", "figures of other sources, which no fit has used"
SSD_IQ_NAME = "ssd-iq"
COLUMNS = (
    "source", "item", "device", "baseline", "access", "block_kib", "read_pct", "oio", "metric",
    "value", "unit", "note",
)  # fmt: skip
# Optional columns.
COMPRESSIBLE, STATE = "compressible_pct", "state"


@dataclass(frozen=True)
class Campaign:
    """All figures that come from the same source."""

    name: str
    source: str  # Source name in the table.
    about: str


CAMPAIGNS = tuple(
    Campaign(*words)
    for words in (
        ("pm863", "pm863-whitepaper",
         "data-centre white paper: Samsung PM863 v two MLC drives (Samsung, 2015)"),
        ("primer", "snia-primer",
         "SSD Performance: A Primer, eight drives by the PTS (SNIA, 2013)"),
        ("840-850", "ssdguy", "Samsung 840 v 850, planar v V-NAND (The SSD Guy with Calypso)"),
        ("845dc", "anandtech-845dc", "Samsung 845DC EVO and PRO with rivals (AnandTech, 2014)"),
        ("fms2016", "fms2016-multistream",
         "multi-stream drives under FIO and Cassandra (Samsung, FMS 2016)"),
        ("intel-530", "computerbase-530",
         "Intel SSD 530, which compresses, with random data (ComputerBase, 2014)"),
    )
)  # fmt: skip


@dataclass(frozen=True)
class PublishedFigure:
    """A published figure of a drive, with the conditions that its source states.

    `baseline` is the reference drive of a relative figure. `block_bytes` and `read_pct` are `None`
    if the source states no value or several.
    """

    source: str
    item: str
    device: str
    baseline: str
    access: str
    block_bytes: int | None
    read_pct: float | None
    outstanding: int | None
    metric: str
    value: float
    unit: str
    note: str
    compressible_pct: float = 0.0
    depths: tuple[int, int] | None = None  # Range of outstanding I/Os for a minimum or maximum.
    state: str = ""  # State before the load; if empty, the rules in `conditions.py` determine it.

    @property
    def oio(self) -> int | str | None:
        """Text of the outstanding I/Os cell: a number, a range ("QD1-QD128"), or None."""
        if self.depths:
            return f"QD{self.depths[0]}-QD{self.depths[1]}"
        return self.outstanding

    @property
    def columns(self) -> dict[str, str | float | int | None]:
        """Cell values by column; numbers are not formatted."""
        block_kib = None if self.block_bytes is None else self.block_bytes / 1024
        cells = {**vars(self), "block_kib": block_kib, "oio": self.oio}
        return {name: cells[name] for name in (*COLUMNS, COMPRESSIBLE)}

    @property
    def label(self) -> str:
        """Short name of the load, such as "random 4 KiB 100 % read QD 32"."""
        block = f"{self.block_bytes / 1024:g} KiB" if self.block_bytes else ""
        read = f"{self.read_pct:g} % read" if self.read_pct is not None else ""
        depth = f"QD {self.outstanding}" if self.outstanding else ""
        if self.depths:
            depth = f"QD {self.depths[0]} to {self.depths[1]}"
        load = " ".join(part for part in (self.access, block, read, depth) if part)
        data = self.compressible_pct
        return f"{load}, {data:g} % compressible" if data else load


@dataclass(frozen=True)
class SkippedRow:
    """A row that cannot be read, with the reason."""

    path: Path
    line: int
    why: str

    def __str__(self) -> str:
        """Return path, line and reason, in the format of error messages."""
        return f"{self.path}:{self.line}: {self.why}"


@dataclass(frozen=True)
class FigureTable:
    """Figures of a CSV file, and the rows that could not be read."""

    figures: tuple[PublishedFigure, ...]
    skipped: tuple[SkippedRow, ...]


def read_table(path: Path) -> FigureTable:
    """Read the figures of a CSV file. Invalid rows are skipped and recorded with a reason.

    Raises:
        ConfigError: If the file does not exist or is not a CSV file, or a column is missing.
    """
    figures, skipped = [], []
    try:
        reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
        _check_columns(path, reader.fieldnames or ())
        for row in reader:
            try:
                figures.append(_figure(row))
            except _Unreadable as error:
                skipped.append(SkippedRow(path, reader.line_num, str(error)))
    except csv.Error as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    return FigureTable(tuple(figures), tuple(skipped))


def read_figures(path: Path = SHIPPED) -> tuple[PublishedFigure, ...]:
    """Read the figures of a CSV file that must have no invalid rows.

    Raises:
        ConfigError: If the file or a row is invalid; the message names the file and line.
    """
    table = read_table(path)
    if table.skipped:
        raise ConfigError(str(table.skipped[0]))
    return table.figures


def campaign(name: str) -> Campaign:
    """Return the campaign `name`.

    Raises:
        ConfigError: If no campaign has this name; the hint suggests the most similar name.
    """
    for campaign in CAMPAIGNS:
        if campaign.name == name:
            return campaign
    from writecliff.published.modern import MEASURED_NAME, MODERN_NAME

    current = (MODERN_NAME, MEASURED_NAME, SSD_IQ_NAME)
    names = ["all", *(campaign.name for campaign in CAMPAIGNS), OTHERS_NAME, *current]
    raise ConfigError.unknown("campaign", name, names)


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise ConfigError(
            f"{path}:1: the column '{missing[0]}' is missing",
            hint=f"expected: {', '.join(COLUMNS)}",
        )


# Units by metric substring; the first match applies.
_UNITS = (
    ("_improvement", "%"),
    ("_consistency", "%"),
    ("_ratio_", "x"),
    ("iops", "IOPS"),
    ("throughput", "MB/s"),
    ("latency_", "ms"),
    ("power_", "W"),
    ("tbw", "TB"),
    ("dwpd", "1/day"),
    ("waf", "x"),
    ("fill_volume", "GB"),
    ("slc_cache_size", "GB"),
)


def unit_of(metric: str) -> str:
    """Return the unit of a metric; "" for an unknown metric."""
    return next((unit for part, unit in _UNITS if part in metric), "")


VALUE_MIN, VALUE_MAX = 1e-12, 1e15  # Range of a figure's absolute value.
BLOCK_KIB_MAX = 1 << 20
OUTSTANDING_MAX = 1 << 20


def _is_figure(value: float) -> bool:
    return value == 0 or VALUE_MIN <= abs(value) <= VALUE_MAX


_TEXTS = ("source", "item", "device", "baseline", "access", "metric", "note", STATE)
# Range of each number, and the description of this range in messages.
_ALLOWED: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "value": (_is_figure, f"0, or from {VALUE_MIN:g} to {VALUE_MAX:g}"),
    "block_kib": (lambda value: 0 < value <= BLOCK_KIB_MAX, f"above 0, up to {BLOCK_KIB_MAX}"),
    "read_pct": (lambda value: 0 <= value <= 100, "0 to 100"),
    COMPRESSIBLE: (lambda value: 0 <= value <= 100, "0 to 100"),
    "oio": (
        lambda value: 0 < value <= OUTSTANDING_MAX and value.is_integer(),
        f"a whole number from 1 to {OUTSTANDING_MAX}",
    ),
}
_DEPTHS = re.compile(r"(?:QD ?)?(\d{1,9}) ?[-–] ?(?:QD ?)?(\d{1,9})", re.ASCII)


class _Unreadable(Exception):
    """Raised with the reason if a row is not a valid figure."""


def _figure(row: Mapping[str, str | None]) -> PublishedFigure:
    """Return the figure in a row. Raises _Unreadable if the row is invalid."""
    text = {name: (row.get(name) or "").strip() for name in (*COLUMNS, COMPRESSIBLE, STATE)}

    def number(name: str) -> float | None:
        if text[name] in ("", "mixed"):
            return None
        try:
            value = float(text[name])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise _Unreadable(f"{name} is '{text[name]}', not a number")
        allowed, words = _ALLOWED.get(name, (lambda value: True, ""))
        if not allowed(value):
            raise _Unreadable(f"{name} is {value:g}; it must be {words}")
        return value

    depths = _depths(text["oio"])
    outstanding = None if depths else number("oio")
    value, block = number("value"), number("block_kib")
    if value is None or not text["device"] or not text["metric"]:
        raise _Unreadable("device, metric or value is missing; a figure needs all three")
    unit = unit_of(text["metric"])
    if unit and text["unit"] not in ("", unit):
        raise _Unreadable(f"unit is '{text['unit']}'; {text['metric']} is in {unit}")
    return PublishedFigure(
        **{name: text[name] for name in _TEXTS},
        block_bytes=round(block * 1024) if block else None,
        read_pct=number("read_pct"),
        outstanding=int(outstanding) if outstanding else None,
        value=value,
        unit=text["unit"] or unit,
        compressible_pct=number(COMPRESSIBLE) or 0.0,
        depths=depths,
    )


def _depths(text: str) -> tuple[int, int] | None:
    """Return a range's bounds, such as (1, 128) for "QD1-QD128"; None if it is not a range."""
    match = _DEPTHS.fullmatch(text)
    if not match:
        return None
    low, high = int(match[1]), int(match[2])
    if not 0 < low < high <= OUTSTANDING_MAX:
        raise _Unreadable(
            f"oio is '{text}'; a range must be ascending and within 1 to {OUTSTANDING_MAX}"
        )
    return low, high
