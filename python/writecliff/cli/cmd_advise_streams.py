"""Find the best stream assignment for a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.cli.options import NO_TRACE_OPTIONS, OutputPath, TraceOptions
from writecliff.cli.output import JsonFlag, emit_json, latency_text, log, table
from writecliff.cli.progress import work_shown
from writecliff.cli.screen import Screen
from writecliff.parallel import watched

if TYPE_CHECKING:
    from writecliff.replay.advice import StreamAdvice as Advice
    from writecliff.replay.model import Replayed


GROUP = "workloads and traces", 5


def advise_streams(
    trace: Path,
    *,
    options: TraceOptions = NO_TRACE_OPTIONS,
    counts: str | None = None,
    output: OutputPath = None,
    json: JsonFlag = False,
) -> int:
    """Compare ways to assign a trace's writes to streams, and recommend the best.

    The recommendation is either no streams or a set of rules: your rules (--streams), or else the
    program's own write hints or the preset for the program. Schemes in drives and drivers, and an
    oracle that knows when data will be invalidated, are shown as bounds. The report also shows the
    cost of tagging errors.

    Parameters
    ----------
    trace
        Trace recorded by `writecliff capture`.
    counts
        A comma-separated list of stream counts to compare (default: 2,4,8).
    output
        HTML file to write (default: stream-advice.html).
    """
    from writecliff.api import advise_streams as advise
    from writecliff.api import write_page
    from writecliff.replay.advice import NAMES, advice_mapping, stream_counts

    numbers = stream_counts(counts)

    def log_cell(cell: Replayed) -> None:
        wrong = f", {cell.mistag_pct:g} % mistagged" if cell.mistag_pct else ""
        log(f"{NAMES[cell.scheme]}, {cell.streams} streams{wrong}: {cell.waf:.3f}")

    with watched(work_shown(Screen())):
        advice = advise(trace, options.target, counts=numbers, on_cell=log_cell, **options.given())
    page = write_page(advice, output or Path("stream-advice.html"))
    if json:
        from writecliff.api.answers.tests import StreamAdvice

        emit_json(StreamAdvice.of(advice_mapping(advice), report=page))
    else:
        print(_text(advice, page))
    return 0


def _text(advice: Advice, page: Path) -> str:
    from writecliff.replay.advice import BOUNDS, NAMES, verdict

    setup = advice.setup
    rows = [
        (
            NAMES[cell.scheme] + (" (bound)" if cell.scheme in BOUNDS else ""),
            str(cell.streams),
            f"{cell.waf:.3f}",
            units.size(setup.endurance_bytes(cell.waf)),
            "-" if (years := setup.years(cell.waf)) is None else f"{years:.3g}",
            latency_text(cell.read_p9999_ns),
        )
        for cell in advice.cells
    ]
    header = ("assignment", "streams", "WAF", "endurance", "years", "read p99.99")
    answer, *more = verdict(advice)
    lines = [table(header, rows, "lrrrrr"), "", *more, "", str(page), answer]
    return "\n".join(lines)
