"""Result of `writecliff trace synthesise`: a workload, and how it differs from the trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from writecliff import _native, units
from writecliff.errors import encoded
from writecliff.native_errors import as_user_errors
from writecliff.progress import UNSEEN, WorkProgress
from writecliff.store.files import write_atomically
from writecliff.synthesis.fit import fit
from writecliff.synthesis.laid_out import lay_out
from writecliff.traces.source import Skipped, skipped_mapping
from writecliff.workload.model import Job, Workload

if TYPE_CHECKING:
    from writecliff.synthesis.played import Played
    from writecliff.traces.source import Source
    from writecliff.workload.io_model import Column, IoModel

QUEUE_DEPTH = 4096  # Queue depth of the job, which suffices for an open loop.
WORKLOAD_FILE, FIO_FILE = "workload.toml", "workload.fio"
Measures = Mapping[str, Any]


@dataclass(frozen=True)
class Synthesised:
    """A synthetic workload and the trace modelled by it."""

    trace: Path
    formats: tuple[str, ...]
    model: IoModel
    measures: Measures  # Metrics of the trace, whose volumes are joined into one range.
    synthetic: Measures  # Metrics of one pass of the workload.
    fio_job: str  # Text of the fio job file.
    span_bytes: int  # Address range of the trace, summed over volumes.
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    played: Played | None = None  # Figures on a simulated drive; `None` if not simulated.

    @property
    def job(self) -> Job:
        """Job in the workload file, which is one pass of the model."""
        counted = self.model.ios - self.model.flushes
        return Job(name="synthetic", model=self.model, ios=counted, queue_depth=QUEUE_DEPTH)

    @property
    def rows(self) -> list[MeasureRow]:
        """Measured properties of the trace and the workload, side by side."""
        return compared(self.measures, self.synthetic)

    @property
    def missed(self) -> list[MeasureRow]:
        """Measured properties that exceed their bounds."""
        return [row for row in self.rows if row.within is False]

    def workload_text(self) -> str:
        """Return the workload file's text in TOML."""
        return workload_text(self.model, self.trace.name, queue_depth=QUEUE_DEPTH)

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write the workload file and the fio job file, replacing any existing files.

        Returns:
            Paths of both files.
        """
        folder.mkdir(parents=True, exist_ok=True)
        workload, job = folder / WORKLOAD_FILE, folder / FIO_FILE
        write_atomically(workload, encoded(self.workload_text()))
        write_atomically(job, encoded(self.fio_job))
        return workload, job

    def mapping(self) -> dict[str, Any]:
        """Return the result in the format of `writecliff trace synthesise --json`."""
        model = self.model
        return {
            "trace": self.trace,
            "format": ", ".join(self.formats),
            "ios": model.ios,
            "duration_s": self.measures["duration_s"],
            "model": {
                "numbers": model.numbers,
                "streams": len(model.streams.lengths),
                "states": len(model.states.stream),
                "transitions": len(model.transitions.count),
                "phases": len(set(model.periods.phase)),
                "periods": len(model.periods.ios),
                "sweeps": len(model.sweeps.begin) if model.sweeps else 0,
                "intervals": len(model.demand.ios) if model.demand else 0,
                "places": len(model.places.count),
                "range_bytes": model.range_bytes,
                "span_bytes": self.span_bytes,
                "seed": model.seed,
            },
            "measures": [row.mapping() for row in self.rows],
            "missed": [row.name for row in self.missed],
            "played": None if self.played is None else self.played.mapping(),
            "fio_notes": list(NOTES),
            "notes": list(self.notes),
            **skipped_mapping(self.skipped),
        }


def synthesise(
    source: Source,
    trace: Path,
    *,
    on: str | None = None,
    seed: int = 1,
    progress: WorkProgress = UNSEEN,
    on_part: Callable[[str], None] = lambda text: None,
) -> Synthesised:
    """Fit a synthetic workload to a trace, and measure the workload.

    Args:
        source: Reader of the trace.
        trace: Path of the trace.
        on: Simulated drive on which both loads are run, if any.
        seed: Model seed.
        progress: Function that receives the progress of reading.
        on_part: Function that receives each step's description when the step starts.

    Raises:
        ConfigError: If the trace has neither reads nor writes, or if the drive is unknown.
    """
    laid_out = lay_out(source, progress=progress)
    on_part("fitting the model")
    model = fit(laid_out, seed=seed)
    job = Job(model=model, ios=1)
    with as_user_errors():
        synthetic = _native.model_ios(Workload("synthetic", (job,)).to_json())
    measures = _measured(laid_out.columns())
    result = Synthesised(
        trace=trace,
        formats=tuple(source.formats),
        model=model,
        measures=measures,
        synthetic=_measured(synthetic),
        fio_job=fio_job_text(measures, trace.name, model.range_bytes),
        span_bytes=laid_out.span_bytes,
        skipped=tuple(source.skipped()),
        notes=(*source.notes(), *laid_out.notes),
    )
    if on is None:
        return result
    from writecliff.synthesis.played import play

    played = play(laid_out, result.job, on, fio_job=result.fio_job, seed=seed, on_part=on_part)
    return replace(result, played=played)


def _measured(columns: dict[str, Any]) -> Measures:
    measures = _native.TraceMeasures()
    with as_user_errors():
        measures.add(columns, ["all volumes"], [""])
    result: Measures = json.loads(measures.result())
    return result


# -- fio job ---------------------------------------------------------------------------------------

# fio job file for a trace, and the properties that fio's language cannot express.

IODEPTH = 64
_SPLITS_MAX = 64  # Maximum number of list entries in a job file.
_OPERATIONS = (("read", "read"), ("write", "write"), ("discard", "trim"))
NOTES = (
    "bursts, idle periods and demand over time, because arrivals are a Poisson process at the "
    "mean rate",
    "the order of operations, because each operation is a separate job",
    "reuse and overwrite distances, because zones of the range describe only the traffic of hot "
    "areas",
    "concurrent sequential runs and their lengths, because each operation has a single run, which "
    "random I/O interrupts",
)


def fio_job_text(measures: Mapping[str, Any], name: str, range_bytes: int) -> str:
    """Return the text of a fio job file derived from a trace's metrics."""
    seconds = max(measures["duration_s"], 1e-3)
    lines = [
        f"; Made by `writecliff trace synthesise` from {name}. fio's language cannot express:",
        *(f"; - {note}" for note in NOTES),
        "[global]",
        "; its data are overwritten",
        "filename=${DRIVE}",
        "direct=1",
        "ioengine=libaio",
        f"iodepth={IODEPTH}",
        f"size={range_bytes}",
        "norandommap=1",
        "randrepeat=1",
        "rate_process=poisson",
    ]
    for operation, kind in _OPERATIONS:
        ios = measures["operations"][operation]["ios"]
        if ios:
            lines += ["", f"[{kind}s]", *_section(measures, operation, kind, ios, seconds)]
    return "\n".join(lines) + "\n"


