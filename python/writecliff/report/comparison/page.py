"""A comparison as a page and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.report.colours import one_page
from writecliff.report.comparison.contenders import Contender
from writecliff.report.comparison.figures import NOISE_TEXT, RULE, Figure
from writecliff.report.comparison.grid_page import NOT_STEADY, grid_sections
from writecliff.report.comparison.groups import (
    LONG_LIST,
    as_figures,
    group_names,
    groups_of,
    groups_table,
)
from writecliff.report.comparison.pictures import (
    curves_mapping,
    curves_section,
    relative,
    setting_section,
)
from writecliff.report.csvs import data_file
from writecliff.report.headline import Headline, interval_text, value_text
from writecliff.report.model import Section, section
from writecliff.report.pages import Page
from writecliff.report.table import DataFile, Table, table

if TYPE_CHECKING:
    from writecliff.report.comparison import Comparison

SCHEMA = "writecliff/comparison/2"
_LONG_NAME = 40  # letters of a figure's name from which on it may be broken into lines
_SHOWN = ("drive", "class", "capacity", "interface", "firmware", "write cache")


@one_page()
def comparison_page(found: Comparison) -> Page:
    """The page of a comparison."""
    drives = list(dict.fromkeys(one.first.drive for one in found.contenders))
    between = f"{drives[0]}: " if len(drives) == 1 else ""
    return Page(
        title=f"{between}{' against '.join(found.labels)}",
        intro="",
        verdict=found.verdict,
        sections=tuple(sections_of(found)),
        summary=comparison_mapping(found),
        disclosures=tuple(disclosures_of(found)),
        stamp=_common_stamp(found),
    )


def _common_stamp(found: Comparison) -> str:
    """What is stamped on every run; empty if they differ in it."""
    stamps = {run.stamp for one in found.contenders for run in one.runs.values()}
    return stamps.pop() if len(stamps) == 1 else ""


def disclosures_of(found: Comparison) -> Iterator[str]:
    """What must be known of the runs, as far as it is not the same for all."""
    values = [value for figure in found.figures for value in figure.values]
    grids = [grid for shared in found.grids for grid in shared.by]
    if not all(item is None or item.steady for item in (*values, *grids)):
        yield (
            f"Figures marked {NOT_STEADY} were taken without steady state and must not be quoted "
            "as sustained performance."
        )
    for one in found.contenders:
        runs = one.runs.values()
        for stamp in sorted({run.stamp for run in runs} - {"", _common_stamp(found)}):
            tests = ", ".join(run.test for run in runs if run.stamp == stamp)
            yield f"{one.label}: {stamp} ({tests}), by options or because it was shortened."
        for run in runs:
            if run.status != "complete":
                yield f"{one.label}: {run.test} is {run.status}; its figures are those so far."
        for path in one.left_out:
            yield f"{one.label}: {path.name} has not measured anything yet and is left out."
    if not found.differences and len({one.first.created for one in found.contenders}) > 1:
        yield "The set-ups are the same: what differs is when the runs were made."


def sections_of(found: Comparison) -> Iterator[Section]:
    """Who is compared, what differs, the figures, the grids, the curves. A long list of figures is
    summarised first, and comes after the grids, in which most of it stands too.
    """
    yield section("Set-up", "", _contenders(found.contenders), differences_table(found))
    data = _figures_file(found)
    names = figure_names(found)
    intro = f"{RULE} They cover 95 %, of the rounds or I/Os of one run: see the data for which."
    grids = grid_sections(found.grids, found.labels)
    if len(found.figures) > LONG_LIST:
        yield _summary_section(found)
        yield from grids
        yield section("Figures", intro, figures_table(found, data))
    else:
        picture = relative(found.labels, found.figures, names, data)
        yield section("Figures", intro, figures_table(found, data), picture)
        yield from grids
    yield setting_section(found)
    yield curves_section(found.contenders)


def _summary_section(found: Comparison) -> Section:
    """A long list of figures in groups."""
    groups, labels = groups_of(found.figures), found.labels
    shown = groups_table(groups, labels)
    assert shown.data is not None
    title = f"Groups of figures relative to {labels[0]}: median, least and most"
    drawn = relative(
        labels, as_figures(groups, labels), group_names(groups), shown.data, title=title,
        most=LONG_LIST,
    )  # fmt: skip
    intro = f"{len(found.figures)} figures in {len(groups)} groups; all of them are listed below."
    return section("Summary", intro, shown, drawn)


def _contenders(contenders: Sequence[Contender]) -> Table:
    rows = [
        (
            one.label,
            *(one.first.setup.get(what) or units.UNKNOWN for what in _SHOWN),
            ", ".join(f"{run.test} ({run.path.name})" for run in one.runs.values()),
        )
        for one in contenders
    ]
    head = ("", *(f"{what[0].upper()}{what[1:]}" for what in _SHOWN), "Runs")
    return table("Compared", head, rows, "l" * len(head))


def differences_table(found: Comparison) -> Table | None:
    """What differs, with a column for each contender; None: nothing does."""
    rows = [
        (
            part.what + (f" ({', '.join(part.tests)})" if part.tests else ""),
            *(units.UNKNOWN if value is None else value for value in part.values),
        )
        for part in found.differences
    ]
    head = ("", *found.labels)
    return table("What differs", head, rows, "l" * len(head)) if rows else None


def figure_names(found: Comparison) -> list[str]:
    """What the figures are called in tables and pictures, with their test if there are several."""
    tests = {figure.test for figure in found.figures}
    many = len(tests) > 1
    return [
        (f"{figure.test}: " if many else "")
        + figure.label
        + (f" ({figure.one.at})" if len(set(figure.loads)) == 1 and figure.one.at else "")
        for figure in found.figures
    ]


def figures_table(found: Comparison, data: DataFile | None = None) -> Table:
    """The figures side by side with their intervals, who is best, and by how much."""
    rows = [
        (
            name,
            figure.one.unit,
            *(_cell(value, apart=figure.noise == "apart") for value in figure.values),
            units.UNKNOWN if figure.best is None else found.labels[figure.best],
            figure.margin_text,
            NOISE_TEXT[figure.noise],
        )
        for name, figure in zip(figure_names(found), found.figures, strict=True)
    ]
    against = "" if len(found.contenders) == 2 else " than the next"
    head = ("Figure", "Unit", *found.labels, "Best", f"By{against}", "Is that noise?")
    long = any(len(name) > _LONG_NAME for name, *_ in rows)
    align = ("l" if long else "w") + "w" + "r" * len(found.labels) + ("wrl" if long else "wrw")
    return table("Figures in common", head, rows, align, data=data)


def _cell(value: Headline | None, *, apart: bool) -> str:
    if value is None:
        return units.UNKNOWN
    load = f" at {value.at}" if apart else ""
    mark = "" if value.steady else NOT_STEADY
    return f"{value_text(value.value)}{mark}{interval_text(value.interval)}{load}"


def _figures_file(found: Comparison) -> DataFile:
    head = ("test", "figure", "unit", "higher_is_better", "contender", "value", "low", "high",
            "interval_of", "at", "steady")  # fmt: skip
    rows = []
    for figure in found.figures:
        for label, value in zip(found.labels, figure.values, strict=True):
            if value is None:
                continue
            better = value.higher_is_better
            interval = value.interval
            ends = (None,) * 3 if interval is None else (interval.low, interval.high, interval.of)
            rows.append(
                (figure.test, value.label, value.unit, None if better is None else int(better),
                 label, value.value, *ends, value.at, int(value.steady))
            )  # fmt: skip
    return data_file("figures.csv", head, rows)


# -- JSON -------------------------------------------------------------------------------------


def comparison_mapping(found: Comparison) -> dict[str, Any]:
    """The comparison for programs; unknown values are null."""
    return {
        "schema": SCHEMA,
        "contenders": [
            {
                "label": one.label,
                **{what.replace(" ", "_"): one.first.setup.get(what) for what in _SHOWN},
                "runs": [
                    {"test": run.test, "run": run.path.name, "status": run.status,
                     "conformant": not run.stamp}
                    for run in one.runs.values()
                ],
            }
            for one in found.contenders
        ],
        "differences": [
            {"what": part.what, "values": list(part.values), "tests": list(part.tests)}
            for part in found.differences
        ],
        "figures": [figure_mapping(found, figure) for figure in found.figures],
        "curves": curves_mapping(found.contenders),
        "grids": [grid.mapping(found.labels) for grid in found.grids],
        "rule": RULE,
        "verdict": found.verdict,
    }  # fmt: skip


def figure_mapping(found: Comparison, figure: Figure) -> dict[str, Any]:
    """A figure of all contenders for programs."""
    one = figure.one
    return {
        "test": figure.test,
        "key": one.key,
        "label": one.label,
        "unit": one.unit,
        "higher_is_better": one.higher_is_better,
        "values": [None if value is None else headline_mapping(value) for value in figure.values],
        "best": None if figure.best is None else found.labels[figure.best],
        "margin_pct": figure.margin_pct,
        "noise": figure.noise,
    }


def headline_mapping(value: Headline) -> dict[str, Any]:
    """A headline figure of one run for programs, without what is the same for all runs."""
    interval = value.interval
    return {
        "value": value.value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "interval_of": None if interval is None else interval.of,
        "at": value.at,
        "steady": value.steady,
    }
