"""Results of a load by job and operation: rows, JSON and headline figures.

A load is a single step row, or the rows in the measurement window of a step that ran until steady.
For a window, I/Os, bytes and times are sums, and histograms are merged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from writecliff.latency_basis import Basis, bases_of, histogram_of, merged, prefix_of
from writecliff.operation_names import FLUSH, plural_of
from writecliff.procedures.sustained import shortfall_text, shortfalls
from writecliff.report.headline import NS_PER_MS, Headline, Interval, headline, ms
from writecliff.report.intervals import BATCHES, Bounds, Key, Measured, of_intervals, stretch_of
from writecliff.report.latency import latency_mapping
from writecliff.store.tables import OPERATION_NAMES, TIMED_NAMES, counted
from writecliff.units import MB_S

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.latency_causes import LatencyCauses
    from writecliff.procedures.model import StepRow
    from writecliff.report.intervals import Stretch
    from writecliff.report.steady import SteadyView
    from writecliff.report.testdata import TestData
    from writecliff.workload.model import Workload

Kind = Literal["service", "response"]  # Start of a latency: submission, or the intended arrival.
QUOTED = (99, 99.9, 99.99)  # Percentiles among the headline figures.


@dataclass(frozen=True)
class Done:
    """Results for an operation of a job; histograms are None if the load was not timed."""

    number: int  # Job number.
    job: str
    operation: str
    ios: int
    bytes: int
    elapsed_ns: int
    service: Histogram | None
    response: Histogram | None  # Histogram from the intended arrival (open loads only).
    causes: LatencyCauses | None
    scheduled: bool = False  # `True` if the I/Os have intended arrival times.

    def latency(self, basis: Basis = "arrival") -> Histogram | None:
        """Return the latencies of a basis, or None if the engine did not measure them."""
        return histogram_of(basis, service=self.service, response=self.response,
                            scheduled=self.scheduled)  # fmt: skip

    @property
    def latencies(self) -> Mapping[Basis, Histogram]:
        """Measured latencies by basis; closed loads only have the basis "arrival"."""
        bases = bases_of(scheduled=self.scheduled)
        return {basis: h for basis in bases if (h := self.latency(basis)) is not None}

    @property
    def iops(self) -> float | None:
        """I/Os per second, or None if unknown."""
        return self.ios / (self.elapsed_ns / 1e9) if self.elapsed_ns else None

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes per second, or None if unknown."""
        return self.bytes / (self.elapsed_ns / 1e9) if self.elapsed_ns else None


