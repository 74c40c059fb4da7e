"""A run of a test or a workload: measured, resumed, or opened from its run directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import ConfigError, TargetError, WritecliffError
from writecliff.shown import Shown, Shows

if TYPE_CHECKING:
    from writecliff.api.tables import Figures, Table
    from writecliff.engines.base import Engine
    from writecliff.procedures.framework import RunOutcome
    from writecliff.procedures.model import Procedure
    from writecliff.procedures.progress import RunProgress
    from writecliff.report.base import TestReport
    from writecliff.report.expectations import Expectation, Judged
    from writecliff.store.rundir import RunDirectory
    from writecliff.workload.load import WorkloadFile
    from writecliff.workload.model import Workload

PathLike = str | Path
_ROUNDS_SHOWN = (
    "seq",
    "phase",
    "round",
    "label",
    "elapsed_ns",
    "iops",
    "latency_mean_ns",
    "latency_p999_ns",
    "drive_fills",
    "waf",
)


@dataclass(frozen=True)
class Run(Shows):
    """A run on disk, which notebooks display as the first screen of its report.

    Tables and figures are read when first accessed. A run that was just measured already has its
    report.
    """

    path: Path
    """The run directory."""

    ended: RunOutcome | None = field(default=None, repr=False, compare=False)
    """End of the session that measured the run; None for a run from a store."""

    @classmethod
    def of_report(cls, report: TestReport, ended: RunOutcome | None = None) -> Run:
        """Return a run whose report already exists."""
        run = cls(report.data.run.path, ended)
        # Replace the run's cached properties.
        vars(run).update(directory=report.data.run, report=report)
        return run

    @property
    def page(self) -> Path:
        """The HTML report stored in the run directory."""
        from writecliff.report import REPORT_NAME

        return self.path / REPORT_NAME

    @cached_property
    def directory(self) -> RunDirectory:
        """The run directory, which runs SQL queries and contains the manifest."""
        from writecliff.store.rundir import RunDirectory

        return RunDirectory.open(self.path)

    @cached_property
    def report(self) -> TestReport:
        """The run's report as structured data."""
        from writecliff.report import report_of

        return report_of(self.directory)

    @property
    def test(self) -> str:
        """The test's name, such as "wsat"."""
        return self.directory.manifest.procedure

    @property
    def status(self) -> str:
        """The run's status: "complete", "interrupted", "failed", "running" or "planned"."""
        return self.directory.status

    @property
    def rounds(self) -> Table:
        """The table of steps, in execution order (docs/reference/run-directory.md).

        Notebooks display the main columns. `rounds.wide()` displays all columns.
        """
        from writecliff.api.tables import Table

        return Table(self.directory.rounds(), shown=_ROUNDS_SHOWN)

    @property
    def intervals(self) -> Table:
        """The time series of all steps, with a row per interval, job and operation."""
        from writecliff.api.tables import Table
        from writecliff.engines.base import with_operation_names

        return Table(with_operation_names(self.directory.intervals()))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The run's figures, as in `writecliff report --json`."""
        return self.report.summary()

    @cached_property
    def figures(self) -> Figures:
        """The headline figures, each with key, value, unit and 95 % confidence interval."""
        from writecliff.api.tables import Figures

        return Figures(self.report.headlines())

    @property
    def limits(self) -> Sequence[Judged]:
        """The run's limits and their results."""
        from writecliff.report.expectations import Judged

        return [Judged(**item) for item in self.directory.manifest.expectations]

    @property
    def verdict(self) -> str:
        """One-line summary of the outcome."""
        return self.report.answer()

    def add_power(self, log: Path, *, offset_s: float = 0.0) -> None:
        """Store a power meter log (CSV: seconds, watts) in the run directory.

        `offset_s` is the time in seconds in the log when the first step started.

        Raises:
            ConfigError: If the log is invalid.
            StoreError: If the run directory cannot be written.
        """
        from writecliff.report.power_meter import keep

        keep(log, self.path, offset_s=offset_s)

    def write_pages(
        self, page: Path | None = None, *, pdf: Path | None = None, csv: Path | None = None
    ) -> Path:
        """Write the report as `write_report` does, and return the page. Raises StoreError."""
        from writecliff.report import write_pages
        from writecliff.report.pages import check_page

        check_page(page or self.page)
        return write_pages(self.report, page, pdf=pdf, csv=csv)

    def _shown(self) -> Shown:
        from writecliff.api.tables import figures_grid

        try:
            manifest = self.directory.manifest
            title = f"{manifest.procedure} on {manifest.device.target}"
            lines = [f"{self.status}, {self.path}"]
        except WritecliffError as error:  # Let a notebook display the error instead of failing.
            return Shown(str(self.path), [str(error)])
        try:
            return Shown(title, [*lines, self.verdict], [figures_grid(self.figures)])
        except WritecliffError as error:  # The run has no figures yet.
            return Shown(title, [*lines, str(error)])

    def _shown_in_notebook(self) -> Shown:
        from writecliff.report.damage import damage_reported
        from writecliff.report.pages import first_screen

        try:
            with damage_reported(self.path):
                model = self.report.model()
        except WritecliffError:
            return self._shown()
        lines = [f"{model.title} ({self.status}, {self.path})"]
        return Shown(model.finding, lines, screen=first_screen(model))


