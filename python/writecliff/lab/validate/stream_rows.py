"""Result of `validate streams`: rows, crossovers of persistent isolation, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StreamsCase:
    """A load, with its measured and reference write amplification.

    `reference` is taken from theory, a paper, or a recorded run's log. `tolerance_pct` is `None` if
    no agreement is required. `sequential_share` is the first writer's fraction of the writes of
    three writers, and `waf_settled` is the write amplification long after the fill. Both fields are
    `None` for other loads.
    """

    load: str
    treatment: str
    overprovision: float
    unit_mib: int | None
    waf_measured: float
    reference: float | None
    source: str
    tolerance_pct: float | None
    sequential_share: float | None = None
    waf_settled: float | None = None

    @property
    def error_pct(self) -> float | None:
        """Deviation from the reference in %, or None without a reference."""
        return None if self.reference is None else 100 * (self.waf_measured / self.reference - 1)

    @property
    def ok(self) -> bool:
        """`True` if the row is within its tolerance or has no tolerance."""
        error = self.error_pct
        return self.tolerance_pct is None or error is None or abs(error) <= self.tolerance_pct


@dataclass(frozen=True)
class Crossover:
    """Over-provisioning above which persistent isolation writes less than initial isolation.

    `measured` contains the two points around the crossover, or `None` beyond the last point.
    `sequential_shares` are the first writer's fractions (initially, persistently isolated).
    """

    unit_mib: int
    sequential_shares: tuple[float, float]
    settled: bool
    measured: tuple[float | None, float | None]
    published: tuple[float, float]

    @property
    def reproduced(self) -> bool:
        """`True` if the measured interval is inside the published interval."""
        low, high = self.measured
        if low is None or high is None:
            return False
        return self.published[0] <= low and high <= self.published[1]


@dataclass(frozen=True)
class StreamsReport:
    """All rows and crossovers."""

    rows: tuple[StreamsCase, ...]
    crossovers: tuple[Crossover, ...]

    @property
    def ok(self) -> bool:
        """`True` if every row is within its tolerance."""
        return bool(self.rows) and all(row.ok for row in self.rows)
