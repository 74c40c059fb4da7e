"""Conversion of job files to steps, which are groups of jobs that run together.

This module handles options that concern several jobs, namely stonewall, wait_for, reporting groups
and start delays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from writecliff.errors import ConfigError, printable
from writecliff.workload.fiojob.blocks import PROTECTION_INFORMATION
from writecliff.workload.fiojob.jobs import section_jobs
from writecliff.workload.fiojob.options import FioOptions
from writecliff.workload.fiojob.settings import Settings, written_options
from writecliff.workload.fiojob.steadiness import interval_ns
from writecliff.workload.fiojob.syntax import (
    TOGETHER_MAX,
    RawSection,
    SourceLocation,
    read_sections,
)
from writecliff.workload.fiojob.target import named_file
from writecliff.workload.fiojob.zones import check_shared, with_state
from writecliff.workload.model import SECOND_NS, Job, Workload


@dataclass(frozen=True)
class FioSection:
    """A job section, with its options, its group, and its jobs in the step."""

    name: str
    options: Mapping[str, str]  # Option values as written, under canonical names.
    settings: FioOptions
    group_id: int
    jobs: tuple[int, ...]  # Job indices in the step's workload.


@dataclass(frozen=True)
class FioStep:
    """A group of jobs that run at the same time."""

    workload: Workload
    sections: tuple[FioSection, ...]


@dataclass(frozen=True)
class FioJobFile:
    """A converted job file, with `notes` that describe differences from fio."""

    path: Path
    global_options: Mapping[str, str]
    steps: tuple[FioStep, ...]
    notes: tuple[str, ...]

    @property
    def workloads(self) -> list[Workload]:
        """All workloads in execution order."""
        return [step.workload for step in self.steps]


@dataclass(frozen=True)
class _Section:
    """A converted job section."""

    settings: Settings
    jobs: tuple[Job, ...]
    group_id: int
    written: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.settings.job_name


_Group = list[_Section]  # Sections of a single step.


def load_fio_job(
    path: str | Path,
    *,
    device_capacity_bytes: int,
    sections: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> FioJobFile:
    """Read a fio job file for a drive with this capacity.

    `sections` selects jobs like fio's --section, and `environment` replaces the process environment
    for ${NAME}.

    Raises:
        ConfigError: The error message lists all invalid and unsupported options with file and line.
    """
    file = Path(path)
    problems: list[ConfigError] = []
    read = read_sections(file, environment, problems)
    return of_sections(file, read, device_capacity_bytes, sections, problems)


def of_sections(
    file: Path,
    read: Iterable[RawSection],
    capacity_bytes: int,
    sections: tuple[str, ...],
    problems: list[ConfigError],
) -> FioJobFile:
    """Convert sections to a job file; `problems` contains the errors collected so far."""
    defaults = Settings(section="global", location=SourceLocation(file, 0), problems=problems)
    global_options: dict[str, str] = {}
    steps: list[_Group] = [[]]
    names: set[str] = set()
    group_id, in_group = 0, 0
    for raw in read:
        if raw.is_global:
            defaults.apply(raw.options)
            defaults.failed |= not raw.is_whole
            global_options |= written_options(raw.options)
            continue
        if sections and raw.name not in sections:
            continue
        names.add(raw.name)
        before = len(problems)
        settings = defaults.child(raw)
        # Invalid options would cause confusing errors later.
        understood = raw.is_whole and len(problems) == before and not defaults.failed
        jobs = settings.attempt(section_jobs, settings, capacity_bytes) if understood else ()
        if (settings.stonewall or settings.new_group) and in_group:
            group_id, in_group = group_id + 1, 0
        in_group += 1
        if settings.attempt(_begins_step, settings, steps):
            steps.append([])
        steps[-1].append(_Section(settings, jobs or (), group_id, written_options(raw.options)))
        settings.attempt(_check_together, settings, steps[-1])
    problems += [
        ConfigError(f"{file}: has no job section [{name}]")
        for name in sections
        if name not in names
    ]
    groups = [step for step in steps if step]
    notes = defaults.attempt(_target_notes, groups)
    if not problems:
        return _finish(file, global_options, groups, notes or [], problems)
    raise all_of(file, problems)


def all_of(file: Path, problems: list[ConfigError]) -> ConfigError:
    """Return an error that lists each distinct problem in a file."""
    unique = list({str(problem): problem for problem in problems}.values())
    if len(unique) == 1:
        return unique[0]
    lines = (f"{problem} ({problem.hint})" if problem.hint else str(problem) for problem in unique)
    return ConfigError(f"{file}: the file has {len(unique)} problems\n  " + "\n  ".join(lines))


def read_fio_job(path: str | Path, *, device_capacity_bytes: int) -> list[Workload]:
    """Return a job file's workloads in execution order (see `load_fio_job`)."""
    return load_fio_job(path, device_capacity_bytes=device_capacity_bytes).workloads


