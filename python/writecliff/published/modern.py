"""Published figures of current drives: the table `modern.csv`, its sources, and their split.

Figures are written down as the sources have them: what a source leaves open is an empty cell. A fit
may use those of the part "fit"; those of the part "aside" are for checking and no fit sees them.
Which is which depends on the rows alone: those of a family are ordered by a hash of what they are
of (not of their value), and every third is kept aside. Figures that are stated and not measured
under a load, such as endurance and power, are in neither.
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
# Figures of the same drives, collected after the split: no rule uses them.
MEASURED = Path(__file__).parent / "measured.csv"
MEASURED_NAME = "measured"
MEASURED_ABOUT = "current drives: measurements and sheets that no rule uses"

Part = Literal["fit", "aside", "stated"]
_EVERY = 3  # of the figures of a family is kept aside
# Not measured under a load here. The rate of one thread that writes a new drive is the host's: a
# source says itself that deeper queues give more.
_STATED = ("tbw", "dwpd", "power_", "slc_cache_size", "fill_throughput_burst")
_RATES = "rates"
# Of the median error, in %.
_GOALS: Mapping[tuple[Part, str], float] = {
    ("fit", _RATES): 5.0,
    ("fit", MEAN.name): 5.0,
    ("fit", VOLUME.name): 10.0,
    ("aside", _RATES): 12.0,
    ("aside", MEAN.name): 20.0,
    ("aside", VOLUME.name): 10.0,
}
_DEPTH = 256  # of random I/O of NVMe drives, where the source gives none (as `sheet_check`)


@dataclass(frozen=True)
class Source:
    """Where figures are from."""

    name: str  # as in the table
    title: str
    address: str
    section: str


def modern_sources() -> Mapping[str, Source]:
    """The sources by the name that the table has for them."""
    rows = csv.DictReader(io.StringIO(read_text(MODERN_SOURCES), newline=""))
    found = (Source(r["source"], r["title"], r["address"], r["section"]) for r in rows)
    return {one.name: one for one in found}


def modern_figures() -> tuple[PublishedFigure, ...]:
    """The figures in the order of the table, with the queue depth of data sheets of NVMe drives
    where the source gives none.
    """
    return tuple(_with_depth(figure) for figure in read_figures(MODERN))


def measured_figures() -> tuple[PublishedFigure, ...]:
    """Return the figures that no rule uses, and the rated active power of the rules' table."""
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
    """The family of a drive, which is named after it and its capacity: "pm9a3-7680"."""
    return device.rpartition("-")[0]


def is_stated(figure: PublishedFigure) -> bool:
    """Whether no load measures the figure."""
    return figure.metric.startswith(_STATED)


def parts_of_figures(figures: Iterable[PublishedFigure]) -> list[Part]:
    """The part of each figure. The figures of a family must be there together."""
    listed = list(figures)
    found: list[Part] = ["stated"] * len(listed)
    families: dict[str, list[int]] = {}
    for index, figure in enumerate(listed):
        if not is_stated(figure):
            families.setdefault(family_of(figure.device), []).append(index)
    for own in families.values():
        own.sort(key=lambda index: _hash(listed[index]))
        for place, index in enumerate(own):
            last_of_few = len(own) < _EVERY and place == len(own) - 1
            found[index] = "aside" if place % _EVERY == _EVERY - 1 or last_of_few else "fit"
    return found


@dataclass(frozen=True)
class PartScore:
    """The median size of the errors of a part's figures of a kind, in %. A fit's figures are met by
    choice, so only those that are kept aside say how well a family predicts.
    """

    part: Part
    kind: str  # "rates", "mean latency", "volume of SLC caches"
    figures: int
    value: float
    goal: float

    @property
    def reached(self) -> bool:
        return self.value <= self.goal


def part_scores(rows: Sequence[Row]) -> list[PartScore]:
    """The scores of those rows that are of the table, by part and kind."""
    parts = split()
    sizes: dict[tuple[Part, str], list[float]] = {}
    for row in rows:
        if row.size is not None and parts.get(row.figure, "stated") != "stated":
            kind = row.kind.name if row.kind in (MEAN, VOLUME) else _RATES
            sizes.setdefault((parts[row.figure], kind), []).append(row.size)
    return [
        PartScore(part, kind, len(own), median(own), _GOALS[part, kind])
        for (part, kind), own in sorted(sizes.items(), reverse=True)
    ]


@lru_cache(maxsize=1)
def split() -> Mapping[PublishedFigure, Part]:
    """The part of each figure of the table."""
    figures = modern_figures()
    return dict(zip(figures, parts_of_figures(figures), strict=True))


def _hash(figure: PublishedFigure) -> str:
    """Of what a figure is of, without its value."""
    cells = (
        figure.source, figure.item, figure.device, figure.metric, figure.access,
        figure.block_bytes, figure.read_pct, figure.oio,
    )  # fmt: skip
    return hashlib.sha256("|".join(map(str, cells)).encode()).hexdigest()
