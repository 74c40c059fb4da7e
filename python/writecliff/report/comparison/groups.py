"""Grouping of a long figure list, with the number of wins for each contender.

A campaign has hundreds of figures, most of them a single metric under many loads. A group consists
of the figures for one metric in a campaign part. Figures from other tests form one group per test.
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

LONG_LIST = 40  # Number of figures above which a summary precedes the list.


@dataclass(frozen=True)
class Group:
    """A group of figures of the same kind."""

    test: str  # Test that measured the figures.
    name: str  # Group name, such as "mixes: IOPS of reads"; empty for all other figures.
    figures: Sequence[Figure]

    @property
    def contenders(self) -> int:
        """Number of contenders."""
        return len(self.figures[0].values)

    def won(self, number: int) -> list[Figure]:
        """Return the figures where a contender is significantly better."""
        return [
            figure for figure in self.figures if figure.best == number and figure.noise != "within"
        ]

    @cached_property
    def decided(self) -> list[Figure]:
        """Figures where any contender is significantly better."""
        return [
            figure
            for figure in self.figures
            if figure.best is not None and figure.noise != "within"
        ]

    @property
    def equal(self) -> int:
        """Number of figures with equal values."""
        return sum(figure.noise == "equal" for figure in self.figures)

    @property
    def largest(self) -> Figure | None:
        """Figure with the largest difference in percent, or None if no contender is better."""
        return max(self.decided, key=lambda figure: figure.margin_pct or 0, default=None)

    @property
    def median_pct(self) -> float | None:
        """Median difference in percent, or None without differences."""
        margins = [figure.margin_pct for figure in self.decided if figure.margin_pct is not None]
        return median(margins) if margins else None

    def ratios(self, number: int) -> list[float]:
        """Return a contender's ratios to the first contender; a ratio above 1 is better.

        Figures without a ratio are omitted.
        """
        ratios = []
        for figure in self.figures:
            first, value = figure.values[0], figure.values[number]
            if first is None or value is None or figure.noise == "apart":
                continue
            if figure.sample.higher_is_better is None or first.value <= 0 or value.value <= 0:
                continue
            ratio = value.value / first.value
            ratios.append(ratio if figure.sample.higher_is_better else 1 / ratio)
        return ratios


def groups_of(figures: Sequence[Figure]) -> list[Group]:
    """Return the groups of figures, in order of first appearance."""
    groups: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        groups.setdefault((figure.test, figure.sample.kind), []).append(figure)
    return [Group(test, name, members) for (test, name), members in groups.items()]


def group_names(groups: Sequence[Group]) -> list[str]:
    """Return the group names, including the test if there are several tests."""
    many = len({group.test for group in groups}) > 1
    return [
        ": ".join(filter(None, (group.test if many or not group.name else "", group.name)))
        for group in groups
    ]


def groups_table(groups: Sequence[Group], labels: Sequence[str]) -> Table:
    """Return a row for each group, with each contender's wins and the differences."""
    undecided = any(_undecided(group) for group in groups)
    rows: list[tuple[Value, ...]] = []
    for name, group in zip(group_names(groups), groups, strict=True):
        counts = [len(group.won(number)) for number in range(len(labels))]
        middle, most = group.median_pct, group.largest
        rows.append(
            (
                name,
                len(group.figures),
                *counts,
                group.equal,
                *([_undecided(group)] if undecided else []),
                UNKNOWN if middle is None else percent(middle),
                *((UNKNOWN, "") if most is None else _largest(most, labels)),
            )
        )
    better = [f"{label} better" for label in labels]
    others = ["Undecided"] if undecided else []
    counted = ("Figures", *better, "Equal", *others)
    head = (Column("Group"), *(Column(name, kinds.plain()) for name in counted),
            Column("Median difference", kinds.RIGHT), Column("Largest difference"),
            Column("At"))  # fmt: skip
    note = "The median and largest differences cover the figures where a contender is better."
    title = "Number of figures at which each is better"
    return table(title, head, rows, note=note, data=_file(groups, labels))


def _undecided(group: Group) -> int:
    """Return the number of undecided figures.

    A figure is undecided if the difference is not significant, the loads differ, or neither
    direction is better.
    """
    return len(group.figures) - len(group.decided) - group.equal


def _largest(figure: Figure, labels: Sequence[str]) -> tuple[str, str]:
    """Return a group's largest difference and the load where it occurs."""
    best, other = (value_text(figure.value_of(number)) for number in figure.order[:2])
    values = f"{best} against {other} {figure.sample.unit}".strip()
    return f"{labels[figure.order[0]]} {figure.margin_text}: {values}", figure.sample.place


def _file(groups: Sequence[Group], labels: Sequence[str]) -> DataFile:
    head = ("test", "group", "figures", "equal", "contender", "better", "median_ratio",
            "least_ratio", "most_ratio")  # fmt: skip
    rows = []
    for group in groups:
        for number, label in enumerate(labels):
            ratios = group.ratios(number)
            spread = (median(ratios), min(ratios), max(ratios)) if ratios else (None,) * 3
            counts = (len(group.figures), group.equal)
            rows.append((group.test, group.name, *counts, label, len(group.won(number)), *spread))
    return data_file("groups.csv", head, rows)


def as_figures(groups: Sequence[Group], labels: Sequence[str]) -> list[Figure]:
    """Return each group as a single figure for a comparison's picture.

    The group's value is the contender's median ratio to the first contender. The interval spans the
    smallest to the largest ratio.
    """
    as_figures = []
    for group in groups:
        values = []
        for number in range(len(labels)):
            ratios = group.ratios(number)
            spread = Interval(min(ratios), max(ratios), "least to most") if ratios else None
            ratio = median(ratios) if ratios else None
            values.append(
                None
                if ratio is None
                else Headline(
                    key=group.name, label=group.name, value=ratio, unit="", interval=spread
                )
            )
        as_figures.append(Figure(group.test, values))
    return as_figures
