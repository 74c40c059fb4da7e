"""Output of a comparison as a page and as JSON."""

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
_LONG_NAME = 40  # Maximum length of a figure name that is never wrapped.
_SHOWN = ("drive", "class", "capacity", "interface", "firmware", "write cache")


@one_page()
def comparison_page(comparison: Comparison) -> Page:
    """Return a comparison's page."""
    drives = list(dict.fromkeys(contender.first.drive for contender in comparison.contenders))
    between = f"{drives[0]}: " if len(drives) == 1 else ""
    return Page(
        title=f"{between}{' against '.join(comparison.labels)}",
        intro="",
        verdict=comparison.verdict,
        sections=tuple(sections_of(comparison)),
        summary=comparison_mapping(comparison),
        disclosures=tuple(disclosures_of(comparison)),
        stamp=_common_stamp(comparison),
    )


def _common_stamp(comparison: Comparison) -> str:
    """Return the time stamp shared by all runs, or empty text if stamps differ."""
    stamps = {run.stamp for contender in comparison.contenders for run in contender.runs.values()}
    return stamps.pop() if len(stamps) == 1 else ""


def disclosures_of(comparison: Comparison) -> Iterator[str]:
    """Yield the disclosures that differ between runs."""
    values = [value for figure in comparison.figures for value in figure.values]
    grids = [grid for shared in comparison.grids for grid in shared.by]
    if not all(item is None or item.steady for item in (*values, *grids)):
        yield (
            f"Figures marked {NOT_STEADY} were taken without steady state and must not be quoted "
            "as sustained performance."
        )
    for contender in comparison.contenders:
        runs = contender.runs.values()
        for stamp in sorted({run.stamp for run in runs} - {"", _common_stamp(comparison)}):
            tests = ", ".join(run.test for run in runs if run.stamp == stamp)
            yield f"{contender.label}: {stamp} ({tests}), because of options or shortening."
        for run in runs:
            if run.status != "complete":
                yield f"{contender.label}: {run.test} is {run.status}; figures are those so far."
        for path in contender.left_out:
            yield f"{contender.label}: {path.name} has no measurements yet and is omitted."
    starts = {contender.first.created for contender in comparison.contenders}
    if not comparison.differences and len(starts) > 1:
        yield "The set-ups are identical; only the times of the runs differ."


def sections_of(comparison: Comparison) -> Iterator[Section]:
    """Yield the sections about contenders, set-up differences, figures, grids and curves.

    A long figure list is summarised first, and appears after the grids, which show most of its
    figures.
    """
    yield section("Set-up", "", _contenders(comparison.contenders), differences_table(comparison))
    data = _figures_file(comparison)
    names = figure_names(comparison)
    intro = f"{RULE} Intervals cover 95 % of the rounds or I/Os of one run (see the data)."
    grids = grid_sections(comparison.grids, comparison.labels)
    if len(comparison.figures) > LONG_LIST:
        yield _summary_section(comparison)
        yield from grids
        yield section("Figures", intro, figures_table(comparison, data))
    else:
        picture = relative(comparison.labels, comparison.figures, names, data)
        yield section("Figures", intro, figures_table(comparison, data), picture)
        yield from grids
    yield setting_section(comparison)
    yield curves_section(comparison.contenders)


def _summary_section(comparison: Comparison) -> Section:
    """Return a long figure list, divided into groups."""
    groups, labels = groups_of(comparison.figures), comparison.labels
    shown = groups_table(groups, labels)
    assert shown.data is not None
    title = f"Groups of figures relative to {labels[0]}: median, minimum and maximum"
    drawn = relative(
        labels, as_figures(groups, labels), group_names(groups), shown.data, title=title,
        most=LONG_LIST,
    )  # fmt: skip
    intro = f"{len(comparison.figures)} figures in {len(groups)} groups, all listed below."
    return section("Summary", intro, shown, drawn)


def _contenders(contenders: Sequence[Contender]) -> Table:
    rows = [
        (
            contender.label,
            *(contender.first.setup.get(what) or units.UNKNOWN for what in _SHOWN),
            ", ".join(f"{run.test} ({run.path.name})" for run in contender.runs.values()),
        )
        for contender in contenders
    ]
    head = ("", *(f"{what[0].upper()}{what[1:]}" for what in _SHOWN), "Runs")
    return table("Compared", head, rows, "l" * len(head))


