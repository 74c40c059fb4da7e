"""The interface between measurement procedures and drives: `Engine` and its result types.

Measurement procedures import no other engine module. `SimEngine` (virtual time) and `FioEngine` (a
real block device or file, through fio) implement `Engine`. A value that an engine cannot measure is
`None`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from writecliff import units
from writecliff.engines.counters import Counters
from writecliff.errors import A_HARD_DISK, AN_SCM_DRIVE
from writecliff.latency_basis import Basis, bases_of, histogram_of, merged
from writecliff.operation_names import FLUSH
from writecliff.shown import Grid, Shown, Shows

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from writecliff._native import Histogram
    from writecliff.engines.data_placement_status import DataPlacementStatus
    from writecliff.errors import TargetError
    from writecliff.latency_causes import LatencyCauses
    from writecliff.workload.model import Job, Workload

Operation = Literal["read", "write", "trim"]
OPERATIONS: tuple[Operation, ...] = ("read", "write", "trim")


class OperationNumber(IntEnum):
    """Operation number in time-series columns, which is an index into `OPERATIONS`."""

    READ = 0
    WRITE = 1
    TRIM = 2


def with_operation_names(table: pa.Table) -> pa.Table:
    """Return the table with operation names instead of numbers in the `operation` column."""
    import pyarrow as pa

    numbers = table.column("operation").combine_chunks().cast(pa.int8())
    names = pa.DictionaryArray.from_arrays(numbers, list(OPERATIONS))
    return table.set_column(table.column_names.index("operation"), "operation", names)


SCM = "storage-class memory"  # Value of `nand_type` for a drive that has no flash.


@dataclass(frozen=True, kw_only=True)
class DeviceIdentity:
    """Drive identity, as shown in the report header. Unknown fields are `None`."""

    target: str  # Target as the user named it: "sim:sata-tlc-120", "/dev/sdb", "file:/tmp/x.img".
    vendor: str | None = None  # Vendor name, such as "Samsung".
    model: str  # Model string that the drive reports.
    serial: str | None = None  # Serial number that the drive reports.
    firmware: str | None = None  # Firmware revision.
    capacity_bytes: int  # User capacity in bytes.
    sector_bytes: int  # Logical sector size in bytes.
    interface: str | None = None  # Host interface, such as "SATA 6Gb/s" or "NVMe".
    nand_type: str | None = None  # NAND type, such as "TLC".
    rated_tbw_bytes: int | None = None  # Warranted endurance in bytes written.
    device_hash: str | None = None  # Hash of the device description (simulated drives only).
    simulated: bool  # `False` for a real drive.
    rotational: bool | None = None  # `True` for a hard disk; `None` if the kernel does not know.
    # Rated erase cycles of the drive's flash; `None` for real drives.
    rated_cycles: int | None = None
    scale: float = 1.0  # Factor by which capacity and time are reduced (simulated drives only).
    backing: str | None = None  # Identifier of a target that has no serial number.
    form_factor: str | None = None  # Form factor, such as "2.5 inches".
    adapter: str | None = None  # Host adapter that a real drive is connected to.
    # PCIe link of an NVMe drive or of the host adapter, such as "Gen 4 x 4".
    pcie: str | None = None
    # Header fields supplied by the user: "sponsor" and "note".
    remarks: Mapping[str, str] = field(default_factory=dict)

    @property
    def without_flash(self) -> str | None:
        """Kind of a drive that has no flash ("a hard disk"), or None for flash or unknown kinds."""
        if self.rotational:
            return A_HARD_DISK
        return AN_SCM_DRIVE if self.nand_type == SCM else None

    @property
    def scale_text(self) -> str:
        """Scale as text ("simulated at 1/32 of its capacity"), or "" at full capacity."""
        return "" if self.scale == 1.0 else f"simulated at 1/{self.scale:g} of its capacity"


def described_as(identity: DeviceIdentity, given: Mapping[str, str]) -> DeviceIdentity:
    """Return the identity, completed with the user's drive and test description."""
    return replace(
        identity,
        nand_type=given.get("nand_type", identity.nand_type),
        form_factor=given.get("form_factor", identity.form_factor),
        remarks={name: given[name] for name in ("sponsor", "note") if name in given},
    )


