"""Reads workload files (.toml) and fio job files (.fio) as steps to run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from writecliff import units
from writecliff.errors import ConfigError, printable
from writecliff.input_files import opened, read_text
from writecliff.workload.model import Workload, workload_from_mapping

if TYPE_CHECKING:
    from writecliff.workload.fiojob import FioJobFile


_LARGEST_DRIVE_BYTES = 1 << 60  # for checks where the drive is not known
_STREAMS_MAX = (1 << 16) - 1


@dataclass(frozen=True)
class LoadStep:
    """One step of a file.

    workload      what runs: all of the step, or one of its rounds
    rest_ns       of a rest: the time without I/O, which the single read of `workload` ends; else 0
    measured      False: the step matters for the state of the drive alone
    until_steady  rounds of `workload` repeat until steady state, `max_rounds` at most
    """

    workload: Workload
    rest_ns: int = 0
    measured: bool = True
    until_steady: bool = False
    max_rounds: int = 1

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Self:
        """A step from what `asdict` or the native reader of workload files made of it."""
        return cls(**{**data, "workload": workload_from_mapping(data["workload"])})

    def seeded(self, seed: int) -> LoadStep:
        """The same step with another seed."""
        return replace(self, workload=replace(self.workload, seed=seed))


@dataclass(frozen=True)
class WorkloadFile:
    """What a file asks for: steps, to be run one after the other.

    `precondition` is the state that the file asks for ("sustained"), None if it leaves that open.
    `expect` are limits on figures of the run. `notes` say what differs from fio. `fio` is the job
    file itself, if it is one.
    """

    path: Path  # the file
    steps: tuple[LoadStep, ...]  # in order
    precondition: str | None = None
    expect: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fio: FioJobFile | None = None

    @property
    def workloads(self) -> list[Workload]:
        """The workloads of the steps."""
        return [step.workload for step in self.steps]


def load_workload(
    path: str | Path, *, capacity_bytes: int, seed: int | None = None
) -> WorkloadFile:
    """Read a workload or fio job file for a drive of `capacity_bytes`; `seed` replaces the file's.

    Raises ConfigError, with file and line, if the file cannot be read, is not understood, asks for
    what is not available, or reaches beyond the drive.
    """
    file = Path(path)
    check_workload_path(file)
    if file.suffix == ".fio":
        from writecliff.workload.fiojob import load_fio_job

        job_file = load_fio_job(file, device_capacity_bytes=capacity_bytes)
        steps = tuple(LoadStep(step.workload) for step in job_file.steps)
        loaded = WorkloadFile(file, steps, notes=job_file.notes, fio=job_file)
    else:
        loaded = _read_toml(file, capacity_bytes)
    for workload in loaded.workloads:
        _check_range(workload, capacity_bytes, file)
    _check_loads(loaded, capacity_bytes)
    if seed is None:
        return loaded
    apart = 0 if loaded.fio is not None else 1  # fio's jobs share a seed
    seeded = (step.seeded(seed + apart * number) for number, step in enumerate(loaded.steps))
    return replace(loaded, steps=tuple(seeded))


def check_workload_path(path: Path) -> None:
    """Raise ConfigError for a file that cannot be a workload, before a drive is opened."""
    if path.suffix not in (".fio", ".toml"):
        raise ConfigError(
            f"{path} is neither a fio job file nor a workload file",
            hint="name it .fio or .toml after what it holds",
        )
    with opened(path):
        pass


def load_workload_toml(path: Path, capacity_bytes: int) -> Workload:
    """Read a workload file of a single step. Raises ConfigError with file and line."""
    loaded = _read_toml(path, capacity_bytes)
    if len(loaded.steps) != 1:
        raise ConfigError(f"{path} has {len(loaded.steps)} steps where one is expected")
    return loaded.steps[0].workload


def _read_toml(path: Path, capacity_bytes: int) -> WorkloadFile:
    from writecliff import _native
    from writecliff.native_errors import as_user_errors

    text = read_text(path)
    with as_user_errors():
        parsed = json.loads(_native.parse_workload_toml(text, printable(str(path)), capacity_bytes))
    steps = tuple(map(LoadStep.from_mapping, parsed["steps"]))
    return WorkloadFile(path, steps, parsed["precondition"], tuple(parsed["expect"]))


def check_load(load: Workload, capacity_bytes: int | None = None) -> None:
    """Refuse what no drive of this capacity can run, or what would not fit into memory; without
    one, what no drive could. Raises ConfigError.
    """
    from writecliff import _native
    from writecliff.native_errors import as_user_errors

    if capacity_bytes is None:
        zones = [job.host_zones.size_bytes for job in load.jobs if job.host_zones is not None]
        # No drive has more zones than the host can keep.
        largest = (max(1, size) * dict(_native.limits())["zones"] for size in zones)
        capacity_bytes = min(_LARGEST_DRIVE_BYTES, *largest) if zones else _LARGEST_DRIVE_BYTES
    with as_user_errors():
        _native.check_workload(load.to_json(), capacity_bytes, _STREAMS_MAX)


def _check_loads(loaded: WorkloadFile, capacity_bytes: int) -> None:
    """Refuse before anything is made for the run."""
    try:
        for workload in loaded.workloads:
            check_load(workload, capacity_bytes)
    except ConfigError as error:
        said = str(error).removeprefix("workload: ")
        raise ConfigError(f"{loaded.path}: {said}", hint=error.hint) from None


def _check_range(workload: Workload, capacity_bytes: int, path: Path) -> None:
    for job in workload.jobs:
        end = job.offset_bytes + (job.range_bytes or 0)
        if end > capacity_bytes or job.offset_bytes >= capacity_bytes:
            raise ConfigError(
                f"{path}: job '{job.name}' reaches to {units.size(end)}, "
                f"the drive has {units.size(capacity_bytes)}"
            )
