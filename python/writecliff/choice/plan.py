"""Runs of a choice: the load on each candidate, after preconditioning.

To save time, drives are simulated scaled down by at most `question.scale`, and only as far as their
loads remain long enough to measure tails (`engines/scaled.py`). The guide to `choose` describes the
effect on tails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from writecliff.choice.candidates import target_of
from writecliff.choice.question import Question, label_of
from writecliff.engines.base import Engine, ScalableEngine
from writecliff.engines.target import SIMULATED, open_target
from writecliff.errors import ConfigError
from writecliff.procedures.scaling import SHORTEST_BURST_NS, possible_scales
from writecliff.procedures.workload import WorkloadRun
from writecliff.suite.folder import Member
from writecliff.suite.sweep import OVERPROVISION, changed_device
from writecliff.workload.load import load_workload
from writecliff.workload.model import SECOND_NS, Job

PRECONDITION = "sustained"  # default if neither the user nor the load sets one
SHORTEST_STEP_NS = 10 * SECOND_NS  # of a drive that is simulated scaled down
Change = Callable[[WorkloadRun], WorkloadRun]


@dataclass(frozen=True)
class Contender:
    """A drive as it is simulated.

    Attributes:
        name: the name of its row and of its runs.
        drive: the candidate from which it derives.
        target: the target of its runs.
    """

    name: str
    drive: str
    target: str


@dataclass(frozen=True)
class Plan:
    """Runs of a choice.

    Attributes:
        contenders: the drives, in the order of the candidates.
        members: the runs, by name of the contender and seed.
        devices: the device files to write, by path.
    """

    contenders: tuple[Contender, ...]
    members: Mapping[tuple[str, int], Member]
    devices: Mapping[Path, str]


def plan_choice(question: Question, folder: Path) -> Plan:
    """Return the runs that answer `question`, without writing anything.

    Raises:
        ConfigError: a load or a drive cannot be read, the load does not fit on a drive, or two
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
                    f"two candidates are named {contender.name}",
                    hint="rename one of the device files",
                )
            contenders[contender.name] = contender
    members = {
        (contender.name, seed): member_of(question, contender, seed, text=_text(contender, devices))
        for contender in contenders.values()
        for seed in range(1, question.seeds + 1)
    }
    return Plan(tuple(contenders.values()), members, devices)


def with_spare(contender: Contender, spare_pct: float, folder: Path) -> tuple[Contender, str]:
    """Return the drive with another over-provisioning, and the text of its device file.

    Args:
        contender: the drive to change.
        spare_pct: the over-provisioning, in percent.
        folder: the folder of the new device file.

    Raises:
        ConfigError: the drive has no flash, or cannot have this over-provisioning.
    """
    text = changed_device(contender.target, {OVERPROVISION: spare_pct})
    name = f"{contender.name}-op{spare_pct:g}"
    return Contender(name, contender.drive, f"{SIMULATED}{folder.resolve() / name}.toml"), text


def device_path(contender: Contender) -> Path:
    """Return the path of the device file of a contender that does not use a preset."""
    return Path(contender.target.removeprefix(SIMULATED))


def _text(contender: Contender, devices: Mapping[Path, str]) -> str | None:
    return devices.get(device_path(contender))


def member_of(
    question: Question,
    contender: Contender,
    seed: int,
    change: Change | None = None,
    *,
    text: str | None = None,
) -> Member:
    """Return the run of the load on a drive.

    Args:
        question: the load and its options.
        contender: the drive.
        seed: seed of the run.
        change: change to the run, if any.
        text: device file of the contender, if it is not written yet.

    Raises:
        ConfigError: the load or the drive cannot be read, or the load does not fit on the drive.
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
        run = change(run) if change is not None else run
        run = replace(run, expect=(), scale=_scale(question, run, engine))
    return Member(run.name, run.options_mapping(), contender.target, {"drive": contender.name})


def _lasting(job: Job, length_ns: int) -> Job:
    return job if job.duration_ns is None else replace(job, duration_ns=length_ns)


def _scale(question: Question, run: WorkloadRun, engine: Engine) -> float | None:
    jobs = [job for step in run.steps for job in step.workload.jobs]
    if not isinstance(engine, ScalableEngine) or any(job.model or job.log for job in jobs):
        return None  # the addresses of a trace cannot be scaled
    possible = possible_scales(run, engine, SHORTEST_STEP_NS, SHORTEST_BURST_NS)
    scale = max((scale for scale in possible if scale <= question.scale), default=1.0)
    scale = max(scale, engine.least_scale())
    return None if scale == 1.0 else scale
