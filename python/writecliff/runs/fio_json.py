"""Conversion of fio's JSON output to a workload run with one step per job group."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.input_files import parse_json, read_bytes, understood

SUFFIX = ".json"
JSON_BYTES_MAX = 256 << 20  # Maximum JSON size, which holds the latency bins of ten thousand jobs.
_NOTE = "imported from fio's JSON output; the state of the drive before the jobs is unknown"


def read_fio_json(path: Path) -> Mapping[str, object]:
    """Read the last fio JSON document in a file, and skip the messages around the document.

    Raises:
        ConfigError: If the file cannot be read or is not fio output.
    """
    from writecliff.engines.fio.document import last_document

    text = read_bytes(path, JSON_BYTES_MAX).decode("utf-8", "replace")
    document = last_document(text)
    if document is None:
        # This call raises an error that names the position of the damage.
        parse_json(text.encode(), path)
        raise ConfigError(
            f"{path} is not fio's JSON output",
            hint="create the file with fio --output-format=json+",
        )
    return document


def store_fio_json(path: Path, directory: Path, *, capacity_bytes: int | None = None) -> None:
    """Write a run directory with the measurements from fio's JSON output.

    Args:
        path: File that contains fio's JSON output.
        directory: Run directory to create.
        capacity_bytes: Drive capacity in bytes (default: the largest `size` among the jobs).

    Raises:
        ConfigError: If the file is not fio output or the drive capacity is unknown.
        StoreError: If the run directory cannot be written.
    """
    with understood(path, "fio's JSON output"):
        _store(path, read_fio_json(path), directory, capacity_bytes)


def _store(
    path: Path, document: Mapping[str, Any], directory: Path, capacity_bytes: int | None
) -> None:
    from writecliff.engines.fio.finished import finished_steps, range_bytes
    from writecliff.procedures.measure import record_of
    from writecliff.procedures.model import Step, StepPosition
    from writecliff.procedures.workload import NONE, WorkloadRun, phase_of
    from writecliff.store.manifest import Manifest
    from writecliff.store.rundir import RunDirectory
    from writecliff.workload.load import LoadStep

    steps = finished_steps(document, path.stem)
    capacity = capacity_bytes or range_bytes(document)
    if capacity is None:
        raise ConfigError(
            f"{path} does not contain the drive capacity",
            hint="specify --capacity, for example 960GB",
        )
    loads = tuple(LoadStep(step.workload) for step in steps)
    procedure = WorkloadRun(file=path.name, steps=loads, precondition=NONE)
    identity = _identity(document, capacity)
    manifest = Manifest(
        procedure=procedure.name,
        title=procedure.title,
        edition=procedure.edition,
        device=identity,
        options=procedure.options_mapping(),
        seed=procedure.seed,
        setup=dict(procedure.setup(identity)),
        versions={"writecliff": None, "fio": str(document["fio version"])},
        host={},
        status="running",
        created=_time(document),
        warnings=(_NOTE,),
    )
    written, first_ns = 0, steps[0].result.started_ns
    with RunDirectory.create(directory, manifest) as run:
        for number, step in enumerate(steps, 1):
            record = record_of(
                step.result,
                StepPosition(phase_of(number), 0, 1),
                Step(step.workload.name, step.workload, sample=True),
                started_ns=step.result.started_ns - first_ns,
                written_before_bytes=written,
                capacity_bytes=capacity,
            )
            written = record.host_write_bytes_total
            run.append_round(record)
        run.finish("complete", reason="all jobs done", ended_by="done", updated=_time(document))


def _identity(document: Mapping[str, object], capacity_bytes: int) -> DeviceIdentity:
    from writecliff.engines.fio.document import Fields, job_fields

    whole, jobs = Fields(document, "fio"), job_fields(document, "fio")
    options = [whole.options("global options"), *(job.options("job options") for job in jobs)]
    target = next((option["filename"] for option in options if "filename" in option), None)
    disks = whole.parts("disk_util") if "disk_util" in document else []
    named = [disk.get("name") for disk in disks if isinstance(disk, dict)]
    names = [name for name in named if isinstance(name, str) and name]
    return DeviceIdentity(
        target=target or (f"/dev/{names[-1]}" if names else "fio"),
        model="drive of a fio run",
        capacity_bytes=capacity_bytes,
        sector_bytes=512,
        simulated=False,
    )


def _time(document: Mapping[str, object]) -> str:
    seconds = document.get("timestamp", 0)
    valid = seconds if isinstance(seconds, int | float) and 0 <= seconds < 1 << 36 else 0
    return datetime.fromtimestamp(valid, UTC).isoformat(timespec="seconds")