def _section(
    measures: Mapping[str, Any], operation: str, kind: str, ios: int, seconds: float
) -> list[str]:
    lines = [
        f"rw=rand{kind}",
        f"number_ios={ios}",
        f"io_size={2 * measures['operations'][operation]['bytes'] + (1 << 20)}",
        f"rate_iops={max(1, round(ios / seconds))}",
        f"; {ios:,} I/Os in {units.duration(seconds * 1e9)}",
    ]
    if operation == "discard":
        mean = measures["operations"][operation]["bytes"] / ios
        return [*lines, f"bs={max(4096, round(mean / 4096) * 4096)}"]
    sizes: dict[int, int] = {}
    for row in measures["streams"]:
        if row["operation"] == operation:
            sizes[row["size_bytes"]] = sizes.get(row["size_bytes"], 0) + row["ios"]
    if not sizes:  # None of the operation's streams is among the most frequent streams.
        mean = measures["operations"][operation]["bytes"] / ios
        sizes[max(4096, round(mean / 4096) * 4096)] = ios
    shares = _percentages(list(sizes.values()))
    split = [f"{size}/{share}" for size, share in zip(sizes, shares, strict=True) if share]
    lines.append(f"bssplit={':'.join(split[:_SPLITS_MAX])}")
    lines.append(f"blockalign={_alignment(measures)}")
    sequential = measures["sequential"][f"{operation}_pct"] or 0.0
    lines.append(f"percentage_random={100 - round(sequential)}")
    zones = _zones(measures["hottest"], f"{operation}_pct")
    if zones:
        lines.append(f"random_distribution=zoned:{zones}")
    flushes = measures["operations"]["flush"]["ios"]
    if operation == "write" and flushes:
        lines.append(f"fsync={max(1, round(ios / flushes))}")
    return lines


