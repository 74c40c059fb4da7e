"""Sets of runs: suites and sweeps, comparisons, and their reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.api.outcome import check_set_limits
from writecliff.api.runs import PathLike, Run, opened, output_path
from writecliff.errors import ConfigError
from writecliff.shown import Grid, Shown, Shows

if TYPE_CHECKING:
    from writecliff.api.answers.tests import SetOutcome
    from writecliff.api.outcome import Baseline, Outcome
    from writecliff.replay.advice import StreamAdvice
    from writecliff.report.comparison import Comparison
    from writecliff.report.expectations import Expectation, Judged
    from writecliff.report.suite_page import SuitePage
    from writecliff.suite.children import ChildEvent
    from writecliff.suite.folder import Kind, Member, SuiteFolder
    from writecliff.traces.characterise import Characterised


@dataclass(frozen=True)
class Suite(Shows):
    """The runs of a suite or sweep."""

    path: Path
    """The directory of the suite."""

    page: Path
    """The page about all runs."""

    runs: Mapping[str, Run]
    """The runs by name, in order."""

    limits: Mapping[str, Sequence[Judged]]
    """Limits with their results, by run; limits on figures that no run has are under ""."""

    folder: SuiteFolder = field(repr=False, compare=False)
    """The directory with its plan."""

    written: SuitePage = field(repr=False, compare=False)
    """The data of the page."""

    def outcome(self, baseline: Baseline | None = None) -> Outcome:
        """Return the runs' limits and the comparison with a baseline. Raises as `compare`."""
        from writecliff.api.outcome import Outcome

        name = self.path.name
        judged = {run or name: limits for run, limits in self.limits.items()}
        return Outcome(name, judged, None if baseline is None else baseline.compare(self.path))

    def answer(self, outcome: Outcome) -> SetOutcome:
        """Return the output of `writecliff suite --json`."""
        from writecliff.api.answers.tests import SetOutcome, SetRun

        folder = self.folder
        runs = [
            SetRun(name, folder.members[name].test, folder.status(name), run.path, run.page)
            for name, run in self.runs.items()
        ]
        return SetOutcome(
            kind=folder.kind,
            about=folder.about,
            folder=self.path,
            report=self.page,
            runs=runs,
            **outcome.answer(),
        )

    def _shown(self) -> Shown:
        from writecliff.errors import WritecliffError

        rows = []
        for name, run in self.runs.items():
            try:
                rows.append((name, run.test, run.status, run.verdict))
            except WritecliffError as error:
                rows.append((name, "", "", str(error)))
        grid = Grid(("run", "test", "status", "outcome"), rows, "llll")
        return Shown(str(self.path), [f"page: {self.page}"], [grid])


def run_suite(
    edition: str,
    on: str,
    *,
    tests: Sequence[str] | None = None,
    output: PathLike | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    opening: Mapping[str, Any] | None = None,
    special: Mapping[str, Mapping[str, Any]] | None = None,
    log: Callable[[ChildEvent], None] | None = None,
    **options: Any,
) -> Suite:
    """Run all tests of an edition on a drive, each after a purge, and write a report.

    Args:
        edition: "pts-e" or "pts-c".
        on: The target.
        tests: Tests of the edition to run (default: all).
        output: The directory, which must be empty or not exist (default:
            suites/EDITION-TARGET-TIME).
        workers: Maximum number of simultaneous runs on a simulated drive.
        scheduler: "local" or "tcp://HOST:PORT", to run on Dask.
        opening: Keyword arguments of `open_target`.
        special: Options for individual tests, keyed by test name.
        log: Callback that receives the runs' events.
        **options: Options for every test.

    Each test runs in a separate process. Raises as `run_test`.
    """
    opening = opening or {}
    members = suite_members(edition, on, tests=tests, special=special, options=options)
    folder = start_suite(edition, members, on, output=output, opening=opening)
    return run_members(folder, opening=opening, workers=workers, scheduler=scheduler, log=log)


def suite_members(
    edition: str,
    on: str,
    *,
    tests: Sequence[str] | None = None,
    special: Mapping[str, Mapping[str, Any]] | None = None,
    options: Mapping[str, Any],
    expect: Sequence[str] = (),
) -> Mapping[str, Member]:
    """Return the runs of a suite by name, given arguments as for `run_suite`.

    Raises:
        ConfigError: If an option is invalid, or a limit in `expect` applies to no run.
    """
    from writecliff.suite.plan import plan_suite

    members = plan_suite(edition, on, tests=tests, common=options, special=special)
    check_set_limits(expect, members)
    return members


