"""Compare simulated drives with published results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.cli.options import (
    ListFlag,
    OutputPath,
    Scheduler,
    Whole,
    check_jobs,
    new_path,
    on_scheduler,
)
from writecliff.cli.output import JsonFlag, emit_json, log, show_list
from writecliff.errors import ConfigError
from writecliff.lab.commands.answers import CampaignList

if TYPE_CHECKING:
    from writecliff.lab.commands.reproduce_view import ReproduceView
    from writecliff.lab.published.reproduce import Chosen, Reproduction

GROUP = "lab", 2
ROWS_SHOWN = 100  # Maximum number of printed figures; the files contain all figures.
SSD_IQ = "ssd-iq"


def reproduce(
    campaign: str | None = None,
    *,
    figures: Path | None = None,
    sheets: Path | None = None,
    kind: str | None = None,
    short: bool = False,
    output: OutputPath = None,
    jobs: Whole = None,
    scheduler: Scheduler = None,
    list_: ListFlag = False,
    json: JsonFlag = False,
    quiet: bool = False,
) -> int:
    """Simulate published tests and compare the results with the published figures.

    Writes a folder with report.html, figures.csv (every figure with its error and simulation),
    loads.csv (all metrics of each load) and results.json. Preconditioned drives are cached. ssd-iq
    writes no loads.csv and does not use the cache.

    Parameters
    ----------
    campaign
        Campaign from --list, or a drive. For a drive, the command reproduces the drive's figures
        and all figures that are relative to the drive. With --figures, this argument is a source or
        drive in the CSV file (default: all).
    figures
        Your own CSV file in the format of the shipped table: source, item, device, baseline,
        access, block_kib, read_pct, oio, metric, value, unit, note. `device` is a preset or the
        path of a device file. Rows that cannot be read or simulated are listed, with reasons. For
        ssd-iq the columns are condition, metric, value, unit (see the guide to the catalogue).
    sheets
        For ssd-iq: a CSV file of data sheets from which to derive the drives. The file's columns
        are drive, capacity_gb, pcie, seq_read_mb_s, seq_write_mb_s, random_read_iops,
        random_write_iops, dwpd, read_latency_us, write_latency_us, and optionally year and cell
        (default: the drives of the paper).
    kind
        Kind of figures to reproduce: pure or mixed loads, or rates, latency, tails, improvements,
        consistency, deviations, slc-cache, endurance, power.
    short
        Run each load for a tenth of its duration, as a quick check. In such short runs, tail
        latencies and deviations vary widely.
    output
        Output directory, which must be empty or not exist (default: reproductions/NAME-TIME).
    jobs
        Number of drives to simulate in parallel, for ssd-iq loads (default: one per core, as memory
        allows).
    scheduler
        Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT).
    list_
        List the campaigns.
    quiet
        Suppress progress output on stderr.
    """
    if list_:
        return _list(json)
    if campaign is None and figures is None:
        raise ConfigError("no campaign was specified", hint="see `writecliff lab reproduce --list`")
    check_jobs(jobs)
    if campaign == SSD_IQ:
        if kind is not None or scheduler is not None:
            raise ConfigError("`reproduce ssd-iq` does not accept --kind or --scheduler")
        return _ssd_iq(figures, sheets, output, jobs, short=short, json=json, quiet=quiet)
    if sheets is not None:
        raise ConfigError("only `reproduce ssd-iq` accepts --sheets")
    from writecliff.engines.state_cache import StateCache
    from writecliff.lab.published import output as files
    from writecliff.lab.published.reproduce import choose
    from writecliff.lab.published.reproduce import reproduce as run
    from writecliff.published.measure import SHORT

    chosen = choose(campaign or "all", figures, kind)
    path = output or new_path("reproductions", chosen.name)
    files.check_output(path)
    observer = _view(chosen, quiet=quiet)
    cache = StateCache.of_user()
    with on_scheduler(scheduler, workers=jobs):
        reproduction = run(
            chosen,
            cache=cache,
            workers=jobs,
            time_share=SHORT if short else 1.0,
            log=observer.log,
            observer=observer,
        )
    page = files.write_folder(reproduction, path)
    if json:
        emit_json({"report": page, **files.mapping(reproduction)})
    else:
        _print(reproduction)
        if reproduction.smaller:
            print(reproduction.smaller)
        print(page)
    return 0


def _ssd_iq(
    figures: Path | None,
    sheets: Path | None,
    output: Path | None,
    jobs: int | None,
    *,
    short: bool,
    json: bool,
    quiet: bool,
) -> int:
    from writecliff.lab.published import output as files
    from writecliff.lab.published.ssd_iq.page import CSV, page_of, rows_tables, scores_table
    from writecliff.lab.published.ssd_iq.result import compare, json_text, mapping, rows_csv
    from writecliff.published.measure import SHORT
    from writecliff.report.pages import render_page

    path = output or new_path("reproductions", SSD_IQ)
    files.check_output(path)
    comparison = compare(
        figures,
        sheets,
        workers=jobs,
        time_share=SHORT if short else 1.0,
        log=(lambda text: None) if quiet else log,
    )
    texts = {
        files.PAGE: render_page(page_of(comparison)),
        CSV: rows_csv(comparison),
        files.JSON: json_text(comparison),
    }
    files.write_files(texts, path)
    page = path / files.PAGE
    if json:
        emit_json({"report": page, **mapping(comparison)})
        return 0
    tables = [scores_table(comparison.scores)] if comparison.scores else []
    if len(comparison.rows) <= ROWS_SHOWN:
        tables += rows_tables(comparison)
    for shown in tables:
        print(shown.title)
        print(shown.grid().text(), end="\n\n")
    print(page)
    return 0


def _list(as_json: bool) -> int:
    from writecliff.lab.published.reproduce import choose
    from writecliff.lab.published.ssd_iq.result import FIGURES as SSD_IQ_FIGURES
    from writecliff.lab.published.ssd_iq.result import SSD_IQ_ABOUT, read_rows
    from writecliff.published.figures import (
        CAMPAIGNS,
        OTHERS,
        OTHERS_ABOUT,
        OTHERS_NAME,
        read_figures,
    )
    from writecliff.published.modern import (
        MEASURED_ABOUT,
        MEASURED_NAME,
        MODERN_ABOUT,
        MODERN_NAME,
    )

    figures = read_figures()
    rows = [
        {
            "name": campaign.name,
            "figures": sum(figure.source == campaign.source for figure in figures),
            "about": campaign.about,
        }
        for campaign in CAMPAIGNS
    ]
    rows.append({"name": "all", "figures": len(figures), "about": "all of them"})
    others = len(read_figures(OTHERS))
    rows.append({"name": OTHERS_NAME, "figures": others, "about": OTHERS_ABOUT})
    ssd_iq = len(read_rows(SSD_IQ_FIGURES))
    for name, about in ((MODERN_NAME, MODERN_ABOUT), (MEASURED_NAME, MEASURED_ABOUT)):
        rows.append({"name": name, "figures": len(choose(name).figures), "about": about})
    rows.append({"name": SSD_IQ, "figures": ssd_iq, "about": SSD_IQ_ABOUT})
    return show_list(CampaignList(rows), "lrl", as_json=as_json)


def _print(reproduction: Reproduction) -> None:
    from writecliff.lab.published import tables

    shown = [tables.kinds_table(reproduction), *tables.parts_tables(reproduction)]
    if len(reproduction.rows) <= ROWS_SHOWN:
        shown.append(tables.rows_table(reproduction.rows))
    if any(not comparison.right for comparison in reproduction.comparisons):
        shown.append(tables.wrong_table(reproduction.comparisons))
    if reproduction.missing:
        shown.append(tables.missing_summary(reproduction.missing))
    for grid in shown:
        print(f"{grid.title}{f' ({grid.note})' if grid.note else ''}")
        print(grid.grid().text(), end="\n\n")


def _view(chosen: Chosen, *, quiet: bool) -> ReproduceView:
    from writecliff.lab.commands.reproduce_view import ReproduceView
    from writecliff.lab.published.reproduce import conditions_of, without_preset
    from writecliff.published.measure import loads_by_drive

    missing = without_preset(chosen.figures)
    left_out = [*missing.values(), *map(str, chosen.skipped)]
    if left_out and not quiet:
        log(f"left out: {'; '.join(left_out)}")
    wanted = [
        condition for condition in conditions_of(chosen.figures) if condition.device not in missing
    ]
    return ReproduceView(loads_by_drive(wanted), quiet=quiet)
