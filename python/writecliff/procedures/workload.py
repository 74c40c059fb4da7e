"""A load of one's own: the steps of a workload file or fio job file on a drive, as a run.

Each step of the file is a stage. A load runs once, or in rounds until steady state by the rule of
the PTS; a rest is a step without I/O; a step that is not measured only matters for the state of the
drive, and a simulated one need not simulate time for it.

The state that the first step begins in is what the user asks for, else what the file asks for, else
what the loads need: a simulated SSD answers reads of addresses that nothing has written without its
flash, so it is filled first if there are such reads. Without preconditioning the drive is left as
it is: neither purged nor is its write cache set.
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
from writecliff.procedures.own import OwnProcedure
from writecliff.procedures.pts import not_achieved, rounds_until_steady
from writecliff.workload.load import LoadStep, WorkloadFile
from writecliff.workload.model import KIB, Job, Workload
from writecliff.workload.stored import job_with, stored_steps
from writecliff.workload.unwritten import reads_unwritten

NONE, FILL = "none", "fill"
ASKED, BY_FILE, FOR_READS, NOT_NEEDED = (
    "as asked", "as the file asks", "for reads of what was never written", "not needed",
)  # fmt: skip


class _Stored(TypedDict):
    """What manifests have of a load beside its steps."""

    file: str
    steps: list[Any]
    precondition: NotRequired[str]
    why: NotRequired[str]
    expect: NotRequired[list[str]]
    seed: NotRequired[int]
    scale: NotRequired[float | None]


@dataclass(frozen=True, kw_only=True)
class WorkloadRun(OwnProcedure):
    """The run of a file. `why` says what decided the preconditioning."""

    name = "workload"
    file: str
    steps: tuple[LoadStep, ...]
    precondition: str = NONE
    why: str = NOT_NEEDED
    expect: tuple[str, ...] = ()  # limits on figures, of the file
    seed: int = 1  # of the drive's own random choices; workloads have theirs
    scale: float | None = None  # how many times smaller a simulated drive is made

    @classmethod
    def of(
        cls,
        file: WorkloadFile,
        identity: DeviceIdentity,
        *,
        precondition: str | None = None,
        seed: int = 1,
    ) -> Self:
        """The run of `file` on a drive; `precondition` (a recipe) goes before what the file asks
        for. Raises ConfigError: no such recipe.
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
        """The procedure whose `options_mapping` was `data`, as a manifest has it."""
        as_type(data, _Stored, "options")
        only_keys(data, tuple(_Stored.__annotations__), "options")
        steps = stored_steps(data["steps"], "options: steps")
        return cls(**{**data, "steps": steps, "expect": tuple(data.get("expect", ()))})

    def options_mapping(self) -> dict[str, Any]:
        unset = {name for name in ("expect", "scale") if not getattr(self, name)}
        own = {name: value for name, value in vars(self).items() if name not in unset}
        own |= {"expect": list(self.expect)} if self.expect else {}
        return {**own, "steps": list(map(asdict, self.steps))}

    def changed(self, key: str, text: str) -> Self:
        """The same run with another value in its jobs: `key` is a field of all, "queue_depth", or
        of one, "log.queue_depth". Raises ConfigError: no such job or field, an invalid value.
        """
        job, _, name = key.rpartition(".")
        known = {one.name for step in self.steps for one in step.workload.jobs}
        if job and job not in known:
            raise ConfigError.unknown("job", job, sorted(known), where=self.file)

        return self.with_jobs(
            lambda one: job_with(one, name, text) if job in ("", one.name) else one
        )

    def with_jobs(self, change: Callable[[Job], Job]) -> Self:
        """The same run with every job of its steps changed."""

        def made(load: Workload) -> Workload:
            return replace(load, jobs=tuple(map(change, load.jobs)))

        steps = (replace(step, workload=made(step.workload)) for step in self.steps)
        return replace(self, steps=tuple(steps))

    @property
    def title(self) -> str:
        return f"Workload {Path(self.file).stem}"

    @property
    def command(self) -> Sequence[str]:
        return ("writecliff", "run")

    @property
    def definition(self) -> str:
        """Digits that tell whether two runs were of the same loads, seeds included."""
        text = json.dumps(list(map(asdict, self.steps)), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def writes(self) -> bool:
        """Whether anything of it changes the data of the drive."""
        jobs = (job for step in self.steps for job in step.workload.jobs)
        return self.precondition != NONE or any(
            job.read_pct < 100 or job.log or job.model for job in jobs
        )

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
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
        known = {phase_of(number): step.workload for number, step in enumerate(self.steps, 1)}
        return known.get(phase)

    def warnings(self, history: History) -> Sequence[str]:
        found = []
        for number, step in enumerate(self.steps, 1):
            stage = history.stages.get(phase_of(number))
            if step.until_steady and stage is not None and not_achieved(stage):
                name = step.workload.name
                found.append(f"'{name}' was not steady in {stage.rounds_done} rounds")
        return found

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        return [*self._beginning(), *(_sentence(step) for step in self.steps)]

    def _beginning(self) -> Iterator[str]:
        if self.precondition == NONE:
            yield "the drive as it is"
        else:
            yield f"purge, then {recipe_text(self.precondition)} ({self.why})"


def phase_of(number: int) -> str:
    """The phase of the rows of step `number` of a file, from 1."""
    return f"step-{number}"


def _needs_fill(file: WorkloadFile, identity: DeviceIdentity) -> bool:
    """Whether loads would read what nothing has written. A drive without flash reads it as
    anything else, and a real drive may have been written before.
    """
    if identity.without_flash or not identity.simulated:
        return False
    return reads_unwritten(file.steps, identity.capacity_bytes)


def _round(step: LoadStep, number: int) -> Sequence[Step]:
    """The steps of a round, or of the only pass (1). Later rounds have seeds of their own, so that
    they do not write the same addresses again.
    """
    load = step.workload
    if step.rest_ns:  # its read finds what the drive was preconditioned with
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
    """Whether the load needs no clock."""
    return all(job.duration_ns is None and job.rate_iops is None and job.rate_bytes_per_s is None
               for job in load.jobs)  # fmt: skip


def _tracking(load: Workload) -> Sequence[TrackingVariable]:
    """IOPS; with rates, which set them, the latency too."""
    iops = TrackingVariable("IOPS", "IOPS", lambda rows: rows[-1].iops)
    if all(job.rate_iops is None and job.rate_bytes_per_s is None for job in load.jobs):
        return (iops,)
    return (iops, TrackingVariable("average service time", "µs", _mean_us))


def _mean_us(rows: Sequence[StepRow]) -> float:
    return (rows[-1].latency_mean_ns or 0.0) / 1e3


def _sentence(step: LoadStep) -> str:
    """What a step does, for the plan of a run."""
    load = step.workload
    if step.rest_ns:
        return f"{load.name}: no I/O for {units.duration(step.rest_ns)}, then a single read"
    jobs = ", ".join(job.name for job in load.jobs)
    text = f"{load.name}: {jobs}" if [job.name for job in load.jobs] != [load.name] else load.name
    if any(job.ramp_ns for job in load.jobs):
        text += ", after a ramp"
    if step.until_steady:
        text += f", in rounds until steady state, {step.max_rounds} at most"
    return text if step.measured else f"{text}, for the state of the drive alone"
