"""A stand-in for `writecliff._native` where the native module is not built: the same log-linear
buckets and nearest-rank quantiles, in Python. `install` puts it in place only if it is needed."""

from __future__ import annotations

import importlib
import math
import sys
import types
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Quantile:
    q: float
    value_ns: int | None
    count: int
    low_ns: int | None = None
    high_ns: int | None = None


def _bounds(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds (inclusive) of the buckets that hold `values`."""
    values = values.astype(np.uint64)
    exponent = np.frexp(values.astype(np.float64))[1] - 1
    shift = np.maximum(exponent - 6, 0).astype(np.uint64)
    lower = (values >> shift) << shift
    return lower, lower + (np.uint64(1) << shift) - np.uint64(1)


class Histogram:
    def __init__(self) -> None:
        self._counts: dict[tuple[int, int], int] = {}
        self._min: int | None = None
        self._max: int | None = None
        self._sum = 0.0
        self._squares = 0.0

    def record(self, value_ns: int, count: int = 1) -> None:
        one = np.array([value_ns], dtype=np.uint64)
        self._add(one, np.array([count], dtype=np.uint64), value_ns, value_ns, value_ns, 0.0)

    def _add(self, values: Any, counts: Any, low: int, high: int, mean: float, sd: float) -> None:
        lower, upper = _bounds(np.asarray(values))
        for a, b, n in zip(lower.tolist(), upper.tolist(), counts.tolist(), strict=True):
            self._counts[a, b] = self._counts.get((a, b), 0) + n
        total = int(np.sum(counts))
        self._min = low if self._min is None else min(low, self._min)
        self._max = high if self._max is None else max(high, self._max)
        self._sum += mean * total
        self._squares += (sd * sd + mean * mean) * total

    def merge(self, other: Histogram) -> None:
        for key, n in other._counts.items():
            self._counts[key] = self._counts.get(key, 0) + n
        if other._min is not None and other._max is not None:
            self._min = other._min if self._min is None else min(other._min, self._min)
            self._max = other._max if self._max is None else max(other._max, self._max)
        self._sum += other._sum
        self._squares += other._squares

    @property
    def count(self) -> int:
        return sum(self._counts.values())

    @property
    def min_ns(self) -> int | None:
        return self._min

    @property
    def max_ns(self) -> int | None:
        return self._max

    @property
    def mean_ns(self) -> float | None:
        return self._sum / self.count if self._counts else None

    @property
    def sd_ns(self) -> float | None:
        mean = self.mean_ns
        if mean is None:
            return None
        return math.sqrt(max(0.0, self._squares / self.count - mean * mean))

    def quantile(self, q: float) -> Quantile:
        n = self.count
        if n == 0 or n * (1 - q) < 1:
            return Quantile(q, None, n)
        assert self._max is not None
        spread = 1.96 * math.sqrt(n * q * (1 - q))
        ranks = (math.ceil(q * n), math.floor(q * n - spread), math.ceil(q * n + spread))
        value, low, high = (self._at(rank) if 1 <= rank <= n else None for rank in ranks)
        return Quantile(q, value, n, low, high)

    def _at(self, rank: int) -> int:
        seen = 0
        for (_, upper), n in sorted(self._counts.items()):
            seen += n
            if seen >= rank:
                return min(upper, self._max or upper)
        raise AssertionError("rank beyond count")

    def buckets(self) -> tuple[Any, Any, Any]:
        items = sorted(self._counts.items())
        columns = ([k[0] for k, _ in items], [k[1] for k, _ in items], [n for _, n in items])
        lower, upper, counts = (np.array(column, dtype=np.uint64) for column in columns)
        return lower, upper, counts

    @staticmethod
    def from_buckets(
        midpoints_ns: Any, counts: Any, min_ns: int, max_ns: int, mean_ns: float, sd_ns: float
    ) -> Histogram:
        histogram = Histogram()
        histogram._add(midpoints_ns, counts, min_ns, max_ns, mean_ns, sd_ns)
        return histogram


def install() -> bool:
    """Make `writecliff._native` importable; whether the stand-in had to be used."""
    try:
        if hasattr(importlib.import_module("writecliff._native"), "Histogram"):
            return False
    except ImportError:
        pass
    module: Any = types.ModuleType("writecliff._native")
    module.Histogram, module.Quantile = Histogram, Quantile
    sys.modules["writecliff._native"] = module
    return True