@dataclass(frozen=True)
class PurgeReport:
    """Purge method applied to a drive, which reports must disclose."""

    method: str  # Method: "simulated purge", "NVMe format (user data erase)", "blkdiscard", ...
    # `False` after a weak substitute (blkdiscard), or if the drive was not purged.
    conformant: bool
    note: str = ""  # Caveat that the report prints.


NOT_PURGED = PurgeReport(
    "not purged by writecliff",
    False,
    "the run was started with --no-purge; the drive kept its previous state",
)


# Callback that receives the completed fraction of a purge (0 to 1) if the drive reports progress.
PurgeHook = Callable[[float], None]


def unseen(share: float) -> None:
    """Ignore purge progress (a `PurgeHook` that displays nothing)."""


@dataclass(frozen=True)
class CacheReport:
    """Volatile write cache state after a request to change it."""

    enabled: bool | None  # `None` if the drive does not report its cache state.
    note: str = ""  # Caveat that the report prints.


@dataclass(frozen=True)
class PowerState:
    """Power state descriptor of an NVMe drive."""

    number: int  # Power state number; state 0 draws the most power.
    watts_max: float | None  # Maximum power in watts; `None` if not reported.
    operational: bool  # `True` if the drive processes I/O commands in this state.
    entry_us: int  # Maximum entry latency in µs.
    exit_us: int  # Maximum exit latency in µs.
    # Maximum number of concurrently active dies; `None` for real drives.
    max_active_dies: int | None = None

    @property
    def limits_text(self) -> str:
        """Power and die limits as text ("4.6 W at most, 8 dies active at most")."""
        dies = self.max_active_dies
        limit = "" if dies is None else f", {dies} dies active at most"
        return f"{watts_text(self.watts_max)}{limit}"


def watts_text(watts_max: float | None) -> str:
    """Return a power state's maximum power as text."""
    return "maximum power not reported" if watts_max is None else f"{watts_max:g} W at most"


@dataclass(frozen=True)
class PowerStates:
    """The drive's current power state and all supported states."""

    state: int  # Current power state number.
    states: tuple[PowerState, ...]  # Power states by number.
    autonomous: bool | None = None  # `True` if autonomous transitions are enabled.
    # Power state before the run; `None` if the run did not request a state.
    before: int | None = None

    @property
    def watts_max(self) -> float | None:
        """Maximum power in the current state in watts, or None if the drive does not report it."""
        return self.states[self.state].watts_max if self.state < len(self.states) else None

    @property
    def text(self) -> str:
        """Current power state as text ("1 of 0 to 4, 4.6 W at most")."""
        last = len(self.states) - 1
        which = f"{self.state} of 0 to {last}" if last else f"{self.state}, the only state"
        limits = self.states[self.state].limits_text if self.state <= last else watts_text(None)
        return f"{which}, {limits}"


@dataclass(frozen=True)
class OperationResult:
    """Measurements of one operation in one job.

    `service` holds the latency of every I/O from submission to completion. `response` holds the
    latencies measured from the intended arrival, or `None` if the job is not rate-driven. Figures
    whose names do not start with `service/` are based on `latency()`. `causes` splits the service
    times by cause, and is `None` if the drive does not record causes.
    """

    ios: int  # Number of completed I/Os.
    bytes: int  # Number of bytes transferred.
    service: Histogram
    response: Histogram | None = None
    causes: LatencyCauses | None = None
    scheduled: bool = False  # `True` if the I/Os had intended arrival times.

    def latency(self, basis: Basis = "arrival") -> Histogram | None:
        """Return the latency histogram for a basis, or None if the engine cannot measure it."""
        return histogram_of(basis, service=self.service, response=self.response,
                            scheduled=self.scheduled)  # fmt: skip


