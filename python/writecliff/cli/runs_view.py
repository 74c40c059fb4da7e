"""Runs on a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.api.store import plain
from writecliff.cli.output import pairs, table
from writecliff.errors import printable

if TYPE_CHECKING:
    from writecliff.api.answers.runs import RunDetails
    from writecliff.runs.difference import RunDifference

_WIDEST = 60  # of the last column of a list


def cell(value: Any) -> str:
    """A value of a query on a terminal or in CSV."""
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value)
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def runs_table(found: Sequence[Mapping[str, Any]]) -> str:
    """A line for each run, and how many there are."""
    rows = []
    for one in found:
        begun = one["created_utc"]
        when = "" if begun is None else f"{begun.replace(tzinfo=UTC).astimezone():%Y-%m-%d %H:%M}"
        says = one["damage"] if one["status"] == "damaged" else one["verdict"]
        limits = " (limit missed)" if one["limits_met"] is False else ""
        tags = ", ".join(one["tags"] or ())
        says = printable(says or "")
        short = says if len(says) <= _WIDEST else f"{says[: _WIDEST - 1]}…"
        cells = (one["run"], one["status"] + limits, one["test"] or "", one["target"] or "", when,
                 tags)  # fmt: skip
        rows.append((*map(printable, cells), short))
    head = ("run", "status", "test", "target", "begun", "tags", "outcome")
    count = units.plural(len(rows), "run")
    return f"{table(head, rows)}\n\n{count}"


def run_text(found: RunDetails) -> str:
    """A run for people."""
    from writecliff.report.expectations import Judged
    from writecliff.report.headline import Interval, interval_text, value_text

    run = found.run
    lines = []
    for name, value in run.items():
        if value is None or value in ("", []):
            continue
        text = ", ".join(value) if isinstance(value, list) else cell(value)
        if name.endswith("_bytes"):
            text = units.size(value)
        elif name.endswith("_time_ns"):
            text = units.duration(value)
        lines.append((name.removesuffix("_bytes").removesuffix("_ns"), printable(text)))
    rows = []
    for one in found.figures:
        interval = None
        if one.low is not None and one.high is not None:
            interval = Interval(one.low, one.high, of=one.interval_of or "")
        shown = f"{value_text(one.value)}{interval_text(interval)} {one.unit}".rstrip()
        rows.append((printable(one.key.lstrip("/")), shown, "" if one.steady else "*"))
    parts = [pairs(lines)]
    if rows:
        parts.append(table(("figure", "value (95 % interval)", ""), rows, "lrl"))
    if not all(one.steady for one in found.figures):
        parts.append("* not in steady state")
    judged = [f"limit {Judged(**item).said}" for item in found.expectations]
    return "\n\n".join([*parts, *(["\n".join(map(printable, judged))] if judged else [])])


def difference_text(found: RunDifference) -> str:
    """Return the difference of two runs as text for the terminal."""
    from writecliff.report.comparison.page import differences_table, figure_names
    from writecliff.report.headline import interval_text, value_text

    compared = found.compared
    parts = []
    differing = differences_table(compared)
    rows = [] if differing is None else [[*map(printable, row)] for row in differing.rows]
    rows += [[*map(printable, (what, mine or "-", its or "-"))]
             for what, mine, its in found.environment
             if what not in {row[0] for row in rows}]  # fmt: skip
    if rows:
        parts.append(table(("", "A", "B"), rows))
    else:
        parts.append("set-up, versions and host are the same")
    cells = []
    for name, (figure, word) in zip(figure_names(compared), found.judgements, strict=True):
        values = ("-" if v is None else f"{value_text(v.value)}{interval_text(v.interval)}"
                  for v in figure.values)  # fmt: skip
        cells.append((printable(name), figure.one.unit, *values, figure.margin_text, word))
    if cells:
        head = ("figure", "unit", "A", "B", "apart", "B is")
        parts.append(table(head, cells, "llrrrl"))
    parts.append(f"A: {printable(found.names[0])}\nB: {printable(found.names[1])}")
    parts.append(f"{printable(found.verdict)}\nB in all: {found.judgement}")
    return "\n\n".join(parts)
