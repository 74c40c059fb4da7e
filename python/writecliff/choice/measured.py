"""Figures of a drive, computed from its runs over all measured load steps.

Latencies use `latency_basis`, and the names of service times start with `service/`. A drive's life
ends when the flash reaches its rated erase cycles or when the vendor's TBW has been written,
whichever comes first. The lifetime assumes the load's own write rate around the clock or a given
daily volume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from writecliff.choice.question import LIFE, PRICE, QUOTED, Question
from writecliff.latency_basis import PREFIX, Basis, merged, prefix_of
from writecliff.operation_names import FLUSH
from writecliff.report.expectations import percentiles_of
from writecliff.report.headline import NS_PER_MS, Headline, Interval, headline, mean_interval, ms
from writecliff.report.intervals import BATCHES, Bounds, Measured
from writecliff.units import MB_S

if TYPE_CHECKING:
    from writecliff.devices import DeviceDescription
    from writecliff.report.loads import Done, Load

DAY_S, YEAR_S = 86_400.0, 365 * 86_400.0
LIFE_MOST_YEARS = 100.0  # Longest lifetime that is reported, in years.
_LATENCIES = {
    "mean": "mean_ms", "p99": "p99_ms", "p99.9": "p999_ms", "p99.99": "p9999_ms", "max": "max_ms",
    "reads/p99.99": "read_p9999_ms", "writes/p99.99": "write_p9999_ms",
}  # fmt: skip
_FLUSH_FIGURES = {
    "iops": "iops", "mean": "mean_ms", "p99": "p99_ms", "p99.9": "p999_ms", "p99.99": "p9999_ms",
}  # fmt: skip
_LABELS: Mapping[Basis, str] = {"arrival": "Latency", "service": "Service time"}
METRICS: Mapping[str, str] = {
    "iops": "iops", "mb_per_s": "mb_per_s", **_LATENCIES,
    **{f"{FLUSH}/{key}": f"{FLUSH}_{name}" for key, name in _FLUSH_FIGURES.items()},
    "waf": "waf", "watts": "watts",
    LIFE: "life_years", PRICE: "price",
    **{key.replace("/p", "/service/p") if "/" in key else f"{PREFIX}{key}": f"service_{name}"
       for key, name in _LATENCIES.items()},
}  # fmt: skip
"""Names of figures in JSON, with units, by the names that limits and weights use."""

Figures = Mapping[str, Headline]
LifeEnd = Literal["rated cycles", "rated bytes (TBW)"]


def figures_of(
    loads: Sequence[Load], device: DeviceDescription, question: Question, price: float | None
) -> dict[str, Headline]:
    """Return a run's figures by name, excluding figures that the run cannot report."""
    measured = [completed for load in loads for completed in load.done]
    done = [completed for completed in measured if completed.operation != FLUSH]
    flushes = [completed for completed in measured if completed.operation == FLUSH]
    seconds = sum(load.elapsed_ns for load in loads) / 1e9
    measured_s = sum(load.measured_ns for load in loads) / 1e9
    figures: list[Headline] = []
    if measured_s:
        rate = sum(completed.bytes for completed in done) / measured_s / MB_S.size
        iops = sum(completed.ios for completed in done) / measured_s
        whole = _measured(loads, done, "service")
        figures += headline("iops", "IOPS", iops, "IOPS", interval=_interval(whole.iops(iops)))
        figures += headline(
            "mb_per_s",
            "Throughput",
            rate,
            "MB/s",
            interval=_interval(whole.bytes_per_s(rate * MB_S.size), MB_S.size),
        )
    asked = percentiles_of(question.expectations())
    quantiles = {**QUOTED, **{f"p{pct:.10g}": pct / 100 for pct in asked}}
    for basis, label in _LABELS.items():
        figures += _latencies(prefix_of(basis), label, basis, done, loads, quantiles)
        for operation in ("read", "write"):
            mine = [completed for completed in done if completed.operation == operation]
            prefix = f"{operation}s/{prefix_of(basis)}"
            figures += _latencies(prefix, f"{label} of {operation}s", basis, mine, loads, quantiles)
    if measured_s and flushes:
        rate = sum(completed.ios for completed in flushes) / measured_s
        interval = _interval(_measured(loads, flushes, "arrival").iops(rate))
        figures += headline(f"{FLUSH}/iops", "Flushes a second", rate, "IOPS", interval=interval)
    figures += _latencies(f"{FLUSH}/", "Latency of flushes", "arrival", flushes, loads, quantiles)
    figures += _wear(_Wear.of(loads, seconds), device, question)
    joules = [load.counters.get("energy_j") for load in loads]
    if seconds and joules and None not in joules:
        watts = sum(filter(None, joules)) / seconds
        figures += headline("watts", "Power", watts, "W", higher_is_better=False)
    if late := next((load.not_sustained for load in loads if load.not_sustained), ""):
        figures = [_marked(figure, late) for figure in figures]
    figures += headline(PRICE, "Price", price, "", higher_is_better=False)
    return {figure.key: figure for figure in figures}


def _marked(figure: Headline, not_sustained: str) -> Headline:
    """Return the figure, marked as not sustained if it is a latency since I/O arrival."""
    if figure.unit != "ms" or PREFIX in figure.key:
        return figure
    return replace(figure, steady=False, not_sustained=not_sustained)


