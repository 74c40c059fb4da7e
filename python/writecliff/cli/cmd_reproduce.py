"""Compare simulated drives with published results."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from writecliff.cli.output import emit_json, log, table
from writecliff.cli.sets import check_jobs
from writecliff.cli.values import Whole
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.cli.reproduce_view import ReproduceView
    from writecliff.published.reproduce import Chosen, Reproduction

GROUP = "validation and research", 2


def reproduce(
    campaign: str | None = None,
    *,
    figures: Path | None = None,
    output: Path | None = None,
    jobs: Whole = None,
    list_: Annotated[bool, Parameter(name="--list")] = False,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Put simulated drives to published tests and show published and simulated figures together.

    Writes a folder with report.html, figures.csv (every figure with its error and how it was
    simulated) and results.json. Prepared drives are cached.

    Parameters
    ----------
    campaign
        One of --list, or all. With --figures, a source in it (default: all).
    figures
        A CSV file of your own in the form of the shipped table: source, item, device, baseline,
        access, block_kib, read_pct, oio, metric, value, unit, note. `device` is a preset or the
        path of a device file.
    output
        Directory to write; it must not exist or be empty (default: reproductions/NAME-TIME).
    jobs
        Drives at a time (default: one a core, as memory allows).
    list_
        List the campaigns.
    json
        Print what results.json holds, and "report", the page.
    quiet
        No progress on stderr.
    """
    if list_:
        return _list(json)
    if campaign is None and figures is None:
        raise ConfigError("which campaign?", hint="writecliff reproduce --list names them")
    check_jobs(jobs)
    from writecliff.engines.preconditioned import StateCache, default_folder
    from writecliff.published import output as files
    from writecliff.published.reproduce import choose
    from writecliff.published.reproduce import reproduce as run

    chosen = choose(campaign or "all", figures)
    path = output or Path("reproductions") / f"{chosen.name}-{datetime.now():%Y%m%d-%H%M%S}"
    files.check_output(path)
    observer = _view(chosen, quiet=quiet)
    cache = StateCache(default_folder())
    found = run(chosen, cache=cache, workers=jobs, log=observer.say, observer=observer)
    page = files.write_folder(found, path)
    if json:
        emit_json({"report": page, **files.mapping(found)})
    else:
        _print(found)
        print(page)
    return 0


def _list(as_json: bool) -> int:
    from writecliff.published.figures import (
        CAMPAIGNS,
        OTHERS,
        OTHERS_ABOUT,
        OTHERS_NAME,
        read_figures,
    )

    figures = read_figures()
    known = [
        {
            "name": one.name,
            "figures": sum(figure.source == one.source for figure in figures),
            "about": one.about,
        }
        for one in CAMPAIGNS
    ]
    known.append({"name": "all", "figures": len(figures), "about": "all of them"})
    others = len(read_figures(OTHERS))
    known.append({"name": OTHERS_NAME, "figures": others, "about": OTHERS_ABOUT})
    if as_json:
        emit_json({"campaigns": known})
    else:
        print(table(tuple(known[0]), [tuple(map(str, one.values())) for one in known], "lrl"))
    return 0


def _print(found: Reproduction) -> None:
    from writecliff.published import tables

    shown = [tables.groups_table(found)]
    if any(not comparison.right for comparison in found.comparisons):
        shown.append(tables.wrong_table(found.comparisons))
    if found.missing:
        shown.append(tables.missing_summary(found.missing))
    for one in shown:
        sides = "".join(side[0] for side in one.align)
        print(f"{one.title}{f' ({one.note})' if one.note else ''}")
        print(table(one.header, one.rows, sides), end="\n\n")


def _view(chosen: Chosen, *, quiet: bool) -> ReproduceView:
    from writecliff.cli.reproduce_view import ReproduceView
    from writecliff.published.measure import loads_by_drive
    from writecliff.published.reproduce import conditions_of, without_preset

    missing = without_preset(chosen.figures)
    if missing and not quiet:
        log(f"left out: {'; '.join(missing.values())}")
    wanted = [one for one in conditions_of(chosen.figures) if one.device not in missing]
    return ReproduceView(loads_by_drive(wanted), quiet=quiet)
