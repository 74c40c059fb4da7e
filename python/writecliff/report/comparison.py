"""Several drives side by side: the figures of the SNIA primer's comparison table (2013, figure 3).

Reads run directories of any tests and puts together what belongs to one drive. Which figures a test
contributes is up to its report (`TestReport.COMPARED`). A figure that no run measured stays
unknown; one that was taken without steady state, or in a test that departs from what the standard
requires, is marked wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import ConfigError
from writecliff.procedures.registry import PROCEDURES
from writecliff.report import report_of
from writecliff.report.campaigns.results import Result
from writecliff.store.manifest import MANIFEST_NAME
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from writecliff.report.base import ComparedFigure, Curve, TestReport


@cache
def compared_figures() -> Sequence[ComparedFigure]:
    """The columns of the table: those of all tests in their order, fresh out of the box first."""
    found = [
        figure
        for entry in PROCEDURES.values()
        if not entry.campaign
        for figure in entry.load_report().COMPARED
    ]
    return sorted(found, key=lambda figure: not figure.fresh)


@dataclass(frozen=True)
class Value:
    """A figure and what it rests on."""

    value: float
    run: Path
    steady: bool = True
    conformant: bool = True


@dataclass
class Drive:
    """One drive with everything that is known of it."""

    identity: Any  # the `device` of its manifests
    values: dict[str, Value] = field(default_factory=dict)  # by key of `compared_figures()`
    curve: Curve | None = None
    runs: list[Path] = field(default_factory=list)
    results: dict[str, list[Result]] = field(default_factory=dict)  # by campaign
    departing: list[str] = field(default_factory=list)  # runs that are not as the campaign's
    write_cache: bool | None = None

    @property
    def kind(self) -> str | None:
        """SSD or HDD; None if it is not known."""
        return {True: "HDD", False: "SSD", None: None}[self.identity.rotational]

    @property
    def label(self) -> str:
        """Vendor and model, or the target of a drive without a name."""
        name = " ".join(filter(None, (self.identity.vendor, self.identity.model)))
        return name or self.identity.target


def run_directories(paths: Iterable[Path]) -> list[Path]:
    """The runs in `paths`: run directories, suites, or folders of either.

    Raises ConfigError for a path without any.
    """
    found: list[Path] = []
    for path in paths:
        here = [path] if (path / MANIFEST_NAME).is_file() else []
        if not here and path.is_dir():
            here = sorted(item.parent for item in path.glob(f"**/{MANIFEST_NAME}"))
        if not here:
            raise ConfigError(
                f"there is no run in {path}", hint="give run directories, or a folder of them"
            )
        found += [item for item in here if item not in found]
    return found


def drives_of(directories: Iterable[Path]) -> list[Drive]:
    """The drives of all runs in order of their first run. A later run of a test on the same drive
    replaces an earlier one. Raises StoreError for a damaged run."""
    drives: dict[object, Drive] = {}
    for directory in directories:
        with RunDirectory.open(directory) as run:
            report = report_of(run)
            identity = run.manifest.device
            key = (identity.model, identity.serial, identity.device_hash, identity.capacity_bytes)
            _add(drives.setdefault(key, Drive(identity)), report, directory)
    return list(drives.values())


def _add(drive: Drive, report: TestReport, directory: Path) -> None:
    """What a run says of its drive."""
    manifest, conformant = report.data.manifest, report.data.conformant
    drive.runs.append(directory)
    for key, (value, view) in report.compared().items():
        if value is not None:
            steady = view is None or view.reached
            drive.values[key] = Value(value, directory, steady, conformant)
            if view is not None and manifest.write_cache is not None:
                drive.write_cache = manifest.write_cache.enabled
    drive.curve = report.curve() or drive.curve
    if PROCEDURES[manifest.procedure].campaign:
        drive.results[manifest.procedure] = [Result(**i) for i in report.results()["results"]]
        if not conformant:
            drive.departing.append(directory.name)