def _check_together(settings: Settings, step: _Group) -> None:
    """Raise ConfigError if too many jobs would run at the same time."""
    count = sum(len(section.jobs) for section in step)
    if count > TOGETHER_MAX:
        raise settings.error(
            "numjobs",
            f"{count:,} concurrent jobs exceed the limit of {TOGETHER_MAX:,}",
            "use group_reporting, which makes each section a single job, or stonewall",
        )


def _begins_step(settings: Settings, steps: list[_Group]) -> bool:
    """Return `True` if a job waits for all previous jobs; raise ConfigError if only for some."""
    if settings.stonewall:
        return bool(steps[-1])
    awaited = settings.wait_for
    if awaited is None:
        return False
    running = {section.name for section in steps[-1]}
    if awaited in running:
        if running != {awaited}:
            raise settings.error(
                "wait_for",
                f"wait_for={awaited}: waiting for only some of the running jobs is not supported",
                "use stonewall, which waits for all running jobs",
            )
        return True
    if any(awaited == section.name for step in steps for section in step):
        return False  # The section has already ended.
    raise settings.error("wait_for", f"wait_for={awaited}: no earlier job has this name")


def _finish(
    path: Path,
    global_options: dict[str, str],
    groups: list[_Group],
    notes: list[str],
    problems: list[ConfigError],
) -> FioJobFile:
    """Return the steps for the sections, after checks that concern several jobs."""
    steps = []
    spent_ns: int | None = 0
    for index, group in enumerate(groups):
        stem = printable(path.stem)
        name = stem if len(groups) == 1 else f"{stem}-{index + 1}"
        settings = group[0].settings
        before = [job for earlier in groups[:index] for section in earlier for job in section.jobs]
        zones_written = any(job.host_zones and job.read_pct < 100 for job in before)
        step = settings.attempt(
            _step, name, group, spent_ns=spent_ns, zones_written=zones_written, notes=notes
        )
        spent_ns = _sum(spent_ns, _length_ns(group, spent_ns))
        steps += [step] if step else []
        notes += (note for section in group for note in section.settings.notes)
        if any(s.settings.exitall and s.settings.exit_what == "all" for s in group):
            if index + 1 < len(groups):
                notes.append(f"exit_what=all: the steps after {name} do not run")
            break
    if problems:
        raise all_of(path, problems)
    notes += _once(section.settings for group in groups for section in group)
    return FioJobFile(path, global_options, tuple(steps), tuple(dict.fromkeys(notes)))


def _once(every: Iterable[Settings]) -> Iterator[str]:
    """Yield notes that are shown only once for all jobs."""
    given = {name for settings in every for name in settings.locations}
    if "verify" in given:
        yield "verify: data are not stored, so verification is skipped"
    if given & PROTECTION_INFORMATION:
        yield "data and protection information are not stored, so nothing is checked"
    if given & {"prio", "prioclass", *(name for name in given if name.startswith("cmdprio"))}:
        yield "priorities have no effect: a simulated drive serves all alike"
    if "write_hist_log" in given:
        yield "write_hist_log: not written; the fio JSON has the bins"


def _target_notes(groups: list[_Group]) -> list[str]:
    """Return notes about replaced file names; raise ConfigError for jobs on different drives."""
    names: dict[str, Settings] = {}
    for section in (section for group in groups for section in group):
        filename = named_file(section.settings)
        if filename is not None:
            names.setdefault(filename, section.settings)
    drives = [name for name in names if name.startswith("/dev/")]
    if len(drives) > 1:
        raise names[drives[1]].error(
            "filename",
            f"the jobs name different drives ({', '.join(drives)}), but a run uses a single drive",
            "run the sections of each drive separately",
        )
    shared = "" if len(names) < 2 else ", whose addresses its jobs share"
    return [f"filename={name}: replaced by the drive of the run{shared}" for name in names]


