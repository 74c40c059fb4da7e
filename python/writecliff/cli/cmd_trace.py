"""Convert block traces; write workloads that behave like them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from writecliff import units
from writecliff.cli.options import MadePath
from writecliff.cli.output import JsonFlag, emit_json, log, pairs, table
from writecliff.cli.trace_synthesise import synthesise

GROUP = "workloads and traces", 6
app = App(name="trace", help=__doc__)
app.command(synthesise)


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
    """Write a trace in another format: Parquet for `writecliff replay`, or one of other programs.

    Packed files (gz, zst, bz2) and archives (tar) are read as they are.

    Parameters
    ----------
    trace
        The trace, in a format of `writecliff trace formats`.
    output
        The file to write.
    to
        Its format: parquet, fio-iolog, msr or blkparse (default: by its suffix .parquet, .log,
        .csv or .txt).
    format_
        Read the trace in this format (default: recognised by content).
    columns
        The meaning of the columns of a CSV or Parquet file of your own, such as
        time=ts:us,operation=op,offset=lba:sectors,length=size.
    member
        Read only this member of an archive.
    """
    from writecliff.api import convert_trace
    from writecliff.cli.progress import WorkView
    from writecliff.cli.screen import Screen
    from writecliff.cli.trace_view import skipped_line
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
            (("left out", f"{done.left_out:,} that the format cannot have"),)
            if done.left_out
            else ()
        ),
        *((("moved", f"{done.moved:,} to the time of the one before"),) if done.moved else ()),
        *(("skipped", skipped_line(one)) for one in done.skipped),
        *(("note", note) for note in done.notes),
    ]
    log(pairs(lines))
    return 0


@app.command
def formats(*, json: JsonFlag = False) -> int:
    """List the formats that traces are read and written in."""
    from writecliff.traces.formats import all_formats

    rows = [one.mapping() for one in all_formats()]
    if json:
        from writecliff.api.answers.traces import TraceFormat, TraceFormats

        emit_json(TraceFormats([TraceFormat(**row) for row in rows]))
        return 0
    cells = [(row["name"], row["title"], "yes" if row["written"] else "") for row in rows]
    print(table(("format", "of", "written"), cells, "lll"))
    return 0


@app.command
def examples(*, json: JsonFlag = False) -> int:
    """List the captured traces that ship with writecliff; example:NAME stands for the file."""
    from writecliff.traces.examples import SCHEME
    from writecliff.traces.examples import examples as all_examples

    found = all_examples()
    if json:
        from writecliff.api.answers.traces import TraceExample, TraceExamples

        examples = [
            TraceExample(one.name, one.title, one.path, one.path.stat().st_size) for one in found
        ]
        emit_json(TraceExamples(examples))
        return 0
    print(table(("trace", "load"), [(SCHEME + one.name, one.title) for one in found], "ll"))
    return 0
