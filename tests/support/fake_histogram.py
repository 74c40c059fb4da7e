"""The interface of the native `Histogram`, in Python and exact: for tests without it."""

from __future__ import annotations

import json
import math
from collections import Counter
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


class Histogram:
    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def record(self, value_ns: int, count: int = 1) -> None:
        self._counts[value_ns] += count

    def merge(self, other: Histogram) -> None:
        self._counts.update(other._counts)

    @property
    def count(self) -> int:
        return self._counts.total()

    @property
    def min_ns(self) -> int | None:
        return min(self._counts, default=None)

    @property
    def max_ns(self) -> int | None:
        return max(self._counts, default=None)

    @property
    def mean_ns(self) -> float | None:
        n = self.count
        return sum(v * c for v, c in self._counts.items()) / n if n else None

    @property
    def sd_ns(self) -> float | None:
        mean, n = self.mean_ns, self.count
        if mean is None:
            return None
        return math.sqrt(sum(c * (v - mean) ** 2 for v, c in self._counts.items()) / n)

    def quantile(self, q: float) -> Quantile:
        n = self.count
        if n == 0 or n * (1 - q) < 1:
            return Quantile(q, None, n)
        rank, seen = math.ceil(q * n), 0
        for value in sorted(self._counts):
            seen += self._counts[value]
            if seen >= rank:
                return Quantile(q, value, n)
        raise AssertionError("rank beyond count")

    def buckets(self) -> tuple[Any, Any, Any]:
        values = np.array(sorted(self._counts), dtype=np.uint64)
        counts = np.array([self._counts[int(v)] for v in values], dtype=np.uint64)
        return values, values, counts

    def to_bytes(self) -> bytes:
        return json.dumps(sorted(self._counts.items())).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Histogram:
        histogram = Histogram()
        for value, count in json.loads(data):
            histogram.record(value, count)
        return histogram
