"""What became of a twin, kept beside its measurements: `twin.json` and the device file."""

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
from writecliff.twin.device_file import KeptErrors, errors_of, source_of, twin_text
from writecliff.twin.evidence import Evidence
from writecliff.twin.fitting import Fitted

SCHEMA = "writecliff/twin/1"
FILE_NAME, DEVICE_NAME, FOLDER = "twin.json", "twin.toml", "twin"


@dataclass(frozen=True)
class Compared:
    """A measured figure beside the twin's. `error_pct` is relative."""

    load: str
    state: str
    metric: str
    unit: str
    measured: float
    twin: float | None
    error_pct: float | None

    @classmethod
    def of(cls, row: Row) -> Self:
        f = row.figure
        return cls(f.item, f.state, f.metric, f.unit, f.value, row.simulated, row.error_pct)


@dataclass(frozen=True)
class FoundValue:
    """A value of the device file that was fitted, in `unit`. `error_pct` is one standard error."""

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
    """All that a twin is judged by. `not_told_apart`: what measurements leave open, in
    sentences. `scale`: how many times smaller it was simulated.
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
    values: tuple[FoundValue, ...]
    fitted: tuple[Compared, ...]
    kept_aside: tuple[Compared, ...]
    errors: KeptErrors
    errors_of_fit: KeptErrors
    not_told_apart: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The outcome in one line."""
        errors = self.errors
        said = [
            f"{name} {value:.1f} %"
            for name, value in (
                ("rates", errors.rates_pct), ("mean latencies", errors.means_pct),
                ("99th percentiles", errors.tails_pct),
            )
            if value is not None
        ]  # fmt: skip
        begin = f"{self.name}: {errors.figures} figures that were kept aside, median errors "
        end = f"; {len(self.not_told_apart)} things could not be told apart"
        return begin + ", ".join(said) + (end if self.not_told_apart else "")

    def mapping(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self) | {"verdict": self.verdict}

    def write(self, run: Path) -> None:
        """Keep it in the run directory. Raises StoreError."""
        write_document(run / FILE_NAME, SCHEMA, asdict(self))

    @classmethod
    def read(cls, run: Path) -> Self:
        """That of a run directory. Raises ConfigError: there is none; StoreError: damaged."""
        path = run / FILE_NAME
        if not path.is_file():
            raise ConfigError(f"{run} has no twin yet", hint=f"writecliff twin --resume {run}")
        return typed(read_document(path, SCHEMA), cls, path)


def keep(fitted: Fitted, evidence: Evidence, run: Path, name: str, device_file: Path) -> TwinResult:
    """Write the device file, and what became of it into the run directory. Raises StoreError."""
    from writecliff.devices import describe_device

    when = RunDirectory.open(run).manifest.created[:10]
    text = twin_text(fitted, evidence.identity, name, when)
    described = describe_device(text, str(device_file))
    write_atomically(device_file, text.encode())
    if device_file != run / DEVICE_NAME:
        write_atomically(run / DEVICE_NAME, text.encode())
    estimates = fitted.result.estimates
    keys = [one.key for one in estimates]
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
            FoundValue(
                one.key, one.unit, one.start, one.value, one.error_pct, one.determined,
                one.at_bound, source_of(one, keys),
            )
            for one in estimates
        ),
        fitted=_compared(fitted.result.after),
        kept_aside=_compared(fitted.kept),
        errors=errors_of(fitted.kept),
        errors_of_fit=errors_of(fitted.result.after),
        not_told_apart=tuple(not_told_apart(fitted, evidence)),
    )  # fmt: skip
    result.write(run)
    return result


def _compared(rows: Sequence[Row]) -> tuple[Compared, ...]:
    return tuple(map(Compared.of, rows))


def not_told_apart(fitted: Fitted, evidence: Evidence) -> list[str]:
    """What the measurements leave open, in sentences."""
    found = []
    for combination in fitted.result.unidentifiable:
        parts = ", ".join(f"{share:+.2f} {key}" for key, share in combination)
        if len(combination) == 1:
            found.append(f"{combination[0][0]}: no figure changes with it")
        else:
            found.append(f"a combination that changes no figure: {parts}")
    if evidence.gentle:
        found.append("everything about writes: only reads were measured; values are defaults")
    elif evidence.waf is None:
        found.append(
            "over-provisioning and the cost of relocation: the drive does not count what it writes "
            "to its flash, so the usual amount of flash is assumed"
        )
    elif fitted.spare is None or not fitted.spare.exact:
        found.append("over-provisioning: no amount of flash gives the measured write amplification")
    if evidence.overwritten_pct is not None and evidence.overwritten_pct < 100:
        found.append(
            f"the steady state: {evidence.overwritten_pct:.0f} % of the capacity was overwritten "
            "in the time given"
        )
    return found


def sections_of(result: TwinResult) -> Mapping[str, Sequence[Compared]]:
    """The figures by what they were for."""
    return {"Kept aside": result.kept_aside, "Fitted": result.fitted}