def _percentages(counts: Sequence[float]) -> list[int]:
    """Return whole percentages that add up to 100, rounding up the largest remainders."""
    total = sum(counts) or 1
    exact = [100 * count / total for count in counts]
    percentages = [int(share) for share in exact]
    by_rest = sorted(range(len(exact)), key=lambda n: percentages[n] - exact[n])
    for n in by_rest[: 100 - sum(percentages)]:
        percentages[n] += 1
    return percentages


def _alignment(measures: Mapping[str, Any]) -> int:
    """Return the largest power of two, at most 4 KiB, to which nearly all I/Os are aligned."""
    aligned = [row["bytes"] for row in measures["alignment"] if (row["ios_pct"] or 0) >= 99]
    return int(min(max(aligned, default=512), 4096))


def _zones(hottest: Sequence[Mapping[str, Any]], key: str) -> str:
    """Return fio zones for a Lorenz curve, as percentages of accesses and of the range."""
    points = [(row["blocks_pct"], row[key]) for row in hottest if row["blocks_pct"] >= 1]
    if any(traffic is None for _, traffic in points):
        return ""
    sizes = [b - a for a, b in zip((0, *(p[0] for p in points)), (p[0] for p in points),
                                   strict=False)]  # fmt: skip
    uses = [b - a for a, b in zip((0, *(p[1] for p in points)), (p[1] for p in points),
                                  strict=False)]  # fmt: skip
    zones = zip(_percentages(uses), _percentages(sizes), strict=True)
    return ":".join(f"{access}/{size}" for access, size in zones)


# -- workload file of a model ----------------------------------------------------------------------

_WIDTH = 98  # Line width in characters.
_TABLE_COMMENTS = {
    "streams": "I/O streams: operations (r read, w write, t trim, f flush), bytes, and 1 for means",
    "gaps": "times between I/Os: eight values for each class",
    "states": "state of an I/O: its stream, if it continues a run, and the class of the gap before",
    "transitions": "number of times that a state follows another, in each phase",
    "periods": "demand over time: phase, I/Os and length of each period",
    "places": "start addresses of runs: groups of places with similar use",
    "sweeps": "I/Os in ascending order of addresses, bytes that they skip, weights of pages",
    "mixes": "mixes of I/O streams, shared by similar sweeps",
    "demand": "demand over time: I/Os, length and shape of intervals",
}


