"""Progress of a test on stderr: a line per step, or a live view on a terminal.

`progress_for` chooses: silent with --quiet, live (rich) if stderr is a terminal, else lines that
read well in a log file.
"""

from __future__ import annotations

import sys
import time
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
    from writecliff.procedures.model import History, Plan, Procedure, StepRow
    from writecliff.procedures.steady import Decision


def progress_for(*, quiet: bool, samples_only: bool = False) -> RunProgress:
    """How a test shows its progress; `samples_only`: in a log, only each round's sample step."""
    if quiet:
        return RunProgress()
    if sys.stderr.isatty():
        from writecliff.cli.live import LiveProgress

        return LiveProgress()
    return LineProgress(samples_only=samples_only)


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
    if not identity.simulated:
        lines.append(f"everything on {identity.target} is lost")
        lines.append(f"written: {written_text(plan, identity)}")
    lines += [f"deviation: {deviation}" for deviation in plan.deviations]
    return lines


def written_text(plan: Plan, identity: DeviceIdentity) -> str:
    """How much a run will write at most, and what that is of the drive's rated endurance."""
    if plan.write_bytes_max is None or plan.drive_fills_max is None:
        return "not bounded"
    text = f"at most {size_text(plan.write_bytes_max)} ({plan.drive_fills_max:.1f} drive fills"
    if identity.rated_tbw_bytes:
        share = 100 * plan.write_bytes_max / identity.rated_tbw_bytes
        text += f", {share:.2g} % of the rated endurance"
    return f"{text})"


def step_line(row: StepRow) -> str:
    """A finished step as one line."""
    parts = [
        f"round {row.round}" if row.round else row.phase,
        row.label,
        f"{count_text(row.iops)} IOPS" if row.elapsed_ns else "untimed",
        f"mean {latency_text(row.latency_mean_ns)}",
        f"99.99 % {latency_text(row.latency_p9999_ns)}",
        f"max {latency_text(row.latency_max_ns)}",
        f"WAF {factor_text(row.waf)}",
        f"{row.drive_fills:.2f} drive fills",
    ]
    return "  ".join(parts)


def steady_lines(round_number: int, decision: Decision) -> list[str]:
    """A steady-state decision, a line a variable: measured excursions against those allowed."""
    return [
        f"round {round_number}: {'steady' if state.steady else 'not steady'}; "
        f"{name}: average {_figure(state.average)}, "
        f"data excursion {_figure(state.data_excursion)} "
        f"(allowed {_figure(state.data_excursion_allowed)}), "
        f"slope excursion {_figure(state.slope_excursion)} "
        f"(allowed {_figure(state.slope_excursion_allowed)})"
        for name, state in decision.states.items()
    ]


def _figure(value: float) -> str:
    """Whole numbers where they say enough: IOPS, but not write amplification."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"


class LineProgress(RunProgress):
    """One line per event, without control characters."""

    def __init__(self, *, samples_only: bool = False) -> None:
        self._samples_only = samples_only
        self._last: StepRow | None = None

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
        self._last = row
        if not self._samples_only:
            talk(step_line(row) + ("  (again, same)" if again else ""))

    def round_end(self, round_number: int, decision: Decision | None) -> None:
        if self._samples_only and self._last:
            talk(step_line(self._last))  # the sample of a round is its last step
        elif decision:
            for line in steady_lines(round_number, decision):
                talk(line)

    def note(self, text: str) -> None:
        talk(f"warning: {text}")

    def end(self, status: str, reason: str) -> None:
        took = duration_text((time.monotonic() - self._began_s) * 1e9)
        talk(f"{status} after {took} of wall time: {reason}")


def resume_line(rows_stored: int, rows_again: int) -> str:
    text = f"going on after {rows_stored} stored steps"
    return f"{text}; {rows_again} of them are run again and compared" if rows_again else text
