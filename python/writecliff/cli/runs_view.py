"""Tables and texts about stored runs, formatted for the terminal."""

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

_WIDEST = 60  # Maximum width of a list's last column, in characters.


def cell(value: Any) -> str:
    """Format a query value for a terminal or CSV."""
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value)
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def runs_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return one line per run, followed by the number of runs."""
    rows = []
    for run in runs:
        start = run["created_utc"]
        when = "" if start is None else f"{start.replace(tzinfo=UTC).astimezone():%Y-%m-%d %H:%M}"
        outcome = run["damage"] if run["status"] == "damaged" else run["verdict"]
        limits = " (limit missed)" if run["limits_met"] is False else ""
        tags = ", ".join(run["tags"] or ())
        outcome = printable(outcome or "")
        short = outcome if len(outcome) <= _WIDEST else f"{outcome[: _WIDEST - 1]}…"
        cells = (run["run"], run["status"] + limits, run["test"] or "", run["target"] or "", when,
                 tags)  # fmt: skip
        rows.append((*map(printable, cells), short))
    head = ("run", "status", "test", "target", "started", "tags", "outcome")
    count = units.plural(len(rows), "run")
    return f"{table(head, rows)}\n\n{count}"


def run_text(details: RunDetails) -> str:
    """Describe a run by its columns, figures and limits."""
    from writecliff.report.expectations import Judged
    from writecliff.report.headline import Interval, interval_text, value_text

    run = details.run
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
    for figure in details.figures:
        interval = None
        if figure.low is not None and figure.high is not None:
            interval = Interval(figure.low, figure.high, of=figure.interval_of or "")
        shown = f"{value_text(figure.value)}{interval_text(interval)} {figure.unit}".rstrip()
        rows.append((printable(figure.key.lstrip("/")), shown, "" if figure.steady else "*"))
    parts = [pairs(lines)]
    if rows:
        parts.append(table(("figure", "value (95 % interval)", ""), rows, "lrl"))
    if not all(figure.steady for figure in details.figures):
        parts.append("* not in steady state")
    judged = [f"limit {Judged(**item).summary}" for item in details.expectations]
    return "\n\n".join([*parts, *(["\n".join(map(printable, judged))] if judged else [])])


def difference_text(difference: RunDifference) -> str:
    """Return the difference between two runs as text for the terminal."""
    from writecliff.report.comparison.page import differences_table, figure_names
    from writecliff.report.headline import interval_text, value_text

    compared = difference.compared
    parts = []
    differing = differences_table(compared)
    rows = [] if differing is None else [[*map(printable, row)] for row in differing.rows]
    rows += [[*map(printable, (what, mine or "-", its or "-"))]
             for what, mine, its in difference.environment
             if what not in {row[0] for row in rows}]  # fmt: skip
    if rows:
        parts.append(table(("", "A", "B"), rows))
    else:
        parts.append("set-up, versions and host are the same")
    cells = []
    for name, (figure, word) in zip(figure_names(compared), difference.judgements, strict=True):
        values = ("-" if v is None else f"{value_text(v.value)}{interval_text(v.interval)}"
                  for v in figure.values)  # fmt: skip
        cells.append((printable(name), figure.sample.unit, *values, figure.margin_text, word))
    if cells:
        head = ("figure", "unit", "A", "B", "difference", "B is")
        parts.append(table(head, cells, "llrrrl"))
    parts.append(f"A: {printable(difference.names[0])}\nB: {printable(difference.names[1])}")
    parts.append(f"{printable(difference.verdict)}\nB in all: {difference.judgement}")
    return "\n\n".join(parts)
