"""Job files as steps: groups of jobs that run together, one group after the other.

Owns what is between jobs: stonewall, wait_for, reporting groups, ramps, start delays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from writecliff.errors import ConfigError
from writecliff.workload.fiojob.jobs import SectionJobs, section_jobs
from writecliff.workload.fiojob.options import FioOptions
from writecliff.workload.fiojob.settings import Settings, written_options
from writecliff.workload.fiojob.syntax import SourceLocation, fail, read_sections
from writecliff.workload.model import SECOND_NS, Job, Workload

FIO_SEED = 0x89  # fio's default of randseed


@dataclass(frozen=True)
class FioSection:
    """One job section: what fio's JSON tells of it, and which jobs of the step are its own."""

    name: str
    options: Mapping[str, str]  # as written, canonical names
    settings: FioOptions
    group_id: int
    jobs: tuple[int, ...]  # indices into the step's workload


@dataclass(frozen=True)
class FioStep:
    """Jobs that run together. `ramp` runs just before, without being reported."""

    workload: Workload
    sections: tuple[FioSection, ...]
    ramp: Workload | None = None


@dataclass(frozen=True)
class FioJobFile:
    """A job file, ready to run. `notes` say what differs from fio, for the user to see."""

    path: Path
    global_options: Mapping[str, str]
    steps: tuple[FioStep, ...]
    notes: tuple[str, ...]

    @property
    def workloads(self) -> list[Workload]:
        """Everything in the order of its run, ramps included."""
        ordered: list[Workload] = []
        for step in self.steps:
            ordered += [step.workload] if step.ramp is None else [step.ramp, step.workload]
        return ordered


@dataclass
class _Open:
    """A step that is being collected."""

    members: list[tuple[Settings, SectionJobs, int, Mapping[str, str]]] = field(
        default_factory=list
    )

    def names(self) -> set[str]:
        return {jobs.name for _, jobs, _, _ in self.members}


