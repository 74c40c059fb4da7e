"""What `validate streams` answers with: its rows, where persistent isolation begins to pay, and the
verdict over all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StreamsCase:
    """One row. `reference` is theory ("theory"), a figure in a paper ("published") or the log of
    somebody's run ("recorded"); `tolerance_pct` is None where nothing is required.
    `sequential_share` is that of the first of three writers, `waf_settled` the write amplification
    long after the filling; both None elsewhere."""

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
        """Within its tolerance; rows that require nothing are always well."""
        error = self.error_pct
        return self.tolerance_pct is None or error is None or abs(error) <= self.tolerance_pct


@dataclass(frozen=True)
class Crossover:
    """Over-provisioning above which persistently isolated handles write less than initially
    isolated ones: the two measured points between which it lies, None beyond the last one.
    `sequential_shares` are the first writer's (initially, persistently isolated)."""

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
    rows: tuple[StreamsCase, ...]
    crossovers: tuple[Crossover, ...]

    @property
    def ok(self) -> bool:
        return bool(self.rows) and all(row.ok for row in self.rows)
