"""One drive over another: every figure that runs of the same campaign share, and by how much the
first drive is better.

Where more is better (IOPS) the improvement is how much more the first drive has, in percent of the
other; where less is better (latency), how much less. Positive is always better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from writecliff import units
from writecliff.procedures.registry import PROCEDURES
from writecliff.report import plots
from writecliff.report.axes import Axis
from writecliff.report.campaigns.results import Result
from writecliff.report.csvs import data_file
from writecliff.report.model import DataFile, Figure, Section, section, table

_BARS = 8  # figures of a chart: more would not be read


@dataclass(frozen=True)
class Contender:
    """A drive with the results of its runs, by campaign."""

    label: str
    results: Mapping[str, Sequence[Result]]


@dataclass(frozen=True)
class Improvement:
    """A figure that two drives have."""

    campaign: str
    drive: str
    over: str
    of: Result  # the first drive's
    other: float

    @property
    def pct(self) -> float | None:
        """None where neither direction is better, or there is nothing to compare with."""
        if not self.other or self.of.higher_is_better is None:
            return None
        change = 100 * (self.of.value / self.other - 1)
        return change if self.of.higher_is_better else -change


def improvements(drives: Sequence[Contender]) -> list[Improvement]:
    """The first drive over each of the others, figure by figure."""
    found = []
    for drive in drives[1:]:
        for campaign, results in drives[0].results.items():
            others = {_key(result): result.value for result in drive.results.get(campaign, ())}
            found += [
                Improvement(campaign, drives[0].label, drive.label, result, others[_key(result)])
                for result in results
                if _key(result) in others
            ]
    return found


def _key(result: Result) -> tuple[Any, ...]:
    return (
        result.item,
        result.access,
        result.metric,
        result.block_kib,
        result.read_pct,
        result.oio,
    )


def sections_of(found: Sequence[Improvement]) -> list[Section]:
    """A section for each campaign and pair of drives."""
    groups: dict[tuple[str, str], list[Improvement]] = {}
    for item in found:
        groups.setdefault((item.campaign, item.over), []).append(item)
    return [
        _section(number, campaign, over, items, found)
        for number, ((campaign, over), items) in enumerate(groups.items(), 1)
    ]


def _section(
    number: int,
    campaign: str,
    over: str,
    items: Sequence[Improvement],
    found: Sequence[Improvement],
) -> Section:
    entry = PROCEDURES[campaign]
    rows = [
        (
            text_of(item.of),
            item.of.metric,
            f"{units.significant(item.of.value)} {item.of.unit}".strip(),
            f"{units.significant(item.other)} {item.of.unit}".strip(),
            units.UNKNOWN if item.pct is None else f"{item.pct:+.1f} %",
        )
        for item in items
    ]
    first, data = items[0].drive, file_of(found)
    return section(
        f"{entry.title}: {first} over {over}",
        "Figures that both runs have.",
        _bars(number, over, items, data),
        table(
            f"{first} over {over}",
            ("Load", "Figure", first, over, "Improvement"),
            rows,
            "ll",
            note="Positive is better: more IOPS, less latency.",
            data=data,
        ),
    )


def text_of(result: Result) -> str:
    """What a figure is of: "basic: random 4 KiB, 100 % read, OIO 32"."""
    parts = [
        result.access or result.item,
        f"{result.block_kib:g} KiB" if result.block_kib is not None else "",
        f"{result.read_pct:g} % read" if result.read_pct is not None else "",
        f"OIO {result.oio}" if result.oio is not None else "",
    ]
    return f"{result.item}: {', '.join(filter(None, parts))}"


def _bars(number: int, over: str, items: Sequence[Improvement], data: DataFile) -> Figure | None:
    """The speeds of both drives in the first part of the campaign, in percent of the other's."""
    speeds = [
        item
        for item in items
        if item.of.metric in ("iops", "throughput", "iops_steady") and item.other
    ]
    speeds = [item for item in speeds if item.of.item == speeds[0].of.item][:_BARS]
    if not speeds:
        return None
    return plots.bars(
        f"improvement-{number}",
        f"Speeds in percent of {over}",
        data,
        [_short(item.of) for item in speeds],
        [
            plots.Bars(speeds[0].drive, [100 * item.of.value / item.other for item in speeds]),
            plots.Bars(over, [100.0 for _ in speeds]),
        ],
        Axis(f"Speed, in percent of {over}"),
        alt=f"Speeds of both drives in percent of {over}",
        wide=True,
    )


def _short(result: Result) -> str:
    kind = {"random": "RND", "sequential": "SEQ"}.get(result.access, result.access)
    size = f" {result.block_kib:g}K" if result.block_kib is not None else ""
    share = result.read_pct
    mix = "" if share is None else {100.0: " R", 0.0: " W"}.get(share, f" {share:g}% R")
    return f"{kind}{size}{mix}\nQD{result.oio}" if result.oio else f"{kind}{size}{mix}"


def file_of(found: Sequence[Improvement]) -> DataFile:
    """All improvements as CSV."""
    head = ("campaign", "drive", "over", *_OF_RESULT, "other", "improvement_pct")
    return data_file("improvement.csv", head, (mapping_of(item).values() for item in found))


_OF_RESULT = ("item", "access", "block_kib", "read_pct", "oio", "metric", "unit", "value")


def mapping_of(item: Improvement) -> dict[str, Any]:
    """An improvement for programs."""
    return {
        "campaign": item.campaign,
        "drive": item.drive,
        "over": item.over,
        **{name: getattr(item.of, name) for name in _OF_RESULT},
        "other": item.other,
        "improvement_pct": item.pct,
    }