def _ends_all(section: _Section, group: _Group) -> bool:
    """Return `True` if all jobs in the step stop when this section's jobs stop."""
    if not section.settings.exitall:
        return False
    mine = [other for other in group if other.group_id == section.group_id]
    if section.settings.exit_what != "group" or len(mine) == len(group):
        return True
    if sum(len(other.jobs) for other in mine) > 1:
        raise section.settings.error(
            "exitall exit_what",
            "exit_what=group: stopping only one of several reporting groups is not supported",
            "use exit_what=stonewall, which stops all jobs of the step",
        )
    return False


def _step(
    name: str, group: _Group, *, spent_ns: int | None, zones_written: bool, notes: list[str]
) -> FioStep:
    jobs: list[Job] = []
    sections = []
    delays_ns = [_delay_ns(section, spent_ns) for section in group]
    _check_delays(group, delays_ns)
    for section, delay_ns in zip(group, delays_ns, strict=True):
        indices = tuple(range(len(jobs), len(jobs) + len(section.jobs)))
        ends_all = _ends_all(section, group)
        jobs += (
            replace(job, ends_all=ends_all, start_delay_ns=delay_ns or 0) for job in section.jobs
        )
        sections.append(
            FioSection(section.name, section.written, section.settings, section.group_id, indices)
        )
    check_shared((section.settings, section.jobs) for section in group)
    in_state = with_state(jobs, written=zones_written, notes=notes)
    workload = Workload(name, in_state, _seed(group, notes), _interval_ns(group))
    return FioStep(workload, tuple(sections))


def _interval_ns(group: _Group) -> int:
    """Return a series interval that suits log_avg_msec and the measured end conditions."""
    widths = [section.settings.log_avg_msec for section in group if section.settings.log_avg_msec]
    needed = [needs for section in group if (needs := interval_ns(section.settings)) is not None]
    asked = [min(widths) * 1_000_000] if widths else []
    return math.gcd(*asked, *needed) or SECOND_NS


def _delay_ns(section: _Section, spent_ns: int | None) -> int | None:
    """Return the start delay that remains when a section's step starts, or `None` if unknown.

    fio counts start delays from its own start. The step starts `spent_ns` after fio's start.
    """
    asked_ns = section.settings.startdelay * 1000
    if not asked_ns:
        return 0
    return None if spent_ns is None else max(0, asked_ns - spent_ns)


def _length_ns(group: _Group, spent_ns: int | None) -> int | None:
    """Return a step's duration if all its jobs stop by time, otherwise `None`."""
    longest_ns = 0
    for section in group:
        delay_ns = _delay_ns(section, spent_ns)
        for job in section.jobs:
            ends = (job.volume_bytes, job.ios, job.until_steady, job.latency_target)
            if job.duration_ns is None or delay_ns is None or any(end is not None for end in ends):
                return None
            length_ns = delay_ns + job.ramp_ns + job.duration_ns
            longest_ns = max(longest_ns, length_ns)
    return None if any(section.settings.exitall for section in group) else longest_ns


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _check_delays(group: _Group, delays_ns: Sequence[int | None]) -> None:
    """Reject start delays whose remaining time is unknown."""
    for section, delay_ns in zip(group, delays_ns, strict=True):
        if delay_ns is None:
            raise section.settings.error(
                "startdelay",
                "startdelay requires a runtime for the previous step, because fio counts the "
                "delay from its own start",
                "set time_based and runtime for the previous jobs, or move the job to the front",
            )


def _seed(group: _Group, notes: list[str]) -> int:
    seeds = [section.settings.randseed for section in group if section.settings.given("randseed")]
    if len(set(seeds)) > 1:
        notes.append(
            f"randseed differs between jobs, so {seeds[0]} is used as the seed of all jobs"
        )
    return seeds[0] if seeds else group[0].settings.randseed
