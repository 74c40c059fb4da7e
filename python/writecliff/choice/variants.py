"""Variants of a choice, which repeat runs of the top drives with a single change each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from writecliff.choice.plan import Change, Contender, device_path, member_of, with_spare
from writecliff.choice.question import Question
from writecliff.devices import DeviceDescription, show_device
from writecliff.engines.target import SIMULATED
from writecliff.errors import ConfigError
from writecliff.procedures.workload import WorkloadRun
from writecliff.suite.folder import Member
from writecliff.workload.model import Job

FIRST = 3  # Number of top drives that are run again.
SPARE_PCT = 28.0
# Above this over-provisioning, a variant would hardly differ from the drive.
_LESS_SPARE_PCT = SPARE_PCT - 3
RATE_FACTOR = 1.25


@dataclass(frozen=True)
class Variant:
    """A change, and the runs of the drives that the change applies to.

    Attributes:
        key: Short name such as "spare", which is part of run names.
        text: Description such as "28 % over-provisioning".
        members: Runs, by contender name. Drives that are not included retain their figures.
            devices: Device files to write, by path.
    """

    key: str
    text: str
    members: Mapping[str, Member]
    devices: Mapping[Path, str]


def plan_variants(
    question: Question, first: Sequence[Contender], folder: Path
) -> Iterator[Variant]:
    """Yield the variants that apply to a drive in `first`, but do not write any file."""
    yield from _spare(question, first, folder)
    for key, text, change in _CHANGES:
        members = {}
        for contender in first:
            device = show_device(contender.target.removeprefix(SIMULATED))
            member = _changed(question, contender, change, device)
            if member is not None:
                members[contender.name] = member
        if members:
            yield Variant(key, text, members, {})
    if question.seeds == 1:
        again = {contender.name: member_of(question, contender, seed=2) for contender in first}
        yield Variant("seed", "another seed", again, {})


def _spare(question: Question, first: Sequence[Contender], folder: Path) -> Iterator[Variant]:
    members, devices = {}, {}
    for contender in first:
        device = show_device(contender.target.removeprefix(SIMULATED))
        if device.overprovision_pct is None or device.overprovision_pct > _LESS_SPARE_PCT:
            continue
        made, text = with_spare(contender, SPARE_PCT, folder)
        try:
            members[contender.name] = member_of(question, made, seed=1, text=text)
        except ConfigError:  # The load needs the full capacity.
            continue
        devices[device_path(made)] = text
    if members:
        yield Variant("spare", f"{SPARE_PCT:g} % over-provisioning", members, devices)


def _changed(
    question: Question, contender: Contender, change: _Make, device: DeviceDescription
) -> Member | None:
    """Return the changed run, or `None` if the change does not affect the run."""
    changes = 0

    def counted(run: WorkloadRun) -> WorkloadRun:
        nonlocal changes
        made = change(device)(run)
        changes += made != run
        return made

    member = member_of(question, contender, seed=1, change=counted)
    return member if changes else None


_Make = Callable[[DeviceDescription], Change]


def _each_job(change: Callable[[Job], Job]) -> _Make:
    return lambda device: lambda run: run.with_jobs(change)


def _deeper(job: Job) -> Job:
    return job if job.is_scheduled else replace(job, queue_depth=2 * job.queue_depth)


def _shallower(job: Job) -> Job:
    return job if job.is_scheduled else replace(job, queue_depth=max(1, job.queue_depth // 2))


def _faster(job: Job) -> Job:
    iops, rate = job.rate_iops, job.rate_bytes_per_s
    return replace(
        job,
        rate_iops=None if iops is None else iops * RATE_FACTOR,
        rate_bytes_per_s=None if rate is None else rate * RATE_FACTOR,
    )


def _streams(device: DeviceDescription) -> Change:
    """Assign each writing job a separate stream, up to the drive's number of streams."""

    def change(run: WorkloadRun) -> WorkloadRun:
        jobs = [job for step in run.steps for job in step.workload.jobs if job.read_pct < 100]
        if len(jobs) < 2 or device.streams < 2 or any(job.stream or job.streams for job in jobs):
            return run
        names = [*dict.fromkeys(job.name for job in jobs)]
        return run.with_jobs(
            lambda job: (
                replace(job, stream=names.index(job.name) % device.streams)
                if job.name in names
                else job
            )
        )

    return change


_CHANGES: Sequence[tuple[str, str, _Make]] = (
    ("deeper", "twice the queue depth", _each_job(_deeper)),
    ("shallower", "half the queue depth", _each_job(_shallower)),
    ("faster", f"{100 * (RATE_FACTOR - 1):g} % more I/O", _each_job(_faster)),
    ("streams", "a stream for each job that writes", _streams),
)