def differences_table(comparison: Comparison) -> Table | None:
    """Return the set-up differences with a column per contender, or None without differences."""
    rows = [
        (
            part.what + (f" ({', '.join(part.tests)})" if part.tests else ""),
            *(units.UNKNOWN if value is None else value for value in part.values),
        )
        for part in comparison.differences
    ]
    head = ("", *comparison.labels)
    return table("Differences in set-up", head, rows, "l" * len(head)) if rows else None


def figure_names(comparison: Comparison) -> list[str]:
    """Return the figure names, including the test if there are several tests."""
    tests = {figure.test for figure in comparison.figures}
    many = len(tests) > 1
    return [
        (f"{figure.test}: " if many else "")
        + figure.label
        + (f" ({figure.sample.at})" if len(set(figure.loads)) == 1 and figure.sample.at else "")
        for figure in comparison.figures
    ]


def figures_table(comparison: Comparison, data: DataFile | None = None) -> Table:
    """Return the figures side by side with intervals, the best contender and the margin."""
    rows = [
        (
            name,
            figure.sample.unit,
            *(_cell(value, with_load=figure.noise == "apart") for value in figure.values),
            units.UNKNOWN if figure.best is None else comparison.labels[figure.best],
            figure.margin_text,
            NOISE_TEXT[figure.noise],
        )
        for name, figure in zip(figure_names(comparison), comparison.figures, strict=True)
    ]
    against = "" if len(comparison.contenders) == 2 else " than the next"
    head = ("Figure", "Unit", *comparison.labels, "Best", f"By{against}", "Significance")
    long = any(len(name) > _LONG_NAME for name, *_ in rows)
    align = ("l" if long else "w") + "w" + "r" * len(comparison.labels) + ("wrl" if long else "wrw")
    return table("Figures in common", head, rows, align, data=data)


def _cell(value: Headline | None, *, with_load: bool) -> str:
    if value is None:
        return units.UNKNOWN
    load = f" at {value.at}" if with_load else ""
    mark = "" if value.steady else NOT_STEADY
    return f"{value_text(value.value)}{mark}{interval_text(value.interval)}{load}"


def _figures_file(comparison: Comparison) -> DataFile:
    head = ("test", "figure", "unit", "higher_is_better", "contender", "value", "low", "high",
            "interval_of", "at", "steady")  # fmt: skip
    rows = []
    for figure in comparison.figures:
        for label, value in zip(comparison.labels, figure.values, strict=True):
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


def comparison_mapping(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON; unknown values are null."""
    return {
        "schema": SCHEMA,
        "contenders": [
            {
                "label": contender.label,
                **{what.replace(" ", "_"): contender.first.setup.get(what) for what in _SHOWN},
                "runs": [
                    {"test": run.test, "run": run.path.name, "status": run.status,
                     "conformant": not run.stamp}
                    for run in contender.runs.values()
                ],
            }
            for contender in comparison.contenders
        ],
        "differences": [
            {"what": part.what, "values": list(part.values), "tests": list(part.tests)}
            for part in comparison.differences
        ],
        "figures": [figure_mapping(comparison, figure) for figure in comparison.figures],
        "curves": curves_mapping(comparison.contenders),
        "grids": [grid.mapping(comparison.labels) for grid in comparison.grids],
        "rule": RULE,
        "verdict": comparison.verdict,
    }  # fmt: skip


def figure_mapping(comparison: Comparison, figure: Figure) -> dict[str, Any]:
    """Return a figure for all contenders as JSON."""
    sample = figure.sample
    return {
        "test": figure.test,
        "key": sample.key,
        "label": sample.label,
        "unit": sample.unit,
        "higher_is_better": sample.higher_is_better,
        "values": [None if value is None else headline_mapping(value) for value in figure.values],
        "best": None if figure.best is None else comparison.labels[figure.best],
        "margin_pct": figure.margin_pct,
        "noise": figure.noise,
    }


def headline_mapping(value: Headline) -> dict[str, Any]:
    """Return a run's headline figure as JSON, without the fields that all runs share."""
    interval = value.interval
    return {
        "value": value.value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "interval_of": None if interval is None else interval.of,
        "at": value.at,
        "steady": value.steady,
    }