def load_run(path: PathLike) -> Run:
    """Open a run from its directory.

    Raises:
        ConfigError: If the directory contains no run.
        StoreError: The run is damaged.
    """
    run = Run(Path(path))
    _ = run.directory
    return run


def run_test(
    test: str,
    on: str | Engine,
    *,
    output: PathLike | None = None,
    progress: RunProgress | None = None,
    **options: Any,
) -> Run:
    """Run a test of the standard, or a published campaign, on a drive, and write its report.

    Args:
        test: A name from `writecliff test --list`.
        on: A target such as "sim:sata-tlc-120", or an open engine (for a real drive, `open_target`
            takes the required consent).
        output: The run directory, which must be empty or not exist (default:
            runs/TEST-TARGET-TIME).
        progress: Callback that receives the run's events.
        **options: Test options, with underscores: `quick=True, seed=2`.

    Raises:
        ConfigError: If an option is invalid or does not suit the drive.
        TargetError: If the drive cannot be opened, or must not be overwritten.
        EngineError: The drive failed.
        StoreError: If the run directory cannot be written.
    """
    from writecliff.engines.target import is_simulated
    from writecliff.procedures.registry import procedure_from_mapping

    simulated = is_simulated(on) if isinstance(on, str) else on.identify().simulated
    procedure = procedure_from_mapping(test, options, simulated=simulated)
    with (
        opened(on, procedure.seed) as engine,
        output_path(output, "runs", test, engine.identify().target) as directory,
    ):
        return execute(procedure, engine, directory, progress)


def run_workload(
    load: PathLike | Workload | Sequence[Workload],
    on: str | Engine,
    *,
    output: PathLike | None = None,
    precondition: str | None = None,
    seed: int | None = None,
    progress: RunProgress | None = None,
) -> Run:
    """Run a load on a drive, and write its report.

    `load` is a workload or fio job file, the name of a ready-made workload, a `Workload`, or a
    sequence of these. `on`, `output` and `progress` are as in `run_test`. `precondition` is the
    drive's initial state, as for `writecliff run`. It defaults to the file's setting, or else to a
    fill if a load reads unwritten addresses of a simulated drive. `seed` overrides the loads' own
    seeds. Raises as `run_test`.

    >>> import tempfile
    >>> from writecliff import Job, Workload
    >>> load = Workload("writes", (Job(read_pct=0, block_size="4 KiB", ios=1000),))
    >>> run = run_workload(load, "sim:sata-tlc-120", output=tempfile.mkdtemp())
    >>> run.status, [figure.label for figure in run.figures][:2]
    ('complete', ['job writes, IOPS', 'job writes, throughput'])
    """
    from writecliff.procedures.workload import WorkloadRun

    drive_seed = 1 if seed is None else seed
    with opened(on, drive_seed) as engine:
        identity = engine.identify()
        file = _workload_file(load, identity.capacity_bytes, seed)
        procedure = WorkloadRun.of(file, identity, precondition=precondition, seed=drive_seed)
        with output_path(output, "runs", file.path.stem, identity.target) as directory:
            return execute(procedure, engine, directory, progress)


def _workload_file(
    load: PathLike | Workload | Sequence[Workload], capacity_bytes: int, seed: int | None
) -> WorkloadFile:
    from writecliff.profiles import find_workload
    from writecliff.workload.load import LoadStep, WorkloadFile, load_workload
    from writecliff.workload.model import Workload

    if isinstance(load, str | Path):
        return load_workload(find_workload(Path(load)), capacity_bytes=capacity_bytes, seed=seed)
    steps = [LoadStep(workload) for workload in ([load] if isinstance(load, Workload) else load)]
    if not steps:
        raise ConfigError("no workload is given", hint="pass at least one Workload object")
    if seed is not None:
        steps = [step.seeded(seed) for step in steps]
    return WorkloadFile(Path(steps[0].workload.name), tuple(steps))


def resume_run(
    path: PathLike, on: str | Engine | None = None, *, progress: RunProgress | None = None
) -> Run:
    """Finish an interrupted run with its original options.

    `on` is as in `run_test` (default: the run's original target). Raises as `run_test`.
    """
    from writecliff.engines.target import target_now
    from writecliff.procedures.registry import procedure_from_mapping

    run = load_run(path)
    manifest = run.directory.manifest
    procedure = procedure_from_mapping(manifest.procedure, manifest.options)
    opening = opening_of(run.directory)
    with opened(on or target_now(manifest.device), procedure.seed, **opening) as engine:
        return execute(procedure, engine, run.path, progress, resume=True)