@dataclass(frozen=True)
class Load:
    """A load in a run; `view` is None if the load did not run until steady state."""

    data: TestData
    workload: Workload
    rows: Sequence[StepRow]
    view: SteadyView | None = None
    title: str = ""  # Title in reports (see `titled`).

    @property
    def name(self) -> str:
        """Name of the load."""
        return self.workload.name

    @cached_property
    def seqs(self) -> Sequence[int]:
        """Sequence numbers of the load's steps in the store."""
        return [self.data.seq(row) for row in self.rows]

    @cached_property
    def columns(self) -> Sequence[Mapping[str, Any]]:
        """Columns of the load's steps in the `rounds` table."""
        return [self.data.columns[seq] for seq in self.seqs]

    @cached_property
    def _has_batches(self) -> bool:
        batches = self.data.run.table("batches").column("seq").to_pylist()
        return not set(self.seqs).isdisjoint(batches)

    @property
    def batch_capacity_bytes(self) -> int:
        """Capacity of the drive for which the batches were recorded."""
        return round(self.data.manifest.device.capacity_bytes / self._batch_scale)

    @property
    def _batch_scale(self) -> float:
        """Ratio of the full drive's size to the size of the simulated drive."""
        return self.data.manifest.device.scale if self._has_batches else 1.0

    @property
    def elapsed_ns(self) -> int:
        """Total device time of the steps in ns."""
        return sum(row.elapsed_ns for row in self.rows)

    @cached_property
    def measured_ns(self) -> int:
        """Time during which the I/Os in the rows were counted (see `StepResult.measured_ns`)."""
        begins = (min((job["began_ns"] or 0 for job in row["jobs"]), default=0)
                  for row in self.columns)  # fmt: skip
        return self.elapsed_ns - sum(begins)

    @cached_property
    def counters(self) -> Mapping[str, float | None]:
        """Changes in drive counters over the load, and levels at the end of the load."""
        return counted(self.columns)

    @property
    def waf(self) -> float | None:
        """Write amplification, or None if unknown."""
        host, nand = self.counters["host_write_bytes"], self.counters["nand_write_bytes"]
        return nand / host if nand is not None and host else None

    @property
    def power(self) -> tuple[float | None, float | None]:
        """Mean power in W and energy per I/O in J.

        The energy is `None` if the drive also executed I/Os that were not counted.
        """
        joules, ios = self.counters.get("energy_j"), sum(row.ios for row in self.rows)
        if joules is None or not self.elapsed_ns:
            return None, None
        per_io = joules / ios if ios and self.measured_ns == self.elapsed_ns else None
        return joules / (self.elapsed_ns / 1e9), per_io

    @property
    def data_placement(self) -> Mapping[str, Any] | None:
        """Data placement status after the load, or None if the drive has no such interface."""
        text = self.columns[-1]["data_placement_json"] if self.columns else None
        return None if text is None else dict(json.loads(text))

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings about the steps."""
        return list(dict.fromkeys(text for row in self.columns for text in row["warnings"]))

    @cached_property
    def jobs(self) -> Mapping[str, Sequence[Done]]:
        """Operations of each job, by unique job name, in job order."""
        run = self.data.run
        service = run.histograms_by_operation(self.seqs)
        response = run.histograms_by_operation(self.seqs, kind="response")
        causes = run.latency_causes(self.seqs, by="job")
        sequences: dict[str, Sequence[Done]] = {}
        for number, of_rows in enumerate(zip(*(row["jobs"] for row in self.columns), strict=True)):
            name, elapsed_ns = of_rows[0]["name"], sum(job["elapsed_ns"] for job in of_rows)
            done = []
            for operation in OPERATION_NAMES:
                if all(job[f"{operation}_ios"] is None for job in of_rows):
                    continue
                ios, size = (
                    sum(job[f"{operation}_{what}"] or 0 for job in of_rows)
                    for what in ("ios", "bytes")
                )
                key = (number, operation)
                done.append(Done(number, name, operation, ios, size, elapsed_ns, service.get(key),
                                 response.get(key), causes.get(key),
                                 self.workload.jobs[number].is_scheduled))  # fmt: skip
            if (flushes := service.get((number, FLUSH))) is not None:
                growth = _growth(done) if self.data.manifest.device.scale != 1 else 1.0
                ios = round(flushes.count * growth)
                done.append(Done(number, name, FLUSH, ios, 0, elapsed_ns, flushes, None,
                                 causes.get((number, FLUSH))))  # fmt: skip
            sequences[name if name not in sequences else f"{name} ({number + 1})"] = done
        return sequences

    @property
    def done(self) -> Sequence[Done]:
        """All operations of all jobs, including their flushes."""
        return [cell for of_job in self.jobs.values() for cell in of_job]

    @cached_property
    def not_sustained(self) -> str:
        """Shortfall such as "load not sustained: 82 % of 10,000 IOPS", or ""."""
        behind = shortfalls(self.workload, [row["jobs"] for row in self.columns])
        return shortfall_text(behind, len(self.workload.jobs))

    @property
    def is_scheduled(self) -> bool:
        """`True` if a job has intended arrival times, so latency differs from service time."""
        return any(job.is_scheduled for job in self.workload.jobs)

    @property
    def operations(self) -> Sequence[str]:
        """Operations that the load issued, in order of appearance."""
        return list(dict.fromkeys(done.operation for done in self.done))

    def rates(self, operation: str) -> tuple[float, float]:
        """Return the combined I/Os and bytes per second of all jobs, over `measured_ns`.

        Rates of jobs that ran sequentially are therefore not added up.
        """
        mine = [done for done in self.done if done.operation == operation]
        per_s = 1e9 / self.measured_ns if self.measured_ns else 0.0
        return sum(done.ios for done in mine) * per_s, sum(done.bytes for done in mine) * per_s

    def histograms(self, basis: Basis = "arrival") -> dict[str, Histogram]:
        """Return latencies by operation over all jobs, omitting operations with unknown latency.

        Flushes only have the basis "arrival".
        """
        histograms = {}
        for operation in TIMED_NAMES if basis == "arrival" else OPERATION_NAMES:
            by_job = [d.latency(basis) for d in self.done if d.operation == operation and d.ios]
            total = merged(h for h in by_job if h is not None)
            if total is not None and total.count and None not in by_job:
                histograms[operation] = total
        return histograms

    @cached_property
    def _stretches(self) -> Mapping[Kind, Callable[[Iterable[Key]], Stretch | None]]:
        """Batch selectors covering all rows, by kind of latency."""
        run = self.data.run
        table, intervals = run.table("batches"), run.table("intervals")
        has_intervals = not set(self.seqs).isdisjoint(intervals.column("seq").to_pylist())
        if has_intervals and not self._has_batches:
            table = of_intervals(intervals, self.seqs)
        kinds: tuple[Kind, ...] = ("service", "response")
        began_ns = {
            (seq, number): round((job["began_ns"] or 0) / self._batch_scale)
            for seq, row in zip(self.seqs, self.columns, strict=True)
            for number, job in enumerate(row["jobs"])
        }
        stretches = {}
        for kind in kinds:
            histograms = run.histograms_by_operation(self.seqs, kind=kind)
            stretches[kind] = stretch_of(table, self.seqs, kind, histograms, began_ns)
        return stretches

    def measured(self, keys: Iterable[Key], kind: Kind = "service") -> Measured:
        """Return the batches of the jobs' operations, for the intervals of the figures."""
        keys = list(keys)
        stretch = self._stretches[kind](keys) if keys else None
        return Measured([] if stretch is None else [stretch], self.batch_capacity_bytes)

    def mapping(self) -> dict[str, Any]:
        """Return a step of `writecliff run --json`, with times in ns and sizes in bytes."""
        watts, per_io_j = self.power
        return {
            "workload": self.name,
            "seed": self.workload.seed,
            "elapsed_ns": self.elapsed_ns,
            "waf": self.waf,
            "waf_interval": _bounds_mapping(self.measured(self._written).waf(self.waf)),
            "watts": watts,
            "joules_per_io": per_io_j,
            "counters": dict(self.counters),
            "jobs": [
                {
                    "name": job["name"],
                    "began_ns": self.columns[0]["jobs"][number]["began_ns"] or 0,
                    "elapsed_ns": sum(row["jobs"][number]["elapsed_ns"] for row in self.columns),
                    "scheduled": self.workload.jobs[number].is_scheduled,
                    "operations": {cell.operation: self._mapping(cell) for cell in done},
                }
                for number, (job, done) in enumerate(
                    zip(self.columns[0]["jobs"], self.jobs.values(), strict=True)
                )
            ],
            "data_placement": self.data_placement,
            "warnings": list(self.warnings),
            "steady_state": None if self.view is None else self.view.mapping(),
            "not_sustained": self.not_sustained or None,
        }

    def stretch(self, done: Sequence[Done], basis: Basis = "arrival") -> Stretch | None:
        """Return the batches of several operations with the latencies for a basis.

        The result is `None` if the run lacks batches for any of the operations.
        """
        by_kind: dict[Kind, list[Key]] = {}
        for cell in done:
            kind = histogram_of(basis, service="service", response="response",
                                scheduled=cell.scheduled)  # fmt: skip
            by_kind.setdefault("response" if kind == "response" else "service", []).append(
                (cell.number, cell.operation)
            )
        stretches = [self._stretches[kind](keys) for kind, keys in by_kind.items()]
        measured = [stretch for stretch in stretches if stretch is not None]
        if not measured or len(measured) < len(stretches):
            return None
        return replace(measured[0], cells=[cell for stretch in measured for cell in stretch.cells])

    @property
    def _written(self) -> Sequence[Key]:
        """Any operation with I/Os; its batches cover the bytes of the whole drive."""
        return [(cell.number, cell.operation) for cell in self.done if cell.ios][:1]

    def _mapping(self, done: Done) -> dict[str, Any]:
        key = (done.number, done.operation)
        service, response = self.measured([key]), self.measured([key], "response")
        bounds = {
            "iops": service.iops(done.iops),
            "bytes_per_s": service.bytes_per_s(done.bytes_per_s),
        }
        causes = None if done.causes is None else [band.mapping() for band in done.causes.bands()]
        timed = histogram_of("arrival", service=service, response=response,
                             scheduled=done.scheduled)  # fmt: skip
        return {
            "ios": done.ios,
            "bytes": done.bytes,
            "iops": done.iops,
            "bytes_per_s": done.bytes_per_s,
            "intervals": {name: _bounds_mapping(bound) for name, bound in bounds.items()},
            "latency": _latency_mapping(done.latency(), timed),
            "service": _latency_mapping(done.service, service),
            "response": _latency_mapping(done.response, response),
            "causes": causes,
        }

    def percentile_interval(self, done: Done, basis: Basis, pct: float) -> Interval | None:
        """Return the interval of an operation's latency percentile."""
        kind: Kind = "response" if basis == "arrival" and done.scheduled else "service"
        bounds = self.measured([(done.number, done.operation)], kind).quantile(pct / 100)
        return None if bounds is None else _interval(bounds.mapping(), NS_PER_MS)

    def headlines(self, *, many: bool, bases: Sequence[Basis] = ()) -> Iterator[Headline]:
        """Yield the headline figures.

        Args:
            many: `True` if the run contains other loads.
            bases: Latency bases (default: the bases whose values differ).
        """
        reached = self.view is None or self.view.reached
        yield from step_headlines(self.mapping(), many=many, steady=reached, bases=bases)


