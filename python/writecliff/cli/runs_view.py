"""Runs on a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.cli.output import pairs, table
from writecliff.cli.runs_options import SelectionOptions
from writecliff.errors import ConfigError
from writecliff.errors import printable as printable  # noqa: PLC0414 - for commands
from writecliff.runs.names import known_runs, run_named

if TYPE_CHECKING:
    from writecliff.runs.catalogue import Catalogue, Changes

_WIDEST = 60  # of the last column of a list


def plain(value: Any) -> Any:
    """A value of a query for JSON: times are ISO 8601 in UTC, whole decimals are integers."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.hex() if isinstance(value, bytes) else value


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


def select_runs(
    catalogue: Catalogue,
    names: Sequence[str],
    selection: SelectionOptions,
    *,
    suites: bool = False,
) -> list[str]:
    """The runs that are named, or else selected; with `suites`, suites may be named.

    Raises ConfigError: neither or both are given, or a name that fits none or several.
    """
    from writecliff.runs.queries import listed

    if bool(names) == selection.given:
        raise ConfigError(
            "no runs are given" if not names else "runs and a selection are given",
            hint="give names of runs, or a selection such as --test wsat --since 7d",
        )
    if not names:
        return [one["run"] for one in listed(catalogue, selection.selection())]
    place = catalogue.place
    runs = known_runs(place, suites=suites)
    return list(dict.fromkeys(run_named(name, place, runs) for name in names))


def details(catalogue: Catalogue, run: str) -> dict[str, Any]:
    """What the catalogue and the manifest say of a run. Raises StoreError: it has gone."""
    from writecliff.runs.details import details as details_of

    found = details_of(catalogue, run)
    return {
        "run": plain(found.run),
        "figures": found.figures,
        "expectations": [] if found.manifest is None else list(found.manifest.expectations),
    }


def run_text(found: Mapping[str, Any]) -> str:
    """A run for people."""
    from writecliff.report.expectations import Judged
    from writecliff.report.headline import Interval, interval_text, value_text

    run = found["run"]
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
    for one in found["figures"]:
        ends = one["low"], one["high"]
        interval = None if None in ends else Interval(*ends, of=one["interval_of"])
        shown = f"{value_text(one['value'])}{interval_text(interval)} {one['unit']}".rstrip()
        rows.append((printable(one["key"].lstrip("/")), shown, "" if one["steady"] else "*"))
    parts = [pairs(lines)]
    if rows:
        parts.append(table(("figure", "value (95 % interval)", ""), rows, "lrl"))
    if not all(one["steady"] for one in found["figures"]):
        parts.append("* not in steady state")
    judged = [f"limit {Judged(**item).said}" for item in found["expectations"]]
    return "\n\n".join([*parts, *(["\n".join(map(printable, judged))] if judged else [])])


def index_mapping(catalogue: Catalogue, changes: Changes) -> dict[str, Any]:
    """What `runs index` found."""
    with catalogue.opened() as database:
        damaged = database.rows(
            "select run, damage from runs where damage is not null order by run"
        )[1]
    return {
        "store": catalogue.place.location,
        "runs": changes.runs,
        "read": len(changes.read),
        "gone": len(changes.gone),
        "damaged": [{"run": run, "damage": damage} for run, damage in damaged],
    }


def index_text(found: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = [f"{printable(one['run'])}: {printable(one['damage'])}" for one in found["damaged"]]
    counts = f"{found['runs']} runs, {found['read']} read, {found['gone']} gone"
    return "\n".join([*lines, counts])
