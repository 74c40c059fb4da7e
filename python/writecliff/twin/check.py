"""Comparison of a drive's measurements with a twin, another model, or a data sheet.

A figure is worse if it differs in the wrong direction by more than the model permits, which is
twice the model's known error and at least `LEAST_PCT`. The median over the figures for a kind of
load is judged, so a single outlier does not fail a drive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal, Self

from writecliff.devices import read_device_file
from writecliff.devices.sheet import read_answers, sheet_of
from writecliff.errors import ConfigError
from writecliff.input_files import read_toml
from writecliff.published.figures import PublishedFigure
from writecliff.published.fit.progress import FitProgress
from writecliff.published.scores import Row, lower_is_better
from writecliff.published.sheet_check import fitting_scale, sheet_figures
from writecliff.store.checksums import write_document
from writecliff.twin.device_file import HeldOutErrors, held_out_errors
from writecliff.twin.evidence import Evidence
from writecliff.twin.fitting import predicted
from writecliff.twin.structure import SMALL_BYTES

Log = Callable[[str], None]
Outcome = Literal["as expected", "better", "degraded"]
SCHEMA, FILE_NAME, PAGE_NAME = "writecliff/twin-check/1", "check.json", "check.html"
LEAST_PCT = 10.0
UNKNOWN_PCT = 20.0  # Limit for a model with an unknown error, in percent.


@dataclass(frozen=True)
class Judged:
    """A figure with its expected value; `worse_pct` is negative if the figure is better."""

    kind: str
    load: str
    metric: str
    unit: str
    measured: float
    expected: float
    worse_pct: float


@dataclass(frozen=True)
class Kind:
    """Figures for a kind of load, with the median of `worse_pct` and the limit `allowed_pct`."""

    name: str
    figures: int
    worse_pct: float
    allowed_pct: float

    @property
    def outcome(self) -> Outcome:
        """Verdict from the comparison of the median with the limit."""
        if self.worse_pct > self.allowed_pct:
            return "degraded"
        return "better" if self.worse_pct < -self.allowed_pct else "as expected"


@dataclass(frozen=True)
class Check:
    """Comparison of a drive with its expected figures."""

    drive: str
    expected: str
    is_sheet: bool
    model_error_known: bool
    kinds: tuple[Kind, ...]
    figures: tuple[Judged, ...]

    @property
    def degraded(self) -> bool:
        """`True` if the drive is degraded under any kind of load."""
        return any(kind.outcome == "degraded" for kind in self.kinds)

    @property
    def verdict(self) -> str:
        """Comparison result as one line."""
        worse = [kind for kind in self.kinds if kind.outcome == "degraded"]
        if worse:
            kinds = ", ".join(
                f"{kind.name} {kind.worse_pct:.0f} % worse ({kind.allowed_pct:.0f} % allowed)"
                for kind in worse
            )
            return f"degraded against {self.expected}: {kinds}"
        most = max(self.kinds, key=lambda kind: kind.worse_pct)
        how = f"{abs(most.worse_pct):.0f} % {'worse' if most.worse_pct > 0 else 'better'}"
        return (
            f"consistent with {self.expected}: {len(self.figures)} figures, the worst kind is "
            f"{most.name}, {how} ({most.allowed_pct:.0f} % allowed)"
        )

    def mapping(self) -> dict[str, Any]:
        """Return the comparison in the format of `writecliff twin --check --json`."""
        kinds = [asdict(kind) | {"outcome": kind.outcome} for kind in self.kinds]
        return {**asdict(self), "kinds": kinds, "degraded": self.degraded, "verdict": self.verdict}

    def write(self, run: Path) -> Self:
        """Write check.json next to the measurements.

        Raises:
            StoreError: If the file cannot be written.
        """
        write_document(run / FILE_NAME, SCHEMA, self.mapping())
        return self


def check(evidence: Evidence, expected: str, log: Log = lambda text: None) -> Check:
    """Compare a drive with its expected figures.

    Args:
        evidence: Measurements of the drive.
        expected: Device file, catalogue drive, or file with data sheet values.
        log: Function called with progress messages.

    Raises:
        ConfigError: If `expected` is not one of these, or contains none of the measured figures.
    """
    if is_sheet(expected):
        rows, errors = _sheet_rows(evidence, Path(expected)), None
    else:
        rows, errors = _model_rows(evidence, expected, log)
    judged = tuple(figure for row in rows if (figure := _judged(row)) is not None)
    if not judged:
        raise ConfigError(f"{expected} specifies none of the measured figures")
    kinds = tuple(_kinds(judged, errors))
    sheet = is_sheet(expected)
    return Check(
        evidence.identity.target, Path(expected).stem, sheet, errors is not None, kinds, judged
    )


def is_sheet(text: str) -> bool:
    """Return `True` for a file with data sheet values (`writecliff device new --answers`)."""
    path = Path(text)
    if not text.endswith(".toml") or not path.is_file():
        return False
    data = read_toml(path)
    return "flash" not in data and "interface" in data and "capacity" in data


def _model_rows(
    evidence: Evidence, expected: str, log: Log
) -> tuple[list[Row], HeldOutErrors | None]:
    text, name = read_device_file(expected)
    described = fitting_scale(text, name, SMALL_BYTES)
    figures = [observed.figure for observed in evidence.of(name).observed]
    log(f"simulating {len(figures)} figures of {expected}")
    rows = predicted(text, name, figures, scale=described, observer=FitProgress(log))
    return list(rows), held_out_errors(text)


def _sheet_rows(evidence: Evidence, path: Path) -> list[Row]:
    """Return the measured figures stated in a data sheet, with expected values."""
    measured = {_load(observed.figure): observed.figure for observed in evidence.observed}
    steady = evidence.steady_iops
    rows = []
    for stated in sheet_figures(sheet_of(read_answers(path)), str(path)):
        figure = measured.get(_load(stated))
        if figure is None and stated.metric == "iops" and stated.read_pct == 0.0 and steady:
            figure = PublishedFigure(**{**vars(stated), "value": steady})
        if figure is not None:
            item = figure.item or f"{stated.label}, steady"
            rows.append(Row(PublishedFigure(**{**vars(figure), "item": item}), stated.value))
    return rows


def _load(figure: PublishedFigure) -> tuple[object, ...]:
    return (figure.access, figure.block_bytes, figure.read_pct, figure.outstanding, figure.metric)


def _judged(row: Row) -> Judged | None:
    """Return a judged figure, with `row.simulated` as the expected value."""
    f, expected = row.figure, row.simulated
    if not expected or not f.value:
        return None
    ratio = f.value / expected if lower_is_better(f.metric) else expected / f.value
    return Judged(_kind(f), f.item, f.metric, f.unit, f.value, expected, 100 * (ratio - 1))


def _kind(figure: PublishedFigure) -> str:
    what = {100.0: "reads", 0.0: "writes"}.get(figure.read_pct or 0.0, "mixes")
    tail = ", slow I/Os" if "_p99" in figure.metric else ""
    return f"{figure.access} {what}{tail}"


def _kinds(judged: Sequence[Judged], errors: HeldOutErrors | None) -> list[Kind]:
    by_kind: dict[str, list[Judged]] = {}
    for figure in judged:
        by_kind.setdefault(figure.kind, []).append(figure)
    kinds = []
    for name, figures in by_kind.items():
        allowed = _allowed(figures, errors)
        kinds.append(
            Kind(name, len(figures), median(figure.worse_pct for figure in figures), allowed)
        )
    return kinds


def _allowed(figures: Sequence[Judged], errors: HeldOutErrors | None) -> float:
    if errors is None:
        return UNKNOWN_PCT
    tails = any("_p99" in figure.metric for figure in figures)
    means = any(figure.metric.startswith("latency_avg") for figure in figures)
    limits: Mapping[bool, float | None] = {True: errors.tails_pct, False: errors.rates_pct}
    error = limits[tails]
    if means and not tails and errors.means_pct is not None:
        error = max(error or 0.0, errors.means_pct)
    return UNKNOWN_PCT if error is None else max(LEAST_PCT, 2 * error)
