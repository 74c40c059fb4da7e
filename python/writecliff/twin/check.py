"""Is this drive as it should be? Its measurements beside a twin, a model or a data sheet.

A figure is worse if it is off in the wrong direction by more than the model may be: twice the error
that the model is known to have, and `LEAST_PCT` at least. Loads of one kind are judged together, by
the median, so that one odd figure does not condemn a drive.
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
from writecliff.twin.device_file import KeptErrors, kept_errors
from writecliff.twin.evidence import Evidence
from writecliff.twin.fitting import predicted
from writecliff.twin.structure import SMALL_BYTES

Log = Callable[[str], None]
Outcome = Literal["as expected", "better", "degraded"]
SCHEMA, FILE_NAME, PAGE_NAME = "writecliff/twin-check/1", "check.json", "check.html"
LEAST_PCT = 10.0
UNKNOWN_PCT = 20.0  # of a model whose error nobody knows


@dataclass(frozen=True)
class Judged:
    """A figure beside what is expected. `worse_pct`: how much worse it is, below 0 if better."""

    kind: str
    load: str
    metric: str
    unit: str
    measured: float
    expected: float
    worse_pct: float


@dataclass(frozen=True)
class Kind:
    """All figures of one kind: `worse_pct` is their median, `allowed_pct` what is no change."""

    name: str
    figures: int
    worse_pct: float
    allowed_pct: float

    @property
    def outcome(self) -> Outcome:
        if self.worse_pct > self.allowed_pct:
            return "degraded"
        return "better" if self.worse_pct < -self.allowed_pct else "as expected"


@dataclass(frozen=True)
class Check:
    """A drive beside what it should be."""

    drive: str
    expected: str
    is_sheet: bool
    model_error_known: bool
    kinds: tuple[Kind, ...]
    figures: tuple[Judged, ...]

    @property
    def degraded(self) -> bool:
        return any(one.outcome == "degraded" for one in self.kinds)

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        worse = [one for one in self.kinds if one.outcome == "degraded"]
        if worse:
            said = ", ".join(
                f"{one.name} {one.worse_pct:.0f} % worse ({one.allowed_pct:.0f} % allowed)"
                for one in worse
            )
            return f"degraded against {self.expected}: {said}"
        most = max(self.kinds, key=lambda one: one.worse_pct)
        how = f"{abs(most.worse_pct):.0f} % {'worse' if most.worse_pct > 0 else 'better'}"
        return (
            f"as {self.expected} says: {len(self.figures)} figures, the worst kind is {most.name}, "
            f"{how} ({most.allowed_pct:.0f} % allowed)"
        )

    def mapping(self) -> dict[str, Any]:
        """As JSON has it."""
        kinds = [asdict(one) | {"outcome": one.outcome} for one in self.kinds]
        return {**asdict(self), "kinds": kinds, "degraded": self.degraded, "verdict": self.verdict}

    def write(self, run: Path) -> Self:
        """Keep it beside the measurements. Raises StoreError."""
        write_document(run / FILE_NAME, SCHEMA, self.mapping())
        return self


def check(evidence: Evidence, expected: str, log: Log = lambda text: None) -> Check:
    """The drive beside `expected`: a device file, a drive of the catalogue, or a file of a data
    sheet's answers. Raises ConfigError: none of these, or nothing in common.
    """
    if is_sheet(expected):
        rows, errors = _sheet_rows(evidence, Path(expected)), None
    else:
        rows, errors = _model_rows(evidence, expected, log)
    judged = tuple(one for row in rows if (one := _judged(row)) is not None)
    if not judged:
        raise ConfigError(f"{expected} has no figure of what was measured")
    kinds = tuple(_kinds(judged, errors))
    sheet = is_sheet(expected)
    return Check(
        evidence.identity.target, Path(expected).stem, sheet, errors is not None, kinds, judged
    )


def is_sheet(text: str) -> bool:
    """Whether a file has the answers of a data sheet (`writecliff device new --answers`)."""
    path = Path(text)
    if not text.endswith(".toml") or not path.is_file():
        return False
    data = read_toml(path)
    return "flash" not in data and "interface" in data and "capacity" in data


def _model_rows(evidence: Evidence, expected: str, log: Log) -> tuple[list[Row], KeptErrors | None]:
    text, name = read_device_file(expected)
    described = fitting_scale(text, name, SMALL_BYTES)
    figures = [one.figure for one in evidence.of(name).observed]
    log(f"simulating {len(figures)} figures of {expected}")
    rows = predicted(text, name, figures, scale=described, observer=FitProgress(log))
    return list(rows), kept_errors(text)


def _sheet_rows(evidence: Evidence, path: Path) -> list[Row]:
    """The figures of a sheet that were measured, too; what the sheet says stands for the model."""
    measured = {_load(one.figure): one.figure for one in evidence.observed}
    steady = evidence.steady_iops
    rows = []
    for stated in sheet_figures(sheet_of(read_answers(path)), str(path)):
        mine = measured.get(_load(stated))
        if mine is None and stated.metric == "iops" and stated.read_pct == 0.0 and steady:
            mine = PublishedFigure(**{**vars(stated), "value": steady})
        if mine is not None:
            item = mine.item or f"{stated.label}, steady"
            rows.append(Row(PublishedFigure(**{**vars(mine), "item": item}), stated.value))
    return rows


def _load(figure: PublishedFigure) -> tuple[object, ...]:
    return (figure.access, figure.block_bytes, figure.read_pct, figure.outstanding, figure.metric)


def _judged(row: Row) -> Judged | None:
    """A figure; `row.simulated` is what is expected."""
    f, expected = row.figure, row.simulated
    if not expected or not f.value:
        return None
    ratio = f.value / expected if lower_is_better(f.metric) else expected / f.value
    return Judged(_kind(f), f.item, f.metric, f.unit, f.value, expected, 100 * (ratio - 1))


def _kind(figure: PublishedFigure) -> str:
    what = {100.0: "reads", 0.0: "writes"}.get(figure.read_pct or 0.0, "mixes")
    tail = ", slow I/Os" if "_p99" in figure.metric else ""
    return f"{figure.access} {what}{tail}"


def _kinds(judged: Sequence[Judged], errors: KeptErrors | None) -> list[Kind]:
    by_kind: dict[str, list[Judged]] = {}
    for one in judged:
        by_kind.setdefault(one.kind, []).append(one)
    found = []
    for name, own in by_kind.items():
        allowed = _allowed(own, errors)
        found.append(Kind(name, len(own), median(one.worse_pct for one in own), allowed))
    return found


def _allowed(own: Sequence[Judged], errors: KeptErrors | None) -> float:
    if errors is None:
        return UNKNOWN_PCT
    tails = any("_p99" in one.metric for one in own)
    means = any(one.metric.startswith("latency_avg") for one in own)
    known: Mapping[bool, float | None] = {True: errors.tails_pct, False: errors.rates_pct}
    error = known[tails]
    if means and not tails and errors.means_pct is not None:
        error = max(error or 0.0, errors.means_pct)
    return UNKNOWN_PCT if error is None else max(LEAST_PCT, 2 * error)