def opening_of(run: RunDirectory) -> dict[str, Any]:
    """Return the `open_target` arguments that a stored run was started with."""
    return {"attribute_latency": run.attributes_latency}


def execute(
    procedure: Procedure,
    engine: Engine,
    directory: Path,
    progress: RunProgress | None = None,
    *,
    resume: bool = False,
    expect: Sequence[Expectation] = (),
) -> Run:
    """Run a procedure, check its limits, and write its report.

    The limits include those in the file and those in `expect`. The returned run includes the
    report. Raises as `run_test`.
    """
    from writecliff.procedures.framework import run_procedure
    from writecliff.procedures.progress import RunProgress
    from writecliff.report.expectations import check_procedure

    limits = check_procedure(expect, procedure)
    ended = run_procedure(procedure, engine, directory, progress or RunProgress(), resume=resume)
    return judged_run(ended.run_directory, limits, ended)


def judged_run(path: Path, limits: Sequence[Expectation], ended: RunOutcome | None = None) -> Run:
    """Check the limits of a newly stored run, and write its report.

    Raises:
        StoreError: If the run directory cannot be written.
    """
    from writecliff.report import report_of, write_pages
    from writecliff.report.expectations import judge_report
    from writecliff.store.rundir import RunDirectory

    with RunDirectory.open(path, write=bool(limits)) as directory:
        report = report_of(directory)
        if limits:
            judge_report(report, limits)
        write_pages(report)
    return Run.of_report(report, ended)


@contextmanager
def opened(on: str | Engine, seed: int, **opening: Any) -> Iterator[Engine]:
    """Yield the engine of a target and close it afterwards, or yield an open engine.

    `opening` contains keyword arguments of `open_target`.

    Raises:
        TargetError: If the drive cannot be opened.
        ConfigError: If an option does not apply to the drive.
    """
    if not isinstance(on, str):
        yield on
        return
    from writecliff.engines.target import open_target

    engine = open_target(on, seed=seed, **opening)
    try:
        if engine.identify().capacity_bytes <= 0:
            raise TargetError(
                f"{on} reports a capacity of 0 bytes", hint="check that the drive contains a medium"
            )
        yield engine
    finally:
        engine.close()


def new_path(
    folder: str,
    about: str,
    target: str | None = None,
    *,
    store: str | None = None,
    suffix: str = "",
) -> Path:
    """Create a default output path, and return it.

    The path is `runs/wsat-sim-sata-tlc-120-20260131-142501` plus `suffix`, below `store`, or else
    below WRITECLIFF_STORE or the current folder. An empty file (if a suffix is given) or folder is
    created, so that another process that starts in the same second gets a different path. If the
    path is still empty when the command or process ends, it is removed.
    """
    import re
    from datetime import datetime
    from itertools import chain, count

    from writecliff.runs.location import output_root

    short = "" if target is None else "-" + re.sub(r"[^A-Za-z0-9.]+", "-", target).strip("-")
    name = f"{about.replace(':', '-')}{short}-{datetime.now():%Y%m%d-%H%M%S}"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    paths = (output_root(store) / folder / f"{candidate}{suffix}" for candidate in names)
    return next(path for path in paths if _reserved(path, folder=not suffix))


@contextmanager
def output_path(
    output: PathLike | None,
    folder: str,
    about: str,
    target: str | None = None,
    *,
    store: str | None = None,
) -> Iterator[Path]:
    """Yield `output`, or a path from `new_path` if `output` is not given.

    If the block raises an exception, a new path that is still empty is removed.
    """
    path = Path(output or new_path(folder, about, target, store=store))
    try:
        yield path
    except BaseException:
        remove_unused(path)
        raise


# Paths that `new_path` created, each with the parent folders created for it.
_unused: dict[Path, list[Path]] = {}


def _reserved(path: Path, *, folder: bool) -> bool:
    """Return `True` if an empty file or folder could be created. Raises StoreError."""
    import atexit

    from writecliff.store.files import store_error

    above = [parent for parent in path.parents[:2] if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if folder:
            path.mkdir()
        else:
            path.touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError as error:
        raise store_error(error, path) from error
    if not _unused:
        atexit.register(remove_unused)
    _unused[path.absolute()] = [made.absolute() for made in (path, *above)]
    return True


def remove_unused(*paths: Path) -> None:
    """Remove paths created by `new_path` (default: all) if they are still empty."""
    for reserved in [path.absolute() for path in paths] or [*_unused]:
        for path in _unused.pop(reserved, ()):
            with suppress(OSError):
                if path.is_dir():
                    path.rmdir()
                elif path.stat().st_size == 0:
                    path.unlink()