def distinct(names: Sequence[str]) -> list[str]:
    """Return the job names, where a repeated name is followed by the job number.

    >>> distinct(["log", "data", "log"])
    ['log', 'data', 'log (3)']
    """
    return [
        f"{name} ({number})" if name in names[: number - 1] else name
        for number, name in enumerate(names, 1)
    ]


def titled(loads: Sequence[Load]) -> Sequence[Load]:
    """Return the loads with their titles.

    If a file has several steps with one job each, the title is the job name, because fio names jobs
    and not steps. In all other cases, the title is the load name.
    """
    jobs = [load.workload.jobs[0].name for load in loads]
    plain = len(loads) < 2 or any(len(load.workload.jobs) > 1 for load in loads)
    names = [load.name for load in loads]
    titles = names if plain or len(set(jobs)) < len(jobs) else jobs
    return [replace(load, title=title) for load, title in zip(loads, titles, strict=True)]


def _latency_mapping(histogram: Histogram | None, measured: Measured) -> dict[str, Any] | None:
    """Return the JSON form of latencies, with intervals from batches."""
    if histogram is None:
        return None
    mapping = latency_mapping(histogram, measured.quantile)
    return {**mapping, "mean_interval": _bounds_mapping(measured.mean(histogram.mean_ns))}


def _growth(done: Sequence[Done]) -> float:
    """Return the ratio of a job's I/O count on the full drive to that on a scaled drive."""
    timed = [(row.ios, row.service.count) for row in done if row.service is not None]
    served = sum(count for _, count in timed)
    return sum(ios for ios, _ in timed) / served if served else 1.0