def workload_text(model: IoModel, name: str, *, queue_depth: int) -> str:
    """Return a model's workload file as TOML. The file's job ends after a single pass."""
    span = units.duration(model.duration_ns)
    lines = [
        f"# Made by `writecliff trace synthesise` from {name}: {model.ios:,} I/Os in {span},",
        f"# as a model of {model.numbers:,} numbers. Model and seed determine the I/Os.",
        f"name = {json.dumps(name, ensure_ascii=False)}",
        "",
        "[[job]]",
        'name = "synthetic"',
        f"ios = {model.ios - model.flushes}  # one pass; more I/Os repeat it",
        f"queue_depth = {queue_depth}  # an open loop: arrivals wait only at this depth",
        "",
        "[job.model]",
        f"seed = {model.seed}",
        f'range = "{model.range_bytes} B"',
        *_column("read_ranks", model.read_ranks),
        *_column("write_ranks", model.write_ranks),
    ]
    for table in model.tables:
        lines += ["", f"# {_TABLE_COMMENTS[table]}", f"[job.model.{table}]"]
        columns = getattr(model, table)
        for column in fields(columns):
            value = getattr(columns, column.name)
            if isinstance(value, tuple):
                lines += _column(column.name, value)
            else:
                lines.append(f"{column.name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _column(name: str, values: Column) -> list[str]:
    """Return the lines that format a number column, limited in length."""
    lines, line = [], f"{name} = ["
    for n, value in enumerate(values):
        word = f"{value}" + ("" if n == len(values) - 1 else ", ")
        if len(line) + len(word) > _WIDTH:
            lines.append(line.rstrip())
            line = "    "
        line += word
    return [*lines, line + "]"]


# -- compare ---------------------------------------------------------------------------------------

# Metrics of a trace and its synthetic workload, and the bounds on their differences.

Kind = Literal["points", "percent"]

_SHARE, _AMOUNT, _SHAPE, _RATE = 1.0, 1.0, 5.0, 10.0  # Bounds in percentage points or percent.
_SHOWN_SIZES, _SHOWN_STREAMS = 8, 9
_HOTTEST = (1.0, 5.0, 10.0, 20.0)
_LEAST_SHARE = 1.0  # Minimum percentage of I/Os for a stream to be compared.


@dataclass(frozen=True)
class MeasureRow:
    """A metric of the trace and of the workload."""

    name: str
    unit: str  # Unit: "%", "bytes", "s", "IOPS" or "".
    trace: float | None
    synthetic: float | None
    kind: Kind  # Unit of `difference`: percentage points, or percent of the trace's value.
    bound: float | None  # Bound on the difference; `None` if the metric is only displayed.

    @property
    def difference(self) -> float | None:
        """Difference between workload and trace in the unit of `kind`, or None if undefined."""
        if self.trace is None or self.synthetic is None:
            return None
        if self.kind == "points":
            return self.synthetic - self.trace
        if self.trace == 0:
            return 0.0 if self.synthetic == 0 else None
        return 100.0 * (self.synthetic / self.trace - 1)

    @property
    def within(self) -> bool | None:
        """`True` if the difference is within its bound, or None without a bound or difference."""
        difference = self.difference
        if self.bound is None or difference is None:
            return None
        return abs(difference) <= self.bound

    def mapping(self) -> dict[str, Any]:
        """Return the row in the format of `writecliff trace synthesise --json`."""
        return {**asdict(self), "difference": self.difference, "within": self.within}

    def text(self, value: float | None) -> str:
        """Return a value with its unit, rounded for display."""
        if value is None:
            return units.UNKNOWN
        if self.unit == "bytes":
            return units.size(value)
        if self.unit == "s":
            return units.duration(value * 1e9) if value >= 1 else units.latency(value * 1e9)
        if self.unit == "%":
            return units.pct(value, 2)
        return f"{units.significant(value)} {self.unit}".rstrip()

    @property
    def difference_text(self) -> str:
        """Difference with its unit, such as "+0.50 points"."""
        if self.difference is None:
            return units.UNKNOWN
        return f"{self.difference:+.2f} " + ("points" if self.kind == "points" else "%")

    @property
    def bound_text(self) -> str:
        """Bound with its unit ("± 5 %"), or "" without a bound."""
        if self.bound is None:
            return ""
        return f"± {self.bound:g} " + ("points" if self.kind == "points" else "%")


def compared(trace: Measures, synthetic: Measures) -> list[MeasureRow]:
    """Return the rows for all metrics that the trace and the workload share."""
    return [*_mix(trace, synthetic), *_places(trace, synthetic), *_demand(trace, synthetic)]


def _mix(a: Measures, b: Measures) -> Iterator[MeasureRow]:
    yield MeasureRow("I/Os", "", a["ios"], b["ios"], "percent", _AMOUNT)
    yield MeasureRow("reads", "%", a["read_pct"], b["read_pct"], "points", _SHARE)
    for key, name in (("read_bytes", "bytes read"), ("write_bytes", "bytes written")):
        yield MeasureRow(name, "bytes", a[key], b[key], "percent", _AMOUNT)
    yield MeasureRow("sequential", "%", a["sequential_pct"], b["sequential_pct"], "points", _SHARE)
    for operation, name in (("flush", "flushes"), ("discard", "discards")):
        counts = [of["operations"][operation]["ios"] for of in (a, b)]
        if any(counts):
            yield MeasureRow(name, "", counts[0], counts[1], "percent", _AMOUNT)
    for row in a["sizes"][:_SHOWN_SIZES]:
        if row["size_bytes"] is not None:
            share = _share(b["sizes"], row, ("size_bytes",))
            name = f"I/Os of {units.block(row['size_bytes'])}"
            yield MeasureRow(name, "%", row["share_pct"], share, "points", _SHARE)
    for row in a["streams"][:_SHOWN_STREAMS]:
        share = _share(b["streams"], row, ("access", "operation", "size_bytes"))
        name = f"{row['access']} {row['operation']}s of {units.block(row['size_bytes'])}"
        yield MeasureRow(name, "%", row["share_pct"], share, "points", _SHARE)


def _share(rows: list[Mapping[str, Any]], like: Mapping[str, Any], keys: tuple[str, ...]) -> float:
    same = (row["share_pct"] for row in rows if all(row[key] == like[key] for key in keys))
    return float(next(same, 0.0))


def _places(a: Measures, b: Measures) -> Iterator[MeasureRow]:
    yield MeasureRow(
        "unique bytes", "bytes", a["unique_bytes"], b["unique_bytes"], "percent", _SHAPE
    )
    for key, name in (("read_bytes", "unique bytes read"), ("write_bytes", "unique bytes written")):
        yield MeasureRow(name, "bytes", a["unique"][key], b["unique"][key], "percent", _SHAPE)
    for first, second in zip(a["hottest"], b["hottest"], strict=True):
        if first["blocks_pct"] in _HOTTEST:
            name = f"traffic to the hottest {first['blocks_pct']:g} %"
            yield MeasureRow(
                name, "%", first["traffic_pct"], second["traffic_pct"], "points", _SHAPE
            )
    of, by = a["updates"], b["updates"]
    name = "writes of what was written"
    yield MeasureRow(name, "%", of["overwritten_pct"], by["overwritten_pct"], "points", _SHAPE)
    intervals = of["interval_bytes"], by["interval_bytes"]
    yield from _quantiles("update interval", "bytes", *intervals, ("p50", "p90", "p99"))
    distances = a["reuse"]["distance_bytes"], b["reuse"]["distance_bytes"]
    yield from _quantiles("reuse distance", "bytes", *distances, ("p50", "p90"))


def _quantiles(
    name: str,
    unit: str,
    a: Measures | None,
    b: Measures | None,
    quantiles: tuple[str, ...],
    scale: float = 1.0,
) -> Iterator[MeasureRow]:
    """Yield quantiles of two distributions, which have no bounds."""
    if a is not None and b is not None:
        for quantile in quantiles:
            of, by = a[quantile] * scale, b[quantile] * scale
            yield MeasureRow(f"{name} {quantile}", unit, of, by, "percent", None)


def _demand(a: Measures, b: Measures) -> Iterator[MeasureRow]:
    of, by = a["arrivals"], b["arrivals"]
    yield MeasureRow("length", "s", a["duration_s"], b["duration_s"], "percent", _AMOUNT)
    yield MeasureRow(
        "peak second", "IOPS", of["peak_ios_per_s"], by["peak_ios_per_s"], "percent", _RATE
    )
    name = "index of dispersion"
    yield MeasureRow(
        name, "", of["index_of_dispersion"], by["index_of_dispersion"], "percent", None
    )
    gaps = of["between_us"], by["between_us"]
    yield from _quantiles("between arrivals", "s", *gaps, ("p50", "p90", "p99"), 1e-6)
    for first, second in zip(of["idle"], by["idle"], strict=True):
        name = f"idle for {units.latency(first['at_least_ms'] * 1e6)} and more"
        yield MeasureRow(name, "%", first["time_pct"], second["time_pct"], "points", _SHAPE)
    yield MeasureRow("I/Os in another interval", "%", 0.0, _moved(a, b), "points", _RATE)


def _moved(a: Measures, b: Measures) -> float | None:
    """Return the fraction of I/Os in different intervals, or None if interval lengths differ."""
    of, by = a["intervals"], b["intervals"]
    if of["length_s"] != by["length_s"]:
        return None
    counts = [
        [
            row["reads"] + row["writes"] + row["flushes"] + row["discards"]
            for row in intervals["rows"]
        ]
        for intervals in (of, by)
    ]
    longest = max(map(len, counts))
    first, second = (row_counts + [0] * (longest - len(row_counts)) for row_counts in counts)
    distance = sum(abs(x - y) for x, y in zip(first, second, strict=True))
    return float(50.0 * distance / max(sum(first), 1))
