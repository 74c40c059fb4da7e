"""Report for a user's workload, with results by step, job and operation.

The report also shows IOPS, latency and write amplification over time, each step's latency by
percentile, and the steady state of steps that ran until steady. The summary schema is
"writecliff/workload/1", and its `steps` match those of `writecliff run --json`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.latency_basis import BASES, BASIS_TEXT, NOT_FROM_ARRIVAL, Basis, bases_of, prefix_of
from writecliff.operation_names import FLUSH, plural_of
from writecliff.procedures.saturation import FOB_DRIVE_FILLS
from writecliff.procedures.workload import NONE, WorkloadRun, phase_of
from writecliff.report import kinds, plots
from writecliff.report.axes import Axis, time_axis
from writecliff.report.base import TestReport
from writecliff.report.compared import Curve
from writecliff.report.csvs import data_file
from writecliff.report.figures import (
    PERCENTILE,
    RESPONSE,
    histogram_figures,
    percentile_figure,
    percentile_line,
)
from writecliff.report.headline import NS_PER_MS, Headline, headline
from writecliff.report.latency import NINES, latency_table
from writecliff.report.loads import QUOTED, Done, Load, distinct, figure_part, titled
from writecliff.report.model import Figure, KeyFigure, Section, Verdict, section
from writecliff.report.series import is_from_arrival, samples, series, with_gaps
from writecliff.report.steady import SteadyView, or_nan
from writecliff.report.table import Column, DataFile, Table, table
from writecliff.store.tables import OPERATION_NAMES
from writecliff.units import MB_S

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.procedures.model import StepRow
    from writecliff.workload.load import LoadStep
    from writecliff.workload.model import Job


POINTS = 400  # Number of points in a time series.
_COLLECTS = 1.05  # Write amplification above which garbage collection has started.
_KEY_LOADS, _SAID_LOADS = 4, 4
_SUFFIX: Mapping[Basis, str] = {"arrival": "", "service": ", service time"}
_QUANTILES = ((0.5, "p50"), *((q, f"p{100 * q:g}") for q in NINES))


class WorkloadRunReport(TestReport):
    """Report for a `writecliff run` run."""

    procedure: WorkloadRun

    @cached_property
    def loads(self) -> Sequence[Load]:
        """Measured steps in the workload file."""
        loads = []
        for number, step in enumerate(self.procedure.steps, 1):
            rows = [row for row in self.data.stage_rows(phase_of(number)) if self._sample(row)]
            if not step.measured or not rows:
                continue
            view = None
            if step.until_steady:
                view = self.data.view(phase_of(number), step.workload.name, f"-{number}")
                rows = [row for row in rows if row.round in view.window] or rows[-1:]
            loads.append(Load(self.data, step.workload, rows, view))
        return titled(loads)

    def _sample(self, row: StepRow) -> bool:
        return bool(self.data.columns[self.data.seq(row)]["sample"])

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        """Steady state of the steps that ran until steady."""
        return [load.view for load in self.loads if load.view is not None]

    @cached_property
    def histogram(self) -> Histogram | None:
        """Response times of a run with a single operation, or None for several operations."""
        by_operation = list(self.histograms_by_operation.values())
        return by_operation[0] if len(by_operation) == 1 else None

    @cached_property
    def histograms_by_operation(self) -> Mapping[str, Histogram]:
        """Response times by operation of a run with one load, or empty for several loads."""
        return self.loads[0].histograms() if len(self.loads) == 1 else {}

    @property
    def latency_note(self) -> str:
        """Latency basis, and the I/Os covered by the latencies."""
        if len(self.loads) != 1:
            return ""
        scheduled = self.loads[0].is_scheduled
        if not self.histograms_by_operation:
            return f"Latency: {NOT_FROM_ARRIVAL}." if scheduled and self.loads[0].done else ""
        counts = (
            f"{h.count:,} {plural_of(name)}" for name, h in self.histograms_by_operation.items()
        )
        text = f"latency, {BASIS_TEXT['arrival']}" if scheduled else BASIS_TEXT["service"]
        late = f"; {self.loads[0].not_sustained}" if self.loads[0].not_sustained else ""
        return f"{text[0].upper()}{text[1:]}, of {' and '.join(counts)}{late}."

    # -- verdict and figures--------------------------------------------------------------------

    def opening(self) -> Sequence[str]:
        """Return the initial drive state, the written data, and a warning for a fresh drive."""
        begun = "The drive was not preconditioned"
        if self.data.manifest.device.simulated:
            begun = "The simulated drive was new"
        if self.procedure.precondition != NONE:
            begun = f"The drive was preconditioned ({self.data.manifest.setup['precondition']})"
            begun += f", {self.procedure.why}"
        fills = units.significant(self.data.host_write_bytes / self.data.capacity_bytes)
        sentences = [
            f"{begun}. Then {units.size(self.data.host_write_bytes)} were written in "
            f"{units.duration(self.data.elapsed_ns)}, {fills} times its capacity."
        ]
        if self._fresh:
            sentences.append(
                "The drive was still fresh when it was written: less than "
                f"{FOB_DRIVE_FILLS:g} times its capacity in total, and hardly any garbage to "
                "collect. Sustained writes are slower: see --precondition sustained."
            )
        return sentences

    @property
    def _fresh(self) -> bool:
        """`True` if the last writes ran at a fresh drive's rate, which is not sustainable."""
        device = self.data.manifest.device
        if not device.simulated or device.without_flash:
            return False
        writes = [load for load in self.loads if any(o.operation == "write" for o in load.done)]
        if not writes or writes[-1].rows[-1].drive_fills >= FOB_DRIVE_FILLS:
            return False
        return (writes[-1].waf or 1.0) < _COLLECTS

    @cached_property
    def not_sustained(self) -> Sequence[str]:
        """Description of the loads that the drive did not sustain."""
        many = len(self.loads) > 1
        return [
            f"{load.title}: {load.not_sustained}" if many else load.not_sustained
            for load in self.loads
            if load.not_sustained
        ]

    def verdict(self) -> Verdict:
        """Return the rates, including a warning about loads that were not sustained."""
        verdict = super().verdict()
        if not self.not_sustained:
            return verdict
        text = "; ".join(self.not_sustained)
        meaning = (
            *verdict.meaning,
            "The drive served fewer I/Os than arrived, so the backlog grew throughout the load. "
            "Latencies from arrival depend on the length of the step and must not be quoted.",
        )
        return Verdict("bad", f"{text[0].upper()}{text[1:]}", meaning)

    def answer(self) -> str:
        """Return the rates and tail latencies for the first loads."""
        sentences = [self._load_text(load) for load in self.loads[:_SAID_LOADS]]
        if more := len(self.loads) - _SAID_LOADS:
            sentences += [f"and {more} more"] if more > 0 else []
        if self.views or self.not_sustained:
            sentences.insert(0, self.verdict().headline)
        return "; ".join(sentences) or "nothing was measured"

    def finding(self) -> str:
        """Return the rates and tail latencies of reads and writes for the first load."""
        if self.not_sustained or not self.loads:
            return super().finding()
        more = len(self.loads) - 1
        others = f" ({more} more load{'s' if more > 1 else ''} below)" if more else ""
        return f"{self._load_text(self.loads[0], flushes=False)}{others}."

    def _load_text(self, load: Load, *, flushes: bool = True) -> str:
        """Return a load's rates and its p99.99 latency."""
        histograms = load.histograms()
        parts = []
        for operation in (name for name in load.operations if flushes or name != FLUSH):
            iops, _ = load.rates(operation)
            measured = operation in histograms and not load.not_sustained
            slow = histograms[operation].quantile(0.9999).value_ns if measured else None
            times = "" if slow is None else f", p99.99 {units.latency(slow, digits=3)}"
            if operation == FLUSH:
                times = f", average {units.latency(histograms[FLUSH].mean_ns, digits=3)}{times}"
            parts.append(f"{units.number(iops)} {plural_of(operation)}/s{times}")
        name = f"{load.title}: " if len(self.loads) > 1 else ""
        return f"{name}{' and '.join(parts)}"

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the rates for each load and operation."""
        many = len(self.loads) > 1
        for load in self.loads[:_KEY_LOADS]:
            for operation in load.operations:
                label = plural_of(operation).capitalize()
                iops, rate = load.rates(operation)
                yield KeyFigure(
                    f"{load.title}: {plural_of(operation)}" if many else label,
                    units.number(iops),
                    "a second" if operation == FLUSH else "IOPS",
                    "" if operation == FLUSH else units.throughput(rate),
                )

    def headlines(self) -> Sequence[Headline]:
        """Return the headline figures for all loads."""
        many = len(self.loads) > 1
        return [item for load in self.loads for item in load.headlines(many=many)]

    @classmethod
    def figure_units(cls, procedure: WorkloadRun) -> Mapping[str, str] | None:
        """Return the units of the steps' figures (see `figure_units`)."""
        return figure_units(procedure.steps)

    def limit_figures(
        self, percentiles: Collection[float]
    ) -> tuple[Sequence[Headline], Mapping[str, str]]:
        """Add the service times of closed loads, which equal their latencies."""
        return limit_figures(self.loads, self.procedure.steps, percentiles)

    def curves(self) -> Sequence[Curve]:
        """Return each load's response times by percentile."""
        many = len(self.loads) > 1
        return [
            Curve(
                f"percentiles-{load.name}-{_slug(operation)}".replace(" ", "-"),
                f"{f'{load.name}: ' if many else ''}response time of {plural_of(operation)} by "
                "percentile",
                PERCENTILE,
                RESPONSE,
                [*zip(line.x, line.y, strict=True)],
            )
            for load in self.loads
            for operation, h in _by_name(load).items()
            for line in (percentile_line(operation, h),)
        ]

    # -- pages --------------------------------------------------------------------------------

    def sections(self) -> Iterator[Section]:
        """Yield the sections about results, the run over time, and each load."""
        yield section("Results", "", *self._results(), self._bars())
        yield self._over_time()
        for number, load in enumerate(self.loads, 1):
            yield self._of_load(number, load)

    @cached_property
    def _results_file(self) -> DataFile:
        names = ("mean", *(name.replace(".", "") for _, name in _QUANTILES), "max")
        times = (f"{begin}_{name}_ns" for begin in ("latency", "service") for name in names)
        head = ("step", "job", "operation", "ios", "bytes", "elapsed_ns", "iops", "bytes_per_s",
                *times)  # fmt: skip
        rows = [
            (load.name, cell.job, cell.operation, cell.ios, cell.bytes, cell.elapsed_ns, cell.iops,
             cell.bytes_per_s,
             *(time for basis in BASES for time in _latencies(cell.latency(basis))))
            for load in self.loads for cell in load.done
        ]  # fmt: skip
        return data_file("results.csv", head, rows)

    def _results(self) -> Iterator[Table]:
        rates, times = [], []
        many = len(self.loads) > 1
        for load in self.loads:
            for cell in load.done:
                who = (*((load.name,) if many else ()), cell.job)
                rate = None if cell.operation == FLUSH else cell.bytes_per_s
                mb_s = rate and rate / MB_S.size
                measured = (cell.iops, mb_s, cell.ios, load.waf)
                rates.append((*who, plural_of(cell.operation), *measured))
                for basis, histogram in cell.latencies.items():
                    slow = _latencies(histogram)
                    times.append((*who, f"{plural_of(cell.operation)}{_SUFFIX[basis]}", *slow))
        head = (*(("Step",) if many else ()), "Job", "Operation")
        rate_head = (
            *head,
            Column("IOPS", kinds.NUMBER),
            Column("MB/s", kinds.decimals(1)),
            Column("I/Os", kinds.NUMBER),
            Column("WAF of the step", kinds.decimals(2)),
        )
        names = ("average", *(name for _, name in _QUANTILES), "maximum")
        time_head = (*head, *(Column(name, kinds.LATENCY) for name in names))
        note = BASIS_TEXT["service"]
        if any(load.is_scheduled for load in self.loads):
            note = f"under a rate {BASIS_TEXT['arrival']}; {note}"
        yield table("Rates", rate_head, rates, "lll"[: len(head)], data=self._results_file)
        yield table("Response times", time_head, times, "lll"[: len(head)], note=note,
                    data=self._results_file)  # fmt: skip

    def _bars(self) -> Figure | None:
        """Return the steps' IOPS by operation."""
        if len(self.loads) < 2:
            return None
        names = [load.title for load in self.loads]
        bars = []
        issued = dict.fromkeys(name for load in self.loads for name in load.operations)
        for operation in (name for name in issued if name != FLUSH):
            values = [
                load.rates(operation)[0] if operation in load.operations else or_nan(None)
                for load in self.loads
            ]
            bars.append(plots.Bars(f"{operation}s", values))
        return plots.bars("steps-iops", "IOPS by step", self._results_file, names, bars,
                          Axis("IOPS"), wide=len(names) > 4)  # fmt: skip

    def _over_time(self) -> Section:
        """Return a figure of the whole run over time, including idle and unmeasured steps."""
        rows = [row for row in self.data.rows if row.elapsed_ns]
        total_ns = float(self.data.elapsed_ns)
        length_ns = max(total_ns / POINTS, self._interval_ns)
        sampled = {}
        for name in OPERATION_NAMES:
            mine = [row for row in rows if self.data.columns[self.data.seq(row)][f"{name}_ios"]]
            if len(values := samples(series(self.data, mine, name), length_ns)):
                begun_ns = mine[0].started_ns - rows[0].started_ns
                sampled[name] = replace(values, time_ns=values.time_ns + begun_ns)
        head = ("operation", "time_ns", "iops", "bytes_per_s", "latency_mean_ns", "latency_max_ns")
        file = data_file("series.csv", head, (
            (name, *map(float, values))
            for name, part in sampled.items()
            for values in zip(part.time_ns, part.iops, part.bytes_per_s, part.mean_ns, part.max_ns,
                              strict=True)
        ))  # fmt: skip
        x = time_axis(total_ns, "Device time")

        def drawn(name: str, title: str, y: Axis, *columns: tuple[str, str]) -> Figure | None:
            lines = [
                with_gaps(f"{operation}s{text}", values, column, length_ns)
                for operation, values in sampled.items()
                for column, text in columns
            ]
            return plots.lines(name, title, file, lines, x, y)

        each = units.duration(length_ns)
        latency = "Response time"
        if any(load.is_scheduled for load in self.loads) and not is_from_arrival(self.data):
            latency = "Service time"  # fio measures latency from the submission of an I/O.
        return section(
            "Over time",
            f"The whole run, a point for every {each}. Rates are means over that time.",
            drawn("time-iops", "IOPS over time", Axis("IOPS"), ("iops", "")),
            drawn("time-latency", f"{latency} over time", replace(RESPONSE, label=latency),
                  ("mean_ns", ", average"), ("max_ns", ", maximum")),
            drawn("time-mb", "Throughput over time", Axis("Throughput", units=(MB_S,)),
                  ("bytes_per_s", "")),
        )  # fmt: skip

    @property
    def _interval_ns(self) -> int:
        return max(step.workload.interval_ns for step in self.procedure.steps)

    def _of_load(self, number: int, load: Load) -> Section:
        by_name = _by_name(load)
        drawn = percentile_figure(
            f"percentiles-{number}", "Response time by percentile", by_name,
            data=f"histograms-{number}.csv",
        )  # fmt: skip
        parts: list[Figure | Table | None] = [drawn]
        for operation, h in by_name.items():
            which = plural_of(operation)
            begin = f"{which[0].upper()}{which[1:]}: "
            parts += histogram_figures(h, f"-{number}-{_slug(operation)}", begin)[:1]
            parts.append(latency_table(h, f"Response times of {which}"))
        view = load.view
        if view is not None:
            parts += [view.convergence(), *view.window_figures(), *view.tables()]
        intro = self._jobs_text(load) + (f" {view.intro}" if view is not None else "")
        return section(load.title, intro, *parts)

    def _jobs_text(self, load: Load) -> str:
        """Return a description of a load's jobs."""
        jobs = [
            f"{job.name}: {job.pattern} {'/'.join(units.block(s.bytes) for s in job.block_sizes)}, "
            f"{job.read_pct:g} % reads, TC {job.threads}/QD {job.queue_depth}"
            for job in load.workload.jobs[:6]
        ]
        more = len(load.workload.jobs) - len(jobs)
        return "; ".join(jobs) + (f"; and {more} more jobs." if more else ".")

    # -- summary and files--------------------------------------------------------------------

    def results(self) -> Mapping[str, Any]:
        """Return the steps as JSON."""
        return {
            "file": self.procedure.file,
            "precondition": self.procedure.precondition,
            "precondition_because": self.procedure.why,
            "steps": [load.mapping() for load in self.loads],
        }

    def files(self) -> Sequence[DataFile]:
        """Return the run's series and the latencies as CSV."""
        return (self._results_file,)

    @property
    def file_name(self) -> str:
        """Name of the workload file."""
        return Path(self.procedure.file).name