def _bounds_mapping(bounds: Bounds | None) -> dict[str, float] | None:
    return None if bounds is None else bounds.mapping()


def step_headlines(
    step: Mapping[str, Any], *, many: bool, steady: bool = True, bases: Sequence[Basis] = ()
) -> Iterator[Headline]:
    """Yield the figures of every job and operation in a step from `run --json`.

    Output from earlier versions contains no intervals.
    """
    where = step["workload"] if many else ""
    names = distinct([job["name"] for job in step["jobs"]])
    for name, job in zip(names, step["jobs"], strict=True):
        for operation, done in job["operations"].items():
            key = "/".join((where, name, figure_part(operation)))
            label = " ".join(filter(None, (where, name, plural_of(operation))))
            iops, rate = done["iops"], done["bytes_per_s"]
            bounds = done.get("intervals") or {}
            yield from headline(f"{key}/iops", f"{label}, IOPS", iops, "IOPS",
                                interval=_interval(bounds.get("iops")), steady=steady)  # fmt: skip
            if operation != FLUSH:
                interval = _interval(bounds.get("bytes_per_s"), MB_S.size)
                yield from headline(f"{key}/mb_per_s", f"{label}, throughput",
                                    None if rate is None else rate / MB_S.size, "MB/s",
                                    interval=interval, steady=steady)  # fmt: skip
            scheduled = operation != FLUSH and _was_scheduled(step, job)
            given = None if operation == FLUSH else bases
            for basis in given or bases_of(scheduled=scheduled):
                kinds = {"service": done["service"], "response": done.get("response")}
                times = histogram_of(basis, **kinds, scheduled=scheduled)
                if times is not None:
                    late = (step.get("not_sustained") or "") if basis == "arrival" else ""
                    yield from _latencies(key, label, basis, times, steady, late)
    waf = f"{where}, write amplification" if where else "Write amplification"
    yield from headline(f"{where}/waf", waf, step["waf"], "", higher_is_better=False,
                        interval=_interval(step.get("waf_interval")), steady=steady)  # fmt: skip


