"""Progress of a test on stderr: a line per step, or on a terminal a block that is redrawn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.cli.output import factor_text, latency_text
from writecliff.cli.screen import Screen
from writecliff.procedures.progress import RunProgress

# In a log: how long nothing is said at first, and at most, while a step goes on.
SILENCE_S, SILENCE_MAX_S = 5.0, 60.0

if TYPE_CHECKING:
    from rich.console import RenderableType

    from writecliff.engines.base import DeviceIdentity, Progress
    from writecliff.procedures.model import End, History, Plan, Procedure, Stage, StepRow
    from writecliff.procedures.steady import Decision


def opening_lines(
    procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
) -> list[str]:
    """What is about to happen, before the drive is touched."""
    lines = [
        f"{plan.title} on {identity.target}: {drive_text(identity)}",
        *([f"quick: {identity.scale_text}"] if identity.scale_text else []),
        f"run directory: {run_directory}",
    ]
    if not identity.simulated and plan.write_bytes_max != 0:
        lines.append(f"all data on {identity.target} will be lost")
        lines.append(f"host writes: {written_text(plan, identity)}")
    return lines + [f"deviation: {deviation}" for deviation in plan.deviations]


def drive_text(identity: DeviceIdentity) -> str:
    """Vendor, model, serial number and capacity."""
    who = " ".join(filter(None, (identity.vendor, identity.model, identity.serial)))
    return f"{who or 'unknown drive'}, {units.size(identity.capacity_bytes)}"


def written_text(plan: Plan, identity: DeviceIdentity) -> str:
    """How much a run writes at most, and what share of the drive's rated endurance that is; first
    by the measured speed of the drive if there is one, then by its link."""
    if plan.write_bytes_max is None:
        return "no upper bound"
    surely = f"at most {_amount(plan.write_bytes_max, identity)}"
    if plan.write_bytes_likely is None or plan.write_bytes_likely >= plan.write_bytes_max:
        return surely
    likely = _amount(plan.write_bytes_likely, identity)
    return f"likely at most {likely}, at twice the speed of its reads; by its link {surely}"


def _amount(size: int, identity: DeviceIdentity) -> str:
    fills = size / identity.capacity_bytes
    text = f"{units.size(size)} ({fills:.{1 if fills >= 1 else 2}f} drive fills"
    if identity.rated_tbw_bytes:
        share = 100 * size / identity.rated_tbw_bytes
        text += f", {share:.2g} % of the rated endurance"
    return f"{text})"


def step_line(row: StepRow) -> str:
    """A finished step as one line."""
    parts = [
        f"round {row.round}" if row.round else row.phase,
        row.label,
        f"{units.number(row.iops)} IOPS" if row.elapsed_ns else "untimed",
        *_latency_parts(row),
        f"WAF {factor_text(row.waf)}",
        f"{row.drive_fills:.2f} drive fills",
    ]
    return "  ".join(parts)


def _latency_parts(row: StepRow) -> tuple[str, str, str]:
    return (
        f"mean {latency_text(row.latency_mean_ns)}",
        f"99.99 % {latency_text(row.latency_p9999_ns)}",
        f"max {latency_text(row.latency_max_ns)}",
    )


def steady_lines(round_number: int, decision: Decision) -> list[str]:
    """A steady-state decision, one line per variable: measured excursions and those allowed."""
    from writecliff.report.steady import excursions_text

    return [
        f"round {round_number}: {'steady' if state.steady else 'not steady'}; "
        f"{name}: average {units.significant(state.average)}, {excursions_text(state)}"
        for name, state in decision.states.items()
    ]


class ProgressView(RunProgress):
    """Shows a test on a screen. Events only store what they carry; `render` draws it.

    `samples_only`: in a log, only the last step of each round, which is its sample.
    """

    def __init__(self, screen: Screen, *, samples_only: bool = False) -> None:
        self._screen = screen
        self._samples_only = samples_only
        self._block = ExitStack()
        self._began_s = time.monotonic()
        self._phase = "starting"
        self._step = ""
        self._row: StepRow | None = None
        self._row_s = self._paced_from_s = self._began_s
        self._history: History | None = None
        self._progress: Progress | None = None
        self._decision: Decision | None = None
        self._ends: Sequence[End] = ()
        self._fraction_at_start: float | None = None
        self._total_ns: int | None = None  # device time of the run, where the plan knows it
        self._place = (1, 1)  # number of the step in its round or phase, of how many
        self._silence_s, self._said_s = SILENCE_S, self._began_s

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        for line in opening_lines(procedure, identity, plan, run_directory):
            self._screen.log(line)
        if plan.device_time_min_ns == plan.device_time_max_ns:
            self._total_ns = plan.device_time_max_ns or None
        self._block.enter_context(self._screen.showing(self.render))

    def resumed(self, rows_stored: int, rows_again: int) -> None:
        text = f"resuming after {rows_stored} stored steps"
        self._screen.log(
            f"{text}; {rows_again} of them are repeated and compared" if rows_again else text
        )

    def phase(self, name: str, detail: str = "") -> None:
        self._phase, self._step, self._progress = name, "", None
        if detail:
            self._screen.log(f"{name}: {detail}")

    def purge_progress(self, share: float) -> None:
        self._step = f"{share:.0%} done"

    def stage_begin(self, stage: Stage) -> None:
        self._ends = stage.ends
        self._fraction_at_start = self._decision = None
        if self._live:
            self._fraction_at_start, self._paced_from_s = self._fraction(), time.monotonic()

    def step_begin(self, phase: str, round_number: int, step: int, steps: int, name: str) -> None:
        self._progress = None
        where = f"round {round_number}, " if round_number else ""
        self._step, self._place = f"{where}step {step} of {steps}: {name}", (step, steps)

    def step_progress(self, progress: Progress) -> None:
        self._progress = progress
        if not self._screen.terminal:
            self._log_where_it_is()

    def _log_where_it_is(self) -> None:
        """A line in the log when a step takes long, so that no run looks as if it hung."""
        if (now_s := time.monotonic()) < self._said_s + self._silence_s:
            return
        self._said_s, self._silence_s = now_s, min(2 * self._silence_s, SILENCE_MAX_S)
        fraction = self._fraction()
        where = ": ".join(filter(None, (self._phase, self._step)))
        parts = (where, f"{100 * fraction:.0f} %", self._time_left(fraction))
        self._screen.log("  ".join(filter(None, parts)))

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        self._row, self._history, self._row_s = row, history, time.monotonic()
        self._progress = None
        if self._fraction_at_start is None:
            self._fraction_at_start = self._fraction()
            self._paced_from_s = self._row_s
        if not self._samples_only and not self._screen.terminal:
            self._said_s = time.monotonic()
            self._screen.log(step_line(row) + ("  (repeated, same result)" if again else ""))

    def round_end(self, round_number: int, decision: Decision | None) -> None:
        self._decision = decision
        if self._samples_only and self._row is not None and not self._screen.terminal:
            self._screen.log(step_line(self._row))
        elif decision:
            for line in steady_lines(round_number, decision):
                self._screen.log(line)

    def note(self, text: str) -> None:
        self._screen.log(text, warning=True)

    def end(self, status: str, reason: str) -> None:
        self._block.close()
        took = units.duration((time.monotonic() - self._began_s) * 1e9)
        self._screen.log(f"{status} after {took} of wall time: {reason}")

    @property
    def _live(self) -> bool:
        """Whether the fraction grows within steps, not only from step to step."""
        return self._total_ns is not None or not any(end.fraction for end in self._ends)

    def _fraction(self) -> float:
        """How far the run is: in device time where that is known, else towards the nearest end of
        its stage that can be foreseen, else in steps."""
        now = self._progress
        if self._phase == "preconditioning":
            return (now.fraction if now else None) or 0.0
        if self._total_ns is not None:
            past = self._history.elapsed_ns if self._history is not None else 0
            return min(1.0, (past + (now.elapsed_ns if now else 0)) / self._total_ns)
        if self._live:
            step, steps = self._place
            return (step - 1 + ((now.fraction if now else None) or 0.0)) / steps
        if self._history is None or not self._history.stages:
            return 0.0
        stage = self._history.current
        known = [end.fraction(stage) for end in self._ends if end.fraction is not None]
        return min(1.0, max(known, default=0.0))

    def _time_left(self, fraction: float) -> str:
        begun = self._fraction_at_start
        if begun is None or fraction <= begun:
            return ""
        # The fraction is that of the last finished step, or of this moment: count down from there.
        now_s = time.monotonic()
        known_s = now_s if self._live else self._row_s
        per_fraction_s = (known_s - self._paced_from_s) / (fraction - begun)
        left_s = per_fraction_s * (1 - fraction) - (now_s - known_s)
        left = units.duration(max(0.0, left_s) * 1e9)
        return f"{'about' if self._live else 'at most'} {left} left"

    def render(self) -> RenderableType:
        """Where the test is, what the drive does, how steady it is, how long it may still take."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        fraction = self._fraction()
        head = Table.grid(padding=(0, 1))
        head.add_row(
            Text(self._phase, style="bold"),
            ProgressBar(total=1.0, completed=fraction, width=30),
            f"{100 * fraction:.0f} %",
            self._time_left(fraction),
        )
        body = Table.grid(padding=(0, 2))
        for name, value in self._figures():
            body.add_row(Text(name, style="dim"), value)
        return Group(head, Text(self._step, style="dim"), body)

    def _figures(self) -> list[tuple[str, str]]:
        from writecliff.report.steady import excursions_text

        now, row = self._progress, self._row
        iops = now.iops if now is not None else row.iops if row is not None else None
        waf = now.waf if now is not None and now.waf is not None else row.waf if row else None
        figures = [("IOPS", units.number(iops)), ("WAF", factor_text(waf))]
        if row is not None:
            figures.append(("latency", ", ".join(_latency_parts(row))))
            written = units.size(row.host_write_bytes_total)
            figures.append(("written", f"{written}, {row.drive_fills:.2f} drive fills"))
        if self._history is not None:
            figures.append(("device time", units.duration(self._history.elapsed_ns)))
        for state in self._decision.states.values() if self._decision else ():
            figures.append(
                (
                    "steady state",
                    f"{'yes' if state.steady else 'no'}: {excursions_text(state)}",
                )
            )
        return figures
