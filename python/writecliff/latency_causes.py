"""Latency by cause: the causes on which the I/Os of an operation spent their time.

If requested, a simulated drive attributes every nanosecond between issue and completion of a
command to a cause. The data are sums by latency bucket, from which bands of percentiles are formed
later.
Real drives do not report causes, and simulated hard disks do not record them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

_ENDS = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0)  # bounds of the bands, as shares of the I/Os
SLOWEST = "slowest"


@cache
def causes() -> Mapping[str, str]:
    """Return all causes by name, from the host inwards, with their meaning."""
    from writecliff._native import latency_causes

    return dict(latency_causes())


def band_name(low: float, high: float) -> str:
    """Return the name of the I/Os between two quantiles of latency.

    >>> [band_name(0, 0.5), band_name(0.9, 0.99), band_name(0.9999, 1)]
    ['to p50', 'p90-p99', 'from p99.99']
    """
    first, last = (f"p{round(100 * q, 6):g}" for q in (low, high))
    if low == 0:
        return f"to {last}"
    return f"from {first}" if high == 1 else f"{first}-{last}"


def reference() -> str:
    """Return the page docs/reference/latency-causes.md."""
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
    ios: float  # not whole if a bucket belongs to two bands
    mean_ns: Mapping[str, float]

    @property
    def latency_ns(self) -> float:
        """Mean latency in ns, the sum over all causes."""
        return sum(self.mean_ns.values())

    def largest(self, least_pct: float = 1.0) -> list[tuple[str, float]]:
        """Return the causes with at least `least_pct` of the time, and their shares in percent.

        The largest comes first.
        """
        shares = {name: 100 * ns / self.latency_ns for name, ns in self.mean_ns.items() if ns}
        return sorted(
            ((name, pct) for name, pct in shares.items() if pct >= least_pct),
            key=lambda pair: -pair[1],
        )

    def mapping(self) -> dict[str, object]:
        """Return the band as JSON values."""
        return {
            "band": self.name,
            "ios": self.ios,
            "latency_mean_ns": self.latency_ns,
            "causes_mean_ns": dict(self.mean_ns),
        }


@dataclass(frozen=True)
class LatencyCauses:
    """Sums by latency bucket, ascending.

    A bucket has bounds (inclusive), a number of I/Os, and their time by cause: `spent_ns` has a row
    per bucket, and a column per cause in the order of `causes`.
    """

    lower_ns: np.ndarray
    upper_ns: np.ndarray
    ios: np.ndarray
    spent_ns: np.ndarray

    @classmethod
    def of(cls, columns: Mapping[str, np.ndarray]) -> LatencyCauses:
        """Create the sums from a column for each field and cause, by name."""
        spent = np.column_stack([columns[name] for name in causes()])
        return cls(columns["lower_ns"], columns["upper_ns"], columns["ios"], spent)

    def bands(self) -> tuple[Band, ...]:
        """Return bands of percentiles, and the I/Os of the slowest bucket.

        The number of I/Os limits the percentiles. A bucket across a bound is divided in proportion
        to its I/Os. Latencies within a bucket differ by less than 2 %.
        """
        total = int(self.ios.sum())
        if not total:
            return ()
        reached = np.concatenate([[0], np.cumsum(self.ios)]).astype(np.float64)
        bands = [
            self._band(band_name(low, high), np.diff(np.clip(reached, low * total, high * total)))
            for low, high in pairwise(_ENDS)
            if total * (1 - low) >= 1
        ]
        slowest = np.where(np.arange(len(self.ios)) == len(self.ios) - 1, self.ios, 0)
        return (*bands, self._band(SLOWEST, slowest))

    def _band(self, name: str, within: np.ndarray) -> Band:
        """Return the band with `within` I/Os of each bucket."""
        ios = float(within.sum())
        means = (within / self.ios) @ self.spent_ns.astype(np.float64) / ios
        return Band(name, round(ios, 3), dict(zip(causes(), means.tolist(), strict=True)))


if __name__ == "__main__":
    print(reference(), end="")
