"""Reader for workload files (.toml) and fio job files (.fio)."""

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


_LARGEST_DRIVE_BYTES = 1 << 60  # Drive capacity for checks that have no drive.
_STREAMS_MAX = (1 << 16) - 1


@dataclass(frozen=True)
class LoadStep:
    """A step in a workload file."""

    workload: Workload  # Workload of the whole step, or of a single round.
    rest_ns: int = 0  # Idle time before the read in `workload`; 0 for no rest.
    measured: bool = True  # `False` if the step only changes the drive state.
    until_steady: bool = False  # `True` to repeat rounds of `workload` until steady state.
    max_rounds: int = 1  # Maximum number of rounds with `until_steady`.

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Self:
        """Recreate a step from its `asdict` or from the native reader's output."""
        return cls(**{**data, "workload": workload_from_mapping(data["workload"])})

    def seeded(self, seed: int) -> LoadStep:
        """Return the step with a different seed."""
        return replace(self, workload=replace(self.workload, seed=seed))


@dataclass(frozen=True)
class WorkloadFile:
    """Contents of a workload file or a fio job file."""

    path: Path  # Path of the file.
    steps: tuple[LoadStep, ...]  # Steps in execution order.
    # Preconditioning, such as "sustained"; `None` if not specified.
    precondition: str | None = None
    expect: tuple[str, ...] = ()  # Limits on the run's figures.
    notes: tuple[str, ...] = ()  # Differences from fio.
    fio: FioJobFile | None = None  # fio job file; `None` for other files.

    @property
    def workloads(self) -> list[Workload]:
        """Workloads of all steps."""
        return [step.workload for step in self.steps]


def load_workload(
    path: str | Path, *, capacity_bytes: int, seed: int | None = None
) -> WorkloadFile:
    """Read a workload or fio job file for a drive; `seed` overrides the file's seed.

    Raises:
        ConfigError: If the file is unreadable or invalid, requires an unsupported feature, or
            exceeds the drive; the message names the file and line.
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
    step_seed = 0 if loaded.fio is not None else 1  # The jobs in a fio file share a seed.
    seeded = (step.seeded(seed + step_seed * number) for number, step in enumerate(loaded.steps))
    return replace(loaded, steps=tuple(seeded))


def check_workload_path(path: Path) -> None:
    """Raise ConfigError before a drive is opened if a file cannot be a workload."""
    if path.suffix not in (".fio", ".toml"):
        raise ConfigError(
            f"{path} is neither a fio job file nor a workload file",
            hint="rename the file to .fio or .toml, depending on its format",
        )
    with opened(path):
        pass


def load_workload_toml(path: Path, capacity_bytes: int) -> Workload:
    """Read a workload file with a single step.

    Raises:
        ConfigError: If the file is invalid or has several steps.
    """
    loaded = _read_toml(path, capacity_bytes)
    if len(loaded.steps) != 1:
        raise ConfigError(
            f"{path} has {len(loaded.steps)} steps, but only a single step is supported"
        )
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
    """Check that a drive with this capacity can run a workload, and that it fits in memory.

    Without a capacity, only workloads that no drive can run are rejected.

    Raises:
        ConfigError: If the workload cannot be run.
    """
    from writecliff import _native
    from writecliff.native_errors import as_user_errors

    if capacity_bytes is None:
        zones = [job.host_zones.size_bytes for job in load.jobs if job.host_zones is not None]
        # No drive has more zones than the host can keep in memory.
        largest = (max(1, size) * dict(_native.limits())["zones"] for size in zones)
        capacity_bytes = min(_LARGEST_DRIVE_BYTES, *largest) if zones else _LARGEST_DRIVE_BYTES
    with as_user_errors():
        _native.check_workload(load.to_json(), capacity_bytes, _STREAMS_MAX)


def _check_loads(loaded: WorkloadFile, capacity_bytes: int) -> None:
    """Check all steps before any file of the run is created."""
    try:
        for workload in loaded.workloads:
            check_load(workload, capacity_bytes)
    except ConfigError as error:
        message = str(error).removeprefix("workload: ")
        raise ConfigError(f"{loaded.path}: {message}", hint=error.hint) from None


def _check_range(workload: Workload, capacity_bytes: int, path: Path) -> None:
    for job in workload.jobs:
        end = job.offset_bytes + (job.range_bytes or 0)
        if end > capacity_bytes or job.offset_bytes >= capacity_bytes:
            raise ConfigError(
                f"{path}: job '{job.name}' reaches to {units.size(end)}, "
                f"the drive has {units.size(capacity_bytes)}"
            )
