"""One drive over another: every figure that runs of the same campaign share, and by how much the
first drive is better.

Where more is better (IOPS) the improvement is what the first drive has more, in percent of the
other; where less is better (latency) what it has less. A positive one is always for the better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from writecliff import units
from writecliff.procedures.registry import PROCEDURES
from writecliff.report import plots
from writecliff.report.axes import Axis
from writecliff.report.campaigns.common import Result
from writecliff.report.csvs import csv_text
from writecliff.report.loops import aligned
from writecliff.report.model import DataFile, Figure, Section, Table, drawn

CSV = "improvement.csv"
_BARS = 8  # figures of a chart: more would not be read


@dataclass(frozen=True)
class Contender:
    """A drive with the results of its runs, by campaign."""

    label: str
    results: Mapping[str, Sequence[Result]]


@dataclass(frozen=True)
class Improvement:
    """A figure of two drives."""

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
    """A section for each campaign and pair of drives. Call inside `house_style()`."""
    groups: dict[tuple[str, str], list[Improvement]] = {}
    for item in found:
        groups.setdefault((item.campaign, item.over), []).append(item)
    return [
        _section(number, campaign, over, items)
        for number, ((campaign, over), items) in enumerate(groups.items(), 1)
    ]


def _section(number: int, campaign: str, over: str, items: Sequence[Improvement]) -> Section:
    entry = PROCEDURES[campaign]
    rows = tuple(
        (
            text_of(item.of),
            item.of.metric,
            f"{units.significant(item.of.value)} {item.of.unit}".strip(),
            f"{units.significant(item.other)} {item.of.unit}".strip(),
            units.UNKNOWN if item.pct is None else f"{item.pct:+.1f} %",
        )
        for item in items
    )
    first = items[0].drive
    table = Table(
        f"{first} over {over}",
        ("Load", "Figure", first, over, "Improvement"),
        rows,
        ("left", *aligned(3), "right"),
        "Positive is better: more IOPS, less latency.",
        CSV,
    )
    return Section(
        f"{entry.title}: {first} over {over}",
        "Figures that both runs have.",
        _bars(number, over, items),
        (table,),
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


def _bars(number: int, over: str, items: Sequence[Improvement]) -> tuple[Figure, ...]:
    """The speeds of the first part of the campaign, of both drives, in percent of the other's."""
    speeds = [
        item
        for item in items
        if item.of.metric in ("iops", "throughput", "iops_steady") and item.other
    ]
    speeds = [item for item in speeds if item.of.item == speeds[0].of.item][:_BARS]
    if not speeds:
        return ()
    name = f"improvement-{number}"
    svg = plots.bars(
        name,
        [_short(item.of) for item in speeds],
        [
            plots.Bars(speeds[0].drive, [100 * item.of.value / item.other for item in speeds]),
            plots.Bars(over, [100.0 for _ in speeds]),
        ],
        Axis(f"Speed, in percent of {over}"),
        description=f"Speeds of both drives in percent of {over}",
    )
    title = f"Speeds in percent of {over}"
    return drawn(name, title, svg, CSV, title, wide=True)


def _short(result: Result) -> str:
    kind = {"random": "RND", "sequential": "SEQ"}.get(result.access, result.access)
    size = f" {result.block_kib:g}K" if result.block_kib is not None else ""
    share = result.read_pct
    mix = "" if share is None else {100.0: " R", 0.0: " W"}.get(share, f" {share:g}% R")
    return f"{kind}{size}{mix}\nQD{result.oio}" if result.oio else f"{kind}{size}{mix}"


def file_of(found: Sequence[Improvement]) -> DataFile:
    head = ("campaign", "drive", "over", "item", "access", "block_kib", "read_pct", "oio", "metric",
            "unit", "value", "other", "improvement_pct")  # fmt: skip
    return DataFile(CSV, csv_text(head, (mapping_of(item).values() for item in found)))


def mapping_of(item: Improvement) -> dict[str, Any]:
    of = item.of
    return {
        "campaign": item.campaign,
        "drive": item.drive,
        "over": item.over,
        "item": of.item,
        "access": of.access,
        "block_kib": of.block_kib,
        "read_pct": of.read_pct,
        "oio": of.oio,
        "metric": of.metric,
        "unit": of.unit,
        "value": of.value,
        "other": item.other,
        "improvement_pct": item.pct,
    }
