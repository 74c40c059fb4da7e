"""HIR report on preconditioning, burst IOPS by wait state, and the return to the baseline.

The summary schema is "writecliff/hir/1".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.procedures.hir import PRECONDITION, Hir, baseline_phase, wait_phase
from writecliff.report import kinds
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.base import TestReport
from writecliff.report.compared import Curve
from writecliff.report.csvs import data_file
from writecliff.report.header import Rows, setup
from writecliff.report.headline import Headline, mean_headline
from writecliff.report.interaction import Label
from writecliff.report.latency import service_note
from writecliff.report.model import KeyFigure, Section, section
from writecliff.report.plots import Reference, lines
from writecliff.report.series import series
from writecliff.report.steady import SteadyView
from writecliff.report.table import Column, DataFile, Table, table

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.procedures.model import StepRow
    from writecliff.report.axes import Numbers

# Fraction of a burst's best interval. A slower interval contains only the burst's last I/Os.
_ACTIVE = 0.02


@dataclass(frozen=True)
class Points:
    """IOPS of bursts or steps over time.

    Times are relative to the run's first burst, and write times are relative to the wait state's
    first burst.
    """

    time_ns: Numbers
    writing_ns: Numbers
    iops: Numbers


@dataclass(frozen=True)
class WaitState:
    """Measured part of a wait state."""

    wait_s: float
    number: float  # Wait as a multiple of a burst, as in the standard.
    bursts: Points
    baseline: Points

    @property
    def label(self) -> str:
        """Name of the wait state used in plots."""
        return f"{self.number:g}: {self.wait_s:g} s"

    @property
    def burst_iops(self) -> float | None:
        """Mean IOPS over the bursts (access A)."""
        return float(self.bursts.iops.mean()) if self.bursts.iops.size else None

    @property
    def best_iops(self) -> float | None:
        """Highest IOPS of any burst, or None without bursts."""
        return float(self.bursts.iops.max()) if self.bursts.iops.size else None

    @property
    def baseline_iops(self) -> float | None:
        """Mean IOPS over the last five steps without pauses."""
        return float(self.baseline.iops[-5:].mean()) if self.baseline.iops.size else None


class HirReport(TestReport):
    """Report for an HIR run."""

    lead = "iops-time"

    procedure: Hir

    @cached_property
    def precondition(self) -> SteadyView:
        """Rounds that bring the drive to steady state."""
        return self.data.view(PRECONDITION, "Preconditioning", "-precondition")

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        """The preconditioning."""
        return (self.precondition,) if self.procedure.options.reading == "steady" else ()

    @cached_property
    def reference_iops(self) -> float | None:
        """IOPS of the preconditioned drive, used as the reference for wait states.

        The value is the window mean or, without a window, the last step's IOPS.
        """
        if self.precondition.determination is not None:
            return self.precondition.determination.average
        rows = self.data.stage_rows(PRECONDITION)
        return rows[-1].iops if rows else None

    def ratio(self, iops: float | None) -> float | None:
        """Return `iops` relative to `reference_iops`."""
        return None if iops is None or not self.reference_iops else iops / self.reference_iops

    @cached_property
    def waits(self) -> tuple[WaitState, ...]:
        """Wait states that were started, in the order of the run."""
        states: list[WaitState] = []
        zero_ns = None
        for wait_s in self.procedure.options.waits_seconds:
            rows = self.data.stage_rows(wait_phase(wait_s))
            if not rows:
                break
            zero_ns = rows[0].started_ns if zero_ns is None else zero_ns
            bursts = self._bursts(wait_s, rows, zero_ns)
            written_ns = len(bursts.iops) * self.procedure.options.burst_seconds * 1e9
            after = self.data.stage_rows(baseline_phase(wait_s))
            baseline = _steps(after, zero_ns, written_ns)
            states.append(WaitState(wait_s, self.procedure.wait_state(wait_s), bursts, baseline))
        return tuple(states)

    def _bursts(self, wait_s: float, rows: Sequence[StepRow], zero_ns: int) -> Points:
        """Return the bursts, each with the I/Os that completed before the next burst."""
        burst_ns = self.procedure.options.burst_seconds * 1e9
        period_ns = burst_ns + wait_s * 1e9
        time, iops = [], []
        intervals = series(self.data, rows)
        first_ns = rows[0].started_ns
        for row, part in zip(rows, self.procedure.burst_steps, strict=False):
            mine = intervals.seq == self.data.seq(row)
            begin = intervals.begin_ns[mine] - (row.started_ns - first_ns)
            ios, width = intervals.ios[mine], intervals.width_ns[mine]
            cycles = np.minimum(((begin + width / 2) // period_ns).astype(int), part.count - 1)
            for cycle in range(part.count):
                here = cycles == cycle
                time.append(row.started_ns - zero_ns + cycle * period_ns + burst_ns / 2)
                iops.append(_burst_iops(ios[here], width[here], burst_ns))
        writing = (np.arange(len(iops), dtype=np.float64) + 0.5) * burst_ns
        return Points(np.array(time, dtype=np.float64), writing, np.array(iops, dtype=np.float64))

    def finding(self) -> str:
        """Return the speed-up of the bursts after the longest pauses."""
        last = self.waits[-1] if self.waits else None
        ratio = None if last is None else self.ratio(last.burst_iops)
        if last is None or ratio is None or not self.precondition.reached:
            return super().finding()
        return (
            f"After pauses of {last.wait_s:g} s, bursts reach {units.number(last.burst_iops)} "
            f"IOPS, {ratio:.2f} times the rate without pauses."
        )

    def test_parameters(self) -> Rows:
        """Return the load, the wait states and the baseline recovery."""
        data = self.data
        return (
            ("Write Stimulus", setup(data, "test_stimulus")),
            ("TOIO - TC/QD", setup(data, "toio")),
            ("Durations", setup(data, "write_duration")),
            ("Idle State", setup(data, "idle_state")),
            ("Durations", setup(data, "idle_durations")),
            ("Wait States", setup(data, "wait_states")),
            ("Return to Baseline", units.minutes(self.procedure.options.write_minutes)),
        )

    def opening(self) -> list[str]:
        """Return the initial state, and the wait state with the fastest bursts."""
        best = max(self.waits, key=lambda state: state.burst_iops or 0, default=None)
        reference = self.reference_iops
        if best is None or best.burst_iops is None or not reference:
            return [self.began(), "The run did not reach the bursts."]
        return [
            self.began(),
            f"With pauses of {best.wait_s:g} s the bursts ran at {units.number(best.burst_iops)} "
            f"IOPS on average, {best.burst_iops / reference:.2f} times the "
            f"{units.number(reference)} IOPS of the preconditioned drive without pauses.",
        ]

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the IOPS without pauses and each wait state's burst IOPS."""
        view = self.precondition
        label = "Steady-state IOPS" if view.reached else "IOPS, not steady"
        of = "average of the window" if view.judged else "last step of the preconditioning"
        yield KeyFigure(label, units.number(self.reference_iops), "", of)
        for wait in self.waits:
            ratio = self.ratio(wait.burst_iops)
            note = "of bursts" if ratio is None else f"{ratio:.2f} x without pauses"
            value = units.number(wait.burst_iops)
            yield KeyFigure(f"Pauses of {wait.wait_s:g} s", value, "IOPS", note)

    @classmethod
    def figure_units(cls, procedure: Hir) -> Mapping[str, str]:
        """Return the units of the reference and of each wait state's bursts."""
        bursts = (f"burst_iops_{wait_s:g}s" for wait_s in procedure.options.waits_seconds)
        return dict.fromkeys(("reference_iops", *bursts), "IOPS")

    def headlines(self) -> list[Headline]:
        """Return the IOPS without pauses and each wait state's burst IOPS."""
        view = self.precondition
        samples = view.determination.values if view.determination is not None else ()
        headlines = mean_headline(
            "reference_iops", "Without pauses", samples, "IOPS", value=self.reference_iops,
            steady=view.reached or not self.views,
        )  # fmt: skip
        for wait in self.waits:
            headlines += mean_headline(
                f"burst_iops_{wait.wait_s:g}s", f"Bursts, pauses of {wait.wait_s:g} s",
                wait.bursts.iops.tolist(), "IOPS", of="mean over the bursts",
            )  # fmt: skip
        return headlines

    def curves(self) -> list[Curve]:
        """Return the burst IOPS over the pause between bursts."""
        points = [(w.wait_s, w.burst_iops) for w in self.waits if w.burst_iops is not None]
        title = "Host idle recovery: IOPS of bursts v pause between them"
        return [Curve("recovery", title, Axis(Label("Pause", "s")), Axis("IOPS"), points)]

    @cached_property
    def histogram(self) -> Histogram | None:
        """Response times of all bursts, or None without bursts."""
        rows = [row for w in self.waits for row in self.data.stage_rows(wait_phase(w.wait_s))]
        return self.data.histogram(rows) if rows else None

    @property
    def latency_note(self) -> str:
        """Steps covered by `histogram`."""
        return service_note(self.histogram, ": all bursts", otherwise="No bursts were measured.")

    def sections(self) -> Iterator[Section]:
        """Yield the sections about preconditioning and recovery."""
        for view in self.views:
            yield section(
                "Preconditioning",
                f"Random 4 KiB writes; the {self.procedure.options.sample} step of each round is "
                "its sample.",
                view.convergence("Pre Condition IOPS v round", data="precondition.csv"),
                *view.window_figures("Pre Condition steady-state window", "precondition.csv"),
                *view.tables(),
            )
        if self.waits:
            yield self._recovery()

    def _recovery(self) -> Section:
        text = "IOPS of every burst, and of every step of the return to the baseline, over time"
        data, y = self._points_file(), Axis("IOPS")
        level = self.reference_iops
        references = [Reference("steady state", level)] if level else []

        def drawn(name: str, title: str, which: str, axis: str, *, joined: bool) -> Any:
            series = [Line(wait.label, *_joined(wait, which)) for wait in self.waits]
            longest = max((line.x[-1] for line in series if line.x), default=0.0)
            x = time_axis(longest, axis)
            return lines(
                name, title, data, series, x, y, alt=text, references=references, joined=joined
            )

        return section(
            "Host idle recovery",
            "One point per burst (access A), and one per step of the writes without pauses that "
            "follow (return to baseline). Only the time of the bursts counts. Series are wait "
            "states with their pauses.",
            drawn(
                "iops-time", "IOPS v time, all wait states", "time_ns",
                "Time since the first burst", joined=False,
            ),
            drawn(
                "iops-writing", "IOPS v time spent writing, by wait state", "writing_ns",
                "Time spent writing in the wait state", joined=True,
            ),
            self._table(),
        )  # fmt: skip

    def _table(self) -> Table:
        rows = [
            (
                wait.number,
                wait.wait_s,
                wait.burst_iops,
                wait.best_iops,
                self.ratio(wait.burst_iops),
                wait.baseline_iops,
                self.ratio(wait.baseline_iops),
            )
            for wait in self.waits
        ]
        iops, share = kinds.decimals(1), Column("of steady state", kinds.decimals(3))
        head = (Column("Wait state", kinds.plain()), Column("Wait", kinds.plain("s")),
                Column("IOPS of bursts", iops), Column("Best burst", iops), share,
                Column("IOPS after return", iops), share)  # fmt: skip
        note = "IOPS after return: mean of the last five steps of the return to the baseline."
        return table("Recovery by wait state", head, rows, note=note)

    def _points_file(self) -> DataFile:
        rows = [
            (wait.wait_s, kind, round(t), round(w), y)
            for wait in self.waits
            for kind, points in (("burst", wait.bursts), ("baseline", wait.baseline))
            for t, w, y in zip(points.time_ns.tolist(), points.writing_ns.tolist(),
                               points.iops.tolist(), strict=True)
        ]  # fmt: skip
        return data_file("bursts.csv", ("wait_s", "kind", "time_ns", "writing_ns", "iops"), rows)

    def results(self) -> dict[str, Any]:
        """Return the reference and the wait states."""
        return {
            "preconditioning": self.precondition.mapping() if self.views else None,
            "reference_iops": self.reference_iops,
            "reference": "window" if self.precondition.judged else "last step",
            "wait_states": [
                {
                    "number": wait.number,
                    "wait_s": wait.wait_s,
                    "bursts": int(wait.bursts.iops.size),
                    "burst_iops": wait.burst_iops,
                    "best_burst_iops": wait.best_iops,
                    "burst_ratio": self.ratio(wait.burst_iops),
                    "baseline_steps": int(wait.baseline.iops.size),
                    "baseline_iops": wait.baseline_iops,
                    "baseline_ratio": self.ratio(wait.baseline_iops),
                }
                for wait in self.waits
            ],
        }


