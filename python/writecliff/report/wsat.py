"""Write saturation test report with its figures, and the summary "writecliff/wsat/1"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.procedures.saturation import FOB_DRIVE_FILLS
from writecliff.report import style
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.base import TestReport
from writecliff.report.compared import Curve, Mark
from writecliff.report.csvs import lines_csv
from writecliff.report.figures import histogram_figures
from writecliff.report.header import NOT_APPLICABLE, Rows, setup
from writecliff.report.headline import (
    Headline,
    headline,
    mean_headline,
    ms,
    quantile_headline,
)
from writecliff.report.interaction import Label
from writecliff.report.latency import latency_mapping, latency_table, service_note
from writecliff.report.model import Figure, KeyFigure, Section, Verdict, section, views
from writecliff.report.plots import lines
from writecliff.report.steady import SteadyView, drifting
from writecliff.report.style import house_style
from writecliff.report.table import DataFile
from writecliff.report.wsat_data import WsatData, mean_latency_ns, mean_waf

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from writecliff._native import Histogram
    from writecliff.report.axes import Numbers


LEAVES_FOB, BECOMES_STEADY = "leaves FOB", "steady state begins"
DEFAULT_LOAD = "random 4 KiB writes"


class WsatReport(TestReport):
    """Report for a write saturation test run."""

    @classmethod
    def figure_units(cls, procedure: Any) -> Mapping[str, str]:
        """Return the units of the saturated-state and FOB figures."""
        return {"saturated_iops": "IOPS", "latency_p9999": "ms", "latency_mean": "ms", "waf": "",
                "fob_iops": "IOPS"}  # fmt: skip

    def headlines(self) -> list[Headline]:
        """Return the saturated IOPS, latency, write amplification and FOB IOPS."""
        wsat = self.wsat
        view = wsat.view
        steady: dict[str, Any] = {"steady": view.reached}
        samples = view.determination.values if view.determination is not None else ()
        saturated = mean_headline(
            "saturated_iops", self._level, samples, "IOPS", value=wsat.saturated_iops, **steady
        )
        lower: dict[str, Any] = {"higher_is_better": False, **steady}
        waf = mean_headline(
            "waf",
            "Write amplification",
            wsat.by_round(mean_waf),
            "",
            value=wsat.window_waf,
            **lower,
        )
        times = wsat.by_round(mean_latency_ns) if wsat.latency_source == "window" else ()
        slow = self.histogram if self.tails_are_real else None
        return [
            *saturated,
            *quantile_headline("latency_p9999", "p99.99", slow, 0.9999, **steady),
            *mean_headline(
                "latency_mean",
                "Average latency",
                map(ms, times),
                "ms",
                value=self._mean_ms(),
                **lower,
            ),
            *waf,
            *headline("fob_iops", "Fresh out of box", wsat.fob_iops, "IOPS"),
        ]

    lead = "saturation"

    def finding(self) -> str:
        """Return the sustained rate, its ratio to the new drive's rate, and the p99.99 latency."""
        wsat = self.wsat
        if not wsat.view.steady or wsat.fresh:
            return super().finding()
        text = f"It sustains {units.number(wsat.saturated_iops)} IOPS"
        if not wsat.unsaturated:
            text += f", {units.percent(wsat.fob_ratio, 0)} of its rate when new"
        slow = self.histogram.quantile(0.9999).value_ns if self.histogram is not None else None
        if slow is None or not self.tails_are_real:
            return f"{text}."
        return f"{text}, with a p99.99 of {units.latency(slow, digits=3)}."

    @property
    def _level(self) -> str:
        """Name for the window's IOPS, which is "Saturated" only if the drive reached saturation."""
        if not self.wsat.view.reached:
            return "At the end"
        return "Steady, not saturated" if self.wsat.unsaturated else "Saturated"

    def _mean_ms(self) -> float | None:
        return None if self.histogram is None else ms(self.histogram.mean_ns)

    def curves(self) -> list[Curve]:
        """Return IOPS over drive fills and over time, relative and absolute."""
        wsat = self.wsat
        iops = wsat.iops.tolist()
        fills = (wsat.written_bytes / self.data.capacity_bytes).tolist()
        by_fill = list(zip(fills, iops, strict=True))
        by_time = list(zip(wsat.end_ns.tolist(), iops, strict=True))
        fills_axis, time = Axis("Drive fills"), time_axis(by_time[-1][0])
        relative = "Write saturation relative to peak v drive fills"
        iops, log = Axis("IOPS"), Axis("IOPS", log=True)
        in_fills, in_time = self._marks(fills), self._marks(wsat.end_ns.tolist())
        relative_time = "Write saturation relative to peak v time"
        return [
            Curve("saturation-relative", relative, fills_axis, iops, by_fill, True, in_fills),
            Curve("saturation-relative-time", relative_time, time, iops, by_time, True, in_time),
            Curve("saturation-fills", "IOPS v drive fills", fills_axis, iops, by_fill),
            Curve("saturation-time", "IOPS (log) v time", time, log, by_time),
        ]

    def _marks(self, ends: Sequence[float]) -> list[Mark]:
        """Return the points where the drive state changes.

        `ends` holds the x values at which the steps end.
        """
        steps = (LEAVES_FOB, self.wsat.leaves_fob), (BECOMES_STEADY, self.wsat.becomes_steady)
        return [Mark(label, ends[step]) for label, step in steps if step is not None]

    @cached_property
    def wsat(self) -> WsatData:
        """Data of the run."""
        return WsatData(self.data)

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        """Rounds of the saturation stage."""
        return (self.wsat.view,)

    @property
    def set_up_rounds(self) -> str:
        """Rounds in the window."""
        return self.wsat.view.text

    def test_parameters(self) -> Rows:
        """Return the load, with steady state and times."""
        data, rth = self.data, self.wsat.latency_source == "rth"
        stimulus, toio = setup(data, "test_stimulus"), setup(data, "toio")
        rth_ns = sum(row.elapsed_ns for row in data.stage_rows("rth"))
        return (
            ("Test Stimulus 1", stimulus),
            ("TOIO - TC/QD", toio),
            ("Steady State", self.wsat.view.text),
            ("Time", units.duration(self.wsat.elapsed_ns)),
            ("Test Stimulus 2", f"{stimulus} (RTH)" if rth else "None"),
            ("TOIO - TC/QD", toio if rth else NOT_APPLICABLE),
            ("Steady State", NOT_APPLICABLE),
            ("Time", units.duration(rth_ns) if rth else NOT_APPLICABLE),
        )

    @property
    def load(self) -> str:
        """Description of the load, such as "random 4 KiB writes"."""
        return self.data.manifest.setup.get("load") or DEFAULT_LOAD

    def loaded(self) -> str:
        """Return the load with its note."""
        if self.load == DEFAULT_LOAD:
            return "written at random"
        note = self.data.manifest.setup.get("load_note")
        return f"loaded with {self.load}{f' ({note})' if note else ''}"

    def verdict(self) -> Verdict:
        """Return the verdict relative to FOB; warn if the drive is fresh or not saturated."""
        verdict, wsat = super().verdict(), self.wsat
        state = wsat.view.state
        if state not in ("steady", "fresh"):
            return verdict
        if wsat.fresh:
            first, last = wsat.view.window[0], wsat.view.window[-1]
            note = (
                f"The window starts after {units.significant(wsat.window_drive_fills)} drive "
                f"fills, but fresh-out-of-box behaviour lasts until about {FOB_DRIVE_FILLS:g}. "
                f"The average must not be quoted as sustained performance before the drive is "
                f"filled further."
            )
            if state == "fresh":
                return replace(verdict, meaning=(*verdict.meaning, note))
            headline = f"Rule met in rounds {first} to {last}, but the drive may still be fresh"
            return Verdict("warning", headline, (*verdict.meaning, note))
        share = (
            f"The average is {units.percent(wsat.fob_ratio, 0)} of the IOPS fresh out of the box."
        )
        if wsat.unsaturated:
            headline = f"{verdict.headline}; the load does not saturate the drive"
            meaning = (*verdict.meaning, share, self._why_unsaturated())
            return replace(verdict, headline=headline, meaning=meaning)
        return replace(verdict, meaning=(*verdict.meaning, share))

    def _why_unsaturated(self) -> str:
        waf, amount = self.wsat.window_waf, self.data.manifest.setup.get("ar_amount")
        start = (
            f"No data was relocated (write amplification {units.number(waf, 2)}), and the drive "
            if waf is not None
            else "The drive "
        )
        only = (
            f" The load writes only a part of the addresses (AR & Amount: {amount}); the rest is "
            "spare flash."
            if amount
            else ""
        )
        return f"{start}kept the IOPS that it had fresh out of the box.{only}"

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the FOB IOPS, the window's IOPS, their ratio and the write amplification."""
        wsat = self.wsat
        view, samples = wsat.view, len(wsat.view.rounds)
        source = f"average of {min(samples, 5)} samples" if samples > 1 else "last step"
        if view.steady and view.determination and (drift := drifting(view.determination)):
            source += f", still {drift}"
        fob_s = wsat.fob_ns / 1e9
        fob_time = "minute" if round(fob_s) == 60 else f"{fob_s:.3g} s"
        label = "Steady-state IOPS" if view.steady else "IOPS, not steady"
        if view.steady and wsat.unsaturated:
            source += ", not saturated"
        share = units.percent(wsat.fob_ratio).removesuffix(" %")
        waf = wsat.window_waf
        note = "in the window" if waf is not None else "not reported by the drive"
        fob_note = f"fresh out of box: first {fob_time}"
        yield KeyFigure("FOB IOPS", units.number(wsat.fob_iops), "", fob_note)
        yield KeyFigure(label, units.number(wsat.saturated_iops), "", source)
        yield KeyFigure("Share of FOB", share, "%", f"of the IOPS of the first {fob_time}")
        yield KeyFigure("Write amplification", units.number(waf, 2), "", note)

    @cached_property
    def histogram(self) -> Histogram | None:
        """Response times in the window or in the histogram phase."""
        return self.wsat.latency

    @property
    def latency_note(self) -> str:
        """Steps covered by `histogram`."""
        view = self.wsat.view
        if self.wsat.latency_source == "rth":
            source = "the response-time histogram phase after the rounds"
        elif view.rounds:
            of_window = " of the window" if view.judged else ""
            source = f"all steps from the first to the last sample{of_window}"
        else:
            source = "the last step"
        otherwise = "No latencies were measured."
        return service_note(self.histogram, f": {source}", otherwise=otherwise)

    def sections(self) -> Iterable[Section]:
        """Return the sections on saturation, steady state, latency and response times."""
        wsat, view, steps = self.wsat, self.wsat.view, self.data.steps_file
        seconds = wsat.rows[0].elapsed_ns / 1e9
        shaded = (
            "Shaded: from the first to the last sample of the measurement window. The drive leaves "
            "its fresh state (FOB) with the first of two steps in a row below 90 % of it."
        )
        sample = self.data.manifest.setup.get("round", "last step of a round")
        histogram = self.histogram
        return (
            section(
                "Saturation",
                f"One point per step of {seconds:.3g} s." + (f" {shaded}" if view.judged else ""),
                *views(
                    "saturation",
                    {
                        "time": iops_over_time(wsat, steps, log=False),
                        "time, log": iops_over_time(wsat, steps, log=True),
                        "volume": iops_over_volume(wsat, steps, log=False),
                        "volume, log": iops_over_volume(wsat, steps, log=True),
                    },
                ),
            ),
            section(
                "Steady state",
                f"Tracking variable: IOPS of {self.load} in the sample step of each round "
                f"({sample}).",
                *views(
                    "steady-state",
                    {
                        "window": next(iter(view.window_figures(data="samples.csv")), None),
                        "all rounds": view.convergence(data="samples.csv"),
                    },
                ),
                *view.tables(),
            ),
            section(
                "Write amplification and latency over the run",
                "",
                write_amplification(wsat, steps),
                *views(
                    "latency",
                    {
                        "time": latency_over_time(wsat, steps),
                        "drive fills": latency_over_fills(wsat),
                    },
                ),
            ),
            section(
                "Response times",
                f"{self.latency_note} Percentiles are of the merged histograms, as upper bounds "
                "that never exceed the maximum.",
                *histogram_figures(histogram),
                latency_table(histogram) if histogram is not None else None,
            ),
        )

    def notes(self) -> tuple[str, ...]:
        """Return the reason why write amplification is unknown."""
        if self.wsat.window_waf is not None:
            return ()
        if what := self.data.manifest.device.without_flash:
            return (f"The drive is {what}, so it has no write amplification.",)
        return ("The drive does not report NAND writes, so write amplification is unknown.",)

    def results(self) -> dict[str, Any]:
        """Return the steady state, figures and latency."""
        wsat = self.wsat
        view, judged = wsat.view, bool(wsat.view.judged)
        return {
            "steady_state": {
                **view.mapping(),
                "window_drive_fills": wsat.window_drive_fills if judged else None,
                "maybe_fresh": wsat.fresh if judged else None,
            },
            "figures": {
                "fob_iops": wsat.fob_iops,
                "steady_state_iops": wsat.saturated_iops if view.steady else None,
                "last_window_iops": wsat.saturated_iops,
                "window_to_fob_ratio": wsat.fob_ratio,
                "waf": wsat.window_waf,
                "host_write_bytes": round(wsat.written_bytes[-1]),
                "drive_fills": wsat.drive_fills,
                "device_time_ns": round(wsat.elapsed_ns),
                "steps": len(wsat.rows),
            },
            "latency": self._latency(),
        }

    def _latency(self) -> dict[str, Any] | None:
        if self.histogram is None:
            return None
        source, rows = self.wsat.latency_source, self.wsat.window_rows
        steps = [self.data.seq(rows[0]), self.data.seq(rows[-1])]
        return {
            "kind": "service",
            "source": source,
            "steps": steps if source == "window" else None,
            **latency_mapping(self.histogram),
        }


