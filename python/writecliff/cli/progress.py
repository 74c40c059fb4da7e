"""Progress of a test on stderr: a line per step, or a live view on a terminal.

`progress_for` chooses: silent with --quiet, live (rich) if stderr is a terminal, else lines that
read well in a log file.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.cli.output import (
    count_text,
    duration_text,
    factor_text,
    latency_text,
    size_text,
    talk,
)
from writecliff.procedures.progress import RunProgress

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity
    from writecliff.procedures.model import History, Plan, Procedure, SteadyVerdict, StepRow


def progress_for(*, quiet: bool) -> RunProgress:
    if quiet:
        return RunProgress()
    if sys.stderr.isatty():
        from writecliff.cli.live import LiveProgress

        return LiveProgress()
    return LineProgress()


def opening_lines(
    procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
) -> list[str]:
    """What is about to happen, before the drive is touched."""
    who = " ".join(filter(None, (identity.vendor, identity.model, identity.serial)))
    lines = [
        f"{plan.title} on {identity.target}: {who or 'unknown drive'}, "
        f"{size_text(identity.capacity_bytes)}",
        f"run directory: {run_directory}",
    ]
    lines += [f"deviation: {deviation}" for deviation in plan.deviations]
    return lines


def step_line(row: StepRow) -> str:
    """A finished step as one line."""
    parts = [
        f"round {row.round}" if row.phase == "round" else row.phase,
        row.name,
        f"{count_text(row.iops)} IOPS",
        f"mean {latency_text(row.latency_mean_ns)}",
        f"99.99 % {latency_text(row.latency_p9999_ns)}",
        f"max {latency_text(row.latency_max_ns)}",
        f"WAF {factor_text(row.waf)}",
        f"{row.drive_fills:.2f} drive fills",
    ]
    return "  ".join(parts)


def verdict_line(round_number: int, verdict: SteadyVerdict) -> str:
    """A steady-state decision as one line: measured excursions against those allowed."""
    state = "steady" if verdict.steady else "not steady"
    return (
        f"round {round_number}: {state}; {verdict.variable}: average {verdict.average:,.0f}, "
        f"data excursion {verdict.data_excursion:,.0f} (allowed {verdict.data_allowed:,.0f}), "
        f"slope excursion {verdict.slope_excursion:,.0f} (allowed {verdict.slope_allowed:,.0f})"
    )


class LineProgress(RunProgress):
    """One line per event, without control characters."""

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        self._began_s = time.monotonic()
        for line in opening_lines(procedure, identity, plan, run_directory):
            talk(line)

    def resumed(self, rows_stored: int, rows_again: int) -> None:
        talk(resume_line(rows_stored, rows_again))

    def phase(self, name: str, detail: str = "") -> None:
        if detail:
            talk(f"{name}: {detail}")

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        talk(step_line(row) + ("  (again, same)" if again else ""))

    def round_end(self, round_number: int, verdicts: Sequence[SteadyVerdict]) -> None:
        for verdict in verdicts:
            talk(verdict_line(round_number, verdict))

    def note(self, text: str) -> None:
        talk(f"warning: {text}")

    def end(self, status: str, reason: str) -> None:
        took = duration_text((time.monotonic() - self._began_s) * 1e9)
        talk(f"{status} after {took} of wall time: {reason}")


def resume_line(rows_stored: int, rows_again: int) -> str:
    text = f"going on after {rows_stored} stored steps"
    return f"{text}; {rows_again} of them are run again and compared" if rows_again else text
