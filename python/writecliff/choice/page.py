"""Report page of a choice, which shows ranking, reasons, plots, confidence and variants."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from writecliff import units
from writecliff.choice.answer import Answer
from writecliff.choice.certainty import FigureError
from writecliff.choice.measured import METRICS, metrics_of
from writecliff.choice.question import LIFE, PRICE
from writecliff.choice.ranking import LIFE_ENOUGH_YEARS, Ranked
from writecliff.choice.too_large import left_out_text
from writecliff.report import REPORT_NAME, kinds
from writecliff.report.axes import Axis, Line
from writecliff.report.colours import one_page
from writecliff.report.csvs import data_file
from writecliff.report.headline import interval_text, value_text
from writecliff.report.interaction import Label
from writecliff.report.model import Figure, Section, section
from writecliff.report.pages import Link, Page, linked, write_page
from writecliff.report.plots import Marks, lines
from writecliff.report.table import Column, DataFile, Head, Table, table

PAGE_NAME = "choice.html"
_SHOWN = (
    "iops",
    "mean",
    "p99.9",
    "p99.99",
    "flush/mean",
    "flush/p99.9",
    "waf",
    LIFE,
    "watts",
    PRICE,
)
_PROTECTION = {True: "yes", False: "no", None: "not needed"}
_PAIRS = (("p99.99", LIFE), ("p99.99", PRICE), ("p99.99", "iops"))


@one_page()
def write_choice_page(answer: Answer, folder: Path) -> Path:
    """Write the page to the folder, and return its path.

    Raises:
        StoreError: If the page cannot be written.
    """
    return write_page(page_of(answer, folder), folder / PAGE_NAME)


def page_of(answer: Answer, folder: Path) -> Page:
    """Return the page, with links relative to `folder`."""
    data = _data(answer)
    question = answer.question
    limits = ", ".join(question.limits) or "none"
    weights = ", ".join(f"{key} {weight:g}" for key, weight in answer.weights.items())
    return Page(
        title=f"Which drive for {Path(question.workload).stem}?",
        intro=f"{len(answer.ranked)} simulated drives under the same load, from the same initial "
        f"state. Limits: {limits}. Weights: {weights}.",
        verdict=answer.verdict,
        sections=(
            section("Ranking", _RULE, _ranking(answer, data)),
            section("Plots", _PLOTS, *_plots(answer, data)),
            section("Figures", "", _figures(answer, data)),
            section("Confidence", _CONFIDENCE, _certainty(answer)),
            *_what_if(answer),
        ),
        summary=_summary(answer),
        data=(data,),
        disclosures=tuple(_disclosures(answer)),
        links=tuple(_links(answer, folder)),
    )


_RULE = (
    "Drives that meet all limits come first, ordered by score: the weighted geometric mean of "
    "the ratios of a drive's figures to the best ones. "
    f"A life beyond {LIFE_ENOUGH_YEARS:g} years counts as {LIFE_ENOUGH_YEARS:g}."
)
_PLOTS = (
    "Each point is a drive. A circle marks a drive for which no other drive is better in every "
    "weighted figure."
)
_CONFIDENCE = (
    "The difference to the first drive is compared with the errors of both models. The error of a "
    "figure is the median error of held-out published figures of the same kind of load: of the "
    "drive's family, or of other drives if the family has fewer than three. Figures that repeat "
    'another figure of their family, or that are constants of the model, do not count. "Not '
    'known" means that the kind has fewer than three figures. "At least" means that constants '
    "of the model were set with these figures in view. A difference is not clear if an error is "
    "not known, or only as a lower bound."
)


def _summary(answer: Answer) -> dict[str, Any]:
    """Return the result, stripped of paths on this machine."""
    summary = answer.mapping()
    rows = [
        {key: value for key, value in row.items() if key not in ("runs", "candidate")}
        for row in summary["ranking"]
    ]
    return {**summary, "workload": Path(answer.question.workload).name, "ranking": rows}


def _data(answer: Answer) -> DataFile:
    head = ("rank", "device", "passes", "score", *METRICS.values())
    rows = [
        (row.rank, row.name, int(row.passes), row.score, *metrics_of(row.figures).values())
        for row in answer.ranked
    ]
    return data_file("ranking.csv", head, rows)


def _head(answer: Answer, key: str) -> str:
    figure = next((row.figures[key] for row in answer.ranked if key in row.figures), None)
    if figure is None:
        return key
    name = key if key.startswith(("p", "reads/", "writes/")) and key != PRICE else figure.label
    return Label(name, "" if figure.unit == name else figure.unit)


def _cells(row: Ranked, keys: Sequence[str]) -> list[float | None]:
    figures = [row.figures.get(key) for key in keys]
    return [None if figure is None else figure.value for figure in figures]


def _columns(answer: Answer, keys: Sequence[str]) -> list[Column]:
    return [Column(_head(answer, key), kinds.digits(4)) for key in keys]


def _ranking(answer: Answer, data: DataFile) -> Table:
    keys = list(answer.weights)
    head: Head = (
        Column("Rank", kinds.plain()),
        Column("Drive", kinds.WHOLE),
        Column("Limits"),
        Column("Score", kinds.shares(0)),
        *_columns(answer, keys),
        Column("Why"),
    )
    rows = [
        (
            row.rank,
            row.name,
            "met" if row.passes else "missed",
            row.score,
            *_cells(row, keys),
            row.why,
        )
        for row in answer.ranked
    ]
    return table("", head, rows, data=data)


def _figures(answer: Answer, data: DataFile) -> Table:
    keys = [key for key in _SHOWN if any(key in row.figures for row in answer.ranked)]
    head = ("Drive", *(_head(answer, key) for key in keys), "Life ends by", "Power-loss protection")
    rows = [
        (
            row.name,
            *(
                f"{value_text(row.figures[key].value)}{interval_text(row.figures[key].interval)}"
                if key in row.figures
                else units.UNKNOWN
                for key in keys
            ),
            answer.measured[row.name].life_end or units.UNKNOWN,
            _PROTECTION[answer.measured[row.name].power_loss_protection],
        )
        for row in answer.ranked
    ]
    note = "95 % intervals, computed from the batches of a run or over the seeds"
    align = "w" + "r" * len(keys) + "ll"
    return table("Figures that count and others", head, rows, align, note=note, data=data)


def _plots(answer: Answer, data: DataFile) -> Iterator[Figure | None]:
    for x_key, y_key in _PAIRS:
        if y_key not in answer.weights:
            continue
        complete = [row for row in answer.ranked if {x_key, y_key} <= set(row.figures)]
        if len(complete) < 2:
            continue
        points = [
            Line(row.name, [row.figures[x_key].value], [row.figures[y_key].value])
            for row in complete
        ]
        circled = [
            (row.figures[x_key].value, row.figures[y_key].value)
            for row in complete
            if row.name in answer.pareto
        ]
        x, y = _head(answer, x_key), _head(answer, y_key)
        name = f"{y_key}-{x_key}".replace(".", "")
        title = f"{complete[0].figures[y_key].label} v {x_key}"
        yield lines(name, title, data, points, Axis(x, log=True), Axis(y), joined=False,
                    marks=[Marks("no drive is better in all", circled)])  # fmt: skip


def _certainty(answer: Answer) -> Table:
    rows = [
        (
            row.name,
            row.sure or "",
            *(error_cell(row.error.of(key)) for key in answer.axes),
            _simulated(answer, row),
        )
        for row in answer.ranked
    ]
    heads = [f"Error of {key}" for key in answer.axes]
    return table("", ("Drive", "Difference to the first", *heads, "Simulated at"), rows,
                 "w" + "l" * (1 + len(heads)) + "r")  # fmt: skip


def error_cell(error: FigureError) -> str:
    """Return a figure's error and its kind, such as "9 % (mixes; 33 figures)".

    Errors of 100 % or more are shown as factors.
    """
    if not error.kinds:
        return "rating or price list"
    unknown = [kind.kind for kind in error.kinds if kind.pct is None]
    if unknown:
        return f"not known ({', '.join(unknown)})"
    worst = max(error.kinds, key=lambda kind: kind.pct or 0.0)
    pct = worst.pct or 0.0
    shown = f"{pct:.0f} %" if pct < 100 else f"{1 + pct / 100:.3g} x"
    shown = "less than 1 %" if pct < 1 else shown
    least = "at least " if error.is_bound and pct >= 1 else ""
    scope = {"other drives": " of other drives", "twin": " of the twin"}.get(worst.scope, "")
    return f"{least}{shown} ({worst.kind}; {worst.figures} figures{scope})"


def _simulated(answer: Answer, row: Ranked) -> str:
    """Return a drive's last level and scale, such as "rough, 1/384"."""
    scale = answer.measured[row.name].scale
    size = "whole" if scale == 1 else f"1/{scale:g}"
    return f"{answer.levels[row.name]}, {size}" if row.name in answer.levels else size


