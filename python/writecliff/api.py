"""What the commands do, as functions: tests, suites, comparisons, reports, captures, replays.

The command line calls the same functions, so that a script and a shell get the same results. A
function that measures returns what it measured; tables are `pyarrow.Table`s, which pandas and
polars take as they are (`table.to_pandas()`, `polars.from_arrow(table)`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from writecliff.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from writecliff.capture.run import Captured
    from writecliff.engines.base import Engine
    from writecliff.procedures.framework import RunOutcome
    from writecliff.procedures.model import Procedure
    from writecliff.procedures.progress import RunProgress
    from writecliff.replay.advice import StreamAdvice
    from writecliff.replay.columns import FileIO
    from writecliff.replay.model import Replayed, ReplaySetup, Sizing
    from writecliff.report.base import TestReport
    from writecliff.report.comparison import Comparison
    from writecliff.report.headline import Headline
    from writecliff.store.rundir import RunDirectory
    from writecliff.suite.children import ChildEvent
    from writecliff.suite.folder import SuiteFolder

PathLike = str | Path


# -- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A run on disk. Tables and figures are read when they are first asked for."""

    path: Path
    """The run directory."""

    @cached_property
    def directory(self) -> RunDirectory:
        """The store: SQL over its tables (`query`), histograms, the manifest."""
        from writecliff.store.rundir import RunDirectory

        return RunDirectory.open(self.path)

    @cached_property
    def _report(self) -> TestReport:
        from writecliff.report import report_of

        return report_of(self.directory)

    @property
    def test(self) -> str:
        """The name of the test: "wsat"."""
        return self.directory.manifest.procedure

    @property
    def status(self) -> str:
        """ "complete", "interrupted", "failed", "running" or "planned"."""
        return self.directory.status

    @property
    def rounds(self) -> pa.Table:
        """A row for each step, in the order they were made (docs/reference/run-directory.md)."""
        return self.directory.rounds()

    @property
    def intervals(self) -> pa.Table:
        """The time series of all steps, a row for each interval, job and operation."""
        from writecliff.engines.base import with_operation_names

        return with_operation_names(self.directory.intervals())

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The figures of the run, as `writecliff report --json` has them."""
        return self._report.summary()

    @cached_property
    def figures(self) -> tuple[Headline, ...]:
        """What the run is quoted by: key, value, unit and 95 % interval of each figure."""
        return tuple(self._report.headlines())

    @property
    def verdict(self) -> str:
        """The outcome in one line."""
        return self._report.answer()


def load_run(path: PathLike) -> Run:
    """A run directory. Raises ConfigError (no run there), StoreError (damaged)."""
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
    """Run a test of the standard, or a campaign, on a drive; write its report.

    `test`: a name from `writecliff test --list`. `on`: a target such as "sim:sata-tlc-120", or an
    engine that is open (`open_target` takes the consent that a real drive needs). `output`: the run
    directory, which must be empty or not exist (default: runs/TEST-TARGET-TIME). `progress` gets
    what happens. `options` are those of the test, with underscores: `quick=True, seed=2`. Raises
    ConfigError, TargetError, EngineError, StoreError.
    """
    from writecliff.engines.target import is_simulated
    from writecliff.procedures.registry import procedure_from_mapping

    simulated = is_simulated(on) if isinstance(on, str) else on.identify().simulated
    procedure = procedure_from_mapping(test, options, simulated=simulated)
    with _opened(on, procedure.seed) as engine:
        directory = Path(output or new_path("runs", test, engine.identify().target))
        execute(procedure, engine, directory, progress)
    return Run(directory)


def resume_run(
    path: PathLike, on: str | Engine | None = None, *, progress: RunProgress | None = None
) -> Run:
    """Finish a run that was interrupted, with the options it was started with.

    `on`: as in `run_test` (default: the target that the run was on). Raises as `run_test`.
    """
    from writecliff.engines.target import target_now
    from writecliff.procedures.registry import procedure_from_mapping

    run = load_run(path)
    manifest = run.directory.manifest
    procedure = procedure_from_mapping(manifest.procedure, manifest.options)
    with _opened(on or target_now(manifest.device), procedure.seed) as engine:
        execute(procedure, engine, run.path, progress, resume=True)
    return Run(run.path)


def execute(
    procedure: Procedure,
    engine: Engine,
    directory: Path,
    progress: RunProgress | None = None,
    *,
    resume: bool = False,
) -> tuple[RunOutcome, Path]:
    """Run a procedure and write its report; the outcome and the page. Raises as `run_test`."""
    from writecliff.procedures.framework import run_procedure
    from writecliff.procedures.progress import RunProgress
    from writecliff.report import write_report

    outcome = run_procedure(procedure, engine, directory, progress or RunProgress(), resume=resume)
    return outcome, write_report(outcome.run_directory)


@contextmanager
def _opened(on: str | Engine, seed: int) -> Iterator[Engine]:
    if not isinstance(on, str):
        yield on
        return
    from writecliff.engines.target import open_target

    engine = open_target(on, seed=seed)
    try:
        yield engine
    finally:
        engine.close()


def new_path(folder: str, about: str, target: str | None = None) -> Path:
    """Where output goes by default: `runs/wsat-sim-sata-tlc-120-20260131-142501`."""
    import re
    from datetime import datetime
    from itertools import count

    short = "" if target is None else "-" + re.sub(r"[^A-Za-z0-9.]+", "-", target).strip("-")
    path = Path(folder) / f"{about}{short}-{datetime.now():%Y%m%d-%H%M%S}"
    if not path.exists():
        return path
    others = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return next(one for one in others if not one.exists())


# -- suites, comparisons, reports -----------------------------------------------------------------


@dataclass(frozen=True)
class Suite:
    """The runs of a suite or sweep."""

    path: Path
    """The directory of the suite."""

    page: Path
    """The page about all of its runs."""

    runs: Mapping[str, Run]
    """The runs by name, in order."""


def run_suite(
    edition: str,
    on: str,
    *,
    tests: Sequence[str] | None = None,
    output: PathLike | None = None,
    workers: int | None = None,
    opening: Mapping[str, Any] | None = None,
    special: Mapping[str, Mapping[str, Any]] | None = None,
    log: Callable[[ChildEvent], None] | None = None,
    **options: Any,
) -> Suite:
    """Run all tests of an edition on a drive, each from a purge, and write a page about them.

    `edition`: "pts-e" or "pts-c". `tests`: those of them to run. `output`: the directory, which
    must be empty or not exist (default: suites/EDITION-TARGET-TIME). `workers`: runs at a time on a
    simulated drive. `opening`: keyword arguments of `open_target`. `options` go to every test,
    `special` to the tests that it names. Tests run in processes of their own, so a script calls
    this below `if __name__ == "__main__":`. Raises as `run_test`.
    """
    from writecliff.suite.folder import SuiteFolder
    from writecliff.suite.plan import plan_suite

    members = plan_suite(edition, on, tests=tests, common=options, special=special)
    path = Path(output or new_path("suites", edition, on))
    folder = SuiteFolder.create(path, "suite", edition, members)
    return run_members(folder, opening=opening or {}, workers=workers, log=log)


def run_members(
    folder: SuiteFolder,
    *,
    opening: Mapping[str, Any],
    workers: int | None = None,
    log: Callable[[ChildEvent], None] | None = None,
) -> Suite:
    """Run what a suite or sweep has not done yet, and write its page. Raises as `run_test`."""
    from writecliff.report import write_report
    from writecliff.report.suite_page import write_suite_page
    from writecliff.suite.runner import run_suite

    def unseen(event: ChildEvent) -> None:
        """Shows nothing."""

    run_suite(folder, log or unseen, opening=opening, finish=write_report, workers=workers)
    runs = {name: Run(folder.run_directory(name)) for name in folder.members}
    return Suite(folder.path, write_suite_page(folder), runs)


def compare(*runs: Run | Suite | PathLike) -> Comparison:
    """Compare runs, suites, sweeps or saved answers: `figures`, `differences` and the `verdict`.

    Raises ConfigError: fewer than two of them, or nothing that two of them measured.
    """
    from writecliff.report.comparison import compare as compare_paths

    return compare_paths([_path_of(one) for one in runs])


def write_report(
    run: Run | PathLike,
    *,
    output: PathLike | None = None,
    pdf: PathLike | None = None,
    csv: PathLike | None = None,
) -> Path:
    """Write the report of a run as HTML and return its path.

    `output`: the file (default: report.html in the run directory). `pdf`: also as PDF. `csv`: a
    folder for the numbers of its figures and tables. Raises StoreError.
    """
    from writecliff.report import write_report as write

    output, pdf, csv = (None if one is None else Path(one) for one in (output, pdf, csv))
    return write(_path_of(run), output, pdf=pdf, csv=csv)


def _path_of(one: Run | Suite | PathLike) -> Path:
    return one.path if isinstance(one, Run | Suite) else Path(one)


# -- traces ---------------------------------------------------------------------------------------


def capture_program(
    command: Sequence[str] = (),
    *,
    output: PathLike,
    app: str | None = None,
    records: int | None = None,
    operations: int | None = None,
    folder: PathLike | None = None,
    root: PathLike | None = None,
    reads: bool = False,
    repair_hints: bool = False,
    via: Literal["preload", "strace"] = "preload",
    stdout: int | None = None,
    log: Callable[[str], None] = lambda text: None,
) -> Captured:
    """Run a command, or the ready-made load `app`, and trace its file I/O to `output`.

    `app`: "rocksdb", "postgres" or "cassandra", with `records` loaded, then `operations` on them,
    data below `folder`. `root`: trace only files below it. `reads`: also reads. `repair_hints`:
    repeat write hints that the kernel refused because they were not 64 bits wide. `via`: how.
    `stdout`: a file descriptor for the output of the command. `log` gets what a load does. Raises
    ConfigError, TargetError (a program is missing), StoreError.
    """
    from writecliff.capture.run import Options

    root, folder = (None if one is None else Path(one) for one in (root, folder))
    options = Options(Path(output), root, reads, repair_hints)
    if app is not None:
        from writecliff.capture.apps import Size, run_app

        if command:
            raise ConfigError("a command and a ready-made load exclude each other")
        return run_app(app, options, Size(records, operations), folder=folder, log=log)
    if not command:
        raise ConfigError("nothing to capture", hint="give a command, or a ready-made load")
    if via == "strace":
        from writecliff.capture.strace import capture as run_strace

        return run_strace(command, options, stdout=stdout)
    from writecliff.capture.run import capture as run_preload

    return run_preload(command, options, stdout=stdout)


@dataclass(frozen=True)
class Replay:
    """A trace that was replayed on a simulated drive."""

    trace: Path
    """The trace."""

    setup: ReplaySetup
    """The drive that was simulated, and what was assumed."""

    done: Replayed
    """What was measured: `waf`, latencies, counters."""

    on: str
    """The drive, as it was named."""

    seed: int = 1
    """The seed of all random choices."""

    @property
    def waf(self) -> float:
        """Write amplification of the second half of what was written."""
        return self.done.waf

    @property
    def endurance_bytes(self) -> float:
        """Bytes that a host can write to the whole drive within its rated cycles."""
        return self.setup.endurance_bytes(self.done.waf)

    @property
    def years(self) -> float | None:
        """The lifetime of the whole drive; None for a trace without duration and no rate given."""
        return self.setup.years(self.done.waf)

    def mapping(self) -> dict[str, Any]:
        """All of it, as `writecliff replay --json` prints it."""
        from writecliff.replay.summary import replay_mapping

        return replay_mapping(self.trace, self.setup, self.done)

    def store(self, output: PathLike) -> Path:
        """Keep the replay in a run directory, which must be empty or not exist, and write its
        report; the page. Raises ConfigError, StoreError."""
        from writecliff.replay.record import store
        from writecliff.report import write_report

        folder, answer = Path(output), self.mapping()
        store(folder, self.setup, self.done, answer, target=self.on, seed=self.seed)
        return write_report(folder)


def replay_trace(
    trace: PathLike,
    on: str,
    *,
    assign: str | None = None,
    rules: str | None = None,
    count: int | None = None,
    mistag_pct: float = 0.0,
    sizing: Sizing | None = None,
    writes_per_day_bytes: float | None = None,
    timed: bool = True,
    queue_depth: int = 32,
    readers: int = 4,
    seed: int = 1,
) -> Replay:
    """Replay a trace on a simulated drive.

    `on`: "sim:NAME" or "sim:PATH.toml". `assign`: how writes get their streams (none, rules, sfr,
    multi-queue, sepbit, oracle; default: rules if some are given, else none). `rules`: a file or a
    preset. `count`: streams to use (default: all of the drive's). `mistag_pct`: share of the writes
    in a wrong stream. `sizing`: size of the drive, length of the replay, page cache and file
    system. `writes_per_day_bytes`: what the drive is written in a day, for `years` (default: the
    rate of the trace). `timed`: measure latencies with `queue_depth` writes and `readers` reads
    outstanding. Raises TraceError, ConfigError.
    """
    from writecliff.replay.model import Sizing, checked_scheme, lay_out
    from writecliff.replay.model import replay as run

    scheme = checked_scheme(assign, rules is not None)
    io = _read(trace, on, rules)
    setup = lay_out(io, on, sizing or Sizing(), writes_per_day_bytes=writes_per_day_bytes)
    done = run(
        setup,
        scheme,
        setup.simulated.streams if count is None else count,
        mistag_pct=mistag_pct,
        timed=timed,
        queue_depth=queue_depth,
        readers=readers,
        seed=seed,
    )
    return Replay(Path(trace), setup, done, on, seed)


def advise_streams(
    trace: PathLike,
    on: str,
    *,
    rules: str | None = None,
    counts: Sequence[int] = (2, 4, 8),
    sizing: Sizing | None = None,
    writes_per_day_bytes: float | None = None,
    timed: bool = True,
    queue_depth: int = 32,
    readers: int = 4,
    seed: int = 1,
    on_cell: Callable[[Replayed], None] | None = None,
) -> StreamAdvice:
    """Compare ways to assign a trace's writes to streams, for several numbers of streams.

    `rules`: a file or a preset (default: the program's write hints, else the preset for it).
    `on_cell` gets each comparison when it is done; the rest is as in `replay_trace`. The advice has
    `best`, `cells` and, as sentences, `verdict(advice)` of `writecliff.replay.advice`. Raises
    TraceError, ConfigError.
    """
    from writecliff.replay.advice import compare as compare_assignments
    from writecliff.replay.model import Sizing, lay_out

    io = _read(trace, on, rules, own_rules=True)
    setup = lay_out(
        io,
        on,
        sizing or Sizing(),
        streams=max(counts),
        writes_per_day_bytes=writes_per_day_bytes,
    )
    return compare_assignments(
        Path(trace),
        setup,
        counts,
        timed=timed,
        queue_depth=queue_depth,
        readers=readers,
        seed=seed,
        on_cell=on_cell,
    )


def _read(trace: PathLike, on: str, rules: str | None, *, own_rules: bool = False) -> FileIO:
    """The trace with the streams of `rules`; with `own_rules`, those of its hints or its program if
    none are given. Raises TraceError, ConfigError."""
    from writecliff.capture.rules import load_rules, rules_of
    from writecliff.capture.trace import read_trace
    from writecliff.replay.columns import file_io
    from writecliff.replay.model import simulated_name

    simulated_name(on)  # before a large file is read
    chosen = None if rules is None else load_rules(rules)
    found = read_trace(Path(trace))
    if chosen is None and own_rules:
        chosen = rules_of(found)
    return file_io(found.table, chosen)