def load_fio_job(
    path: str | Path,
    *,
    device_capacity_bytes: int,
    sections: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> FioJobFile:
    """Read a fio job file for a drive of this capacity.

    `sections` runs only these jobs, as fio's --section; `environment` replaces the process's for
    ${NAME}. Raises `ConfigError` naming file, line and option for whatever is not understood or
    cannot be honoured; nothing is left out silently.
    """
    file = Path(path)
    defaults = Settings(section="global", location=SourceLocation(file, 0))
    global_options: dict[str, str] = {}
    collected: list[_Open] = [_Open()]
    found: set[str] = set()
    group_id, in_group = 0, 0
    for raw in read_sections(file, environment):
        if raw.is_global:
            defaults.apply(raw.options)
            global_options |= written_options(raw.options)
            continue
        if sections and raw.name not in sections:
            continue
        found.add(raw.name)
        settings = defaults.child(raw)
        jobs = section_jobs(settings, device_capacity_bytes)
        if (settings.stonewall or settings.new_group) and in_group:
            group_id, in_group = group_id + 1, 0
        in_group += 1
        if _begins_step(settings, collected):
            collected.append(_Open())
        collected[-1].members.append((settings, jobs, group_id, written_options(raw.options)))
    _check_found(file, sections, found)
    return _finish(file, global_options, [step for step in collected if step.members])


def read_fio_job(path: str | Path, *, device_capacity_bytes: int) -> list[Workload]:
    """The workloads of a job file, to be run one after the other. See `load_fio_job`."""
    return load_fio_job(path, device_capacity_bytes=device_capacity_bytes).workloads


def _check_found(file: Path, sections: tuple[str, ...], found: set[str]) -> None:
    for name in sections:
        if name not in found:
            raise ConfigError(f"{file}: has no job section [{name}]")


def _begins_step(settings: Settings, collected: list[_Open]) -> bool:
    """Whether a job waits for all before it. Raises if it waits for only some of them."""
    current = collected[-1]
    if settings.stonewall:
        return bool(current.members)
    awaited = settings.wait_for
    if awaited is None:
        return False
    if awaited in current.names():
        if current.names() != {awaited}:
            raise fail(
                settings.location_of("wait_for"),
                f"wait_for={awaited}: waiting for only some of the running jobs is not available",
                "use stonewall, which waits for all of them",
            )
        return True
    if any(awaited in step.names() for step in collected):
        return False  # already over
    raise fail(settings.location_of("wait_for"), f"wait_for={awaited}: no job of that name before")


def _finish(path: Path, global_options: dict[str, str], collected: list[_Open]) -> FioJobFile:
    """Steps of the collected groups, with checks that concern several jobs."""
    notes = _target_notes(collected)
    steps = []
    for index, group in enumerate(collected):
        name = path.stem if len(collected) == 1 else f"{path.stem}-{index + 1}"
        _check_exitall(group)
        steps.append(_step(name, group, first=index == 0, notes=notes))
        for _, jobs, _, _ in group.members:
            notes += jobs.notes
    return FioJobFile(path, global_options, tuple(steps), tuple(dict.fromkeys(notes)))


def _target_notes(collected: list[_Open]) -> list[str]:
    """One drive takes the place of all names; jobs on different drives cannot be one run."""
    names: dict[str, Settings] = {}
    for group in collected:
        for settings, jobs, _, _ in group.members:
            if jobs.filename is not None:
                names.setdefault(jobs.filename, settings)
    if len(names) > 1:
        second = list(names.values())[1]
        raise fail(
            second.location_of("filename"),
            f"jobs name different drives ({', '.join(names)}); a run has one",
            "run the jobs of each drive alone (its sections)",
        )
    return [f"filename={name}: replaced by the drive of the run" for name in names]


def _check_exitall(group: _Open) -> None:
    threads = sum(len(jobs.jobs) for _, jobs, _, _ in group.members)
    for settings, _, _, _ in group.members:
        if settings.exitall and threads > 1:
            raise fail(
                settings.location_of("exitall"),
                "exitall: jobs that end because another one ends are not available",
                "give all of them the same runtime",
            )


def _step(name: str, group: _Open, *, first: bool, notes: list[str]) -> FioStep:
    jobs: list[Job] = []
    sections = []
    for settings, own, group_id, options in group.members:
        indices = tuple(range(len(jobs), len(jobs) + len(own.jobs)))
        jobs += own.jobs
        sections.append(FioSection(own.name, options, settings, group_id, indices))
    _check_delays(group, jobs, first)
    workload = Workload(name, tuple(jobs), _seed(group, notes), _interval_ns(group))
    return FioStep(workload, tuple(sections), _ramp(workload, group))


def _check_delays(group: _Open, jobs: list[Job], first: bool) -> None:
    """fio counts start delays from its own start, not from that of the step."""
    if first and not any(own.ramp_ns for _, own, _, _ in group.members):
        return
    for settings, own, _, _ in group.members:
        if any(job.start_delay_ns for job in own.jobs):
            what = "after ramp_time" if first else "in a job that waits for others"
            raise fail(
                settings.location_of("startdelay"),
                f"startdelay {what} is not available: fio counts it from its own start",
                "leave it out, or put the job first",
            )


def _seed(group: _Open, notes: list[str]) -> int:
    seeds = [own.seed for _, own, _, _ in group.members if own.seed is not None]
    if len(set(seeds)) > 1:
        notes.append(f"randseed differs between jobs; {seeds[0]} is the seed of all of them")
    return seeds[0] if seeds else FIO_SEED


def _interval_ns(group: _Open) -> int:
    widths = [settings.log_avg_msec for settings, _, _, _ in group.members]
    given = [width for width in widths if width]
    return min(given) * 1_000_000 if given else SECOND_NS


def _ramp(workload: Workload, group: _Open) -> Workload | None:
    """The same load for the time of the ramp. fio keeps running; a step of its own is as good."""
    ramps = {own.ramp_ns for _, own, _, _ in group.members}
    if ramps == {0}:
        return None
    if len(ramps) > 1:
        settings = next(settings for settings, own, _, _ in group.members if own.ramp_ns)
        raise fail(
            settings.location_of("ramp_time"),
            "ramp_time differs between jobs that run together",
            "put it into [global]",
        )
    duration_ns = ramps.pop()
    jobs = tuple(
        replace(job, duration_ns=duration_ns, volume_bytes=None, ios=None) for job in workload.jobs
    )
    return replace(workload, name=f"{workload.name}-ramp", jobs=jobs)
