"""Run a command line of fio on a simulated drive."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from writecliff.cli.options import TargetOptions, Whole, opened, target_of
from writecliff.cli.output import log
from writecliff.cli.screen import Screen
from writecliff.engines.fiojson import FIO_FORMAT
from writecliff.errors import ConfigError, encoded

if TYPE_CHECKING:
    from writecliff.engines.base import Engine, Progress, StepResult
    from writecliff.engines.fiojson_stats import Json
    from writecliff.workload.fiojob import FioJobFile
    from writecliff.workload.fiojob.commandline import FioCommand

GROUP = "workloads and traces", 2
_STREAMS = ("/dev/null", "/dev/stdout", "/dev/stderr")
app = App(
    name="fio",
    usage="writecliff fio --on sim:NAME [FIO OPTIONS] [JOB FILE...]",
    version=f"{FIO_FORMAT} (writecliff)",
)


@app.default
def fio(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    on: Annotated[str | None, Parameter(name="--on")] = None,
    seed: Whole = None,
    precondition: str | None = None,
    quiet: bool = False,
) -> int:
    """Run a command line of fio on a simulated drive.

    All other options are fio's: `--name=x --rw=randread --bs=4k`, job files, `--section`,
    `--output`, `--output-format=normal|json|json+`, `--parse-only`, `--readonly`, `--aux-path`.
    With `alias fio='writecliff fio --on sim:sata-tlc-120'` scripts that call fio run as they are.

    Parameters
    ----------
    on
        The drive: sim:NAME or sim:PATH.toml. It replaces every filename and directory.
    seed
        Seed of the drive and of all random choices (default: randseed of the jobs).
    precondition
        State to bring the drive to first, as of `writecliff run` (default: fill if unwritten
        addresses would be read, else none).
    quiet
        Show no progress and no notes on stderr.
    """
    from writecliff.output_files import check_output
    from writecliff.workload.fiojob.commandline import read_command_line

    as_json = "--json" in words
    command = read_command_line([word for word in words if word != "--json"])
    command.formats = ("json",) if as_json else command.formats
    if not target_of(on).startswith("sim:"):
        raise ConfigError(f"{on} is no simulated drive", hint="run fio itself on a real drive")
    if command.output is not None and str(command.output) not in _STREAMS:
        check_output(command.output)
    screen = Screen(quiet=quiet)
    with opened(TargetOptions(on=on), seed=1 if seed is None else seed) as engine:
        job_file = command.load(engine.identify().capacity_bytes)
        for note in job_file.notes:
            screen.log(f"note: {note}")
        _check_readonly(command, job_file)
        if command.parse_only:
            return 0
        state = precondition or _needed_state(job_file, engine, screen)
        results = _run(job_file, engine, screen, state, seed)
        _show(command, job_file, results, str(on).removeprefix("sim:"))
    missed = any(job.ended_by == "least_rate" for result in results for job in result.jobs)
    return 1 if missed else 0


def _check_readonly(command: FioCommand, job_file: FioJobFile) -> None:
    for workload in job_file.workloads if command.readonly else ():
        for job in workload.jobs:
            if job.read_pct < 100 or job.log is not None:
                raise ConfigError(f"job {job.name} writes, and --readonly is given")


def _needed_state(job_file: FioJobFile, engine: Engine, screen: Screen) -> str:
    """A drive answers reads of what was never written without its flash, so one that has flash is
    filled first."""
    from writecliff.workload.load import LoadStep
    from writecliff.workload.unwritten import reads_unwritten

    identity = engine.identify()
    steps = [LoadStep(step.workload) for step in job_file.steps]
    if identity.without_flash or not reads_unwritten(steps, identity.capacity_bytes):
        return "none"
    screen.log(
        "note: reads of what was never written need no flash: the drive is filled first "
        "(--precondition none: it is taken as it is)"
    )
    return "fill"


def _run(
    job_file: FioJobFile, engine: Engine, screen: Screen, precondition: str, seed: int | None
) -> list[StepResult]:
    from dataclasses import replace

    from writecliff.cli.progress import WorkView, figures_of
    from writecliff.engines.preconditioned import precondition as bring_to_state
    from writecliff.engines.state_cache import StateCache

    results = []
    with WorkView(screen).showing(f"preconditioning: {precondition}") as view:

        def look(now: Progress) -> None:
            view.done(now.fraction or 0.0, figures=figures_of(now))

        bring_to_state(engine, precondition, cache=StateCache.of_user(), on_progress=look)
        for step in job_file.steps:
            load = step.workload if seed is None else replace(step.workload, seed=seed)
            view.part(load.name)
            result = engine.run(load, look)
            results.append(result)
            for warning in result.warnings:
                log(f"warning: {warning}")
    return results


def _show(command: FioCommand, job_file: FioJobFile, results: list[StepResult], drive: str) -> None:
    """Write the results in each form that is asked for, and the log files."""
    from writecliff.engines.fiojson import fio_json
    from writecliff.engines.fiologs import write_logs
    from writecliff.engines.fiotext import fio_text
    from writecliff.store.files import write_atomically

    document = fio_json(job_file, results, drive=drive)
    texts = []
    for form in command.formats:
        if form == "normal":
            texts.append(fio_text(document))
        else:
            shown = document if form == "json+" else without_bins(document)
            texts.append(json.dumps(shown, indent=2) + "\n")
    write_logs(job_file, results, command.folder)
    if command.output is None:
        sys.stdout.write("".join(texts))
    elif str(command.output) in _STREAMS:  # as scripts give it
        command.output.write_text("".join(texts), encoding="utf-8")
    else:
        write_atomically(command.output, encoded("".join(texts)))


def without_bins(document: Json) -> Json:
    """The document as `--output-format=json` has it: without the buckets of latencies."""

    def kept(value: object) -> object:
        if isinstance(value, dict):
            return {key: kept(inner) for key, inner in value.items() if key != "bins"}
        return [kept(inner) for inner in value] if isinstance(value, list) else value

    return {key: kept(value) for key, value in document.items()}
