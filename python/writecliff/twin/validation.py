"""Validation of twins: simulated drives with hidden values, compared with their twins.

`writecliff twin` accesses a hidden drive only through the engine. The hidden drive and its twin are
then measured under loads that were not used to create the twin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from writecliff.devices.edit import value_of
from writecliff.engines.sim import SimEngine
from writecliff.procedures.framework import run_procedure
from writecliff.procedures.twin import Twin
from writecliff.published.conditions import Load
from writecliff.published.fit.progress import FitProgress
from writecliff.published.measure import ComparedDrive, measure
from writecliff.twin.evidence import read_evidence
from writecliff.twin.fitting import make_twin
from writecliff.twin.hidden import hidden_drive
from writecliff.twin.result import FOLDER, keep
from writecliff.workload.model import Pattern

Log = Callable[[str], None]
RATES_PCT, TAILS_PCT = 5.0, 10.0  # Maximum median errors in percent.
KIB = 1024
SECONDS = 2.0  # Duration of each load, in seconds.
MEASURED_S, REST_S = 1.0, 2.0  # Durations of a measured load and of the idle phase, in seconds.

# Pattern, size in KiB, fraction of reads, outstanding I/Os.
OtherLoad = tuple[Pattern, int, float, int]
# Loads that `procedures.twin_loads` does not contain.
OTHER_LOADS: Sequence[OtherLoad] = (
    ("random", 4, 100.0, 3), ("random", 4, 100.0, 6), ("random", 4, 100.0, 12),
    ("random", 4, 100.0, 24), ("random", 8, 100.0, 1), ("random", 8, 100.0, 4),
    ("random", 8, 100.0, 16), ("random", 32, 100.0, 2), ("random", 32, 100.0, 8),
    ("random", 16, 100.0, 3), ("sequential", 64, 100.0, 8), ("sequential", 256, 100.0, 4),
    ("random", 4, 95.0, 16), ("random", 4, 80.0, 4), ("random", 4, 80.0, 32),
    ("random", 4, 65.0, 16), ("random", 4, 60.0, 32), ("random", 4, 40.0, 8),
    ("random", 4, 20.0, 32), ("random", 8, 90.0, 8), ("random", 8, 70.0, 32),
    ("random", 8, 50.0, 4), ("random", 16, 80.0, 16), ("random", 16, 35.0, 8),
    ("random", 32, 70.0, 4), ("random", 4, 0.0, 2), ("random", 4, 0.0, 16),
    ("random", 8, 0.0, 8), ("random", 16, 0.0, 16), ("random", 32, 0.0, 4),
)  # fmt: skip


@dataclass(frozen=True)
class PredictedLoad:
    """A load on a hidden drive and on its twin: I/Os per second, and the 99th percentile in ms."""

    load: str
    iops: float
    iops_twin: float
    p99_ms: float | None
    p99_twin_ms: float | None

    @property
    def rate_error_pct(self) -> float:
        """Error of the twin's rate, in percent of the hidden drive's rate."""
        return 100 * (self.iops_twin / self.iops - 1)

    @property
    def p99_error_pct(self) -> float | None:
        """Error of the twin's 99th percentile in percent, or `None` if it is unknown."""
        if not self.p99_ms or self.p99_twin_ms is None:
            return None
        return 100 * (self.p99_twin_ms / self.p99_ms - 1)


@dataclass(frozen=True)
class TwinCase:
    """A hidden drive, its twin's estimates of hidden values, and the twin's errors."""

    drive: str
    values: Mapping[str, tuple[str, str]]  # Hidden value and twin's value by key.
    loads: tuple[PredictedLoad, ...]
    kept_rates_pct: float | None
    kept_tails_pct: float | None

    @property
    def rates_pct(self) -> float:
        """Median error of the rates, in percent."""
        return median(abs(load.rate_error_pct) for load in self.loads)

    @property
    def tails_pct(self) -> float:
        """Median error of the 99th percentiles, in percent."""
        return median(abs(e) for load in self.loads if (e := load.p99_error_pct) is not None)

    @property
    def ok(self) -> bool:
        """`True` if both median errors are within their limits."""
        return self.rates_pct <= RATES_PCT and self.tails_pct <= TAILS_PCT

    def mapping(self) -> dict[str, Any]:
        """Return the case in the format of `lab validate twin --json`."""
        loads = [
            asdict(load)
            | {"rate_error_pct": load.rate_error_pct, "p99_error_pct": load.p99_error_pct}
            for load in self.loads
        ]
        values = [
            {"key": key, "hidden": hidden, "twin": twin}
            for key, (hidden, twin) in self.values.items()
        ]
        return {
            "drive": self.drive, "ok": self.ok, "rates_pct": self.rates_pct,
            "tails_pct": self.tails_pct, "kept_rates_pct": self.kept_rates_pct,
            "kept_tails_pct": self.kept_tails_pct, "values": values, "loads": loads,
        }  # fmt: skip


def twin_case(
    name: str,
    folder: Path,
    log: Log = lambda text: None,
    *,
    loads: Sequence[OtherLoad] = OTHER_LOADS,
) -> TwinCase:
    """Create the twin of a hidden drive in `folder`, and measure both under other loads.

    Raises:
        ConfigError: If the hidden drive does not exist.
        EngineError: If a simulation fails.
        StoreError: If a file cannot be written.
    """
    (hidden, keys), run = hidden_drive(name), folder / name
    log(f"{name}: measuring the hidden drive")
    engine = SimEngine.from_text(hidden, f"{name}.toml")
    run_procedure(Twin(seconds=MEASURED_S, rest_s=REST_S), engine, run)
    evidence = read_evidence(run)
    fitted = make_twin(
        evidence, run / FOLDER, name, facts={}, log=lambda text: log(f"{name}: {text}")
    )
    result = keep(fitted, evidence, run, name, run / "twin.toml")
    log(f"{name}: measuring {len(loads)} other loads on both")
    state = f"overwritten:{evidence.overwritten_pct:.4g}%"
    wanted = [
        Load("fill" if read == 100.0 else state, way, kib * KIB, read, depth, SECONDS)
        for way, kib, read, depth in loads
    ]
    texts = (hidden, fitted.text)
    observer = FitProgress(log)
    of_both = [
        measure(ComparedDrive(name, text, f"{name}.toml"), wanted, observer=observer)
        for text in texts
    ]
    predicted = []
    for load in wanted:
        ours, twins = (figures[load] for figures in of_both)
        words = f"{load.pattern} {(load.block_bytes or 0) // KIB} KiB, {load.read_pct:g} % reads, "
        predicted.append(
            PredictedLoad(
                f"{words}QD {load.outstanding}", ours["iops"], twins["iops"],
                ours.get("latency_p99"), twins.get("latency_p99"),
            )
        )  # fmt: skip
    values = {key: (_value_text(hidden, key), _value_text(fitted.text, key)) for key in keys}
    errors = result.errors
    return TwinCase(name, values, tuple(predicted), errors.rates_pct, errors.tails_pct)


def _value_text(text: str, key: str) -> str:
    value = value_of(text, key)
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