def _what_if(answer: Answer) -> Iterator[Section]:
    if not answer.changed:
        return
    keys = list(answer.weights)
    rows = []
    for change in answer.changed:
        for number, row in enumerate(change.ranked):
            remark = f"{row.name} is first" if number == 0 else ""
            changes = number == 0 and row.name != answer.first.name
            rows.append((
                change.text if number == 0 else "",
                row.name if row.name in change.applied else f"{row.name} (as it is)",
                "met" if row.passes else "missed",
                *_cells(row, keys),
                f"{remark}: another answer" if changes else remark,
            ))  # fmt: skip
    head: Head = ("Change", Column("Drive", kinds.WHOLE), Column("Limits"), *_columns(answer, keys),
                  Column("Result"))  # fmt: skip
    intro = f"The first {len(answer.changed[0].ranked)} drives again, with one change at a time."
    yield section("Variants", intro,
                  table("", head, rows))  # fmt: skip


def _disclosures(answer: Answer) -> Iterator[str]:
    question = answer.question
    rate = "the load's own rate, all day"
    if question.writes_per_day_bytes is not None:
        rate = f"{units.size(question.writes_per_day_bytes)} written a day"
    yield (
        f"Life ends at the rated cycles of the flash or at the vendor's TBW, at {rate}; "
        "TBW is known only for drives whose device files give it."
    )
    if answer.uncertainty:
        yield answer.uncertainty
    if answer.smaller:
        yield answer.smaller
    rough = [name for name, level in answer.levels.items() if level != "fine"]
    if rough and not question.exhaustive:
        yield (
            f"{len(rough)} of {len(answer.levels)} drives were not simulated at the fine level: "
            + (answer.undecided or "within the errors of their level, none could be first") + "."
        )  # fmt: skip
    if question.left_out:
        omitted = left_out_text(question.left_out)
        yield f"Omitted drives ({len(question.left_out)}): {omitted}."
    if question.prices:
        yield "Prices come from the price list."


def _links(answer: Answer, folder: Path) -> Iterator[Link]:
    for row in answer.ranked:
        for number, run in enumerate(answer.measured[row.name].runs, 1):
            many = len(answer.measured[row.name].runs) > 1
            text = f"{row.name}, seed {number}" if many else row.name
            if (run / REPORT_NAME).exists():
                yield Link(text, linked(f"{os.path.relpath(run, folder)}/{REPORT_NAME}"))
