"""Result of a twin, stored next to its measurements as `twin.json` and a device file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from writecliff.errors import ConfigError
from writecliff.published.scores import Row
from writecliff.store.checksums import read_document, write_document
from writecliff.store.files import write_atomically
from writecliff.store.rundir import RunDirectory
from writecliff.store.typed import typed
from writecliff.twin.device_file import HeldOutErrors, errors_of, source_of, twin_text
from writecliff.twin.evidence import Evidence
from writecliff.twin.fitting import Fitted

SCHEMA = "writecliff/twin/1"
FILE_NAME, DEVICE_NAME, FOLDER = "twin.json", "twin.toml", "twin"


@dataclass(frozen=True)
class ComparedFigure:
    """A measured figure with the twin's prediction. `error_pct` is relative."""

    load: str
    state: str
    metric: str
    unit: str
    measured: float
    twin: float | None
    error_pct: float | None

    @classmethod
    def of(cls, row: Row) -> Self:
        """Return the figure from a row that was measured and predicted."""
        f = row.figure
        return cls(f.item, f.state, f.metric, f.unit, f.value, row.simulated, row.error_pct)


@dataclass(frozen=True)
class FittedValue:
    """A fitted device file value in `unit`, with its standard error `error_pct`."""

    key: str
    unit: str
    start: float
    value: float
    error_pct: float | None
    determined: bool
    at_bound: bool
    source: str


@dataclass(frozen=True)
class TwinResult:
    """Result of creating a twin.

    Attributes:
        scale: Factor by which the simulated twin was scaled down.
        not_told_apart: Remarks on values that the measurements do not determine.
    """

    name: str
    drive: str
    device_file: str
    scale: float
    starts: int
    dies: int
    bounds: str
    overprovision_pct: float | None
    waf_measured: float | None
    waf_twin: float | None
    overwritten_pct: float | None
    cache_bytes: float | None
    values: tuple[FittedValue, ...]
    fitted: tuple[ComparedFigure, ...]
    kept_aside: tuple[ComparedFigure, ...]
    errors: HeldOutErrors
    errors_of_fit: HeldOutErrors
    not_told_apart: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Result as one line."""
        errors = self.errors
        medians = [
            f"{name} {value:.1f} %"
            for name, value in (
                ("rates", errors.rates_pct), ("mean latencies", errors.means_pct),
                ("99th percentiles", errors.tails_pct),
            )
            if value is not None
        ]  # fmt: skip
        head = f"{self.name}: {errors.figures} held-out figures, median errors "
        tail = f"; {len(self.not_told_apart)} values are not determined"
        return head + ", ".join(medians) + (tail if self.not_told_apart else "")

    def mapping(self) -> dict[str, Any]:
        """Return the result in the format of `writecliff twin --json`."""
        return asdict(self) | {"verdict": self.verdict}

    def write(self, run: Path) -> None:
        """Write twin.json to the run directory.

        Raises:
            StoreError: If the file cannot be written.
        """
        write_document(run / FILE_NAME, SCHEMA, asdict(self))

    @classmethod
    def read(cls, run: Path) -> Self:
        """Read the result from a run directory.

        Raises:
            ConfigError: If the run does not have a result yet.
            StoreError: If twin.json is damaged.
        """
        path = run / FILE_NAME
        if not path.is_file():
            raise ConfigError(
                f"the run {run} has no twin yet", hint=f"run writecliff twin --resume {run}"
            )
        return typed(read_document(path, SCHEMA), cls, path)


def keep(fitted: Fitted, evidence: Evidence, run: Path, name: str, device_file: Path) -> TwinResult:
    """Write the device file, and store the result in the run directory.

    Raises:
        StoreError: If a file cannot be written.
    """
    from writecliff.devices import describe_device

    when = RunDirectory.open(run).manifest.created[:10]
    text = twin_text(fitted, evidence.identity, name, when)
    described = describe_device(text, str(device_file))
    write_atomically(device_file, text.encode())
    if device_file != run / DEVICE_NAME:
        write_atomically(run / DEVICE_NAME, text.encode())
    estimates = fitted.result.estimates
    keys = [estimate.key for estimate in estimates]
    result = TwinResult(
        name=name,
        drive=evidence.identity.target,
        device_file=device_file.name,
        scale=fitted.scale,
        starts=fitted.starts,
        dies=fitted.dies,
        bounds=fitted.bounds,
        overprovision_pct=described.overprovision_pct,
        waf_measured=evidence.waf,
        waf_twin=None if fitted.spare is None else fitted.spare.waf,
        overwritten_pct=evidence.overwritten_pct,
        cache_bytes=evidence.cache_bytes,
        values=tuple(
            FittedValue(
                estimate.key, estimate.unit, estimate.start, estimate.value, estimate.error_pct,
                estimate.determined,
                estimate.at_bound, source_of(estimate, keys),
            )
            for estimate in estimates
        ),
        fitted=_compared(fitted.result.after),
        kept_aside=_compared(fitted.held_out),
        errors=errors_of(fitted.held_out),
        errors_of_fit=errors_of(fitted.result.after),
        not_told_apart=tuple(not_told_apart(fitted, evidence)),
    )  # fmt: skip
    result.write(run)
    return result


def _compared(rows: Sequence[Row]) -> tuple[ComparedFigure, ...]:
    return tuple(map(ComparedFigure.of, rows))


def not_told_apart(fitted: Fitted, evidence: Evidence) -> list[str]:
    """Return remarks about values that the measurements do not determine."""
    remarks = []
    for combination in fitted.result.unidentifiable:
        parts = ", ".join(f"{share:+.2f} {key}" for key, share in combination)
        if len(combination) == 1:
            remarks.append(f"{combination[0][0]}: no figure changes with it")
        else:
            remarks.append(f"a combination that changes no figure: {parts}")
    if evidence.gentle:
        remarks.append("everything about writes: only reads were measured; values are defaults")
    elif evidence.waf is None:
        remarks.append(
            "over-provisioning and the cost of relocation: the drive does not count the bytes that "
            "it writes to its flash, so the usual amount of flash is assumed"
        )
    elif fitted.spare is None or not fitted.spare.exact:
        remarks.append(
            "over-provisioning: no amount of flash gives the measured write amplification"
        )
    if evidence.overwritten_pct is not None and evidence.overwritten_pct < 100:
        remarks.append(
            f"the steady state: {evidence.overwritten_pct:.0f} % of the capacity was overwritten "
            "in the time given"
        )
    return remarks


def sections_of(result: TwinResult) -> Mapping[str, Sequence[ComparedFigure]]:
    """Return the figures, grouped by use."""
    return {"Held out": result.kept_aside, "Fitted": result.fitted}
