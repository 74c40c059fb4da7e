"""Latency by cause: what the time of the I/Os of an operation was spent on.

A simulated drive that records it charges every nanosecond between issue and completion of a command
to one cause. What arrives here are sums by latency bucket, from which any band of percentiles can
be formed afterwards. Real drives do not tell, and simulated hard disks do not record it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

_ENDS = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0)  # of the bands, as shares of the I/Os
SLOWEST = "slowest"


@cache
def causes() -> Mapping[str, str]:
    """All causes by name, from the host inwards, with their meaning."""
    from writecliff._native import latency_causes

    return dict(latency_causes())


def band_name(low: float, high: float) -> str:
    """The name of the I/Os between two quantiles of latency.

    >>> [band_name(0, 0.5), band_name(0.9, 0.99), band_name(0.9999, 1)]
    ['to p50', 'p90-p99', 'from p99.99']
    """
    first, last = (f"p{round(100 * q, 6):g}" for q in (low, high))
    if low == 0:
        return f"to {last}"
    return f"from {first}" if high == 1 else f"{first}-{last}"


def reference() -> str:
    """The page docs/reference/latency-causes.md."""
    lines = [
        "# Causes of latency",
        "",
        "Made by `python -m writecliff.latency_causes > docs/reference/latency-causes.md`",
        "from the declarations in the simulator; do not edit it.",
        "",
        "With `--attribute-latency`, every nanosecond from issue to completion of a command has",
        "one of these causes ([guide](../guides/workloads.md#latency-by-cause)). Reports, JSON",
        "and the table `histograms` of a [run directory](run-directory.md) use the names.",
        "",
        "| cause | the command is |",
        "|---|---|",
        *(f"| `{name}` | {meaning} |" for name, meaning in causes().items()),
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Band:
    """I/Os between two percentiles of latency; `mean_ns` is their mean time by cause."""

    name: str
    ios: float  # not whole where a bucket belongs to two bands
    mean_ns: Mapping[str, float]

    @property
    def latency_ns(self) -> float:
        """Their mean latency: the sum over all causes."""
        return sum(self.mean_ns.values())

    def largest(self, least_pct: float = 1.0) -> list[tuple[str, float]]:
        """The causes of at least `least_pct` of the time with their shares in percent, the largest
        first.
        """
        shares = {name: 100 * ns / self.latency_ns for name, ns in self.mean_ns.items() if ns}
        return sorted(
            ((name, pct) for name, pct in shares.items() if pct >= least_pct),
            key=lambda pair: -pair[1],
        )

    def mapping(self) -> dict[str, object]:
        """The band as JSON-able values."""
        return {
            "band": self.name,
            "ios": self.ios,
            "latency_mean_ns": self.latency_ns,
            "causes_mean_ns": dict(self.mean_ns),
        }


@dataclass(frozen=True)
class LatencyCauses:
    """Sums by latency bucket, ascending: bounds (inclusive) and number of its I/Os, and their time
    by cause (a row per bucket, a column per cause in the order of `causes`).
    """

    lower_ns: np.ndarray
    upper_ns: np.ndarray
    ios: np.ndarray
    spent_ns: np.ndarray

    @classmethod
    def of(cls, columns: Mapping[str, np.ndarray]) -> LatencyCauses:
        """From a column for each field and cause, by its name."""
        spent = np.column_stack([columns[name] for name in causes()])
        return cls(columns["lower_ns"], columns["upper_ns"], columns["ios"], spent)

    def bands(self) -> tuple[Band, ...]:
        """Bands of percentiles, as far as the number of I/Os supports them, and the I/Os of the
        slowest bucket, whose latencies differ by less than 2 %. A bucket that lies across the end
        of a band is divided in proportion to its I/Os.
        """
        total = int(self.ios.sum())
        if not total:
            return ()
        reached = np.concatenate([[0], np.cumsum(self.ios)]).astype(np.float64)
        found = [
            self._band(band_name(low, high), np.diff(np.clip(reached, low * total, high * total)))
            for low, high in pairwise(_ENDS)
            if total * (1 - low) >= 1
        ]
        slowest = np.where(np.arange(len(self.ios)) == len(self.ios) - 1, self.ios, 0)
        return (*found, self._band(SLOWEST, slowest))

    def _band(self, name: str, within: np.ndarray) -> Band:
        """The band with so many I/Os `within` each bucket."""
        ios = float(within.sum())
        means = (within / self.ios) @ self.spent_ns.astype(np.float64) / ios
        return Band(name, round(ios, 3), dict(zip(causes(), means.tolist(), strict=True)))


if __name__ == "__main__":
    print(reference(), end="")