def together(results: Sequence[OperationResult]) -> OperationResult | None:
    """Merge an operation's results except response times, or return None if there are none."""
    service = merged(result.service for result in results)
    if service is None:
        return None
    ios, size = sum(result.ios for result in results), sum(result.bytes for result in results)
    scheduled = any(result.scheduled for result in results)
    return OperationResult(ios, size, service, scheduled=scheduled)


@dataclass(frozen=True)
class Adherence:
    """Backlog of an open-loop load. Ages are measured from intended arrival to completion."""

    ios: int  # Number of I/Os that completed.
    span_ns: int  # Time from the first to the last arrival, in ns.
    slope: float  # Age growth over the arrivals, in seconds per second.
    slope_error: float  # Standard error of the slope.
    last_age_ns: int  # Median age of the last I/Os, in ns.


@dataclass(frozen=True)
class JobResult:
    """Measurements of a job by operation, omitting operations that the job did not issue.

    `elapsed_ns` is the measured time, which is the divisor of rates. The measured time starts after
    the job's start delay and ramp, like `runtime` in fio's JSON. If the search for a latency target
    succeeds, the measured time restarts with the last window, and the results cover only that
    window's I/Os. The measured time ends at the end of the job's duration or at its last
    completion, whichever is later. If another condition ended the job, the measured time ends at
    the last completion. `began_ns` is the job's start time within the step.
    """

    name: str  # Name of the job.
    elapsed_ns: int
    operations: Mapping[Operation, OperationResult]  # Results by kind of operation.
    thread_ios: tuple[int, ...] = ()  # I/O count of each thread.
    # Condition that ended the job early: "steady_state", "latency_target" or "least_rate".
    ended_by: str | None = None
    # Final queue depth of each thread, which a latency target may change.
    queue_depth: int | None = None
    began_ns: int = 0  # Start time relative to the start of the step.
    # Latency statistics of the flushes that the job issued (fsync, fdatasync). In these flush
    # statistics, `ios` is the flush count and `bytes` is 0. The flush statistics are `None` if the
    # job issued no flushes. The latency of an O_DSYNC write includes its flush, so that flush is
    # not counted here.
    flush: OperationResult | None = None

    @property
    def timed(self) -> Mapping[str, OperationResult]:
        """Results that have latencies, by operation name, followed by any "flush" results."""
        timed: dict[str, OperationResult] = dict(self.operations.items())
        if self.flush is not None:
            timed[FLUSH] = self.flush
        return timed

    adherence: Adherence | None = None  # `None` for a closed-loop load or the fio engine.

    def following(self, job: Job) -> JobResult:
        """Return the result, marked as scheduled if the job's I/Os have intended arrival times."""
        operations = {
            name: replace(done, scheduled=job.is_scheduled)
            for name, done in self.operations.items()
        }
        return replace(self, operations=operations)


