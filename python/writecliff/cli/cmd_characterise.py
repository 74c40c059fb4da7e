"""Characterise the workload in a block trace."""

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
    """Characterise the workload in a block trace: streams, sizes, bursts, working set, reuse.

    The command reads traces in 15 formats, compressed or not, in one pass and in bounded memory.
    Figures for sizes, sequentiality and arrivals are exact. Per-block statistics of long traces are
    sampled, and the report states their sampling error.

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
    against
        Second trace to show alongside TRACE.
    on
        Replay the writes on this simulated drive to determine their write amplification: sim:NAME
        or sim:PATH.toml.
    output
        HTML file to write (default: workload.html); an existing file is replaced.
    csv
        Write the data of every plot and table to this folder as CSV.
    """
    from writecliff.api import characterise_trace, write_page
    from writecliff.cli.cmd_trace import skipped_line, summary
    from writecliff.cli.progress import WorkView
    from writecliff.cli.screen import Screen

    given: dict[str, Any] = {"format": format_, "columns": columns, "member": member}
    traces = [trace, *([] if against is None else [against])]
    # Traces that are read in sequence share one progress bar, but each replay has a separate
    # progress bar.
    whole = 0 if against is None or on is not None else sum(_bytes(path, given) for path in traces)
    traits = []
    read = 0
    with WorkView(Screen()).showing("measuring") as view:
        for path in traces:
            if whole:
                begin, read = read, read + _bytes(path, given)
                view.file(begin / whole, read / whole)
            else:
                view.part(f"reading {path}")
            traits.append(characterise_trace(path, **given, on=on, progress=view))
    page = write_page(traits, output or Path("workload.html"), csv=csv)
    if json:
        other = traits[1].mapping() if against is not None else None
        from writecliff.api.answers.traces import Characterised

        emit_json(Characterised.of(traits[0].mapping(), against=other, report=page))
        return 0
    for measured in traits:
        lines = [("trace", str(measured.trace)), *summary(measured.mapping())]
        lines += [("skipped", skipped_line(skipped)) for skipped in measured.skipped]
        print(pairs([*lines, *(("note", note) for note in measured.notes)]) + "\n")
    print(pairs([("report", str(page))]))
    return 0


def _bytes(trace: Path, given: Mapping[str, Any]) -> int:
    """Return a trace file's size in bytes. Raises ConfigError if it is not a trace file."""
    from writecliff.traces.examples import trace_path
    from writecliff.traces.source import open_trace

    return open_trace(trace_path(trace), **given).size_bytes
