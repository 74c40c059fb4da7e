"""Accuracy of `--quick`, found by comparing quick suites with full-length suites.

Both suites run on the same simulated drive with the same seed. Every headline figure of the
full-length suite is compared with its value in the quick suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.report import report_of
from writecliff.store.rundir import RunDirectory
from writecliff.suite.folder import SuiteFolder
from writecliff.suite.plan import plan_suite
from writecliff.suite.runner import Log, run_suite

if TYPE_CHECKING:
    from writecliff.cluster import Cluster

TOLERANCE_PCT = 10.0
_TAILS = ("_max", "_p9999")


@dataclass(frozen=True)
class QuickRow:
    """A headline figure of both suites; `quick` is None if the quick suite does not report it."""

    test: str
    key: str
    label: str
    unit: str
    scale: float  # Scale of the drive in the quick suite.
    full: float
    quick: float | None
    at: str = ""  # Load that produced the figure in the full-length run, such as "TC8/QD32".
    quick_at: str = ""

    @property
    def same_load(self) -> bool:
        """`True` if both runs chose the same load, which makes times comparable."""
        return self.at == self.quick_at or self.unit == "IOPS"

    @property
    def error_pct(self) -> float | None:
        """Relative error of the quick figure in %, or None if it cannot be compared."""
        if self.quick is None or not self.same_load:
            return None
        return 100 * (self.quick / self.full - 1) if self.full else 0.0

    @property
    def ok(self) -> bool:
        """`True` if the quick figure is within the tolerance.

        High percentiles may be missing, because a scaled drive does not reproduce them, and times
        under different loads are not compared.
        """
        if self.error_pct is None:
            return self.key.endswith(_TAILS) or not self.same_load
        return abs(self.error_pct) <= TOLERANCE_PCT

    def mapping(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {**asdict(self), "error_pct": self.error_pct, "ok": self.ok}


def suite_of(
    target: str,
    path: Path,
    *,
    quick: bool,
    tests: Sequence[str] | None = None,
    log: Log = lambda event: None,
    cluster: Cluster | None = None,
) -> SuiteFolder:
    """Run the tests of PTS-E on a simulated drive, or resume a suite in `path`.

    The tests run on this machine or, if `cluster` is given, on a cluster.

    Raises:
        ConfigError: If the target or a test is invalid.
        EngineError: If a test failed.
    """
    if path.exists():
        folder = SuiteFolder.open(path)
    else:
        members = plan_suite("pts-e", target, tests=tests, common={"quick": quick})
        folder = SuiteFolder.create(path, "suite", "pts-e", members)
    run_suite(folder, log, opening={}, finish=_no_page, cluster=cluster)
    return folder


def _no_page(run: Path) -> None:
    """Skip the report of a test."""


def compare(full: SuiteFolder, quick: SuiteFolder) -> list[QuickRow]:
    """Return every headline figure of the full-length suite with its value in the quick suite."""
    rows = []
    for name in full.members:
        whole = report_of(RunDirectory.open(full.run_directory(name)))
        small = report_of(RunDirectory.open(quick.run_directory(name)))
        figures = {item.key: item for item in small.headlines()}
        scale = small.data.manifest.device.scale
        for item in whole.headlines():
            figure = figures.get(item.key)
            value, at = (None, item.at) if figure is None else (figure.value, figure.at)
            what = (name, item.key, item.label, item.unit)
            rows.append(QuickRow(*what, scale, item.value, value, item.at, at))
    return rows