@dataclass(frozen=True)
class StepResult(Shows):
    """Measurements from one `Engine.run` call.

    `intervals` maps column names to numpy arrays of equal length, with one row per interval, job
    and operation. The columns are `end_ns` (device time since the step started), `job` (index),
    `operation` (an `OperationNumber`), `ios`, `bytes`, `latency_mean_ns`, `latency_max_ns` and
    `latency_sd_ns`. The drive-level columns are `waf`, `watts` (mean power) and `temperature_c` (at
    the end of the interval). NaN marks an unknown value; `watts` and `temperature_c` may be
    missing.
    """

    started_ns: int  # Device clock (virtual, or monotonic since the engine was opened).
    elapsed_ns: int  # Duration on the device clock.
    jobs: tuple[JobResult, ...]  # Job results in workload order.
    intervals: Mapping[str, np.ndarray]
    counters_before: Counters  # Drive counters before the step.
    counters_after: Counters  # Drive counters after the step.
    warnings: tuple[str, ...] = ()
    # Data placement statistics before and after the step. Data placement statistics are `None` for
    # real drives and for drives that do not support data placement.
    data_placement: tuple[DataPlacementStatus, DataPlacementStatus] | None = None
    # Additional data from real drives: "fio" (fio's JSON, for cross-checks), "job_file", and
    # "machine" (CPU load, foreign I/O and temperature during the step, see engines.disturbance).
    raw: Mapping[str, object] = field(default_factory=dict)
    # Batch table of the step, with a row for each batch, job, operation and kind of latency. The
    # columns of this table are those of the `batches` table (store/tables.py). The batch table is
    # empty if the engine does not record batches.
    batches: Mapping[str, np.ndarray] = field(default_factory=dict)

    def total(self, operation: Operation | None = None) -> tuple[int, int]:
        """Return the I/O count and bytes of all jobs, for one operation or all."""
        ios = size = 0
        for job in self.jobs:
            for name, result in job.operations.items():
                if operation in (None, name):
                    ios += result.ios
                    size += result.bytes
        return ios, size

    def service(self) -> Histogram | None:
        """Return the service times of all jobs and operations, or None if no I/O was recorded."""
        return merged(op.service for job in self.jobs for op in job.operations.values())

    def table(self) -> pa.Table:
        """Return `intervals` as an Arrow table that contains job and operation names."""
        import pyarrow as pa

        table = with_operation_names(pa.table(dict(self.intervals)))
        jobs = table.column("job").combine_chunks().cast(pa.int32())
        names = pa.DictionaryArray.from_arrays(jobs, [job.name for job in self.jobs])
        return table.set_column(table.column_names.index("job"), "job", names)

    @property
    def counted(self) -> Counters:
        """The step's counters, which are increases of cumulative counters and final levels."""
        return self.counters_after.since(self.counters_before)

    @property
    def waf(self) -> float | None:
        """NAND bytes written per host byte written, or `None` if either count is unknown."""
        return self.counters_after.write_amplification_since(self.counters_before)

    @property
    def written_bytes(self) -> int:
        """Bytes that the host wrote, according to the drive's counter after fast-forwarding."""
        counted = self.counted.host_write_bytes
        return self.total("write")[1] if self.elapsed_ns or counted is None else counted

    def _shown(self) -> Shown:
        """Return a row for each job's operations and flushes."""
        rows = []
        for job in self.jobs:
            for operation, done in job.timed.items():
                per_s = 1e9 / job.elapsed_ns if job.elapsed_ns else 0.0
                rates = (units.number(done.ios), units.number(done.ios * per_s),
                         units.throughput(done.bytes * per_s))  # fmt: skip
                for basis in bases_of(scheduled=done.scheduled):
                    late = " (service)" if basis == "service" else ""
                    shown = ("",) * 3 if late else rates
                    cells = _latency_cells(done.latency(basis))
                    rows.append((job.name, f"{operation}{late}", *shown, *cells))
        head = ("job", "operation", "I/Os", "IOPS", "throughput", "mean", "50 %", "99 %", "max")
        lines = [units.duration(self.elapsed_ns), *self.warnings]
        return Shown("", lines, [Grid(head, rows, "ll" + "r" * 7)])

    @property
    def measured_ns(self) -> int:
        """Measured time, excluding the start delay and the latency target search."""
        return self.elapsed_ns - min((job.began_ns for job in self.jobs), default=0)

    def iops(self, operation: Operation | None = None) -> float:
        """Return the I/Os of all jobs per second of measured time, for one operation or all."""
        return self.total(operation)[0] / (self.measured_ns / 1e9) if self.measured_ns > 0 else 0.0


def _latency_cells(histogram: Histogram | None) -> tuple[str, ...]:
    if histogram is None:
        return (units.UNKNOWN,) * 4
    slow = (_quantile_text(histogram, q) for q in (0.5, 0.99))
    return (units.latency(histogram.mean_ns), *slow, units.latency(histogram.max_ns))


def _quantile_text(histogram: Histogram, q: float) -> str:
    """Return a latency as text, or "not enough samples"."""
    quantile = histogram.quantile(q)
    return (
        units.latency(quantile.value_ns) if quantile.value_ns is not None else "not enough samples"
    )