# -- figures -----------------------------------------------------------------------------------


@house_style()
def iops_over_time(wsat: WsatData, data: DataFile, *, log: bool) -> Figure:
    """Draw each step's IOPS over the range of its one-second intervals."""
    unit = units.time_unit(wsat.elapsed_ns)
    x = (wsat.start_ns + wsat.end_ns) / 2 / unit.size
    figure, axes = style.new_axes(Label("Time since the purge", unit.name), "IOPS")
    _shade(axes, wsat, wsat.start_ns / unit.size, wsat.end_ns / unit.size)
    _iops(figure, axes, wsat, x, log=log)
    style.from_zero_to(axes, "x", wsat.elapsed_ns / unit.size)
    return _finished(figure, "time", "time", data, log=log)


@house_style()
def iops_over_volume(wsat: WsatData, data: DataFile, *, log: bool) -> Figure:
    """Draw the IOPS over the written volume, with drive fills on a second axis."""
    unit = units.common_unit([wsat.written_bytes[-1]], units.BYTE_UNITS)
    before, after = wsat.before_bytes / unit.size, wsat.written_bytes / unit.size
    figure, axes = style.new_axes(
        Label("Written since the purge", unit.name), "IOPS", top_axis=True
    )
    _shade(axes, wsat, before, after)
    _iops(figure, axes, wsat, (before + after) / 2, log=log)
    style.from_zero_to(axes, "x", after[-1])
    per_fill = wsat.data.capacity_bytes / unit.size
    fills = axes.secondary_xaxis(
        "top",
        functions=(lambda v: np.asarray(v) / per_fill, lambda v: np.asarray(v) * per_fill),
    )
    fills.set_xlabel("Drive fills", labelpad=3)
    fills.spines["top"].set_visible(True)
    return _finished(figure, "volume", "volume written", data, log=log)


