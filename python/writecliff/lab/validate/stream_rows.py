"""The result of `validate streams`: rows, crossovers of persistent isolation, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StreamsCase:
    """One row. `reference` is from theory, a figure in a paper, or the log of a recorded run;
    `tolerance_pct` is None where no agreement is required. `sequential_share` is that of the first
    of three writers, `waf_settled` the write amplification long after the fill; None elsewhere.
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
        return None if self.reference is None else 100 * (self.waf_measured / self.reference - 1)

    @property
    def ok(self) -> bool:
        """Whether the row is within its tolerance; always true without one."""
        error = self.error_pct
        return self.tolerance_pct is None or error is None or abs(error) <= self.tolerance_pct


@dataclass(frozen=True)
class Crossover:
    """The over-provisioning above which persistently isolated handles write less than initially
    isolated ones: the two measured points around it, None beyond the last one.
    `sequential_shares` are the first writer's (initially, persistently isolated).
    """

    unit_mib: int
    sequential_shares: tuple[float, float]
    settled: bool
    measured: tuple[float | None, float | None]
    published: tuple[float, float]

    @property
    def reproduced(self) -> bool:
        """The measured interval lies inside the published one."""
        low, high = self.measured
        if low is None or high is None:
            return False
        return self.published[0] <= low and high <= self.published[1]


@dataclass(frozen=True)
class StreamsReport:
    """All rows and crossovers; `ok` if every row is within its tolerance."""

    rows: tuple[StreamsCase, ...]
    crossovers: tuple[Crossover, ...]

    @property
    def ok(self) -> bool:
        return bool(self.rows) and all(row.ok for row in self.rows)