def _slug(operation: str) -> str:
    return operation.replace(", ", "-").replace(" ", "-")


def _by_name(load: Load) -> Mapping[str, Histogram]:
    """Return a load's latencies by operation, and the service times if the load is open."""
    return {
        f"{operation}{_SUFFIX[basis]}": histogram
        for basis in bases_of(scheduled=load.is_scheduled)
        for operation, histogram in load.histograms(basis).items()
    }


def _latencies(histogram: Histogram | None) -> Sequence[float | None]:
    """Return the average, quantiles and maximum, or None if there are too few I/Os."""
    if histogram is None or not histogram.count:
        return [None] * (len(_QUANTILES) + 2)
    quantiles = (histogram.quantile(q).value_ns for q, _ in _QUANTILES)
    return [histogram.mean_ns, *quantiles, histogram.max_ns]


# -- limits ------------------------------------------------------------------------------------


_TIMES = ("mean", *(f"p{pct:g}" for pct in QUOTED), "max")


def figure_units(steps: Sequence[LoadStep]) -> dict[str, str]:
    """Return the unit of each figure that a run with these steps can have, by key.

    The percentiles are those of the headline figures; other percentiles can be computed from the
    same latencies.
    """
    measured = [step.workload for step in steps if step.measured]
    figure_units: dict[str, str] = {}
    for load in measured:
        where = load.name if len(measured) > 1 else ""
        names = distinct([job.name for job in load.jobs])
        for name, job in zip(names, load.jobs, strict=True):
            for operation in _operations(job):
                key = f"{where}/{name}/{figure_part(operation)}"
                flush = operation == FLUSH
                figure_units |= {f"{key}/iops": "IOPS"} | (
                    {} if flush else {f"{key}/mb_per_s": "MB/s"}
                )
                figure_units |= {
                    f"{key}/{prefix_of(basis)}{time}": "ms"
                    for basis in _bases(operation)
                    for time in _TIMES
                }
        figure_units[f"{where}/waf"] = ""
    return figure_units


