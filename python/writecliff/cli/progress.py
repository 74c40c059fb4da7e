"""Progress on stderr, as periodic lines in a log or as a live block on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.cli.output import factor_text, latency_text
from writecliff.cli.screen import Screen
from writecliff.procedures.progress import FollowedRun
from writecliff.progress import Pace, Silence, Work, WorkProgress

_FIRST_S = 1.0  # Time before progress is shown, in seconds.

if TYPE_CHECKING:
    from rich.console import RenderableType

    from writecliff.engines.base import DeviceIdentity, Progress
    from writecliff.procedures.model import History, Plan, Procedure, Stage, StepRow
    from writecliff.procedures.steady import Decision


def opening_lines(
    procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
) -> list[str]:
    """Return lines that describe a run, for display before the run accesses the drive."""
    lines = [
        f"{plan.title} on {identity.target}: {drive_text(identity)}",
        *([f"the drive is {identity.scale_text}"] if identity.scale_text else []),
        f"run directory: {run_directory}",
    ]
    if not identity.simulated and plan.write_bytes_max != 0:
        lines.append(f"all data on {identity.target} will be lost")
        lines.append(f"host writes: {written_text(plan, identity)}")
    return lines + [f"deviation: {deviation}" for deviation in plan.deviations]


def drive_text(identity: DeviceIdentity) -> str:
    """Return the drive's vendor, model, serial number and capacity."""
    who = " ".join(filter(None, (identity.vendor, identity.model, identity.serial)))
    return f"{who or 'unknown drive'}, {units.size(identity.capacity_bytes)}"


def written_text(plan: Plan, identity: DeviceIdentity) -> str:
    """Return a bound on a run's write volume, and the fraction of rated endurance it uses.

    The bound is calculated from the drive's measured speed, if known, and its link speed.
    """
    if plan.write_bytes_max is None:
        return "no upper bound"
    by_link = f"at most {_amount(plan.write_bytes_max, identity)}"
    if plan.write_bytes_likely is None or plan.write_bytes_likely >= plan.write_bytes_max:
        return by_link
    likely = _amount(plan.write_bytes_likely, identity)
    return f"likely at most {likely}, at twice the speed of its reads; by its link {by_link}"


def _amount(size: int, identity: DeviceIdentity) -> str:
    fills = size / identity.capacity_bytes
    text = f"{units.size(size)} ({fills:.{1 if fills >= 1 else 2}f} drive fills"
    if identity.rated_tbw_bytes:
        share = 100 * size / identity.rated_tbw_bytes
        text += f", {share:.2g} % of the rated endurance"
    return f"{text})"


def step_line(row: StepRow) -> str:
    """Format a completed step as one line."""
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
    """Return a steady-state decision as lines of measured and allowed excursions per variable."""
    from writecliff.report.steady import excursions_text

    return [
        f"round {round_number}: {'steady' if state.steady else 'not steady'}; "
        f"{name}: average {units.significant(state.average)}, {excursions_text(state)}"
        for name, state in decision.states.items()
    ]


class WorkView:
    """A `WorkHook` that prints periodic lines, or refreshes a single line on a terminal."""

    def __init__(self, screen: Screen) -> None:
        """Show the progress on `screen`."""
        self._screen = screen
        self._silence, self._pace = Silence(), Pace()
        self._work: Work | None = None
        self._drawn = False

    @contextmanager
    def showing(self, what: str = "") -> Iterator[WorkProgress]:
        """Show the work that the block reports to the yielded progress object."""
        self._drawn = self._screen.terminal
        with self._screen.showing(self.render):
            yield WorkProgress(self, what)

    def __call__(self, work: Work) -> None:
        """Show `work` if a new line is due."""
        if self._work is None or work.what != self._work.what:
            self._pace = Pace()
        self._work = work
        if not self._drawn and self._silence.too_long():
            self._screen.log(self.text)

    @property
    def text(self) -> str:
        """Elapsed time, phase, figures, completed fraction and remaining time, in one line."""
        work, taken_s = self._work, self._pace.taken_s
        if work is None:
            return ""
        figures = work.figures
        if work.ios and taken_s > 0:
            figures = f"{work.ios:,} I/Os, {work.ios / taken_s / 1e6:.1f} million a second"
        what = f"{self._pace.clock} {': '.join(filter(None, (work.what, figures)))}"
        return f"{what}  {self._pace.how_far(work.share)}" if work.share else what

    def render(self) -> RenderableType:
        """Return the progress line, or nothing if the work has just started."""
        from rich.text import Text

        return Text(self.text) if self._pace.taken_s > _FIRST_S else ""


