"""The measures of a trace beside those of what was made after it, and the bounds that they keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from writecliff import units

Kind = Literal["points", "percent"]
Measures = Mapping[str, Any]

_SHARE, _AMOUNT, _SHAPE, _RATE = 1.0, 1.0, 5.0, 10.0  # bounds: in points or percent
_SHOWN_SIZES, _SHOWN_STREAMS = 8, 9
_HOTTEST = (1.0, 5.0, 10.0, 20.0)
_LEAST_SHARE = 1.0  # of I/Os, in %, from which on a stream is compared


@dataclass(frozen=True)
class Row:
    """A measure of both. `difference` is in points of percent, or in percent of the trace's."""

    name: str
    unit: str  # "%", "bytes", "s", "IOPS" or ""
    trace: float | None
    synthetic: float | None
    kind: Kind
    bound: float | None  # that the difference keeps; None: shown, not promised

    @property
    def difference(self) -> float | None:
        if self.trace is None or self.synthetic is None:
            return None
        if self.kind == "points":
            return self.synthetic - self.trace
        if self.trace == 0:
            return 0.0 if self.synthetic == 0 else None
        return 100.0 * (self.synthetic / self.trace - 1)

    @property
    def within(self) -> bool | None:
        """Whether it keeps its bound; None without one, or without values to compare."""
        difference = self.difference
        if self.bound is None or difference is None:
            return None
        return abs(difference) <= self.bound

    def mapping(self) -> dict[str, Any]:
        return {**asdict(self), "difference": self.difference, "within": self.within}

    def text(self, value: float | None) -> str:
        """A value with its unit, for people."""
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
        if self.difference is None:
            return units.UNKNOWN
        return f"{self.difference:+.2f} " + ("points" if self.kind == "points" else "%")

    @property
    def bound_text(self) -> str:
        if self.bound is None:
            return ""
        return f"± {self.bound:g} " + ("points" if self.kind == "points" else "%")


def compared(trace: Measures, synthetic: Measures) -> list[Row]:
    """All measures that both have."""
    return [*_mix(trace, synthetic), *_places(trace, synthetic), *_demand(trace, synthetic)]


def _mix(a: Measures, b: Measures) -> Iterator[Row]:
    yield Row("I/Os", "", a["ios"], b["ios"], "percent", _AMOUNT)
    yield Row("reads", "%", a["read_pct"], b["read_pct"], "points", _SHARE)
    for key, name in (("read_bytes", "bytes read"), ("write_bytes", "bytes written")):
        yield Row(name, "bytes", a[key], b[key], "percent", _AMOUNT)
    yield Row("sequential", "%", a["sequential_pct"], b["sequential_pct"], "points", _SHARE)
    for operation, name in (("flush", "flushes"), ("discard", "discards")):
        counts = [of["operations"][operation]["ios"] for of in (a, b)]
        if any(counts):
            yield Row(name, "", counts[0], counts[1], "percent", _AMOUNT)
    for one in a["sizes"][:_SHOWN_SIZES]:
        if one["size_bytes"] is not None:
            share = _share(b["sizes"], one, ("size_bytes",))
            name = f"I/Os of {units.block(one['size_bytes'])}"
            yield Row(name, "%", one["share_pct"], share, "points", _SHARE)
    for one in a["streams"][:_SHOWN_STREAMS]:
        share = _share(b["streams"], one, ("access", "operation", "size_bytes"))
        name = f"{one['access']} {one['operation']}s of {units.block(one['size_bytes'])}"
        yield Row(name, "%", one["share_pct"], share, "points", _SHARE)


def _share(rows: list[Mapping[str, Any]], like: Mapping[str, Any], keys: tuple[str, ...]) -> float:
    same = (row["share_pct"] for row in rows if all(row[key] == like[key] for key in keys))
    return float(next(same, 0.0))


def _places(a: Measures, b: Measures) -> Iterator[Row]:
    yield Row("unique bytes", "bytes", a["unique_bytes"], b["unique_bytes"], "percent", _SHAPE)
    for key, name in (("read_bytes", "unique bytes read"), ("write_bytes", "unique bytes written")):
        yield Row(name, "bytes", a["unique"][key], b["unique"][key], "percent", _SHAPE)
    for one, other in zip(a["hottest"], b["hottest"], strict=True):
        if one["blocks_pct"] in _HOTTEST:
            name = f"traffic to the hottest {one['blocks_pct']:g} %"
            yield Row(name, "%", one["traffic_pct"], other["traffic_pct"], "points", _SHAPE)
    of, by = a["updates"], b["updates"]
    name = "writes of what was written"
    yield Row(name, "%", of["overwritten_pct"], by["overwritten_pct"], "points", _SHAPE)
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
) -> Iterator[Row]:
    """Quantiles of two distributions; they are shown, and nothing is promised of them."""
    if a is not None and b is not None:
        for one in quantiles:
            of, by = a[one] * scale, b[one] * scale
            yield Row(f"{name} {one}", unit, of, by, "percent", None)


def _demand(a: Measures, b: Measures) -> Iterator[Row]:
    of, by = a["arrivals"], b["arrivals"]
    yield Row("length", "s", a["duration_s"], b["duration_s"], "percent", _AMOUNT)
    yield Row("peak second", "IOPS", of["peak_ios_per_s"], by["peak_ios_per_s"], "percent", _RATE)
    name = "index of dispersion"
    yield Row(name, "", of["index_of_dispersion"], by["index_of_dispersion"], "percent", None)
    gaps = of["between_us"], by["between_us"]
    yield from _quantiles("between arrivals", "s", *gaps, ("p50", "p90", "p99"), 1e-6)
    for one, other in zip(of["idle"], by["idle"], strict=True):
        name = f"idle for {units.latency(one['at_least_ms'] * 1e6)} and more"
        yield Row(name, "%", one["time_pct"], other["time_pct"], "points", _SHAPE)
    yield Row("I/Os in another interval", "%", 0.0, _moved(a, b), "points", _RATE)


def _moved(a: Measures, b: Measures) -> float | None:
    """Share of the I/Os that would have to be in another interval; None if these differ."""
    of, by = a["intervals"], b["intervals"]
    if of["length_s"] != by["length_s"]:
        return None
    counts = [
        [row["reads"] + row["writes"] + row["flushes"] + row["discards"] for row in one["rows"]]
        for one in (of, by)
    ]
    longest = max(map(len, counts))
    first, second = (one + [0] * (longest - len(one)) for one in counts)
    apart = sum(abs(x - y) for x, y in zip(first, second, strict=True))
    return float(50.0 * apart / max(sum(first), 1))
