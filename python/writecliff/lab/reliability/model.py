"""Result of a campaign, as plain data for the page, JSON and CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """A value of the simulated drive, set by the campaign or read from its device file."""

    key: str
    value: str
    source: str  # Source: "assumed: why", a document, or "the drive's file".


@dataclass(frozen=True)
class Curve:
    """A labelled series."""

    label: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Plot:
    """Curves over common axes, in the units of the axis labels."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    x_log: bool = False
    y_log: bool = False
    from_zero: bool = True  # `True` if the y axis starts at zero.
    limits: Sequence[tuple[str, float]] = ()  # Labels and values of horizontal lines.


@dataclass(frozen=True)
class Finding:
    """A figure for each variant in `Result.variants`, or None if a variant does not have it."""

    what: str
    values: Sequence[float | str | None]


@dataclass(frozen=True)
class Check:
    """A measured figure and its closed-form value."""

    what: str
    measured: float
    expected: float

    @property
    def error_pct(self) -> float:
        """Relative deviation from the closed form, in %."""
        return 100 * (self.measured / self.expected - 1) if self.expected else 0.0


@dataclass(frozen=True)
class Result:
    """The outcome of a campaign."""

    name: str
    title: str
    drive: str
    scale: float  # Factor by which the drive is scaled down.
    intro: str
    verdict: str
    variants: Sequence[str]
    findings: Sequence[Finding]
    plots: Sequence[Plot]
    settings: Sequence[Setting]
    checks: Sequence[Check] = ()
    notes: Sequence[str] = ()
