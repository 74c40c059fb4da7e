"""Run simulated drives with and without a reliability feature."""

from __future__ import annotations

from pathlib import Path

from writecliff.cli.options import ListFlag, OutputPath, Scheduler, on_scheduler
from writecliff.cli.output import JsonFlag, emit_json, log, show_list
from writecliff.cli.progress import work_shown
from writecliff.cli.screen import Screen
from writecliff.errors import ConfigError
from writecliff.lab.commands.answers import FeatureList
from writecliff.parallel import watched

GROUP = "lab", 5


def reliability(
    name: str | None = None,
    *,
    on: str = "sim:sata-tlc-120",
    output: OutputPath = None,
    csv: OutputPath = None,
    scheduler: Scheduler = None,
    list_: ListFlag = False,
    json: JsonFlag = False,
) -> int:
    """Run simulated drives with and without a reliability feature.

    Parameters
    ----------
    name
        Name from --list.
    on
        Simulated drive: sim:NAME or sim:PATH.toml.
    output
        HTML file to write (default: NAME.html); an existing file is replaced.
    csv
        Write the data of every plot to this folder as CSV.
    scheduler
        Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT).
    list_
        List the campaigns.
    """
    from writecliff.lab.reliability import CAMPAIGNS, page, run
    from writecliff.report.csvs import write_files
    from writecliff.report.pages import write_page

    if list_:
        rows = [{"name": key, "about": campaign.about} for key, campaign in CAMPAIGNS.items()]
        return show_list(FeatureList(rows), as_json=json)
    if name is None:
        raise ConfigError(
            "no campaign was specified", hint="see `writecliff lab reliability --list`"
        )
    with on_scheduler(scheduler), watched(work_shown(Screen())):
        result = run(name, on, log)
    path = write_page(page.page(result), output or Path(f"{name}.html"))
    if csv is not None:
        csv.mkdir(parents=True, exist_ok=True)
        write_files(page.data(result), csv)
    if json:
        emit_json({"report": path, **page.mapping(result)})
    else:
        print(result.verdict)
        for shown in page.tables(result):
            print(f"\n{shown.title}\n{shown.grid().text()}")
        print(path)
    return 0
