"""Preparation of a run: its procedure, the run to resume, and its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import ConfigError, WritecliffError

if TYPE_CHECKING:
    from writecliff.api.answers.base import Refusal
    from writecliff.api.answers.tests import SuitePlan, TestPlan
    from writecliff.engines.base import DeviceIdentity, Engine
    from writecliff.procedures.model import Plan, Procedure
    from writecliff.report.expectations import Expectation
    from writecliff.suite.folder import Member

Note = Callable[[str], None]


def procedure_of(
    test: str, options: Mapping[str, Any], on: str | None, limits: Sequence[Expectation] = ()
) -> Procedure:
    """Return a test configured for a target.

    Raises:
        ConfigError: If an option is invalid, or a limit applies to a figure that the test does not
            report.
    """
    from writecliff.engines.target import is_simulated
    from writecliff.procedures.registry import procedure_from_mapping

    procedure = procedure_from_mapping(test, options, simulated=is_simulated(on or ""))
    check_limits_of(procedure, limits)
    return procedure


def check_limits_of(procedure: Procedure, limits: Sequence[Expectation]) -> None:
    """Check that a run can report the figures that the limits name. Raises ConfigError."""
    if limits:
        from writecliff.report.expectations import check_procedure

        check_procedure(limits, procedure)


@dataclass(frozen=True)
class StoredRun:
    """A run to resume."""

    procedure: Procedure
    then: str  # Target name when the run started.
    on: str  # Current target name.
    # Keyword arguments that were passed to `open_target` when the run started.
    opening: Mapping[str, Any]


def stored_run(path: Path, test: str) -> StoredRun:
    """Read a test run to resume.

    Raises:
        ConfigError: If the run belongs to another test.
        StoreError: The run is damaged.
    """
    from writecliff.api.runs import opening_of
    from writecliff.engines.target import target_now
    from writecliff.procedures.registry import procedure_from_mapping
    from writecliff.store.rundir import RunDirectory

    directory = RunDirectory.open(path)
    stored = directory.manifest
    procedure = procedure_from_mapping(stored.procedure, stored.options)
    if stored.procedure != test:
        command = " ".join(procedure.command)
        raise ConfigError(
            f"{path} contains a run of the test {stored.procedure}, not of {test}",
            hint=f"{command} --resume {path}",
        )
    device = stored.device
    return StoredRun(procedure, device.target, target_now(device), opening_of(directory))


def check_permission(engine: Engine) -> None:
    """Reject a drive that must not be overwritten, before creating anything on disk."""
    if (refusal := engine.write_refusal) is not None:
        raise refusal


@dataclass(frozen=True)
class PlannedRuns:
    """Plans for runs on a drive, with their steps, duration and write volume."""

    identity: DeviceIdentity  # Identity of the drive, scaled down for a quick test.
    plans: Mapping[str, Plan]  # Plans by run name.
    refusal: WritecliffError | None  # Reason for rejection; `None` if the runs can start.
    scales: Sequence[str] = ()  # Notes on the scale of the simulated drive.

    @property
    def plan(self) -> Plan:
        """The plan of a single run."""
        (plan,) = self.plans.values()
        return plan

    def _refusal(self) -> Refusal | None:
        from writecliff.api.answers.base import Refusal

        refusal = self.refusal
        return None if refusal is None else Refusal(str(refusal), refusal.hint)

    def test_answer(self) -> TestPlan:
        """Return the plan of a single run as a JSON output object."""
        from writecliff.api.answers.tests import TestPlan

        return TestPlan(True, self.identity, self.plan, self._refusal())

    def suite_answer(self) -> SuitePlan:
        """Return the plans of a suite as a JSON output object."""
        from writecliff.api.answers.tests import SuitePlan

        return SuitePlan(True, self.identity, self.plans, self._refusal())


def plan_run(
    procedure: Procedure, engine: Engine, *, writes: bool = True, note: Note
) -> PlannedRuns:
    """Plan a run on an open drive. On simulated drives, pilot runs estimate the duration.

    `writes` is `True` if the run writes to the drive. `note` receives the progress of pilot runs.
    """
    from writecliff.procedures.estimate import with_estimate
    from writecliff.procedures.scaling import quick_engine

    refusal = engine.write_refusal if writes else None
    engine = quick_engine(procedure, engine)
    identity = engine.identify()
    plan = procedure.plan(identity, engine.speed_limit)
    plan = with_estimate(plan, procedure, engine, log=note)
    return PlannedRuns(identity, {procedure.name: plan}, refusal)


def plan_members(members: Mapping[str, Member], engine: Engine, *, note: Note) -> PlannedRuns:
    """Plan the runs of a suite, with bounds for a real drive and estimates for a simulated drive.

    Raises:
        ConfigError: If memory is insufficient, or a run does not suit the drive.
    """
    from writecliff.procedures.registry import procedure_from_mapping
    from writecliff.suite.memory import check_memory

    plans: dict[str, Plan] = {}
    scales: dict[str, None] = {}
    identity = engine.identify()
    check_memory(members, engine)
    for name, member in members.items():
        if identity.simulated:
            note(f"estimating {name}")
        procedure = procedure_from_mapping(
            member.test, member.options, simulated=identity.simulated
        )
        planned = plan_run(procedure, engine, note=note)
        scales[planned.identity.scale_text] = None
        plans[name] = planned.plan
    return PlannedRuns(identity, plans, engine.write_refusal, [*filter(None, scales)])
