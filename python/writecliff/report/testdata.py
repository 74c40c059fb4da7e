"""Run data that reports read, including manifest, judged history, rows and histograms.

The procedure (`procedures.rejudge`) computes windows, steady state and operating points; reports
never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff.errors import StoreError
from writecliff.latency_basis import Basis, bases_of, histogram_of, merged
from writecliff.procedures.model import History, Procedure, Stage, StageHistory, StepRow
from writecliff.procedures.registry import entry_of
from writecliff.procedures.rejudge import rejudge
from writecliff.report.csvs import Value, data_file
from writecliff.report.latency import NINES
from writecliff.report.steady import SteadyView
from writecliff.report.table import DataFile
from writecliff.store.manifest import Manifest, Status
from writecliff.store.partial_intervals import whole_ends
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from writecliff._native import Histogram

STEPS_CSV = "steps.csv"
_STEP_COLUMNS = (
    "phase", "round", "step", "label", "sample", "pattern", "block_bytes", "read_pct", "threads",
    "queue_depth", "started_ns", "elapsed_ns", "ios", "bytes", "iops", "host_write_bytes",
    "host_write_bytes_total", "drive_fills", "waf",
)  # fmt: skip
_SPREAD = """
select seq, end_ns, sum(ios) as ios from intervals group by seq, end_ns order by seq, end_ns
"""


@dataclass(frozen=True)
class TestData:
    """A run of any test that is ready to be reported."""

    __test__ = False  # Tell pytest that this class is not a test class.

    run: RunDirectory
    procedure: Procedure
    stages: Sequence[Stage]
    history: History

    @property
    def manifest(self) -> Manifest:
        """Manifest of the run."""
        return self.run.manifest

    @property
    def options(self) -> Mapping[str, Any]:
        """Stored options of the test."""
        return self.manifest.options

    @property
    def name(self) -> str:
        """Name of the run directory."""
        return self.run.name

    @property
    def status(self) -> Status:
        """Run status: complete, running, interrupted or failed."""
        return self.run.status

    @property
    def capacity_bytes(self) -> int:
        """User capacity in bytes."""
        return self.manifest.device.capacity_bytes

    @property
    def rows(self) -> Sequence[StepRow]:
        """All steps in order; the store numbers them from 1 (`seq`)."""
        return self.history.rows

    @property
    def host_write_bytes(self) -> int:
        """Total host bytes written in all steps."""
        return self.history.host_write_bytes

    @property
    def elapsed_ns(self) -> float:
        """Device time of all steps and of the pauses between steps, in ns."""
        return float(self.history.elapsed_ns) + self.idle_ns

    @property
    def idle_ns(self) -> float:
        """Time between the steps of a stage, in ns.

        On a real drive, each step is a separate process.
        """
        return float(
            sum(
                max(after.started_ns - before.ended_ns, 0)
                for before, after in pairwise(self.rows)
                if before.phase == after.phase
            )
        )

    def stage(self, phase: str) -> StageHistory | None:
        """Return a phase's stage, or None if the run did not reach the phase."""
        return self.history.stages.get(phase)

    def stage_rows(self, phase: str) -> Sequence[StepRow]:
        """Return a stage's measured steps, excluding preparatory steps."""
        stage = self.stage(phase)
        return () if stage is None else stage.rows

    def view(self, phase: str, label: str = "", suffix: str = "") -> SteadyView:
        """Return the steady-state view of a stage."""
        return SteadyView(
            self.stage(phase),
            label,
            suffix,
            ended=self.status == "complete",
            short=self.procedure.is_short,
        )

    @property
    def conformant(self) -> bool:
        """`True` if the run meets all requirements of the standard or campaign."""
        return not self.stamp

    @property
    def stamp(self) -> str:
        """Stamp shown on every page, or an empty text if the run is conformant.

        A run is stamped if it deviates from a requirement, if it was shortened, or if a standard's
        test ran on a scaled-down simulated drive.
        """
        required = any(item.get("level") == "required" for item in self.manifest.deviations)
        entry = entry_of(self.manifest.procedure)
        smaller = self.manifest.device.scale != 1.0 and not entry.is_user_load
        if not (required or smaller or self.options.get("quick")):
            return ""
        return "NOT AS PUBLISHED" if entry.campaign else "NOT PTS-CONFORMANT"

    def seq(self, row: StepRow) -> int:
        """Return the step number in the store for a row of this run."""
        return self._seqs[row.phase, row.round, row.step]

    @cached_property
    def _seqs(self) -> dict[tuple[str, int, int], int]:
        return {(row.phase, row.round, row.step): seq for seq, row in enumerate(self.rows, 1)}

    @cached_property
    def columns(self) -> Mapping[int, Mapping[str, Any]]:
        """All columns of the `rounds` table, by `seq`."""
        return {row["seq"]: row for row in self.run.rounds().to_pylist()}

    @cached_property
    def interval_iops(self) -> Mapping[int, tuple[float, float]]:
        """Lowest and highest IOPS of a step's one-second intervals, by `seq`."""
        rows = self.run.query(_SPREAD)
        seq, end_ns, ios = (column.to_numpy().astype(np.float64) for column in rows.columns)
        ends = whole_ends(seq, end_ns)
        spread: dict[int, tuple[float, float]] = {}
        for step in np.unique(seq):
            mine = seq == step
            edges, part = np.unique(ends[mine], return_inverse=True)
            rates = np.bincount(part, weights=ios[mine]) / np.diff(edges, prepend=0.0) * 1e9
            spread[int(step)] = float(rates.min()), float(rates.max())
        return spread

    def histogram(
        self, rows: Iterable[StepRow], *, operation: str | None = None
    ) -> Histogram | None:
        """Return the merged service times of all I/Os in `rows`, or None without I/Os."""
        return self.run.histogram(steps=[self.seq(row) for row in rows], operation=operation)

    def is_scheduled(self, seq: int, job: int) -> bool:
        """Return `True` if the I/Os of any job in a step have intended arrival times.

        Earlier versions did not store this property, so it is inferred from their runs' loads or
        response times.
        """
        row = self.columns[seq]
        if (stored := row["jobs"][job].get("scheduled")) is not None:
            return bool(stored)
        if (load := self.procedure.load_of(row["phase"])) is not None:
            return load.jobs[job].is_scheduled
        return any(key[:2] == (seq, job) for key in self._responses)

    @cached_property
    def _responses(self) -> Mapping[tuple[int, int, str], Histogram]:
        return self.run.histograms_by_cell(kind="response")

    def latencies_by_step(self, basis: Basis) -> Mapping[int, Histogram]:
        """Return each step's latencies over all jobs and operations, by `seq`.

        Steps with unknown latencies are omitted.
        """
        cells: dict[int, list[Histogram | None]] = {}
        for (seq, job, operation), service in self.run.histograms_by_cell(kind="service").items():
            response = self._responses.get((seq, job, operation))
            scheduled = self.is_scheduled(seq, job)
            cells.setdefault(seq, []).append(
                histogram_of(basis, service=service, response=response, scheduled=scheduled)
            )
        sums = {
            seq: merged(filter(None, parts)) for seq, parts in cells.items() if None not in parts
        }
        return {seq: total for seq, total in sums.items() if total is not None}

    @cached_property
    def has_schedules(self) -> bool:
        """`True` if any step has a job with intended arrival times."""
        return any(
            self.is_scheduled(seq, job)
            for seq, row in self.columns.items()
            for job in range(len(row["jobs"] or ()))
        )

    @cached_property
    def steps_file(self) -> DataFile:
        """Every step in the run as CSV.

        The columns include those of the `rounds` table, the spread of the step's intervals, and the
        step's latencies. Runs with open loads also have service time columns.
        """
        bases = bases_of(scheduled=self.has_schedules)
        histograms = {basis: self.latencies_by_step(basis) for basis in bases}
        names = ("mean", "max", *(f"p{_nine(q)}" for q in NINES))
        words = {"arrival": "latency", "service": "service"}
        times = [f"{words[basis]}_{name}_ns" for basis in bases for name in names]
        head = ("seq", *_STEP_COLUMNS, "bytes_per_s", "interval_iops_min",
                "interval_iops_max", *times)  # fmt: skip

        def line(row: StepRow) -> list[Value]:
            seq = self.seq(row)
            cells = [self.columns[seq][name] for name in _STEP_COLUMNS]
            cells = [int(cell) if isinstance(cell, bool) else cell for cell in cells]
            slow = [time for basis in bases for time in _times(histograms[basis].get(seq))]
            spread = self.interval_iops.get(seq, (None, None))
            return [seq, *cells, row.bytes_per_s, *spread, *slow]

        return data_file(STEPS_CSV, head, map(line, self.rows))


def _times(histogram: Histogram | None) -> list[Value]:
    """Return the mean, maximum and nines, with None for unknown values."""
    if histogram is None:
        return [None] * (2 + len(NINES))
    slow = (histogram.quantile(q).value_ns for q in NINES)
    return [histogram.mean_ns, histogram.max_ns, *slow]


def _nine(q: float) -> str:
    """Return a quantile for a column name, such as "9999" for 0.9999."""
    return f"{100 * q:.6f}".rstrip("0").replace(".", "")


def load(run: RunDirectory) -> TestData:
    """Read a run.

    Raises:
        StoreError: If the run is damaged, has no measurements, or belongs to an unknown test.
    """
    judged = rejudge(run)
    if not judged.history.rows:
        raise StoreError(
            f"{run.path} contains no complete step to report",
            hint="wait until the run has completed a step",
        )
    return TestData(run, judged.procedure, judged.stages, judged.history)
