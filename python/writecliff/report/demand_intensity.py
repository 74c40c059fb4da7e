"""ECW/CBW and DIRTH reports on preconditioning, demand variation and operating points.

The report shows the standard's fourteen plots in order, with a confidence plot for each histogram.
The procedure (`procedures.demand_intensity`) defines the cells and operating points. The summary
schemas are "writecliff/ecw/1" and "writecliff/dirth/1".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.demand_intensity import (
    PRECONDITION,
    PREWRITE,
    ROUNDS_PHASE,
    DemandProcedure,
    is_cell,
)
from writecliff.procedures.operating_points import KNEE_SHARE, NAMES, Cell, Name, knee
from writecliff.report import demand_intensity_figures as drawings
from writecliff.report import kinds
from writecliff.report.axes import Axis
from writecliff.report.base import TestReport
from writecliff.report.compared import Curve
from writecliff.report.csvs import data_file
from writecliff.report.figures import histogram_figures, percentile_figure
from writecliff.report.header import NOT_APPLICABLE, Rows, setup
from writecliff.report.headline import Headline, mean_headline, ms, quantile_headline
from writecliff.report.kinds import Kind
from writecliff.report.latency import NINES, latency_mapping, latency_table, service_note
from writecliff.report.model import KeyFigure, Section, section
from writecliff.report.steady import SteadyView
from writecliff.report.table import Column, Head, Table, Value, table

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.procedures.model import StepRow


class DemandIntensityReport(TestReport):
    """Report for an ECW/CBW or DIRTH run."""

    lead = "demand-intensity"
    sentence = "It serves up to {1} IOPS within the limit on the average response time."

    procedure: DemandProcedure[Any]

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        """Preconditioning and demand variation stages."""
        return (
            self.data.view(PRECONDITION, "Preconditioning", "-precondition"),
            self.data.view(ROUNDS_PHASE, "Demand variation", "-dv"),
        )

    @property
    def set_up_rounds(self) -> str:
        """Preconditioning rounds."""
        return self.views[0].text

    @cached_property
    def cells(self) -> Sequence[Cell]:
        """Demand variation loads, or an empty list before the first complete round."""
        return self.procedure.cells(self.data.history) if self.views[1].rounds else ()

    @cached_property
    def points(self) -> Mapping[Name, Cell]:
        """Operating points of the run."""
        operating_points = self.procedure.operating_points
        return operating_points(self.data.history) if self.views[1].rounds else {}

    def point_rows(self, name: Name) -> tuple[Sequence[StepRow], Sequence[StepRow]]:
        """Return an operating point's measured pre-writes and histogram step."""
        rows = self.data.stage_rows(f"rth-{name}")
        done = [row for row in rows if row.role != PREWRITE]
        return [row for row in rows if row.role == PREWRITE], done[:1]

    @cached_property
    def histograms(self) -> Mapping[Name, Histogram]:
        """Response times at the measured operating points."""
        histograms = {name: self.data.histogram(self.point_rows(name)[1]) for name in NAMES}
        return {name: h for name, h in histograms.items() if h is not None and h.count}

    @cached_property
    def histogram(self) -> Histogram | None:
        """Response times at the MaxIOPS point, or None if the point was not measured."""
        return self.histograms.get("max")

    @cached_property
    def by_operation(self) -> Mapping[Name, Mapping[str, Histogram]]:
        """Response times at the operating points by operation, or empty for a single operation."""
        by_point: dict[Name, Mapping[str, Histogram]] = {}
        for name in NAMES:
            rows = self.point_rows(name)[1]
            each = {op: self.data.histogram(rows, operation=op) for op in ("read", "write")}
            measured = {op: h for op, h in each.items() if h is not None and h.count}
            by_point[name] = measured if len(measured) > 1 else {}
        return by_point

    @cached_property
    def histograms_by_operation(self) -> Mapping[str, Histogram]:
        """Response times of reads and writes at the MaxIOPS point."""
        return self.by_operation["max"]

    @property
    def latency_note(self) -> str:
        """Operating point covered by `histogram`."""
        none = "No response times were measured at an operating point."
        return service_note(self.histogram, " at the MaxIOPS operating point", otherwise=none)

    def test_parameters(self) -> Rows:
        """Return the loads, the steady-state rounds and the histogram phase."""
        data, o = self.data, self.procedure.options
        prewrite, histogram = o.histogram_prewrite_minutes, o.histogram_minutes
        return (
            ("Test Stimulus 1", setup(data, "test_stimulus")),
            ("R/W %", setup(data, "rw_mix")),
            ("TOIO - TC/QD", setup(data, "toio")),
            ("TOIO Order", setup(data, "order")),
            ("Steady State", self.views[1].text),
            ("Test Stimulus 2", setup(data, "test_stimulus_2")),
            ("Pre Write / RTH", f"{units.minutes(prewrite)} / {units.minutes(histogram)}"),
            ("ART Limit", setup(data, "toio_2", NOT_APPLICABLE)),
        )

    def opening(self) -> list[str]:
        """Return the initial state, the loads, and a warning if no operating point exists."""
        threads, depth = self.procedure.tracked
        sentences = [
            self.began(),
            f"{self.procedure.mix} was run at {len(self.cells)} loads from "
            f"TC {threads}/QD {depth} down.",
        ]
        if self.cells and not self.points:
            sentences.append(
                "NO OPERATING POINT: no load has an average response time below "
                f"{self.procedure.options.art_limit_ms:g} ms, so no histograms were taken."
            )
        return sentences

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the IOPS under the tracked load and at each operating point."""
        view, (threads, depth) = self.views[1], self.procedure.tracked
        label = f"{'Steady-state' if view.reached else 'NOT STEADY'} IOPS at TC{threads}/QD{depth}"
        average = view.determination.average if view.determination is not None else None
        yield KeyFigure(label, units.number(average), "", "average of the window")
        for name in NAMES:
            cell = self.points.get(name)
            value, note = units.UNKNOWN, "no operating point"
            if cell is not None:
                value = units.number(cell.iops)
                note = f"TC{cell.threads}/QD{cell.queue_depth}, ART {units.latency(cell.art_ns)}"
            yield KeyFigure(f"{name.capitalize()} IOPS", value, "", note)

    @cached_property
    def knee(self) -> Cell | None:
        """Knee of the demand variation."""
        return knee(self.cells)

    @classmethod
    def figure_units(cls, procedure: Any) -> Mapping[str, str]:
        """Return the units of the operating points, the knee and the tracked load."""
        names = ("iops", "art", "p9999", "read_p9999", "write_p9999")
        points = {
            f"{point}_{name}": "IOPS" if name == "iops" else "ms"
            for point in ("max", "mid", "min")
            for name in names
        }
        return {**points, "knee_iops": "IOPS", "knee_art": "ms", "full_iops": "IOPS"}

    def headlines(self) -> list[Headline]:
        """Return the MaxIOPS point, the knee, the other points and the tracked load."""
        view, (threads, depth) = self.views[1], self.procedure.tracked
        figures = self._point_headlines("max")
        if self.knee is not None:
            figures += self._load_headlines("knee", "Knee", self.knee)
        figures += [*self._point_headlines("mid"), *self._point_headlines("min")]
        samples = view.determination.values if view.determination is not None else ()
        label = f"IOPS at TC{threads}/QD{depth}"
        return [*figures, *mean_headline("full_iops", label, samples, "IOPS", steady=view.reached)]

    def _point_headlines(self, name: Name) -> list[Headline]:
        cell, label = self.points.get(name), f"{name.capitalize()} IOPS"
        if cell is None:
            return []
        figures = self._load_headlines(name, label, cell)
        slow = self._tail(name)
        state = {"at": _load(cell), "steady": self.views[1].reached}
        figures += quantile_headline(f"{name}_p9999", f"p99.99 at {label}", slow, 0.9999, **state)
        for operation, histogram in self.by_operation[name].items() if self.tails_are_real else ():
            key, text = f"{name}_{operation}_p9999", f"p99.99 of {operation}s at {label}"
            figures += quantile_headline(key, text, histogram, 0.9999, **state)
        return figures

    def _tail(self, name: Name) -> Histogram | None:
        """Return the response times at an operating point, or None if tails are not real."""
        return self.histograms.get(name) if self.tails_are_real else None

    def _load_headlines(self, name: str, label: str, cell: Cell) -> list[Headline]:
        """Return a load's IOPS and its average response time."""
        rows = [
            row
            for row in self.procedure.cell_rows(self.data.history)
            if (row.threads, row.queue_depth) == (cell.threads, cell.queue_depth)
        ]
        state: dict[str, Any] = {"at": _load(cell), "steady": self.views[1].reached}
        times = [ms(row.latency_mean_ns) for row in rows]
        iops = label if label.endswith("IOPS") else f"{label}, IOPS"
        slow = {"higher_is_better": False, **state}
        # The maximum covers all loads.
        most = {**state, "at": ""} if name == "max" else state
        return [
            *mean_headline(f"{name}_iops", iops, [row.iops for row in rows], "IOPS", **most),
            *mean_headline(f"{name}_art", f"Average at {label}", times, "ms", **slow),
        ]

    def curves(self) -> list[Curve]:
        """Return response time over IOPS, in order of increasing load.

        Each number of outstanding I/Os is represented by the load with the highest IOPS.
        """
        best: dict[int, Cell] = {}
        for cell in sorted(self.cells, key=lambda cell: cell.iops):
            best[cell.outstanding] = cell
        points = [(best[load].iops, best[load].art_ns) for load in sorted(best)]
        times = Axis("Average response time", units=(units.LATENCY_UNITS[2],), log=True)
        title = f"{self.procedure.mix}: response time v IOPS by rising number of outstanding I/Os"
        name = f"demand-{self.data.manifest.procedure}"
        return [Curve(name, title, Axis("IOPS"), times, points)]

    def answer(self) -> str:
        """Return the knee, and the maximum IOPS within the response time limit."""
        if self.knee is None:
            return self.verdict().headline
        at = f"{self.knee.iops:,.0f} IOPS with {units.latency(self.knee.art_ns, digits=3)} average"
        parts = [f"{self.verdict().headline}. Knee at {_load(self.knee)}: {at}"]
        limit = f"{self.procedure.options.art_limit_ms:g} ms"
        top, slow = self.points.get("max"), self._tail("max")
        if top is None:
            return "; ".join([*parts, f"no load averages below {limit}"])
        by_operation = {f"{op}s ": h for op, h in self.by_operation["max"].items()}
        slowest = ", ".join(
            f"{prefix}p99.99 {units.latency(h.quantile(0.9999).value_ns, digits=3)}"
            for prefix, h in (by_operation or ({} if slow is None else {"": slow})).items()
        )
        at = ", ".join(filter(None, (_load(top), slowest)))
        most = f"at most {top.iops:,.0f} IOPS below {limit} average ({at})"
        return "; ".join([*parts, most])

    def sections(self) -> Iterator[Section]:
        """Yield the standard's plots, then the read/write and outstanding I/O plots."""
        (precondition, rounds), steps = self.views, self.data.steps_file
        options, load = self.procedure.options, self.procedure.load
        threads, depth = self.procedure.tracked
        yield section(
            "Preconditioning",
            f"{load} writes; the first step of each round is its sample.",
            precondition.convergence(
                f"Pre Conditioning IOPS (TC{threads}-QD{depth})", data="precondition.csv"
            ),
            *precondition.window_figures("Pre Conditioning steady-state check", "precondition.csv"),
            *precondition.tables(),
        )
        before = [row for row in self.data.stage_rows(ROUNDS_PHASE) if not is_cell(row)]
        yield section(
            "Pre-writes between rounds",
            f"{load} writes before the cells of every round.",
            drawings.prewrites("prewrites", "Between-round pre-writes", steps, before),
        )
        if rounds.rounds:
            yield section(
                "Steady state of the demand variation",
                f"Tracking variable: IOPS of {self.procedure.mix} at TC{threads}/QD{depth}.",
                drawings.tracking(rounds, self.procedure, steps),
                *rounds.window_figures(
                    f"DV steady-state check TC{threads}-QD{depth}", "samples.csv"
                ),
                *rounds.tables(),
            )
        if self.cells:
            yield self._variation()
            yield section(
                "Operating points",
                "Of loads with an average response time below "
                f"{options.art_limit_ms:g} ms: the most IOPS, the fewest outstanding I/Os, and the "
                "load half way between them in IOPS.",
                self._points_table(),
            )
        for name, cell in self.points.items():
            title, histogram = f"{name.capitalize()} IOPS", self.histograms.get(name)
            yield section(
                f"Response times at {title}",
                f"TC{cell.threads}/QD{cell.queue_depth}: {load} writes, then "
                f"{self.procedure.mix}, every I/O timed.",
                drawings.prewrites(
                    f"{name}-prewrites", f"{title}: pre-writes", steps, self.point_rows(name)[0]
                ),
                *histogram_figures(histogram, f"-{name}", f"{title}: "),
                latency_table(histogram, f"Response times at {title}") if histogram else None,
            )
        yield self._operations_section()
        if self.cells:
            yield self._outstanding_section()

    @cached_property
    def by_outstanding(self) -> Sequence[Cell]:
        """Load with the highest IOPS for each number of outstanding I/Os."""
        best: dict[int, Cell] = {}
        for cell in sorted(self.cells, key=lambda cell: (cell.outstanding, -cell.iops)):
            best.setdefault(cell.outstanding, cell)
        return list(best.values())

    def _art_ratio(self, cell: Cell) -> float | None:
        """Return a load's response time relative to the knee, or None if unknown."""
        ratio = cell.art_ns / self.knee.art_ns if self.knee is not None else math.nan
        return ratio if math.isfinite(ratio) else None

    def _outstanding_section(self) -> Section:
        """Return IOPS and response time over the number of outstanding I/Os."""
        most = max(cell.iops for cell in self.cells)
        rows = []
        for cell in self.by_outstanding:
            share, ratio = cell.iops / most if most else None, self._art_ratio(cell)
            mark = "optimum" if cell == self.knee else ""
            rows.append((cell.outstanding, _load(cell), cell.iops, share, cell.art_ns, ratio, mark))
        head: Head = (Column("Outstanding", kinds.plain()), "Load", Column("IOPS", kinds.NUMBER),
                Column("Share of the maximum", kinds.shares(0)),
                Column("Response time", kinds.LATENCY),
                Column("Ratio to the optimum", kinds.TIMES), "")  # fmt: skip
        keys = ("outstanding", "threads", "queue_depth", "iops", "art_ns", "optimum")
        data = data_file(
            "outstanding.csv",
            keys,
            ((c.outstanding, c.threads, c.queue_depth, c.iops, c.art_ns, int(c == self.knee))
             for c in sorted(self.cells, key=lambda c: (c.outstanding, c.threads))),
        )  # fmt: skip
        return section(
            "Outstanding I/Os",
            f"The optimum is the lowest load that reaches {units.percent(KNEE_SHARE, 0)} of the "
            "maximum IOPS. More outstanding I/Os wait in queues: response time rises, IOPS hardly "
            "do. For each number of outstanding I/Os the table shows the load with the most IOPS.",
            table("IOPS and response time by outstanding I/Os", head, rows, "rlrrrrl", data=data),
            *drawings.by_outstanding(self.cells, self.knee, data),
        )

    def _operations_section(self) -> Section:
        """Return read and write plots for the operating points, after the standard's plots."""
        rows, figures = [], []
        for name, histograms in self.by_operation.items():
            title = f"{name.capitalize()} IOPS"
            for operation, h in histograms.items():
                slow = (h.mean_ns, *(h.quantile(q).value_ns for q in NINES), h.max_ns)
                rows.append((title, f"{operation}s", h.count, *slow))
            about = f"{title}: response time by percentile"
            figures.append(percentile_figure(f"percentiles-{name}", about, histograms))
        slow_names = ("average", *map(units.nines, NINES), "maximum")
        head: Head = (Column(""), Column("Operation"), Column("I/Os", kinds.NUMBER),
                *(Column(name, kinds.LATENCY) for name in slow_names))  # fmt: skip
        times = table("Response times", head, rows, "ll") if rows else None
        return section("Reads and writes", "At the operating points.", times, *figures)

    def _variation(self) -> Section:
        of_window = self.procedure.options.operating_points == "window"
        rounds = "the rounds of the measurement window" if of_window else "the last round alone"
        head = ("threads", "queue_depth", "iops", "art_ns", "cpu_busy_pct")
        rows = ((c.threads, c.queue_depth, c.iops, c.art_ns, c.cpu_pct) for c in self.cells)
        return section(
            "Demand variation and demand intensity",
            f"Every load is the average over {rounds}.",
            *drawings.variation(self.cells, data_file("cells.csv", head, rows)),
            self._grid("IOPS", lambda cell: cell.iops, kinds.decimals(1)),
            self._grid(
                "Average response time (ms)", lambda cell: cell.art_ns / 1e6, kinds.digits()
            ),
        )

    def _grid(self, title: str, value: Callable[[Cell], float], kind: Kind) -> Table:
        """Return a figure of the loads over threads and queue depth."""
        values = {(cell.threads, cell.queue_depth): value(cell) for cell in self.cells}
        depths = sorted({depth for _, depth in values})
        rows = [
            (f"TC={threads}", *(values.get((threads, depth)) for depth in depths))
            for threads in sorted({threads for threads, _ in values})
        ]
        return table(title, (Column(""), *(Column(f"QD={depth}", kind) for depth in depths)), rows)

    def _points_table(self) -> Table:
        """Return the operating points and their response times."""
        rows: list[tuple[Value, ...]] = []
        for name in NAMES:
            cell, histogram = self.points.get(name), self.histograms.get(name)
            label = f"{name.capitalize()} IOPS"
            if cell is None:
                rows.append((label, "no operating point", *[None] * 5))
                continue
            slow: Sequence[float | None] = (None, None, None)
            if histogram is not None:
                five_nines = histogram.quantile(0.99999).value_ns
                slow = (histogram.mean_ns, five_nines, histogram.max_ns)
            load = f"TC {cell.threads}/QD {cell.queue_depth}"
            rows.append((label, load, cell.iops, cell.art_ns, *slow))
        times = ("ART", "ART of RTH", "99.999 % of RTH", "MRT of RTH")
        head: Head = (
            Column(""),
            Column("Load"),
            Column("IOPS", kinds.decimals(1)),
            *(Column(t, kinds.LATENCY) for t in times),
        )
        return table("Operating points", head, rows, "ll")

    def notes(self) -> tuple[str, ...]:
        """Return the reason why the CPU utilisation plot is missing."""
        if not self.cells or any(cell.cpu_pct is not None for cell in self.cells):
            return ()
        simulated = self.data.manifest.device.simulated
        why = "a simulated drive has no host" if simulated else "it was not measured"
        return (f"The system CPU utilisation plot is omitted: {why}.",)

    def results(self) -> dict[str, Any]:
        """Return the data for preconditioning, demand variation, knee and operating points."""
        precondition, rounds = self.views
        threads, depth = self.procedure.tracked
        return {
            "workload": {
                "name": self.procedure.load,
                "read_pct": self.procedure.read_pct,
                "tracked_threads": threads,
                "tracked_queue_depth": depth,
            },
            "preconditioning": precondition.mapping(),
            "steady_state": rounds.mapping(),
            "cells": list(map(_cell_mapping, self.cells)),
            "outstanding": [
                {
                    **_cell_mapping(cell),
                    "outstanding": cell.outstanding,
                    "art_to_knee_ratio": self._art_ratio(cell),
                }
                for cell in self.by_outstanding
            ],
            "knee": None if self.knee is None else _cell_mapping(self.knee),
            "operating_points": {name: self._point_mapping(name) for name in NAMES},
        }

    def _point_mapping(self, name: Name) -> dict[str, Any] | None:
        """Return an operating point as JSON, or None if the point does not exist."""
        cell, histogram = self.points.get(name), self.histograms.get(name)
        if cell is None:
            return None
        latency = None if histogram is None else latency_mapping(histogram)
        by_operation = {op: latency_mapping(h) for op, h in self.by_operation[name].items()}
        return {
            **_cell_mapping(cell),
            "latency": latency,
            "latency_by_operation": by_operation or None,
        }


def _load(cell: Cell) -> str:
    return f"TC{cell.threads}/QD{cell.queue_depth}"


def _cell_mapping(cell: Cell) -> dict[str, Any]:
    return {
        "threads": cell.threads,
        "queue_depth": cell.queue_depth,
        "iops": cell.iops,
        "art_ns": cell.art_ns if cell.art_ns == cell.art_ns else None,
        "cpu_busy_pct": cell.cpu_pct,
    }
