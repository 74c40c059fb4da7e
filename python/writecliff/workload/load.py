"""Reads workload files (.toml) and fio job files (.fio) as steps to run."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.errors import ConfigError
from writecliff.workload.model import Workload, workload_from_mapping

if TYPE_CHECKING:
    from writecliff.workload.fiojob import FioJobFile


@dataclass(frozen=True)
class WorkloadFile:
    """What a file asks for: steps of (ramp or None, workload), to be run one after the other.

    `notes` say what differs from fio. `fio` is the job file itself, if it is one.
    """

    path: Path  # the file
    steps: tuple[tuple[Workload | None, Workload], ...]  # (ramp or None, workload), in order
    notes: tuple[str, ...] = ()
    fio: FioJobFile | None = None

    @property
    def workloads(self) -> list[Workload]:
        """The workloads to be reported, without ramps."""
        return [workload for _, workload in self.steps]


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
        steps = tuple((step.ramp, step.workload) for step in job_file.steps)
        loaded = WorkloadFile(file, steps, job_file.notes, job_file)
    else:
        loaded = WorkloadFile(file, ((None, load_workload_toml(file, capacity_bytes)),))
    for workload in loaded.workloads:
        _check_range(workload, capacity_bytes, file)
    if seed is None:
        return loaded
    seeded = tuple(
        (ramp and replace(ramp, seed=seed), replace(workload, seed=seed))
        for ramp, workload in loaded.steps
    )
    return replace(loaded, steps=seeded)


def check_workload_path(path: Path) -> None:
    """Raise ConfigError for a file that cannot be a workload, before a drive is opened."""
    if path.suffix not in (".fio", ".toml"):
        raise ConfigError(
            f"{path} is neither a fio job file nor a workload file",
            hint="name it .fio or .toml after what it holds",
        )
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {(error.strerror or '').lower()}") from None


def load_workload_toml(path: Path, capacity_bytes: int) -> Workload:
    """Read a workload file. Raises ConfigError with file and line."""
    from writecliff import _native
    from writecliff.native_errors import as_user_errors

    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text (byte {error.start})") from None
    with as_user_errors():
        parsed = _native.parse_workload_toml(text, str(path), capacity_bytes)
    return workload_from_mapping(json.loads(parsed))


def _check_range(workload: Workload, capacity_bytes: int, path: Path) -> None:
    for job in workload.jobs:
        end = job.offset_bytes + (job.range_bytes or 0)
        if end > capacity_bytes or job.offset_bytes >= capacity_bytes:
            raise ConfigError(
                f"{path}: job '{job.name}' reaches to {units.size(end)}, "
                f"the drive has {units.size(capacity_bytes)}"
            )