def work_shown(screen: Screen) -> Callable[[int], Callable[[int], None]]:
    """Return a `parallel.Watch` that shows the number of completed tasks in a set."""

    def watch(count: int) -> Callable[[int], None]:
        progress = WorkProgress(WorkView(screen))
        return lambda done: progress.done(done / count, figures=f"{done} of {count} done")

    return watch


class ProgressView(FollowedRun):
    """Progress display of a test. Event methods only store data, which `render` draws.

    If `samples_only` is set, a log contains only the last step of each round, which is the round's
    sample.
    """

    def __init__(self, screen: Screen, *, samples_only: bool = False) -> None:
        """Show the progress on `screen`."""
        super().__init__()
        self._screen = screen
        self._samples_only = samples_only
        self._block = ExitStack()
        self._began_s = time.monotonic()
        self._row: StepRow | None = None
        self._decision: Decision | None = None
        self._silence = Silence()

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        """Print the plan, and start the live block on a terminal."""
        super().begin(procedure, identity, plan, run_directory)
        for line in opening_lines(procedure, identity, plan, run_directory):
            self._screen.log(line)
        self._block.enter_context(self._screen.showing(self.render))

    def resumed(self, rows_stored: int, rows_again: int) -> None:
        """Print the number of stored steps."""
        text = f"resuming after {rows_stored} stored steps"
        self._screen.log(
            f"{text}; {rows_again} of these are repeated and compared" if rows_again else text
        )

    def phase(self, name: str, detail: str = "") -> None:
        """Print the result of a phase."""
        super().phase(name, detail)
        if detail:
            self._screen.log(f"{name}: {detail}")

    def stage_begin(self, stage: Stage) -> None:
        """Discard the steady-state result of the previous stage."""
        self._decision = None
        super().stage_begin(stage)

    def step_progress(self, progress: Progress) -> None:
        """Print, in a log, the position in the run at regular intervals."""
        super().step_progress(progress)
        if not self._screen.terminal and self._silence.too_long():
            self._screen.log(self.where)

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        """Print, in a log, a completed step."""
        super().step_end(row, history, again=again)
        self._row = row
        if not self._samples_only and not self._screen.terminal:
            self._silence.note_line()
            self._screen.log(step_line(row) + ("  (repeated, same result)" if again else ""))

    def round_end(self, round_number: int, decision: Decision | None) -> None:
        """Print a round's sample or its steady-state decision."""
        self._decision = decision
        if self._samples_only and self._row is not None and not self._screen.terminal:
            self._screen.log(step_line(self._row))
        elif decision:
            for line in steady_lines(round_number, decision):
                self._screen.log(line)

    def note(self, text: str) -> None:
        """Print a warning."""
        self._screen.log(text, warning=True)

    def end(self, status: str, reason: str) -> None:
        """Print the run's outcome and wall-clock time."""
        self._block.close()
        took = units.duration((time.monotonic() - self._began_s) * 1e9)
        self._screen.log(f"{status} after {took} of wall-clock time: {reason}")

    def render(self) -> RenderableType:
        """Return the position in the run, drive figures, steady-state result and remaining time."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        fraction = self.fraction
        head = Table.grid(padding=(0, 1))
        head.add_row(
            Text(self._phase, style="bold"),
            ProgressBar(total=1.0, completed=fraction, width=30),
            f"{100 * fraction:.0f} %",
            self.time_left,
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
