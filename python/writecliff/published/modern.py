"""Published figures of current drives: the table `modern.csv`, its sources, and their split.

The table contains the figures as printed by the sources; a cell is empty if the source states no
value. Fits may use the figures of the part "fit". Figures of the part "aside" are held out for
checks. The split depends only on the rows: each family's figures are ordered by a hash of their
conditions (excluding the value), and every third figure is held out. Figures that a source states
without a load, such as endurance and power, belong to neither part.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Literal

from writecliff.devices.families import variants
from writecliff.input_files import read_text
from writecliff.published.figures import PublishedFigure, read_figures
from writecliff.published.kinds import MEAN, VOLUME
from writecliff.published.scores import Row

MODERN = Path(__file__).parent / "modern.csv"
MODERN_SOURCES = Path(__file__).parent / "modern_sources.csv"
MODERN_NAME, MODERN_ABOUT = "modern", "current drives: data sheets and reviews"
# Figures for the same drives that were collected after the split. No rule uses the figures that
# were collected after the split.
MEASURED = Path(__file__).parent / "measured.csv"
MEASURED_NAME = "measured"
MEASURED_ABOUT = "current drives: measurements and sheets that no rule uses"

Part = Literal["fit", "aside", "stated"]
_EVERY = 3  # Every third figure in a family is held out.
# Figures that no load measures. The rate at which one thread fills a new drive is a property of the
# host, because one source states that deeper queues are faster.
_STATED = ("tbw", "dwpd", "power_", "slc_cache_size", "fill_throughput_burst")
_RATES = "rates"
# Goals for the median error, in percent.
_GOALS: Mapping[tuple[Part, str], float] = {
    ("fit", _RATES): 5.0,
    ("fit", MEAN.name): 5.0,
    ("fit", VOLUME.name): 10.0,
    ("aside", _RATES): 12.0,
    ("aside", MEAN.name): 20.0,
    ("aside", VOLUME.name): 10.0,
}
_DEPTH = 256  # Queue depth for random I/O if the source does not state one (as in `sheet_check`).


@dataclass(frozen=True)
class Source:
    """A source of figures."""

    name: str  # Name in the table.
    title: str
    address: str
    section: str


def modern_sources() -> Mapping[str, Source]:
    """Return the sources by their names in the table."""
    rows = csv.DictReader(io.StringIO(read_text(MODERN_SOURCES), newline=""))
    sources = (Source(r["source"], r["title"], r["address"], r["section"]) for r in rows)
    return {source.name: source for source in sources}


def modern_figures() -> tuple[PublishedFigure, ...]:
    """Return the figures in table order.

    Random I/O figures without a queue depth are assigned the usual queue depth of NVMe data sheets.
    """
    return tuple(_with_depth(figure) for figure in read_figures(MODERN))


def measured_figures() -> tuple[PublishedFigure, ...]:
    """Return the figures that no rule uses, and the rated active power from the rules' table."""
    power = (figure for figure in modern_figures() if figure.metric.startswith("power_active"))
    return (
        *map(_with_depth, read_figures(MEASURED)),
        *(figure for figure in power if figure.device in variants()),
    )


def _with_depth(figure: PublishedFigure) -> PublishedFigure:
    if figure.access == "random" and figure.outstanding is None:
        return replace(figure, outstanding=_DEPTH)
    return figure


def family_of(device: str) -> str:
    """Return a drive's family, such as "pm9a3" for "pm9a3-7680"."""
    return device.rpartition("-")[0]


def is_stated(figure: PublishedFigure) -> bool:
    """Return `True` if no load measures the figure."""
    return figure.metric.startswith(_STATED)


def parts_of_figures(figures: Iterable[PublishedFigure]) -> list[Part]:
    """Return each figure's part of the split. `figures` must contain all figures of each family."""
    listed = list(figures)
    parts: list[Part] = ["stated"] * len(listed)
    families: dict[str, list[int]] = {}
    for index, figure in enumerate(listed):
        if not is_stated(figure):
            families.setdefault(family_of(figure.device), []).append(index)
    for members in families.values():
        members.sort(key=lambda index: _hash(listed[index]))
        for place, index in enumerate(members):
            last_of_few = len(members) < _EVERY and place == len(members) - 1
            parts[index] = "aside" if place % _EVERY == _EVERY - 1 or last_of_few else "fit"
    return parts


@dataclass(frozen=True)
class PartScore:
    """Median absolute error of a kind of figure in a part of the split, in %.

    Fits are adjusted to the "fit" figures, so only the held-out figures show how well a family
    predicts.
    """

    part: Part
    kind: str  # Kind: "rates", "mean latency" or "volume of SLC caches".
    figures: int
    value: float
    goal: float

    @property
    def reached(self) -> bool:
        """`True` if the median error is within the goal."""
        return self.value <= self.goal


def part_scores(rows: Sequence[Row]) -> list[PartScore]:
    """Return the scores of the rows found in the table, by part and kind."""
    parts = split()
    sizes: dict[tuple[Part, str], list[float]] = {}
    for row in rows:
        if row.size is not None and parts.get(row.figure, "stated") != "stated":
            kind = row.kind.name if row.kind in (MEAN, VOLUME) else _RATES
            sizes.setdefault((parts[row.figure], kind), []).append(row.size)
    return [
        PartScore(part, kind, len(errors), median(errors), _GOALS[part, kind])
        for (part, kind), errors in sorted(sizes.items(), reverse=True)
    ]


@lru_cache(maxsize=1)
def split() -> Mapping[PublishedFigure, Part]:
    """Return the part of the split for each figure in the table."""
    figures = modern_figures()
    return dict(zip(figures, parts_of_figures(figures), strict=True))


def _hash(figure: PublishedFigure) -> str:
    """Return a hash of a figure's conditions, excluding its value."""
    cells = (
        figure.source, figure.item, figure.device, figure.metric, figure.access,
        figure.block_bytes, figure.read_pct, figure.oio,
    )  # fmt: skip
    return hashlib.sha256("|".join(map(str, cells)).encode()).hexdigest()
