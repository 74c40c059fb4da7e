"""Job and workload files as steps to run: .fio through `workload.fiojob`, .toml natively."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.cli.output import size_text
from writecliff.errors import ConfigError
from writecliff.workload.model import Workload, workload_from_mapping

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, StepResult
    from writecliff.workload.fiojob import FioJobFile


@dataclass(frozen=True)
class LoadFile:
    """What a file says: steps as (ramp or None, workload), one after the other."""

    path: Path
    steps: tuple[tuple[Workload | None, Workload], ...]
    notes: tuple[str, ...] = ()
    fio: FioJobFile | None = None

    def fio_json(self, results: Sequence[StepResult], identity: DeviceIdentity) -> str:
        """The results as fio prints them with --output-format=json+."""
        from writecliff.workload.fiojson import fio_json

        assert self.fio is not None
        return json.dumps(fio_json(self.fio, results), indent=2) + "\n"


def load_path(path: Path) -> Path:
    """The file that is meant: `path`, or the ready workload of that name. Raises ConfigError."""
    if path.suffix or len(path.parts) != 1 or path.exists():
        return path
    from writecliff.profiles import profile_path

    return profile_path(path.name)


def check_path(path: Path) -> None:
    """Refuse a file that cannot be one, before a drive is opened. Raises ConfigError."""
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


def read_load_file(path: Path, capacity_bytes: int, seed: int | None) -> LoadFile:
    """Read a file for a drive of this capacity. Raises ConfigError (what, where, what is right)."""
    read = _read_fio if path.suffix == ".fio" else _read_toml
    load = read(path, capacity_bytes)
    for _, workload in load.steps:
        _check_range(workload, capacity_bytes, path)
    if seed is None:
        return load
    seeded = tuple(
        (None if ramp is None else replace(ramp, seed=seed), replace(workload, seed=seed))
        for ramp, workload in load.steps
    )
    return replace(load, steps=seeded)


def _read_fio(path: Path, capacity_bytes: int) -> LoadFile:
    from writecliff.workload.fiojob import load_fio_job

    job_file = load_fio_job(path, device_capacity_bytes=capacity_bytes)
    steps = tuple((step.ramp, step.workload) for step in job_file.steps)
    return LoadFile(path, steps, job_file.notes, job_file)


def _read_toml(path: Path, capacity_bytes: int) -> LoadFile:
    from writecliff import _native
    from writecliff.native_errors import as_user_errors

    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text (byte {error.start})") from None
    with as_user_errors():
        mapping = json.loads(_native.parse_workload_toml(text, str(path), capacity_bytes))
    return LoadFile(path, ((None, workload_from_mapping(mapping)),))


def _check_range(workload: Workload, capacity_bytes: int, path: Path) -> None:
    for job in workload.jobs:
        end = job.offset_bytes + (job.range_bytes or 0)
        if end > capacity_bytes or job.offset_bytes >= capacity_bytes:
            raise ConfigError(
                f"{path}: job '{job.name}' reaches to {size_text(end)}, "
                f"the drive has {size_text(capacity_bytes)}"
            )