def _was_scheduled(step: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    """Return `True` if a job in a `run --json` step has intended arrival times.

    Earlier versions did not write `scheduled`. In earlier versions, open loads have response times,
    or a warning that fio does not measure them.
    """
    if (scheduled := job.get("scheduled")) is not None:
        return bool(scheduled)
    if any(done.get("response") is not None for done in job["operations"].values()):
        return True
    begin = f"job {job['name']}: no response times"
    return any(text.startswith(begin) for text in step.get("warnings", ()))


def figure_part(operation: str) -> str:
    """Return the part of a key that names an operation, such as "reads" or "flush"."""
    return FLUSH if operation == FLUSH else plural_of(operation)


def _interval(bounds: Mapping[str, float] | None, unit: float = 1.0) -> Interval | None:
    """Return an interval in `unit` from its JSON form."""
    if bounds is None:
        return None
    return Interval(bounds["low"] / unit, bounds["high"] / unit, BATCHES, bounds["degrees"])


def _latencies(
    key: str,
    label: str,
    basis: Basis,
    times: Mapping[str, Any],
    steady: bool,
    not_sustained: str,
) -> Iterator[Headline]:
    slow: dict[str, Any] = {
        "higher_is_better": False,
        "steady": steady and not not_sustained,
        "not_sustained": not_sustained,
    }
    key = f"{key}/{prefix_of(basis)}".removesuffix("/")
    label = f"{label}, service time" if basis == "service" else label
    mean = _interval(times.get("mean_interval"), NS_PER_MS)
    yield from headline(f"{key}/mean", f"{label}, average", ms(times["mean_ns"]), "ms",
                        interval=mean, **slow)  # fmt: skip
    for time in times["percentiles"]:
        if time["pct"] not in QUOTED:
            continue
        interval = None
        if time["low_ns"] is not None and time["high_ns"] is not None:
            interval = Interval(time["low_ns"] / NS_PER_MS, time["high_ns"] / NS_PER_MS, BATCHES,
                                time.get("degrees"))  # fmt: skip
        yield from headline(f"{key}/p{time['pct']:g}", f"{label}, p{time['pct']:g}",
                            ms(time["value_ns"]), "ms", interval=interval, **slow)  # fmt: skip
    yield from headline(f"{key}/max", f"{label}, maximum", ms(times["max_ns"]), "ms", **slow)