def _operations(job: Job) -> Iterator[str]:
    """Yield the operations that a job may issue."""
    letters = {"read": "r", "write": "w", "trim": "t", FLUSH: "f"}
    listed = job.log.operations if job.log is not None else None
    if job.model is not None:
        listed = job.model.streams.operations
    if listed is not None:
        yield from (name for name, letter in letters.items() if letter in listed)
        return
    shares = {"read": job.read_pct, "write": 100 - job.read_pct - job.trim_pct,
              "trim": job.trim_pct or float(job.trim_first)}  # fmt: skip
    shares[FLUSH] = shares["write"] if job.flush_every_writes else 0.0
    yield from (name for name, share in shares.items() if share > 0)


def _bases(operation: str) -> tuple[Basis, ...]:
    """Return an operation's latency bases. Flushes follow writes, so they have no arrival time."""
    return BASES[:1] if operation == FLUSH else BASES


def limit_figures(
    loads: Sequence[Load], steps: Sequence[LoadStep], percentiles: Collection[float]
) -> tuple[list[Headline], dict[str, str]]:
    """Return a run's figures with added `percentiles`, and why other figures are unknown."""
    many = len(loads) > 1
    limit_figures = [item for load in loads for item in load.headlines(many=many, bases=BASES)]
    measured = {item.key for item in limit_figures}
    missing: dict[str, str] = {}
    for load in loads:
        where = load.name if many else ""
        names = distinct([job.name for job in load.workload.jobs])
        for done in load.done:
            key = f"{where}/{names[done.number]}/{figure_part(done.operation)}"
            for basis in _bases(done.operation):
                for pct in {*QUOTED, *percentiles}:
                    name = f"{key}/{prefix_of(basis)}p{pct:.10g}"
                    if name not in measured:
                        item, why = _percentile(load, done, basis, pct, name)
                        limit_figures += item
                        missing |= {name: why} if why else {}
    measured |= missing.keys() | {item.key for item in limit_figures}
    missing |= dict.fromkeys(figure_units(steps).keys() - measured, "no such I/Os were measured")
    return limit_figures, missing


def _percentile(
    load: Load, done: Done, basis: Basis, pct: float, key: str
) -> tuple[list[Headline], str]:
    """Return a percentile that is not a headline figure, or the reason why it is unknown."""
    histogram = done.latency(basis)
    if histogram is None or not histogram.count:
        return [], NOT_FROM_ARRIVAL if done.scheduled and basis == "arrival" else "not timed"
    value_ns = histogram.quantile(pct / 100).value_ns
    if value_ns is None:
        return [], f"not enough samples: {histogram.count:,} I/Os"
    late = load.not_sustained if basis == "arrival" else ""
    steady = (load.view is None or load.view.reached) and not late
    interval = load.percentile_interval(done, basis, pct)
    more: Mapping[str, object] = {"steady": steady, "not_sustained": late, "interval": interval}
    return headline(key, key.lstrip("/"), value_ns / NS_PER_MS, "ms", higher_is_better=False,
                    **more), ""  # fmt: skip
