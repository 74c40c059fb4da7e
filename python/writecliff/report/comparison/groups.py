"""A long list of figures in groups: how many of them each contender is better at.

A campaign has hundreds of figures, most of them one metric under many loads. A group is a metric of
a part of the campaign; figures of other tests are a group for each test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from writecliff.report import kinds
from writecliff.report.comparison.figures import Figure, percent
from writecliff.report.csvs import data_file
from writecliff.report.headline import Headline, Interval, value_text
from writecliff.report.table import Column, DataFile, Table, Value, table
from writecliff.units import UNKNOWN

LONG_LIST = 40  # figures; more are summarised before they are listed


@dataclass(frozen=True)
class Group:
    """Figures that are of one kind."""

    test: str  # that measured them
    name: str  # "mixes: IOPS of reads"; empty: all other figures of the test
    figures: Sequence[Figure]

    @property
    def contenders(self) -> int:
        """How many are compared."""
        return len(self.figures[0].values)

    def won(self, number: int) -> list[Figure]:
        """The figures at which a contender is better, by more than noise as far as that is
        known.
        """
        return [one for one in self.figures if one.best == number and one.noise != "within"]

    @cached_property
    def decided(self) -> list[Figure]:
        """The figures at which any contender is better."""
        return [one for one in self.figures if one.best is not None and one.noise != "within"]

    @property
    def equal(self) -> int:
        """How many figures are equal."""
        return sum(one.noise == "equal" for one in self.figures)

    @property
    def largest(self) -> Figure | None:
        """The figure with the largest difference in percent; None if no contender is better."""
        return max(self.decided, key=lambda one: one.margin_pct or 0, default=None)

    @property
    def median_pct(self) -> float | None:
        """The median of the differences; None if there are none in percent."""
        margins = [one.margin_pct for one in self.decided if one.margin_pct is not None]
        return median(margins) if margins else None

    def ratios(self, number: int) -> list[float]:
        """How many times as good a contender is as the first one, for each figure that can say
        so.
        """
        found = []
        for one in self.figures:
            first, value = one.values[0], one.values[number]
            if first is None or value is None or one.noise == "apart":
                continue
            if one.one.higher_is_better is None or first.value <= 0 or value.value <= 0:
                continue
            ratio = value.value / first.value
            found.append(ratio if one.one.higher_is_better else 1 / ratio)
        return found


def groups_of(figures: Sequence[Figure]) -> list[Group]:
    """The figures in groups, in the order of the first one of each."""
    found: dict[tuple[str, str], list[Figure]] = {}
    for one in figures:
        found.setdefault((one.test, one.one.kind), []).append(one)
    return [Group(test, name, members) for (test, name), members in found.items()]


def group_names(groups: Sequence[Group]) -> list[str]:
    """What the groups are called, with their test if there are several."""
    many = len({one.test for one in groups}) > 1
    return [
        ": ".join(filter(None, (one.test if many or not one.name else "", one.name)))
        for one in groups
    ]


def groups_table(groups: Sequence[Group], labels: Sequence[str]) -> Table:
    """A row for each group: who is better how often, and the largest difference."""
    undecided = any(_undecided(one) for one in groups)
    rows: list[tuple[Value, ...]] = []
    for name, one in zip(group_names(groups), groups, strict=True):
        counts = [len(one.won(number)) for number in range(len(labels))]
        middle, most = one.median_pct, one.largest
        rows.append(
            (
                name,
                len(one.figures),
                *counts,
                one.equal,
                *([_undecided(one)] if undecided else []),
                UNKNOWN if middle is None else percent(middle),
                *((UNKNOWN, "") if most is None else _largest(most, labels)),
            )
        )
    better = [f"{label} better" for label in labels]
    others = ["Not told"] if undecided else []
    counted = ("Figures", *better, "Equal", *others)
    head = (Column("Group"), *(Column(name, kinds.plain()) for name in counted),
            Column("Median difference", kinds.RIGHT), Column("Largest difference"),
            Column("At"))  # fmt: skip
    note = "Median and largest are of the figures at which one is better."
    title = "Who is better how often"
    return table(title, head, rows, note=note, data=_file(groups, labels))


def _undecided(group: Group) -> int:
    """How many figures differ by no more than noise, in neither direction, or in their load."""
    return len(group.figures) - len(group.decided) - group.equal


def _largest(figure: Figure, labels: Sequence[str]) -> tuple[str, str]:
    """The largest difference of a group, and at which load."""
    best, other = (value_text(figure.value_of(number)) for number in figure.order[:2])
    values = f"{best} against {other} {figure.one.unit}".strip()
    return f"{labels[figure.order[0]]} {figure.margin_text}: {values}", figure.one.place


def _file(groups: Sequence[Group], labels: Sequence[str]) -> DataFile:
    head = ("test", "group", "figures", "equal", "contender", "better", "median_ratio",
            "least_ratio", "most_ratio")  # fmt: skip
    rows = []
    for one in groups:
        for number, label in enumerate(labels):
            ratios = one.ratios(number)
            spread = (median(ratios), min(ratios), max(ratios)) if ratios else (None,) * 3
            counts = (len(one.figures), one.equal)
            rows.append((one.test, one.name, *counts, label, len(one.won(number)), *spread))
    return data_file("groups.csv", head, rows)


def as_figures(groups: Sequence[Group], labels: Sequence[str]) -> list[Figure]:
    """Each group as one figure for the picture of a comparison: how many times as good a contender
    is as the first one, in the median; the interval is from the least to the most.
    """
    found = []
    for one in groups:
        values = []
        for number in range(len(labels)):
            ratios = one.ratios(number)
            spread = Interval(min(ratios), max(ratios), "least to most") if ratios else None
            ratio = median(ratios) if ratios else None
            values.append(
                None
                if ratio is None
                else Headline(key=one.name, label=one.name, value=ratio, unit="", interval=spread)
            )
        found.append(Figure(one.test, values))
    return found