@dataclass(frozen=True)
class Progress:
    """Progress of a running step."""

    fraction: float | None  # Completed fraction, 0 to 1; `None` if the step has no fixed end.
    elapsed_ns: int  # Elapsed device time.
    ios: int  # Number of I/Os completed so far.
    iops: float  # IOPS during the last interval.
    # Write amplification during the last interval; `None` if unknown.
    waf: float | None = None
    counters: Counters | None = None  # `None` if the drive's counters cannot be read during a step.

    @property
    def figures(self) -> str:
        """IOPS and write amplification over the last interval, as text."""
        waf = "" if self.waf is None else f"  WAF {units.number(self.waf, 2)}"
        return f"{units.number(self.iops)} IOPS{waf}"


ProgressHook = Callable[[Progress], None]


class Engine(Protocol):
    """A drive that procedures can purge, load and measure."""

    kind: Literal["sim", "fio"]

    @property
    def write_refusal(self) -> TargetError | None:
        """Error that a write run would raise, or `None` if writing is allowed.

        If the user consented to writing, opening a block device raises the error immediately,
        unless `look_only` is set.
        """
        ...

    def identify(self) -> DeviceIdentity:
        """Return the drive identity."""
        ...

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        """Restore the drive to its state before the first write, and return the method used."""
        ...

    def set_write_cache(self, enabled: bool) -> CacheReport:
        """Enable or disable the volatile write cache, and return the resulting cache state."""
        ...

    def run(
        self,
        workload: Workload,
        on_progress: ProgressHook | None = None,
        *,
        keep_running: bool = False,
    ) -> StepResult:
        """Run the workload to completion and measure it.

        If `keep_running` is set, the load continues after the step. The next `run` of the same load
        then follows immediately; only the load's name, seed and duration may differ. A different
        load, a purge, `stop_load` or an error stops the running load. An engine that uses virtual
        time can ignore `keep_running`.

        Raises:
            EngineError: If the load failed. The exception's `partial` holds the results up to the
                failure.
        """
        ...

    def speed_limit(self, workload: Workload) -> float | None:
        """Return an upper bound on a load's throughput in bytes/s, without writing to the drive.

        The bound in bytes/s, or `None` if the host link is the only known limit.
        """
        ...

    def stop_load(self) -> None:
        """Stop the load that a previous `run` left running, if any."""
        ...

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        """Bring the drive to its state after `workload`.

        A simulated drive may skip the timing simulation. Without a timing simulation, the
        `StepResult` has no latencies, and `elapsed_ns` is 0.
        """
        ...

    def counters(self) -> Counters:
        """Return the drive's lifetime counters."""
        ...

    def health(self) -> Mapping[str, object] | None:
        """Return the SMART data as JSON-compatible values, or None if the drive reports none.

        The query takes at most a few seconds on an idle drive.
        """
        ...

    def power_states(self, *, settle: bool = False) -> PowerStates | None:
        """Return the supported and current power states, or None if none are reported.

        If `settle` is set, the drive is first returned to the power state that was requested when
        the engine was opened.

        Raises:
            TargetError: If the drive did not enter the requested power state.
        """
        ...

    def log_events(self) -> None:
        """Enable all data placement events of a simulated drive, so that results contain events.

        A real drive retains the administrator's choice of enabled events.
        """
        ...

    def save(self, path: Path) -> bool:
        """Write the drive state to `path` atomically, or return False for a real drive."""
        ...

    def restore(self, path: Path) -> None:
        """Load a state that `save` wrote for the same drive."""
        ...

    def close(self) -> None:
        """Release the drive."""
        ...


@runtime_checkable
class ScalableEngine(Engine, Protocol):
    """An engine that can simulate a smaller drive of the same kind for estimates and tests."""

    def least_scale(self) -> float:
        """Return the smallest scale that the drive can be simulated at (1 is the full capacity)."""
        ...

    def scales(self) -> Sequence[float]:
        """Return the scales larger than the current scale, largest first."""
        ...

    def scaled(self, scale: float, *, largest_io_bytes: int) -> Engine:
        """Return an engine that simulates the drive at 1/`scale` of the capacity and time."""
        ...