def start_suite(
    edition: str,
    members: Mapping[str, Member],
    on: str,
    *,
    output: PathLike | None = None,
    store: str | None = None,
    opening: Mapping[str, Any],
) -> SuiteFolder:
    """Check that a suite's runs can run on a drive, and create their directory.

    Raises:
        ConfigError: If a run does not suit the drive.
        TargetError: If the drive cannot be opened, or must not be overwritten.
        StoreError: If the directory cannot be written.
    """
    from writecliff.suite.folder import SuiteFolder

    with output_path(output, "suites", edition, on, store=store) as path:
        _check(members, on, opening)
        return SuiteFolder.create(path, "suite", edition, members)


def open_set(path: Path, kind: Kind, on: str | None = None) -> SuiteFolder:
    """Open the directory of a suite or sweep that is to be resumed.

    Raises:
        ConfigError: If the directory contains another kind of set, or runs on a drive other than
            `on`.
        StoreError: If the directory is damaged.
    """
    from writecliff.suite.folder import SuiteFolder

    folder = SuiteFolder.open(path)
    if folder.kind != kind:
        raise ConfigError(
            f"{path} is a {folder.kind}", hint=f"writecliff {folder.command} --resume {path}"
        )
    if on is not None and on not in folder.targets:
        raise ConfigError(
            f"{path} was run on {', '.join(folder.targets)}, not on {on}",
            hint="omit the target",
        )
    return folder


def run_sweep(
    vary: Mapping[str, Sequence[Any]],
    on: str,
    *,
    test: str | None = None,
    workload: PathLike | None = None,
    output: PathLike | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    opening: Mapping[str, Any] | None = None,
    log: Callable[[ChildEvent], None] | None = None,
    **options: Any,
) -> Suite:
    """Run every combination of varied settings, each after a purge, and write a report.

    `vary` maps keys to values, such as `{"overprovision_pct": [7.0, 14.0, 28.0]}` (in %). A key
    such as `"device.ftl.gc"` names a key in the device file, and `"load.queue_depth"` names a key
    of a load. `test` is the test to run with `options` (default: "wsat"). `workload` is a load to
    run instead of a test. `output` is the directory, which must be empty or not exist (default:
    sweeps/KEYS-TARGET-TIME). Other arguments are as in `run_suite`. Raises as `run_test`.
    """
    from itertools import product

    opening = opening or {}
    base_test, common = sweep_base(test, workload, on, options, opening)
    keys = [key if "." in key else key.replace("-", "_") for key in vary]
    cells = [dict(zip(keys, row, strict=True)) for row in product(*vary.values())]
    folder = start_sweep(base_test, cells, common, on, output=output, opening=opening)
    return run_members(folder, opening=opening, workers=workers, scheduler=scheduler, log=log)


def start_sweep(
    test: str,
    cells: Sequence[Mapping[str, Any]],
    common: Mapping[str, Any],
    on: str,
    *,
    output: PathLike | None = None,
    store: str | None = None,
    opening: Mapping[str, Any],
    expect: Sequence[str] = (),
) -> SuiteFolder:
    """Check that a sweep's runs can run on a drive, and create their directory.

    Args:
        test: The test, or "workload".
        cells: The settings that vary, for each run.
        common: The other options, as returned by `sweep_base`.
        on: The drive.
        output: The directory (default: sweeps/KEYS-TARGET-TIME in `store`).
        store: The store of the runs.
        opening: Keyword arguments of `open_target`.
        expect: Limits, each of which must apply to a run.

    Raises:
        ConfigError: If the cells or a limit are invalid, or a run does not suit the drive.
        TargetError: If the drive cannot be opened, or must not be overwritten.
        StoreError: If the directory cannot be written.
    """
    from writecliff.suite.sweep import plan_sweep

    keys = [*cells[0]] if cells else []
    name = "-".join(keys).replace("_", "-")
    with output_path(output, "sweeps", name, on, store=store) as path:
        plan = plan_sweep(test, on, cells, common, folder=path)
        check_set_limits(expect, plan.members)
        _check(plan.members, on, opening)
        return plan.create(path, ",".join(keys))


def _check(members: Mapping[str, Member], on: str, opening: Mapping[str, Any]) -> None:
    """Open the target, and run `suite.plan.check_members` on it."""
    from writecliff.suite.plan import check_members

    with opened(on, 1, **opening) as engine:
        check_members(members, engine)