def _burst_iops(ios: Numbers, width_ns: Numbers, burst_ns: float) -> float:
    """Return I/Os over the burst time, or over the time until the generator stopped."""
    rate = np.divide(ios, width_ns, out=np.zeros_like(ios), where=width_ns > 0)
    if not rate.size or not rate.max():
        return 0.0
    # One-second intervals do not show when a burst ended, so only the time after the interval is
    # counted.
    active_ns = float(width_ns[rate >= _ACTIVE * rate.max()].sum())
    longest = float(width_ns.max())
    over_ns = active_ns if active_ns > burst_ns + 2 * longest else burst_ns
    return float(ios.sum()) / over_ns * 1e9


def _steps(rows: Sequence[StepRow], zero_ns: int, written_ns: float) -> Points:
    middle = np.array([row.started_ns - zero_ns + row.elapsed_ns / 2 for row in rows], dtype=float)
    taken = np.cumsum([row.elapsed_ns for row in rows]) if rows else np.array([])
    writing = np.array([written_ns + end - row.elapsed_ns / 2
                        for end, row in zip(taken, rows, strict=True)], dtype=float)  # fmt: skip
    return Points(middle, writing, np.array([row.iops for row in rows], dtype=float))


def _joined(wait: WaitState, which: str) -> tuple[list[float], list[float]]:
    """Return the data of the bursts, followed by the data of the baseline."""
    x = np.concatenate([getattr(wait.bursts, which), getattr(wait.baseline, which)])
    y = np.concatenate([wait.bursts.iops, wait.baseline.iops])
    return x.tolist(), y.tolist()
