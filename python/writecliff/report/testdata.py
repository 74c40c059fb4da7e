"""What every report needs of a run, read once: manifest, history as judged, table, histograms.

Windows, steady state and operating points come from the procedure itself (`procedures.rejudge`);
the report decides nothing about them. WSAT has `data.py` besides, for what only it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from writecliff.errors import StoreError
from writecliff.procedures.model import History, Procedure, Stage, StageHistory, StepRow
from writecliff.procedures.registry import PROCEDURES
from writecliff.procedures.rejudge import rejudge
from writecliff.store.manifest import Manifest, Status
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from writecliff._native import Histogram


class Reported(Protocol):
    """What header block, disclosures and summary read of a run, whatever the test."""

    @property
    def manifest(self) -> Manifest: ...
    @property
    def name(self) -> str: ...
    @property
    def status(self) -> Status: ...
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def elapsed_ns(self) -> float: ...
    @property
    def idle_ns(self) -> float: ...


@dataclass(frozen=True)
class TestData:
    """A run of any test, ready to be reported."""

    __test__ = False  # not one of pytest's

    run: RunDirectory
    procedure: Procedure
    stages: Sequence[Stage]
    history: History

    @property
    def manifest(self) -> Manifest:
        return self.run.manifest

    @property
    def name(self) -> str:
        return self.run.name

    @property
    def status(self) -> Status:
        return self.run.status

    @property
    def capacity_bytes(self) -> int:
        return self.manifest.device.capacity_bytes

    @property
    def rows(self) -> Sequence[StepRow]:
        """All steps in order; the store numbers them from 1 (`seq`)."""
        return self.history.rows

    @property
    def elapsed_ns(self) -> float:
        """Device time of all steps, and of the pauses between them."""
        return float(self.history.elapsed_ns) + self.idle_ns

    @property
    def idle_ns(self) -> float:
        """Time between the steps of a stage: a real drive's steps are processes of their own."""
        return float(
            sum(
                max(after.started_ns - before.ended_ns, 0)
                for before, after in pairwise(self.rows)
                if before.phase == after.phase
            )
        )

    def stage(self, phase: str) -> StageHistory | None:
        """None: the run did not get there."""
        return self.history.stages.get(phase)

    @property
    def conformant(self) -> bool:
        """Nothing that the standard requires was done otherwise."""
        return not self.stamp

    @property
    def stamp(self) -> str:
        """For every page of the report."""
        return stamp_of(self.manifest)

    def seq(self, row: StepRow) -> int:
        """The store's number of a row of this run."""
        return self._places[row.phase, row.round, row.step]

    @cached_property
    def _places(self) -> dict[tuple[str, int, int], int]:
        return {(row.phase, row.round, row.step): seq for seq, row in enumerate(self.rows, 1)}

    def histogram(
        self, rows: Iterable[StepRow], *, operation: str | None = None
    ) -> Histogram | None:
        """Service times of all I/Os of `rows`, merged; None if there are none."""
        return self.run.histogram(steps=[self.seq(row) for row in rows], operation=operation)


def stamp_of(manifest: Manifest) -> str:
    """Set if something that the standard requires was done otherwise, or the form was shortened."""
    required = any(item.get("level") == "required" for item in manifest.deviations)
    if not required and not manifest.options.get("quick"):
        return ""
    entry = PROCEDURES.get(manifest.procedure)
    return "NOT AS PUBLISHED" if entry and entry.campaign else "NOT PTS-CONFORMANT"


def load(run: RunDirectory) -> TestData:
    """Raises StoreError: damaged, of an unknown test, or nothing measured yet."""
    again = rejudge(run)
    if not again.history.rows:
        raise StoreError(
            f"{run.path} has no complete step to report", hint="let the run measure a minute first"
        )
    return TestData(run, again.procedure, again.stages, again.history)