def sweep_base(
    test: str | None,
    workload: PathLike | None,
    on: str,
    options: Mapping[str, Any],
    opening: Mapping[str, Any],
) -> tuple[str, dict[str, Any]]:
    """Return a sweep's test and the options that do not vary.

    Raises:
        ConfigError: If a load is combined with a test or its options.
    """
    if workload is None:
        return test or "wsat", dict(options)
    if test is not None or options:
        raise ConfigError(
            "a sweep runs either a workload or a test with options, not both",
            hint="omit the workload, or omit the test and its options",
        )
    from contextlib import closing

    from writecliff.engines.target import open_target
    from writecliff.procedures.workload import WorkloadRun
    from writecliff.profiles import find_workload
    from writecliff.workload.load import load_workload

    with closing(open_target(on, **opening)) as engine:
        identity = engine.identify()
    load = load_workload(find_workload(Path(workload)), capacity_bytes=identity.capacity_bytes)
    return "workload", WorkloadRun.of(load, identity).options_mapping()


def run_members(
    folder: SuiteFolder,
    *,
    opening: Mapping[str, Any],
    workers: int | None = None,
    scheduler: str | None = None,
    log: Callable[[ChildEvent], None] | None = None,
    expect: Sequence[Expectation] = (),
) -> Suite:
    """Run the remaining members of a suite or sweep, check limits, and write the report.

    `expect` contains limits on the runs' figures. Raises as `run_test`.
    """
    from writecliff.cluster import connected
    from writecliff.report import write_report
    from writecliff.report.expectations import judge_members
    from writecliff.report.suite_page import write_suite_page
    from writecliff.suite.runner import run_suite

    def discard(event: ChildEvent) -> None:
        """Ignore a progress event."""

    with connected(scheduler, workers=workers) as cluster:
        run_suite(
            folder, log or discard, opening=opening, finish=write_report, workers=workers,
            cluster=cluster,
        )  # fmt: skip
    runs = {name: Run(folder.run_directory(name)) for name in folder.members}
    done = {name: (member.test, runs[name].path) for name, member in folder.members.items()}
    judged = judge_members(done, expect) if expect else {}
    written = write_suite_page(folder)
    return Suite(folder.path, written.path, runs, judged, folder, written)


def compare(*runs: Run | Suite | PathLike) -> Comparison:
    """Compare runs, suites, sweeps or saved JSON output.

    The result contains the `figures`, the `differences` and the `verdict`.

    Raises:
        ConfigError: If there are fewer than two contenders, or they have no figure in common.
    """
    from writecliff.report.comparison import compare as compare_paths

    return compare_paths([_path_of(run) for run in runs])


def write_report(
    run: Run | PathLike,
    *,
    output: PathLike | None = None,
    pdf: PathLike | None = None,
    csv: PathLike | None = None,
) -> Path:
    """Write the HTML report of a run, and return its path.

    `output` is the HTML file (default: report.html in the run directory). `pdf` is an additional
    PDF file, and `csv` is a folder for the data in the report's plots and tables.

    Raises:
        StoreError: If a file cannot be written.
    """
    from writecliff.report import write_report as write

    output, pdf, csv = (None if path is None else Path(path) for path in (output, pdf, csv))
    return write(_path_of(run), output, pdf=pdf, csv=csv)


def write_page(
    result: Comparison | StreamAdvice | Characterised | Sequence[Characterised],
    output: PathLike,
    *,
    pdf: PathLike | None = None,
    csv: PathLike | None = None,
) -> Path:
    """Write a page on a comparison, stream advice, or one or two traces, and return its path.

    `result` is a result of `compare`, `advise_streams` or `characterise_trace`. `output` is the
    HTML file; an existing file is replaced. `pdf` and `csv` are as in `write_report`.

    Raises:
        ConfigError: If `result` has another type.
        StoreError: If a file cannot be written.
    """
    from writecliff.replay.advice import StreamAdvice
    from writecliff.report.comparison import Comparison
    from writecliff.report.comparison.page import comparison_page
    from writecliff.report.pages import write_page as write
    from writecliff.report.stream_advice import advice_page
    from writecliff.report.trace_workload import workload_page
    from writecliff.traces.characterise import Characterised

    traces = [result] if isinstance(result, Characterised) else result
    if isinstance(result, Comparison):
        page = comparison_page(result)
    elif isinstance(result, StreamAdvice):
        page = advice_page(result)
    elif (
        isinstance(traces, Sequence)
        and traces
        and all(isinstance(trace, Characterised) for trace in traces)
    ):
        page = workload_page(list(traces))
    else:
        raise ConfigError(
            f"a {type(result).__name__} object cannot be shown as a page",
            hint="pass the result of compare, advise_streams or characterise_trace",
        )
    pdf, csv = (None if path is None else Path(path) for path in (pdf, csv))
    return write(page, Path(output), pdf=pdf, csv=csv)


def _path_of(run: Run | Suite | PathLike) -> Path:
    return run.path if isinstance(run, Run | Suite) else Path(run)
