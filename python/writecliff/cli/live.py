"""The live view of a running test on a terminal (rich). Only `progress_for` imports it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from writecliff.cli.output import (
    count_text,
    duration_text,
    factor_text,
    latency_text,
    size_text,
)
from writecliff.cli.progress import opening_lines, resume_line, steady_lines
from writecliff.procedures.progress import RunProgress

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, Progress
    from writecliff.procedures.model import (
        End,
        History,
        Plan,
        Procedure,
        Stage,
        StepRow,
    )
    from writecliff.procedures.steady import Decision

REFRESH_HZ = 4


class LiveProgress(RunProgress):
    """Redraws one block: where the test is, what the drive does, how steady it is, what is left.

    Every event only stores what was told; drawing happens at the refresh rate of `Live`.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._live: Live | None = None
        self._began_s = time.monotonic()
        self._phase = "starting"
        self._place = ""
        self._row: StepRow | None = None
        self._row_s = self._paced_from_s = self._began_s
        self._history: History | None = None
        self._steps_before = 0
        self._progress: Progress | None = None
        self._decision: Decision | None = None
        self._ends: Sequence[End] = ()
        self._fraction_at_start: float | None = None

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        for line in opening_lines(procedure, identity, plan, run_directory):
            self._console.print(line, markup=False, highlight=False)
        self._live = Live(
            get_renderable=self._render,
            console=self._console,
            refresh_per_second=REFRESH_HZ,
            transient=True,
        )
        self._live.start()

    def resumed(self, rows_stored: int, rows_again: int) -> None:
        self._say(resume_line(rows_stored, rows_again))

    def phase(self, name: str, detail: str = "") -> None:
        self._phase = name
        if detail:
            self._say(f"{name}: {detail}")

    def stage_begin(self, stage: Stage) -> None:
        self._ends = stage.ends
        self._fraction_at_start = None
        self._decision = None

    def step_begin(self, phase: str, round_number: int, step: int, steps: int, name: str) -> None:
        self._progress = None
        where = f"round {round_number}, " if round_number else ""
        self._place = f"{where}step {step} of {steps}: {name}"

    def step_progress(self, progress: Progress) -> None:
        self._progress = progress

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        self._row = row
        self._history = history
        self._row_s = time.monotonic()
        if self._fraction_at_start is None:
            self._fraction_at_start = self._fraction()
            self._paced_from_s = self._row_s

    def round_end(self, round_number: int, decision: Decision | None) -> None:
        self._decision = decision
        for line in steady_lines(round_number, decision) if decision else ():
            self._say(line)

    def note(self, text: str) -> None:
        self._say(f"warning: {text}", style="yellow")

    def end(self, status: str, reason: str) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        took = duration_text((time.monotonic() - self._began_s) * 1e9)
        self._say(f"{status} after {took} of wall time: {reason}")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style), highlight=False)

    def _fraction(self) -> float:
        """How far the run is on its way to the nearest end that can be foreseen."""
        if self._history is None or not self._history.stages:
            return 0.0
        stage = self._history.current
        known = [end.fraction(stage) for end in self._ends if end.fraction is not None]
        return min(1.0, max(known, default=0.0))

    def _time_left(self, fraction: float) -> str:
        begun = self._fraction_at_start
        if begun is None or fraction <= begun:
            return "-"
        # The fraction is that of the last finished step: count down from there.
        per_fraction_s = (self._row_s - self._paced_from_s) / (fraction - begun)
        left_s = per_fraction_s * (1 - fraction) - (time.monotonic() - self._row_s)
        return duration_text(max(0.0, left_s) * 1e9)

    def _render(self) -> RenderableType:
        fraction = self._fraction()
        head = Table.grid(padding=(0, 1))
        head.add_row(
            Text(self._phase, style="bold"),
            ProgressBar(total=1.0, completed=fraction, width=30),
            f"{100 * fraction:.0f} %",
            f"at most {self._time_left(fraction)} left",
        )
        body = Table.grid(padding=(0, 2))
        for name, value in self._figures():
            body.add_row(Text(name, style="dim"), value)
        return Group(head, Text(self._place, style="dim"), body)

    def _figures(self) -> list[tuple[str, str]]:
        now, row = self._progress, self._row
        figures = []
        iops = now.iops if now is not None else row.iops if row is not None else None
        waf = now.waf if now is not None and now.waf is not None else row.waf if row else None
        figures.append(("IOPS", count_text(iops)))
        figures.append(("WAF", factor_text(waf)))
        if row is not None:
            figures.append(
                (
                    "latency",
                    f"mean {latency_text(row.latency_mean_ns)}, "
                    f"99.99 % {latency_text(row.latency_p9999_ns)}, "
                    f"max {latency_text(row.latency_max_ns)}",
                )
            )
            written = f"{size_text(row.host_write_bytes_total)}, {row.drive_fills:.2f} drive fills"
            figures.append(("written", written))
        if self._history is not None:
            figures.append(("device time", duration_text(self._history.elapsed_ns)))
        for state in self._decision.states.values() if self._decision else ():
            figures.append(
                (
                    "steady state",
                    f"{'yes' if state.steady else 'no'}: data excursion "
                    f"{state.data_excursion:,.0f} (allowed {state.data_excursion_allowed:,.0f}), "
                    f"slope {state.slope_excursion:,.0f} "
                    f"(allowed {state.slope_excursion_allowed:,.0f})",
                )
            )
        return figures
