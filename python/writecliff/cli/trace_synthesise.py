"""Write a workload that behaves like a block trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from writecliff import units
from writecliff.cli.options import OutputPath
from writecliff.cli.output import JsonFlag, emit_json, pairs, table

if TYPE_CHECKING:
    from writecliff.synthesis.played import Played
    from writecliff.synthesis.result import Synthesised


def synthesise(
    trace: Path,
    *,
    format_: Annotated[str | None, Parameter(name="--format")] = None,
    columns: str | None = None,
    member: str | None = None,
    on: str | None = None,
    seed: int = 1,
    output: OutputPath = None,
    csv: OutputPath = None,
    json: JsonFlag = False,
) -> int:
    """Write a workload that behaves like a block trace, and show how near it comes.

    The workload has the trace's mix, sizes, runs, hot areas, bursts and idle times, within stated
    bounds. Its I/Os are drawn anew, in a range without what the trace never used. A fio job file
    says as much of it as fio can.

    Parameters
    ----------
    trace
        The trace, in a format of `writecliff trace formats`.
    format_
        Read the trace in this format (default: recognised by content).
    columns
        The meaning of the columns of a CSV or Parquet file of your own, such as
        time=ts:us,operation=op,offset=lba:sectors,length=size.
    member
        Read only this member of an archive.
    on
        Play trace and workload on this simulated drive and compare write amplification, IOPS and
        response times: sim:NAME or sim:PATH.toml.
    seed
        The seed of the workload's I/Os.
    output
        The folder for workload.toml, workload.fio and the page synthetic.html (default:
        TRACE-synthetic); files in it that have these names are replaced.
    csv
        A folder to write the numbers of all figures and tables to.
    """
    from writecliff.api import synthesise_trace
    from writecliff.cli.progress import WorkView
    from writecliff.cli.screen import Screen
    from writecliff.cli.trace_view import skipped_line
    from writecliff.report.pages import write_page
    from writecliff.report.synthetic import synthetic_page

    screen = Screen()

    def on_part(text: str) -> None:
        if not json:
            screen.log(text)
        view.part(text)

    with WorkView(screen).showing("reading") as view:
        found = synthesise_trace(
            trace, format=format_, columns=columns, member=member, on=on, seed=seed,
            progress=view, on_part=on_part,
        )  # fmt: skip
    folder = output or Path(f"{trace.name.split('.')[0].replace(':', '-')}-synthetic")
    workload, job = found.write(folder)
    page = write_page(synthetic_page(found), folder / "synthetic.html", csv=csv)
    if json:
        files = {"workload": workload, "fio_job": job, "report": page}
        from writecliff.api.answers.traces import Synthesised

        emit_json(Synthesised.of(found.mapping(), **files))
        return 0
    print(pairs(_summary(found, skipped=[skipped_line(one) for one in found.skipped])) + "\n")
    head = ("", "trace", "workload", "difference", "bound")
    rows = [
        (row.name, row.text(row.trace), row.text(row.synthetic), row.difference_text,
         row.bound_text)
        for row in found.rows
    ]  # fmt: skip
    print(table(head, rows, "lrrrr") + "\n")
    if found.played is not None:
        print(_played(found.played) + "\n")
    print(pairs([("workload", str(workload)), ("fio job", str(job)), ("report", str(page))]))
    return 0


def _summary(found: Synthesised, skipped: list[str]) -> list[tuple[str, str]]:
    model = found.model
    return [
        ("trace", f"{found.trace}, {', '.join(found.formats)}"),
        ("I/Os", f"{model.ios:,} in {units.duration(model.duration_ns)}"),
        ("model", f"{model.numbers:,} numbers, {units.size(model.range_bytes)} of addresses"),
        ("measures", _kept(found)),
        *(("skipped", line) for line in skipped),
        *(("note", note) for note in found.notes),
    ]


def _kept(found: Synthesised) -> str:
    promised = sum(row.within is not None for row in found.rows)
    if not found.missed:
        return f"all {promised} within their bounds"
    names = ", ".join(row.name for row in found.missed)
    return f"{promised - len(found.missed)} of {promised} within their bounds; not: {names}"


def _played(played: Played) -> str:
    from writecliff.synthesis.played import rows_of

    head = (f"on {played.target}", "trace", "workload", "difference", "fio job", "difference")
    rows = [
        (
            one.name, one.text(one.trace), one.text(one.workload), _difference(one.difference_pct),
            one.text(one.job), _difference(one.job_difference_pct),
        )
        for one in rows_of(played)
    ]  # fmt: skip
    return table(head, rows, "lrrrrr")


def _difference(value_pct: float | None) -> str:
    return "" if value_pct is None else f"{value_pct:+.1f} %"