def _measured(loads: Sequence[Load], wanted: Sequence[Done], basis: Basis) -> Measured:
    """Return the batches for the given operations from all loads."""
    stretches = []
    for load in loads:
        mine = [
            completed
            for completed in wanted
            if completed.ios and any(completed is other for other in load.done)
        ]
        if mine:
            stretches.append(load.stretch(mine, basis))
    available = [stretch for stretch in stretches if stretch is not None]
    capacity_bytes = loads[0].batch_capacity_bytes if loads else 0
    return Measured(available if len(available) == len(stretches) else [], capacity_bytes)


def _interval(bounds: Bounds | None, unit: float = 1.0) -> Interval | None:
    if bounds is None:
        return None
    return Interval(bounds.low / unit, bounds.high / unit, BATCHES, bounds.degrees)


def _latencies(
    prefix: str,
    label: str,
    basis: Basis,
    done: Sequence[Done],
    loads: Sequence[Load],
    quantiles: Mapping[str, float],
) -> Iterator[Headline]:
    times = [completed.latency(basis) for completed in done if completed.ios]
    total = merged(h for h in times if h is not None)
    if total is None or not total.count or None in times:
        return
    measured = _measured(loads, done, basis)
    yield from headline(f"{prefix}mean", f"{label}, average", ms(total.mean_ns), "ms",
                        higher_is_better=False,
                        interval=_interval(measured.mean(total.mean_ns), NS_PER_MS))  # fmt: skip
    yield from headline(f"{prefix}max", f"{label}, maximum", ms(total.max_ns), "ms",
                        higher_is_better=False)  # fmt: skip
    for key, q in quantiles.items():
        yield from headline(f"{prefix}{key}", f"{label}, {key}", ms(total.quantile(q).value_ns),
                            "ms", higher_is_better=False,
                            interval=_interval(measured.quantile(q), NS_PER_MS))  # fmt: skip


@dataclass(frozen=True)
class _Wear:
    """Bytes that the load wrote, bytes programmed in flash for the load, and the write rate."""

    host_bytes: float
    nand_bytes: float | None
    rate_bytes_per_s: float

    @classmethod
    def of(cls, loads: Sequence[Load], seconds: float) -> _Wear:
        host = sum(load.counters["host_write_bytes"] or 0.0 for load in loads)
        nand = [load.counters["nand_write_bytes"] for load in loads]
        nand_bytes = None if None in nand else sum(filter(None, nand))
        return cls(host, nand_bytes, host / seconds if seconds else 0.0)


def _wear(wear: _Wear, device: DeviceDescription, question: Question) -> Iterator[Headline]:
    waf = None
    if wear.nand_bytes is not None:
        waf = wear.nand_bytes / wear.host_bytes if wear.host_bytes else None
        yield from headline("waf", "Write amplification", waf, "", higher_is_better=False)
    rate = wear.rate_bytes_per_s
    if question.writes_per_day_bytes is not None:
        rate = question.writes_per_day_bytes / DAY_S
    ends = _ends(device, waf)
    if not ends and device.raw_bytes is None:  # The drive has neither flash nor a rated life.
        return
    years = min((end / rate / YEAR_S for end in ends.values() if rate), default=LIFE_MOST_YEARS)
    yield from headline(LIFE, "Life", min(years, LIFE_MOST_YEARS), "years")


def _ends(device: DeviceDescription, waf: float | None) -> dict[LifeEnd, float]:
    """Return the host bytes to write before the drive reaches each of its ratings."""
    ends: dict[LifeEnd, float] = {}
    if device.raw_bytes is not None and device.rated_cycles is not None and waf is not None:
        ends["rated cycles"] = device.rated_cycles * device.raw_bytes / waf
    if device.rated_tbw_bytes is not None:
        ends["rated bytes (TBW)"] = float(device.rated_tbw_bytes)
    return ends


def life_end(figures: Figures, device: DeviceDescription) -> LifeEnd | None:
    """Return the rating that limits the lifetime of a drive that has these figures.

    Return `None` if the drive has no rating, or reaches no rating within the longest reported
    lifetime.
    """
    life = figures.get(LIFE)
    if life is None or life.value >= LIFE_MOST_YEARS:
        return None
    ends = _ends(device, figures["waf"].value if "waf" in figures else None)
    return min(ends, key=ends.__getitem__, default=None)


def over_seeds(runs: Sequence[Figures]) -> dict[str, Headline]:
    """Return the mean of each figure over runs with different seeds, with a 95 % interval.

    Each seed prepares a separate drive, so the runs are independent repetitions. The figures of a
    single run are returned unchanged.
    """
    if len(runs) == 1:
        return dict(runs[0])
    means = {}
    for key in dict.fromkeys(chain.from_iterable(runs)):
        of_all = [run[key] for run in runs if key in run]
        values = [figure.value for figure in of_all]
        mean = fmean(values)
        interval = mean_interval(values, mean, f"mean over {len(values)} seeds")
        late = next((figure.not_sustained for figure in of_all if figure.not_sustained), "")
        steady = all(figure.steady for figure in of_all)
        means[key] = replace(of_all[0], value=mean, interval=interval,
                             steady=steady, not_sustained=late)  # fmt: skip
    return means


def metrics_of(figures: Figures) -> dict[str, float | None]:
    """Return the figures by JSON name, with `None` for unknown figures."""
    return {name: figures[key].value if key in figures else None for key, name in METRICS.items()}
