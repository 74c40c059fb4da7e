"""fio command lines on simulated drives."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from writecliff.api.runs import opened
from writecliff.engines.fiojson import FIO_FORMAT
from writecliff.errors import ConfigError, encoded
from writecliff.progress import UNSEEN, WorkProgress

if TYPE_CHECKING:
    from writecliff.engines.base import Engine, Progress, StepResult
    from writecliff.engines.fiojson_stats import Json
    from writecliff.workload.fiojob import FioJobFile
    from writecliff.workload.fiojob.commandline import FioCommand

FIO_VERSION = f"{FIO_FORMAT} (writecliff)"
_STREAMS = ("/dev/null", "/dev/stdout", "/dev/stderr")
Note = Callable[[str], None]


@dataclass(frozen=True)
class FioRun:
    """Outcome of a fio command line: the jobs that ran, and the results of each step."""

    command: FioCommand
    job_file: FioJobFile
    results: Sequence[StepResult]
    drive: str

    @property
    def missed(self) -> bool:
        """`True` if a job ran below its minimum rate."""
        return any(job.ended_by == "least_rate" for result in self.results for job in result.jobs)

    def texts(self) -> Sequence[str]:
        """Return the results in every requested output format."""
        from writecliff.engines.fiojson import fio_json
        from writecliff.engines.fiotext import fio_text

        document = fio_json(self.job_file, self.results, drive=self.drive)
        texts = []
        for form in self.command.formats:
            if form == "normal":
                texts.append(fio_text(document))
            else:
                shown = document if form == "json+" else without_bins(document)
                texts.append(json.dumps(shown, indent=2) + "\n")
        return texts

    def write(self) -> None:
        """Write the results and the log files to the same paths as fio. Raises StoreError."""
        from writecliff.engines.fiologs import write_logs
        from writecliff.store.files import write_atomically

        text, output = "".join(self.texts()), self.command.output
        write_logs(self.job_file, self.results, self.command.folder)
        if output is None:
            sys.stdout.write(text)
        elif str(output) in _STREAMS:  # Scripts refer to the standard streams by these paths.
            output.write_text(text, encoding="utf-8")
        else:
            write_atomically(output, encoded(text))


def run_fio(
    words: Sequence[str],
    on: str,
    *,
    seed: int | None = None,
    precondition: str | None = None,
    progress: WorkProgress = UNSEEN,
    note: Note = lambda text: None,
    warn: Note = lambda text: None,
) -> FioRun | None:
    """Run a fio command line on a simulated drive.

    Args:
        words: The command line; `--json` stands for `--output-format=json`.
        on: The drive, "sim:NAME" or "sim:PATH.toml".
        seed: Random seed for the drive and all random choices (default: the jobs' `randseed`).
        precondition: Initial state of the drive (default: fill if the jobs read unwritten
            addresses, else none).
        progress: Callback that receives the jobs' progress.
        note: Callback that receives remarks about the jobs.
        warn: Callback that receives the drive's warnings.

    Returns:
        The results, or None for a command line that only parses its jobs.

    Raises:
        ConfigError: The command line or a job is invalid.
        EngineError: The drive failed.
    """
    from writecliff.output_files import check_output
    from writecliff.workload.fiojob.commandline import read_command_line

    command = read_command_line([word for word in words if word != "--json"])
    command.formats = ("json",) if "--json" in words else command.formats
    if not on.startswith("sim:"):
        raise ConfigError(
            f"{on} is not a simulated drive", hint="run fio directly to test a real drive"
        )
    if command.output is not None and str(command.output) not in _STREAMS:
        check_output(command.output)
    with opened(on, 1 if seed is None else seed) as engine:
        job_file = command.load(engine.identify().capacity_bytes)
        for text in job_file.notes:
            note(f"note: {text}")
        _check_readonly(command, job_file)
        if command.parse_only:
            return None
        state = precondition or _needed_state(job_file, engine, note)
        results = _run(job_file, engine, progress, state, seed, warn)
        return FioRun(command, job_file, results, on.removeprefix("sim:"))


def _check_readonly(command: FioCommand, job_file: FioJobFile) -> None:
    for workload in job_file.workloads if command.readonly else ():
        for job in workload.jobs:
            if job.read_pct < 100 or job.log is not None:
                raise ConfigError(
                    f"job {job.name} writes, but --readonly was given",
                    hint="omit --readonly, or remove the job",
                )


def _needed_state(job_file: FioJobFile, engine: Engine, note: Note) -> str:
    """Return the initial state that the jobs require, "fill" if they read unwritten addresses.

    Without a fill, reads of unwritten addresses do not access the flash.
    """
    from writecliff.workload.load import LoadStep
    from writecliff.workload.unwritten import reads_unwritten

    identity = engine.identify()
    steps = [LoadStep(step.workload) for step in job_file.steps]
    if identity.without_flash or not reads_unwritten(steps, identity.capacity_bytes):
        return "none"
    note(
        "note: filling the drive first, because reads of unwritten addresses would not access the "
        "flash (--precondition none skips this)"
    )
    return "fill"


def _run(
    job_file: FioJobFile,
    engine: Engine,
    progress: WorkProgress,
    precondition: str,
    seed: int | None,
    warn: Note,
) -> list[StepResult]:
    from writecliff.engines.preconditioned import precondition as bring_to_state
    from writecliff.engines.state_cache import StateCache

    def look(now: Progress) -> None:
        progress.done(now.fraction or 0.0, figures=now.figures)

    results = []
    progress.part(f"preconditioning: {precondition}")
    bring_to_state(engine, precondition, cache=StateCache.of_user(), on_progress=look)
    for step in job_file.steps:
        load = step.workload if seed is None else replace(step.workload, seed=seed)
        progress.part(load.name)
        result = engine.run(load, look)
        results.append(result)
        for warning in result.warnings:
            warn(f"warning: {warning}")
    return results


def without_bins(document: Json) -> Json:
    """Return a JSON document in fio's `--output-format=json` format, without latency buckets."""

    def without(value: object) -> object:
        if isinstance(value, dict):
            return {key: without(inner) for key, inner in value.items() if key != "bins"}
        return [without(inner) for inner in value] if isinstance(value, list) else value

    return {key: without(value) for key, value in document.items()}
