"""Runs of a choice, in which each candidate is preconditioned and then runs the load.

To save time, drives are simulated at reduced scale (`engines/scaled.py`). All drives run at a
coarse level, and drives that could win also run at finer levels (`levels.py`). The guide to
`choose` states the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from writecliff.choice.candidates import target_of
from writecliff.choice.levels import FINE, LEVELS, Level, at_level
from writecliff.choice.question import Question, label_of
from writecliff.engines.sim import SimEngine
from writecliff.engines.target import SIMULATED, open_target
from writecliff.errors import ConfigError
from writecliff.procedures.workload import WorkloadRun
from writecliff.suite.folder import Member
from writecliff.suite.sweep import OVERPROVISION, changed_device
from writecliff.workload.load import load_workload
from writecliff.workload.model import Job

# Default initial state if neither the user nor the load specifies a state.
PRECONDITION = "sustained"
Change = Callable[[WorkloadRun], WorkloadRun]


@dataclass(frozen=True)
class Contender:
    """A drive as it is simulated.

    Attributes:
        name: Name of the drive's row and runs.
        drive: Candidate that the drive is derived from.
        target: Target of the drive's runs.
    """

    name: str
    drive: str
    target: str


@dataclass(frozen=True)
class Plan:
    """The planned runs of a choice.

    Attributes:
        contenders: Drives, in candidate order.
        steps: Runs, by contender name and seed. The first step includes all contenders, and later
            steps repeat a contender at a finer level.
        levels: Levels by contender name, one for each step that includes the contender.
        devices: Device files to write, by path.
    """

    contenders: tuple[Contender, ...]
    steps: Sequence[Mapping[tuple[str, int], Member]]
    levels: Mapping[str, Sequence[Level]]
    devices: Mapping[Path, str]


def plan_choice(question: Question, folder: Path) -> Plan:
    """Return the runs that decide `question`, but do not write any file.

    Raises:
        ConfigError: If the load or a drive cannot be read, the load does not fit on a drive, or two
            candidates have the same name.
    """
    contenders: dict[str, Contender] = {}
    devices: dict[Path, str] = {}
    for drive in question.candidates:
        made = [Contender(label_of(drive), drive, target_of(drive))]
        for spare in question.spare_pct:
            contender, text = with_spare(made[0], spare, folder)
            devices[device_path(contender)] = text
            made.append(contender)
        for contender in made:
            if contender.name in contenders:
                raise ConfigError(
                    f"two candidates have the name {contender.name}",
                    hint="rename one of the device files",
                )
            contenders[contender.name] = contender
    steps: list[dict[tuple[str, int], Member]] = [{} for _ in LEVELS]
    levels: dict[str, list[Level]] = {}
    for contender in contenders.values():
        device_file = devices.get(device_path(contender))
        of_contender = levels.setdefault(contender.name, [])
        earlier: Mapping[int, Member] = {}
        for level in (FINE,) if question.exhaustive else LEVELS:
            members = {
                seed: member_of(question, contender, seed, text=device_file, level=level)
                for seed in range(1, question.seeds + 1)
            }
            if members == earlier:  # The drives cannot be scaled down further.
                of_contender[-1] = level
                continue
            step = steps[len(of_contender)]
            step.update({(contender.name, seed): member for seed, member in members.items()})
            of_contender.append(level)
            earlier = members
    return Plan(tuple(contenders.values()), [step for step in steps if step], levels, devices)


def with_spare(contender: Contender, spare_pct: float, folder: Path) -> tuple[Contender, str]:
    """Return the drive with different over-provisioning, and the text of its device file.

    Args:
        contender: Drive to change.
        spare_pct: Over-provisioning in percent.
        folder: Folder for the new device file.

    Raises:
        ConfigError: If the drive has no flash, or does not support this over-provisioning.
    """
    text = changed_device(contender.target, {OVERPROVISION: spare_pct})
    name = f"{contender.name}-op{spare_pct:g}"
    return Contender(name, contender.drive, f"{SIMULATED}{folder.resolve() / name}.toml"), text


def device_path(contender: Contender) -> Path:
    """Return the device file path of a contender that is not a preset."""
    return Path(contender.target.removeprefix(SIMULATED))


def member_of(
    question: Question,
    contender: Contender,
    seed: int,
    change: Change | None = None,
    *,
    text: str | None = None,
    level: Level = FINE,
) -> Member:
    """Return a run of the load on a contender.

    Args:
        question: Question that contains the load and its options.
        contender: Drive to run the load on.
        seed: Random seed of the run.
        change: Change to the run, if any.
        text: Text of the contender's device file, if the file is not written yet.
        level: Simulation level.

    Raises:
        ConfigError: If the load or the drive cannot be read, or the load does not fit on the drive.
    """
    given = None if text is None else (text, str(device_path(contender)))
    with closing(open_target(contender.target, seed=seed, device_file=given)) as engine:
        identity = engine.identify()
        file = load_workload(question.workload, capacity_bytes=identity.capacity_bytes)
        asked = question.precondition
        if asked is None and file.precondition is None:
            asked = PRECONDITION
        run = WorkloadRun.of(file, identity, precondition=asked, seed=seed)
        if seed > 1:
            seeded = (step.seeded(step.workload.seed + seed - 1) for step in run.steps)
            run = replace(run, steps=tuple(seeded))
        if (length_ns := question.duration_ns) is not None:
            run = run.with_jobs(lambda job: _lasting(job, length_ns))
        run = replace(change(run) if change is not None else run, expect=())
        jobs = [job for step in run.steps for job in step.workload.jobs]
        # The addresses in a trace cannot be scaled.
        if isinstance(engine, SimEngine) and not any(job.model or job.log for job in jobs):
            run = at_level(run, engine, question, level)
    return Member(run.name, run.options_mapping(), contender.target, {"drive": contender.name})


def _lasting(job: Job, length_ns: int) -> Job:
    return job if job.duration_ns is None else replace(job, duration_ns=length_ns)
