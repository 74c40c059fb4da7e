"""A user-defined load, which runs the steps of a workload file or fio job file on a drive.

Each step in the file is a stage. A load runs once, or in rounds until steady state by the PTS rule.
A rest is a step that performs no I/O. An unmeasured step only prepares the drive state, and a
simulated drive need not simulate time for it.

The initial state is determined by the user's option, or else by the file, or else by the loads. A
simulated SSD serves reads of unwritten addresses without accessing its flash, so the SSD is filled
first if the loads contain such reads. Without preconditioning, the drive retains its state, because
it is not purged and its write cache is not set.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NotRequired, Self, TypedDict

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import recipe, recipe_text
from writecliff.errors import ConfigError
from writecliff.input_files import as_type, only_keys
from writecliff.procedures.model import (
    History,
    Stage,
    Step,
    StepRow,
    TrackingVariable,
    step_seed,
)
from writecliff.procedures.pts import not_achieved, rounds_until_steady
from writecliff.procedures.user_load import UserLoadProcedure
from writecliff.workload.load import LoadStep, WorkloadFile
from writecliff.workload.model import KIB, Job, Workload
from writecliff.workload.stored import job_with, stored_steps
from writecliff.workload.unwritten import reads_unwritten

NONE, FILL = "none", "fill"
ASKED, BY_FILE, FOR_READS, NOT_NEEDED = (
    "as asked", "as the file asks", "for reads of what was never written", "not needed",
)  # fmt: skip


class _Stored(TypedDict):
    """The form of a load that manifests store."""

    file: str
    steps: list[Any]
    precondition: NotRequired[str]
    why: NotRequired[str]
    expect: NotRequired[list[str]]
    seed: NotRequired[int]
    scale: NotRequired[float | None]


@dataclass(frozen=True, kw_only=True)
class WorkloadRun(UserLoadProcedure):
    """The run of a workload file. `why` is the reason for the preconditioning."""

    name = "workload"
    file: str
    steps: tuple[LoadStep, ...]
    precondition: str = NONE
    why: str = NOT_NEEDED
    expect: tuple[str, ...] = ()  # Limits on figures, read from the file.
    seed: int = 1  # Seed for the drive's random choices; workloads have separate seeds.
    scale: float | None = None  # Factor by which a simulated drive is scaled down.

    @classmethod
    def of(
        cls,
        file: WorkloadFile,
        identity: DeviceIdentity,
        *,
        precondition: str | None = None,
        seed: int = 1,
    ) -> Self:
        """Return the run of `file` on a drive.

        `precondition` is the name of a recipe, which takes precedence over the file's recipe.

        Raises:
            ConfigError: If the recipe does not exist.
        """
        chosen, why = NONE, NOT_NEEDED
        if precondition is not None:
            chosen, why = precondition, ASKED
        elif file.precondition is not None:
            chosen, why = file.precondition, BY_FILE
        elif _needs_fill(file, identity):
            chosen, why = FILL, FOR_READS
        recipe_text(chosen)
        return cls(file=str(file.path), steps=file.steps, precondition=chosen, why=why,
                   expect=file.expect, seed=seed)  # fmt: skip

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Self:
        """Return the procedure whose `options_mapping` was `data`, as stored in a manifest."""
        as_type(data, _Stored, "options")
        only_keys(data, tuple(_Stored.__annotations__), "options")
        steps = stored_steps(data["steps"], "options: steps")
        return cls(**{**data, "steps": steps, "expect": tuple(data.get("expect", ()))})

    def options_mapping(self) -> dict[str, Any]:
        """Return all fields as JSON values, omitting empty optional fields."""
        unset = {name for name in ("expect", "scale") if not getattr(self, name)}
        values = {name: value for name, value in vars(self).items() if name not in unset}
        values |= {"expect": list(self.expect)} if self.expect else {}
        return {**values, "steps": list(map(asdict, self.steps))}

    def changed(self, key: str, text: str) -> Self:
        """Return the run with a value changed in its jobs.

        `key` is a field of all jobs, such as "queue_depth", or of one job, such as
        "log.queue_depth".

        Raises:
            ConfigError: If the job or field does not exist, or the value is invalid.
        """
        job, _, name = key.rpartition(".")
        names = {job.name for step in self.steps for job in step.workload.jobs}
        if job and job not in names:
            raise ConfigError.unknown("job", job, sorted(names), where=self.file)

        return self.with_jobs(
            lambda item: job_with(item, name, text) if job in ("", item.name) else item
        )

    def with_jobs(self, change: Callable[[Job], Job]) -> Self:
        """Return the run with a change to every job of its steps."""

        def made(load: Workload) -> Workload:
            return replace(load, jobs=tuple(map(change, load.jobs)))

        steps = (replace(step, workload=made(step.workload)) for step in self.steps)
        return replace(self, steps=tuple(steps))

    @property
    def title(self) -> str:
        """The title in reports, which is the name of the file."""
        return f"Workload {Path(self.file).stem}"

    @property
    def command(self) -> Sequence[str]:
        """The command that runs a workload file."""
        return ("writecliff", "run")

    @property
    def definition(self) -> str:
        """A short digest of the loads, including seeds, which is the same for equal runs."""
        text = json.dumps(list(map(asdict, self.steps)), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def writes(self) -> bool:
        """`True` if any step changes the drive's data."""
        jobs = (job for step in self.steps for job in step.workload.jobs)
        return self.precondition != NONE or any(
            job.read_pct < 100 or job.log or job.model for job in jobs
        )

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (file, definition, steps and jobs)."""
        jobs = [job for step in self.steps for job in step.workload.jobs]
        compressible = {job.compressible_pct for job in jobs}
        share = compressible.pop() if len(compressible) == 1 else None
        return {
            "subtitle": f"Workload - {Path(self.file).name}",
            "data_pattern": "by job" if share is None else f"{share:g}% compr." if share else "RND",
            "active_range": "by job",
            "ar_segments": "N/A",
            "precondition": recipe_text(self.precondition),
            "test: Workload": Path(self.file).name,
            "test: Definition": self.definition,
            "test: Steps": str(len(self.steps)),
            "test: Jobs": str(len(jobs)),
            "test: Threads, most": str(max(sum(j.threads for j in s.workload.jobs)
                                           for s in self.steps)),
        }  # fmt: skip

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return a stage for each step in the file."""
        return [self._stage(number, step, identity) for number, step in enumerate(self.steps, 1)]

    def _stage(self, number: int, step: LoadStep, identity: DeviceIdentity) -> Stage:
        more: dict[str, Any] = {}
        if number == 1 and self.precondition != NONE:
            more = {"purge": True, "state": recipe(self.precondition, identity.capacity_bytes,
                                                    seed=self.seed)}  # fmt: skip
        phase, title = phase_of(number), step.workload.name
        if not step.until_steady:
            return Stage.once(phase, title, _round(step, 1), **more)
        return rounds_until_steady(
            lambda number: _round(step, number),
            step.max_rounds,
            *_tracking(step.workload),
            title=title,
            phase=phase,
            continuous=_by_duration(step.workload),
            **more,
        )

    def load_of(self, phase: str) -> Workload | None:
        """Return the load of a phase of `writecliff run`."""
        loads = {phase_of(number): step.workload for number, step in enumerate(self.steps, 1)}
        return loads.get(phase)

    def warnings(self, history: History) -> Sequence[str]:
        """Report the steps that did not become steady."""
        texts = []
        for number, step in enumerate(self.steps, 1):
            stage = history.stages.get(phase_of(number))
            if step.until_steady and stage is not None and not_achieved(stage):
                name = step.workload.name
                texts.append(f"'{name}' was not steady after {stage.rounds_done} rounds")
        return texts

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the initial state and the steps, in order."""
        return [*self._beginning(), *(_sentence(step) for step in self.steps)]

    def _beginning(self) -> Iterator[str]:
        if self.precondition == NONE:
            yield "the drive in its current state"
        else:
            yield f"purge, then {recipe_text(self.precondition)} ({self.why})"


def phase_of(number: int) -> str:
    """Return the phase of the rows for step `number` in a file, counted from 1."""
    return f"step-{number}"


def _needs_fill(file: WorkloadFile, identity: DeviceIdentity) -> bool:
    """Return `True` if loads would read unwritten addresses of a simulated SSD.

    A drive that has no flash reads unwritten addresses like written addresses, and a real drive may
    have been written before.
    """
    if identity.without_flash or not identity.simulated:
        return False
    return reads_unwritten(file.steps, identity.capacity_bytes)


def _round(step: LoadStep, number: int) -> Sequence[Step]:
    """Return the steps of a round, or of the single pass (round 1).

    Later rounds have different seeds, so that they do not write the same addresses again.
    """
    load = step.workload
    if step.rest_ns:  # The job reads data that the preconditioning has written.
        load = replace(load, jobs=tuple(replace(job, range_bytes=4 * KIB) for job in load.jobs))
    if number > 1:
        load = replace(load, seed=step_seed(load.seed, load.name, number))
    untimed = not step.measured and not step.rest_ns and _by_volume(load)
    name = load.name if not step.until_steady else f"{load.name}, round {number}"
    run = Step(name, load, sample=step.measured, untimed=untimed, batches=step.measured)
    return (run,)


def _by_duration(load: Workload) -> bool:
    return all(job.duration_ns and job.volume_bytes is None and job.ios is None
               for job in load.jobs)  # fmt: skip


def _by_volume(load: Workload) -> bool:
    """Return `True` if the load does not depend on the clock."""
    return all(job.duration_ns is None and job.rate_iops is None and job.rate_bytes_per_s is None
               for job in load.jobs)  # fmt: skip


def _tracking(load: Workload) -> Sequence[TrackingVariable]:
    """Return the tracking variables: IOPS, and also the latency for loads that have rates."""
    iops = TrackingVariable("IOPS", "IOPS", lambda rows: rows[-1].iops)
    if all(job.rate_iops is None and job.rate_bytes_per_s is None for job in load.jobs):
        return (iops,)
    return (iops, TrackingVariable("average service time", "µs", _mean_us))


def _mean_us(rows: Sequence[StepRow]) -> float:
    return (rows[-1].latency_mean_ns or 0.0) / 1e3


def _sentence(step: LoadStep) -> str:
    """Describe a step, for the plan of a run."""
    load = step.workload
    if step.rest_ns:
        return f"{load.name}: no I/O for {units.duration(step.rest_ns)}, then a single read"
    jobs = ", ".join(job.name for job in load.jobs)
    text = f"{load.name}: {jobs}" if [job.name for job in load.jobs] != [load.name] else load.name
    if any(job.ramp_ns for job in load.jobs):
        text += ", after a ramp"
    if step.until_steady:
        text += f", in rounds until steady state, {step.max_rounds} at most"
    return text if step.measured else f"{text}, only to prepare the state of the drive"