def _finished(drawing: Drawing, name: str, over: str, data: DataFile, *, log: bool) -> Figure:
    kind, axis = ("log", "logarithmic") if log else ("linear", "linear")
    name, title = f"iops-{name}-{kind}", f"WSAT IOPS ({kind}) v {over}"
    return style.finished(
        drawing, name, title, data, f"IOPS of every step over {over}, {axis} axis"
    )


def _iops(figure: Drawing, axes: Axes, wsat: WsatData, x: Numbers, *, log: bool) -> None:
    low, high = wsat.spread
    spread = np.isfinite(low)
    if spread.any():
        axes.fill_between(
            x,
            np.where(spread, low, wsat.iops),
            np.where(spread, high, wsat.iops),
            color=style.BAND,
            label="range of the intervals",
        )
    axes.plot(x, wsat.iops, *_marker(wsat), color=style.BLUE, label="IOPS of a step")
    drawn = np.concatenate([wsat.iops, low[spread], high[spread]])
    top = max(float(drawn.max()), 1.0)
    if log:
        positive = drawn[drawn > 0]
        first = np.floor(np.log10(float(positive.min()) if len(positive) else 1.0))
        last = max(np.ceil(np.log10(top)), first + 1)
        style.log_axis(axes, "y", float(10**first), float(10**last))
    else:
        style.linear_axis(axes, "y")
        style.from_zero_to(axes, "y", top * 1.06)
    style.legend(figure, axes)


