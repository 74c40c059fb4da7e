"""A run for each drive of a choice: the load, from a drive that is preconditioned for it.

To save time, drives are simulated scaled down, by at most `question.scale` and only as far as their
loads stay long enough to have tails: see `engines/scaled.py`. The guide to `choose` describes the
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

PRECONDITION = "sustained"  # where neither the user nor the load says another
SHORTEST_STEP_NS = 10 * SECOND_NS  # on the small drive
Change = Callable[[WorkloadRun], WorkloadRun]


@dataclass(frozen=True)
class Contender:
    """A drive as it is run. `name` is that of its row and its run, `drive` the candidate that it is
    made of.
    """

    name: str
    drive: str
    target: str


@dataclass(frozen=True)
class Plan:
    """The runs of a choice. `members` by contender and seed, `devices` are files to write."""

    contenders: tuple[Contender, ...]
    members: Mapping[tuple[str, int], Member]
    devices: Mapping[Path, str]


def plan_choice(question: Question, folder: Path) -> Plan:
    """The runs that answer `question`; writes nothing. Raises ConfigError: a load or drive that
    cannot be read, a load that does not fit on a drive, drives of the same name.
    """
    contenders: dict[str, Contender] = {}
    devices: dict[Path, str] = {}
    for drive in question.candidates:
        made = [Contender(label_of(drive), drive, target_of(drive))]
        for spare in question.spare_pct:
            one, text = with_spare(made[0], spare, folder)
            devices[device_path(one)] = text
            made.append(one)
        for one in made:
            if one.name in contenders:
                raise ConfigError(f"two candidates are called {one.name}")
            contenders[one.name] = one
    members = {
        (one.name, seed): member_of(question, one, seed, text=_text(one, devices))
        for one in contenders.values()
        for seed in range(1, question.seeds + 1)
    }
    return Plan(tuple(contenders.values()), members, devices)


def with_spare(one: Contender, spare_pct: float, folder: Path) -> tuple[Contender, str]:
    """The drive with another over-provisioning, and its device file, which belongs in `folder`.
    Raises ConfigError: no flash, or no such drive can be made.
    """
    text = changed_device(one.target, {OVERPROVISION: spare_pct})
    name = f"{one.name}-op{spare_pct:g}"
    return Contender(name, one.drive, f"{SIMULATED}{folder.resolve() / name}.toml"), text


def device_path(one: Contender) -> Path:
    """The device file of a contender that has one of its own."""
    return Path(one.target.removeprefix(SIMULATED))


def _text(one: Contender, devices: Mapping[Path, str]) -> str | None:
    return devices.get(device_path(one))


def member_of(
    question: Question,
    one: Contender,
    seed: int,
    change: Change | None = None,
    *,
    text: str | None = None,
) -> Member:
    """The run of the load on a drive, changed if `change` says how. `text` is that of a device file
    which is not written yet. Raises ConfigError.
    """
    given = None if text is None else (text, str(device_path(one)))
    with closing(open_target(one.target, seed=seed, device_file=given)) as engine:
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
    return Member(run.name, run.options_mapping(), one.target, {"drive": one.name})


def _lasting(job: Job, length_ns: int) -> Job:
    return job if job.duration_ns is None else replace(job, duration_ns=length_ns)


def _scale(question: Question, run: WorkloadRun, engine: Engine) -> float | None:
    jobs = [job for step in run.steps for job in step.workload.jobs]
    if not isinstance(engine, ScalableEngine) or any(job.model or job.log for job in jobs):
        return None  # the addresses of a trace do not shrink
    possible = possible_scales(run, engine, SHORTEST_STEP_NS, SHORTEST_BURST_NS)
    scale = max((scale for scale in possible if scale <= question.scale), default=1.0)
    scale = max(scale, engine.least_scale())
    return None if scale == 1.0 else scale
