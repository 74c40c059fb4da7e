"""Convert block traces, and synthesise workloads from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from writecliff import units
from writecliff.cli.options import MadePath, OutputPath
from writecliff.cli.output import JsonFlag, emit_json, log, pairs, table

if TYPE_CHECKING:
    from writecliff.synthesis.played import Played
    from writecliff.synthesis.result import Synthesised
    from writecliff.traces.source import Skipped

GROUP = "workloads and traces", 6
app = App(name="trace", help=__doc__)


@app.command
def convert(
    trace: Path,
    output: MadePath,
    *,
    to: str | None = None,
    format_: Annotated[str | None, Parameter(name="--format")] = None,
    columns: str | None = None,
    member: str | None = None,
    json: JsonFlag = False,
) -> int:
    """Convert a trace to another format: Parquet for `writecliff replay`, or another tool's format.

    Compressed files (gz, zst, bz2) and archives (tar) are read directly.

    Parameters
    ----------
    trace
        Trace in a format listed by `writecliff trace formats`.
    output
        Output file to write.
    to
        Output format: parquet, fio-iolog, msr or blkparse (default: by the output file's suffix
        .parquet, .log, .csv or .txt).
    format_
        Trace format (default: detected from the content).
    columns
        Column mapping for a trace in a custom CSV or Parquet format, such as
        time=ts:us,operation=op,offset=lba:sectors,length=size.
    member
        Read only this file from an archive.
    """
    from writecliff.api import convert_trace
    from writecliff.cli.progress import WorkView
    from writecliff.cli.screen import Screen
    from writecliff.traces.source import skipped_mapping

    with WorkView(Screen()).showing("converting") as view:
        done = convert_trace(
            trace, output, to=to, format=format_, columns=columns, member=member, progress=view
        )
    if json:
        from writecliff.api.answers.traces import TraceConverted

        emit_json(
            TraceConverted(
                trace=trace,
                output=done.output,
                format=", ".join(done.formats),
                written_as=done.written_as,
                ios=done.ios,
                left_out=done.left_out,
                moved=done.moved,
                notes=done.notes,
                **skipped_mapping(done.skipped),
            )
        )
        return 0
    lines = [
        ("read", f"{trace}, {', '.join(done.formats)}"),
        ("written", f"{done.output}, {done.written_as}, {units.size(output.stat().st_size)}"),
        ("I/Os", f"{done.ios:,}"),
        *(
            (("left out", f"{done.left_out:,} that the format cannot represent"),)
            if done.left_out
            else ()
        ),
        *((("moved", f"{done.moved:,} to the previous I/O's time"),) if done.moved else ()),
        *(("skipped", skipped_line(skipped)) for skipped in done.skipped),
        *(("note", note) for note in done.notes),
    ]
    log(pairs(lines))
    return 0


@app.command
def formats(*, json: JsonFlag = False) -> int:
    """List the formats in which traces are read and written."""
    from writecliff.traces.formats import all_formats

    rows = [trace_format.mapping() for trace_format in all_formats()]
    if json:
        from writecliff.api.answers.traces import TraceFormat, TraceFormats

        emit_json(TraceFormats([TraceFormat(**row) for row in rows]))
        return 0
    cells = [(row["name"], row["title"], "yes" if row["written"] else "") for row in rows]
    print(table(("format", "of", "written"), cells, "lll"))
    return 0


@app.command
def examples(*, json: JsonFlag = False) -> int:
    """List the captured traces that ship with writecliff and are available as example:NAME."""
    from writecliff.traces.examples import SCHEME
    from writecliff.traces.examples import examples as all_examples

    shipped = all_examples()
    if json:
        from writecliff.api.answers.traces import TraceExample, TraceExamples

        examples = [
            TraceExample(example.name, example.title, example.path, example.path.stat().st_size)
            for example in shipped
        ]
        emit_json(TraceExamples(examples))
        return 0
    rows = [(SCHEME + example.name, example.title) for example in shipped]
    print(table(("trace", "load"), rows, "ll"))
    return 0


@app.command
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
    """Synthesise a workload that resembles a block trace, and show how closely the two match.

    The workload reproduces the trace's read/write mix, I/O sizes, sequential runs, hot areas,
    bursts and idle times, within stated bounds. The workload's I/Os are generated at random, over
    an address range that omits the gaps that the trace never accesses. The fio job file covers the
    properties that fio can reproduce.

    Parameters
    ----------
    trace
        Trace in a format listed by `writecliff trace formats`.
    format_
        Trace format (default: detected from the content).
    columns
        Column mapping for a trace in a custom CSV or Parquet format, such as
        time=ts:us,operation=op,offset=lba:sectors,length=size.
    member
        Read only this file from an archive.
    on
        Run the trace and the workload on this simulated drive and compare write amplification, IOPS
        and response times: sim:NAME or sim:PATH.toml.
    seed
        Seed for generating the workload's I/Os.
    output
        Output folder for workload.toml, workload.fio and the page synthetic.html (default:
        TRACE-synthetic); existing files with these names are replaced.
    csv
        Write the data of every plot and table to this folder as CSV.
    """
    from writecliff.api import synthesise_trace
    from writecliff.cli.progress import WorkView
    from writecliff.cli.screen import Screen
    from writecliff.report.pages import write_page
    from writecliff.report.synthetic import synthetic_page

    screen = Screen()

    def on_part(text: str) -> None:
        if not json:
            screen.log(text)
        view.part(text)

    with WorkView(screen).showing("reading") as view:
        result = synthesise_trace(
            trace, format=format_, columns=columns, member=member, on=on, seed=seed,
            progress=view, on_part=on_part,
        )  # fmt: skip
    folder = output or Path(f"{trace.name.split('.')[0].replace(':', '-')}-synthetic")
    workload, job = result.write(folder)
    page = write_page(synthetic_page(result), folder / "synthetic.html", csv=csv)
    if json:
        files = {"workload": workload, "fio_job": job, "report": page}
        from writecliff.api.answers.traces import Synthesised

        emit_json(Synthesised.of(result.mapping(), **files))
        return 0
    print(
        pairs(_summary(result, skipped=[skipped_line(skipped) for skipped in result.skipped]))
        + "\n"
    )
    head = ("", "trace", "workload", "difference", "bound")
    rows = [
        (row.name, row.text(row.trace), row.text(row.synthetic), row.difference_text,
         row.bound_text)
        for row in result.rows
    ]  # fmt: skip
    print(table(head, rows, "lrrrr") + "\n")
    if result.played is not None:
        print(_played(result.played) + "\n")
    print(pairs([("workload", str(workload)), ("fio job", str(job)), ("report", str(page))]))
    return 0


def _summary(result: Synthesised, skipped: list[str]) -> list[tuple[str, str]]:
    model = result.model
    return [
        ("trace", f"{result.trace}, {', '.join(result.formats)}"),
        ("I/Os", f"{model.ios:,} in {units.duration(model.duration_ns)}"),
        ("model", f"{model.numbers:,} numbers, {units.size(model.range_bytes)} of addresses"),
        ("measures", _bounds_text(result)),
        *(("skipped", line) for line in skipped),
        *(("note", note) for note in result.notes),
    ]


def _bounds_text(result: Synthesised) -> str:
    promised = sum(row.within is not None for row in result.rows)
    if not result.missed:
        return f"all {promised} within their bounds"
    names = ", ".join(row.name for row in result.missed)
    return f"{promised - len(result.missed)} of {promised} within their bounds; not: {names}"


def _played(played: Played) -> str:
    from writecliff.synthesis.played import rows_of

    head = (f"on {played.target}", "trace", "workload", "difference", "fio job", "difference")
    rows = [
        (
            row.name, row.text(row.trace), row.text(row.workload), _difference(row.difference_pct),
            row.text(row.job), _difference(row.job_difference_pct),
        )
        for row in rows_of(played)
    ]  # fmt: skip
    return table(head, rows, "lrrrrr")


def _difference(value_pct: float | None) -> str:
    return "" if value_pct is None else f"{value_pct:+.1f} %"


NS_PER_S = 1e9


def skipped_line(skipped: Skipped) -> str:
    """Return a message about the lines that were skipped for the same reason."""
    return f"{skipped.lines:,} lines: {skipped.reason}, first in line {skipped.first_line:,}"


def summary(of: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a trace's metrics as a few lines of text."""
    seconds, arrivals = of["duration_s"], of["arrivals"]
    streams = [
        f"{stream['share_pct']:.0f} % {stream['access']} {stream['operation']} "
        f"{units.size(stream['size_bytes'])}"
        for stream in of["streams"][:4]
    ]
    per_year = of["drive"]["writes_per_year_bytes"]
    lines = [
        ("format", of["format"]),
        ("I/Os", f"{of['ios']:,} in {units.duration(seconds * NS_PER_S)}"),
        ("reads", f"{units.pct(of['read_pct'], 1)}, {units.size(of['read_bytes'])}"),
        ("writes", units.size(of["write_bytes"])),
        ("sequential", units.pct(of["sequential_pct"], 1)),
        ("streams", "; ".join(streams)),
        ("unique", units.size(of["unique_bytes"])),
        (
            "bursts",
            f"peak {arrivals['peak_ios_per_s']:,} I/Os in a second, "
            f"{units.significant(arrivals['peak_to_mean'])} times the mean",
        ),
    ]
    if (depth := of["queue_depth"]) is not None:
        lines.append(("queue depth", f"mean {depth['mean']:.1f}, p99 {depth['p99']}"))
    if (response := of["response_ms"]) is not None:
        times = [
            f"{name} mean {values['mean']:.3g} ms, p99 {values['p99']:.3g} ms"
            for name in ("read", "write")
            if (values := response[name]) is not None
        ]
        lines.append(("response", "; ".join(times)))
    if per_year is not None:
        lines.append(("a year", f"{units.size(per_year)} written"))
    return lines
