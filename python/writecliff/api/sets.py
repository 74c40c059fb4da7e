"""Several runs: suites and sweeps, comparisons, and the reports of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.api.runs import PathLike, Run, new_path
from writecliff.shown import Grid, Shown, Shows

if TYPE_CHECKING:
    from writecliff.report.comparison import Comparison
    from writecliff.report.expectations import Expectation, Judged
    from writecliff.report.suite_page import SuitePage
    from writecliff.suite.children import ChildEvent
    from writecliff.suite.folder import SuiteFolder


@dataclass(frozen=True)
class Suite(Shows):
    """The runs of a suite or sweep."""

    path: Path
    """The directory of the suite."""

    page: Path
    """The page about all of its runs."""

    runs: Mapping[str, Run]
    """The runs by name, in order."""

    limits: Mapping[str, Sequence[Judged]]
    """Limits and what became of them, by run; under "" those of which no run has the figure."""

    written: SuitePage = field(repr=False, compare=False)
    """What the page was made of, so that nobody has to read it again."""

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
    """Run all tests of an edition on a drive, each from a purge, and write a page about them.

    `edition`: "pts-e" or "pts-c". `tests`: those of them to run. `output`: the directory, which
    must be empty or not exist (default: suites/EDITION-TARGET-TIME). `workers`: runs at a time on a
    simulated drive. `scheduler`: run them on Dask, "local" or "tcp://HOST:PORT". `opening`: keyword
    arguments of `open_target`. `options` go to every test,
    `special` to the tests that it names. Tests run in processes of their own. Raises as `run_test`.
    """
    from writecliff.suite.folder import SuiteFolder
    from writecliff.suite.plan import plan_suite

    members = plan_suite(edition, on, tests=tests, common=options, special=special)
    path = Path(output or new_path("suites", edition, on))
    folder = SuiteFolder.create(path, "suite", edition, members)
    return run_members(folder, opening=opening or {}, workers=workers, scheduler=scheduler, log=log)


def run_members(
    folder: SuiteFolder,
    *,
    opening: Mapping[str, Any],
    workers: int | None = None,
    scheduler: str | None = None,
    log: Callable[[ChildEvent], None] | None = None,
    expect: Sequence[Expectation] = (),
) -> Suite:
    """Run what a suite or sweep has not done yet, hold the limits in `expect` against its runs, and
    write its page. Raises as `run_test`."""
    from writecliff.cluster import connected
    from writecliff.report import write_report
    from writecliff.report.expectations import judge_members
    from writecliff.report.suite_page import write_suite_page
    from writecliff.suite.runner import run_suite

    def unseen(event: ChildEvent) -> None:
        """Shows nothing."""

    with connected(scheduler, workers=workers) as cluster:
        run_suite(
            folder, log or unseen, opening=opening, finish=write_report, workers=workers,
            cluster=cluster,
        )  # fmt: skip
    runs = {name: Run(folder.run_directory(name)) for name in folder.members}
    done = {name: (member.test, runs[name].path) for name, member in folder.members.items()}
    judged = judge_members(done, expect) if expect else {}
    written = write_suite_page(folder)
    return Suite(folder.path, written.path, runs, judged, written)


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
