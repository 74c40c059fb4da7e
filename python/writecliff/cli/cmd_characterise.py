"""Show what a block trace says of its workload."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from writecliff.cli.options import OutputPath
from writecliff.cli.output import JsonFlag, emit_json, pairs

GROUP = "workloads and traces", 7


def characterise(
    trace: Path,
    *,
    format_: Annotated[str | None, Parameter(name="--format")] = None,
    columns: str | None = None,
    member: str | None = None,
    against: Path | None = None,
    on: str | None = None,
    output: OutputPath = None,
    csv: OutputPath = None,
    json: JsonFlag = False,
) -> int:
    """Show what a block trace says of its workload: streams, sizes, bursts, working set, reuse.

    Reads traces of 15 formats, packed or not, in one pass and bounded memory. Sizes, sequentiality
    and arrivals are exact; what is about single blocks is sampled in long traces, with the error
    stated.

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
    against
        Another trace, shown beside the first one.
    on
        Replay the writes on this simulated drive, to find their write amplification: sim:NAME or
        sim:PATH.toml.
    output
        The HTML file to write (default: workload.html); an existing file is replaced.
    csv
        A folder to write the numbers of all figures and tables to.
    """
    from writecliff.api import characterise_trace, write_page
    from writecliff.cli.cmd_trace import skipped_line, summary
    from writecliff.cli.progress import WorkView
    from writecliff.cli.screen import Screen

    given: dict[str, Any] = {"format": format_, "columns": columns, "member": member}
    traces = [trace, *([] if against is None else [against])]
    # Measured one after another they are one part, of so many bytes; replays between are others.
    whole = 0 if against is None or on is not None else sum(_bytes(one, given) for one in traces)
    found = []
    read = 0
    with WorkView(Screen()).showing("measuring") as view:
        for path in traces:
            if whole:
                begin, read = read, read + _bytes(path, given)
                view.file(begin / whole, read / whole)
            else:
                view.part(f"measuring {path}")
            found.append(characterise_trace(path, **given, on=on, progress=view))
    page = write_page(found, output or Path("workload.html"), csv=csv)
    if json:
        other = found[1].mapping() if against is not None else None
        from writecliff.api.answers.traces import Characterised

        emit_json(Characterised.of(found[0].mapping(), against=other, report=page))
        return 0
    for one in found:
        lines = [("trace", str(one.trace)), *summary(one.mapping())]
        lines += [("skipped", skipped_line(skipped)) for skipped in one.skipped]
        print(pairs([*lines, *(("note", note) for note in one.notes)]) + "\n")
    print(pairs([("report", str(page))]))
    return 0


def _bytes(trace: Path, given: Mapping[str, Any]) -> int:
    """The size of a trace, which is opened for it. Raises ConfigError: it is none."""
    from writecliff.traces.examples import trace_path
    from writecliff.traces.source import open_trace

    return open_trace(trace_path(trace), **given).size_bytes