def _marker(wsat: WsatData) -> tuple[str, ...]:
    """Return a marker if the line has only one or two points and would be invisible."""
    return ("o-",) if len(wsat.rows) < 3 else ()


def _shade(axes: Axes, wsat: WsatData, begin: Numbers, end: Numbers) -> None:
    """Shade the window's steps, and mark where the drive leaves its fresh state.

    Latency and write amplification are taken from the window. The transition lies between the mark
    and the window.
    """
    if wsat.view.judged:
        window = wsat.window
        axes.axvspan(begin[window][0], end[window][-1], color=style.WINDOW, label="window")
    if wsat.leaves_fob is not None:
        at = begin[wsat.leaves_fob]
        axes.axvline(at, color=style.MUTED, lw=0.9, ls=(0, (2, 2)), label="leaves FOB")


@house_style()
def write_amplification(wsat: WsatData, data: DataFile) -> Figure | None:
    """Draw write amplification over drive fills, or return None if the drive does not report it."""
    if not np.isfinite(wsat.waf).any():
        return None
    figure, axes = style.new_axes(
        "Drive fills since the purge", Label("WAF", note="NAND/host bytes")
    )
    before, fills = (v / wsat.data.capacity_bytes for v in (wsat.before_bytes, wsat.written_bytes))
    _shade(axes, wsat, before, fills)
    x = (before + fills) / 2
    axes.plot(x, wsat.waf, *_marker(wsat), color=style.ORANGE, label="WAF of a step")
    axes.axhline(1.0, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    style.from_zero_to(axes, "x", wsat.drive_fills)
    style.linear_axis(axes, "y")
    style.from_zero_to(axes, "y", float(np.nanmax(wsat.waf)) * 1.12)
    style.legend(figure, axes)
    title = "Write amplification v drive fills"
    alt = "Write amplification of every step over drive fills"
    return style.finished(figure, "waf", title, data, alt)


@house_style()
def latency_over_time(wsat: WsatData, data: DataFile) -> Figure | None:
    """Draw each step's average, nines and maximum on a log axis, or return None."""
    lines = [
        ("average", wsat.column(lambda row: row.latency_mean_ns), style.BLUE),
        ("99.9 %", wsat.column(lambda row: row.latency_p999_ns), style.GREEN),
        ("99.99 %", wsat.column(lambda row: row.latency_p9999_ns), style.PURPLE),
        ("maximum", wsat.column(lambda row: row.latency_max_ns), style.ORANGE),
    ]
    lines = [line for line in lines if np.isfinite(line[1]).any()]
    if not lines:
        return None
    positive = np.concatenate([values for _, values, _ in lines])
    positive = positive[np.isfinite(positive) & (positive > 0)]
    unit = units.common_unit(positive.tolist(), units.LATENCY_UNITS)
    clock = units.time_unit(wsat.elapsed_ns)
    x = (wsat.start_ns + wsat.end_ns) / 2 / clock.size
    figure, axes = style.new_axes(
        Label("Time since the purge", clock.name), Label("Latency", unit.name)
    )
    for label, values, colour in lines:
        axes.plot(x, values / unit.size, *_marker(wsat), color=colour, linewidth=1.1, label=label)
    low, high = positive.min() / unit.size, positive.max() / unit.size
    style.log_axis(axes, "y", low / 1.5, high * 1.5)
    style.from_zero_to(axes, "x", wsat.elapsed_ns / clock.size)
    style.legend(figure, axes)
    alt = "Average, 99.9 %, 99.99 % and maximum latency of every step over time, logarithmic axis"
    return style.finished(figure, "latency-time", "Latency v time (log)", data, alt)


def latency_over_fills(wsat: WsatData) -> Figure | None:
    """Return the average, 99.999 % and maximum over drive fills on a log axis (PTS 2.0, WSAT).

    The result is `None` if no latencies are known.
    """
    fills = (wsat.before_bytes + wsat.written_bytes) / 2 / wsat.data.capacity_bytes
    by_round, nines = wsat.five_nines
    middles = [float(fills[part].mean()) for part, _ in nines]
    mean, longest = (
        wsat.column(value)
        for value in (attrgetter("latency_mean_ns"), attrgetter("latency_max_ns"))
    )
    series = [
        Line("ART", fills.tolist(), mean.tolist()),
        Line(
            f"99.999 %{' of a round' if by_round else ''}", middles, [value for _, value in nines]
        ),
        Line("MRT", fills.tolist(), longest.tolist()),
    ]
    data = DataFile(
        "latency-fills.csv", lines_csv(series, "statistic", "drive_fills", "latency_ns")
    )
    alt = "Average, 99.999 % and maximum response time over drive fills, logarithmic axis"
    return lines(
        "latency-fills",
        "ART, 99.999 % and MRT v drive fills (log)",
        data,
        series,
        Axis("Drive fills since the purge"),
        Axis("Response time", units=units.LATENCY_UNITS, log=True),
        alt=alt,
    )
