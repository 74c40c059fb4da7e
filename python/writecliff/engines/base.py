"""The interface between procedures and drives: `Engine` and the results that it returns.

Procedures depend on this module only. `SimEngine` (virtual time) and `FioEngine` (a real block
device or file, through fio) implement `Engine`. A value that an engine cannot measure is `None`.
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
    """Number of an operation in the columns of series: its index in `OPERATIONS`."""

    READ = 0
    WRITE = 1
    TRIM = 2


def with_operation_names(table: pa.Table) -> pa.Table:
    """Return the table with operation names instead of numbers in its column `operation`."""
    import pyarrow as pa

    numbers = table.column("operation").combine_chunks().cast(pa.int8())
    names = pa.DictionaryArray.from_arrays(numbers, list(OPERATIONS))
    return table.set_column(table.column_names.index("operation"), "operation", names)


SCM = "storage-class memory"  # `nand_type` of a drive without flash


@dataclass(frozen=True, kw_only=True)
class DeviceIdentity:
    """Identity of a drive, for the header of reports. Unknown fields are None."""

    target: str  # as the user named it: "sim:sata-tlc-120", "/dev/sdb", "file:/tmp/x.img"
    vendor: str | None = None  # "Samsung"
    model: str  # as the drive reports it
    serial: str | None = None  # as the drive reports it
    firmware: str | None = None  # firmware revision
    capacity_bytes: int  # user capacity
    sector_bytes: int  # size of a logical sector
    interface: str | None = None  # "SATA 6Gb/s", "NVMe"
    nand_type: str | None = None  # "TLC"
    rated_tbw_bytes: int | None = None  # total bytes written that the vendor warrants
    device_hash: str | None = None  # simulated drives: hash of the device description
    simulated: bool  # False: a real drive
    rotational: bool | None = None  # True: a hard disk; None: the kernel does not report it
    rated_cycles: int | None = None  # erase cycles of its flash; None for real drives
    scale: float = 1.0  # simulated drives: factor by which capacity and time are reduced
    backing: str | None = None  # identifies a target without a serial number
    form_factor: str | None = None  # "2.5 inches"
    adapter: str | None = None  # host adapter of a real drive
    pcie: str | None = None  # the PCIe link of an NVMe drive, or of the adapter: "Gen 4 x 4"
    # Entries of the user for the report's header: "sponsor", "note".
    remarks: Mapping[str, str] = field(default_factory=dict)

    @property
    def without_flash(self) -> str | None:
        """Kind of a drive without flash: "a hard disk"; None for flash or an unknown kind."""
        if self.rotational:
            return A_HARD_DISK
        return AN_SCM_DRIVE if self.nand_type == SCM else None

    @property
    def scale_text(self) -> str:
        """Scale in words, as "simulated at 1/32 of its capacity"; "" for the full capacity."""
        return "" if self.scale == 1.0 else f"simulated at 1/{self.scale:g} of its capacity"


def described_as(identity: DeviceIdentity, given: Mapping[str, str]) -> DeviceIdentity:
    """Return the identity with the user's description of drive and test; see `open_target`."""
    return replace(
        identity,
        nand_type=given.get("nand_type", identity.nand_type),
        form_factor=given.get("form_factor", identity.form_factor),
        remarks={name: given[name] for name in ("sponsor", "note") if name in given},
    )


@dataclass(frozen=True)
class PurgeReport:
    """Method by which a drive was purged; reports must disclose it."""

    method: str  # "simulated purge", "NVMe format (user data erase)", "blkdiscard", ...
    conformant: bool  # False for weak substitutes such as blkdiscard, or if nothing was done
    note: str = ""  # a caveat for the reader


NOT_PURGED = PurgeReport(
    "not purged by writecliff",
    False,
    "the run was started with --no-purge; the drive kept its previous state",
)


# Called with the completed share of a purge, 0 to 1, for drives that report progress.
PurgeHook = Callable[[float], None]


def unseen(share: float) -> None:
    """Ignore the progress of a purge: a `PurgeHook` that shows nothing."""


@dataclass(frozen=True)
class CacheReport:
    """State of the volatile write cache after a request to change it."""

    enabled: bool | None  # None: the drive does not report it
    note: str = ""  # a caveat for the reader


@dataclass(frozen=True)
class PowerState:
    """Power state descriptor of an NVMe drive."""

    number: int  # 0 is the state with the highest power
    watts_max: float | None  # maximum power; None: not reported
    operational: bool  # the drive processes I/O commands in this state
    entry_us: int  # maximum entry latency
    exit_us: int  # maximum exit latency
    # Maximum number of dies that are active at once; None for real drives.
    max_active_dies: int | None = None

    @property
    def limits_text(self) -> str:
        """Limits in words, as "4.6 W at most, 8 dies active at most"."""
        dies = self.max_active_dies
        limit = "" if dies is None else f", {dies} dies active at most"
        return f"{watts_text(self.watts_max)}{limit}"


def watts_text(watts_max: float | None) -> str:
    """Return the maximum power of a state in words."""
    return "maximum power not reported" if watts_max is None else f"{watts_max:g} W at most"


@dataclass(frozen=True)
class PowerStates:
    """The current power state of a drive, and all states that it supports."""

    state: int  # number of the current state
    states: tuple[PowerState, ...]  # by number
    autonomous: bool | None = None  # autonomous power state transitions are enabled
    before: int | None = None  # state before the run, if the run requested a state

    @property
    def watts_max(self) -> float | None:
        """Maximum power of the current state; None: not reported."""
        return self.states[self.state].watts_max if self.state < len(self.states) else None

    @property
    def text(self) -> str:
        """Current state in words, as "1 of 0 to 4, 4.6 W at most"."""
        last = len(self.states) - 1
        which = f"{self.state} of 0 to {last}" if last else f"{self.state}, the only state"
        limits = self.states[self.state].limits_text if self.state <= last else watts_text(None)
        return f"{which}, {limits}"


@dataclass(frozen=True)
class OperationResult:
    """Measurements of one operation of one job.

    `service` holds a latency per I/O, from issue to completion. `response` counts from the intended
    arrival and exists only for rate-driven jobs (else None). Figures without the prefix `service/`
    come from `latency()`. `causes` splits the service times by cause; None: the drive does not
    record causes.
    """

    ios: int  # completed
    bytes: int  # transferred
    service: Histogram
    response: Histogram | None = None
    causes: LatencyCauses | None = None
    scheduled: bool = False  # the I/Os had intended arrivals

    def latency(self, basis: Basis = "arrival") -> Histogram | None:
        """Return the latencies of a basis; None if the engine cannot measure it."""
        return histogram_of(basis, service=self.service, response=self.response,
                            scheduled=self.scheduled)  # fmt: skip


def together(results: Sequence[OperationResult]) -> OperationResult | None:
    """Add results of one operation, without response times; return None for no results."""
    service = merged(result.service for result in results)
    if service is None:
        return None
    ios, size = sum(result.ios for result in results), sum(result.bytes for result in results)
    scheduled = any(result.scheduled for result in results)
    return OperationResult(ios, size, service, scheduled=scheduled)


@dataclass(frozen=True)
class Adherence:
    """Backlog of an open load. Ages are times from the intended arrival to completion."""

    ios: int  # that completed
    span_ns: int  # between the arrivals of the first and the last of them
    slope: float  # by which ages grow over the arrivals, in seconds a second
    slope_error: float  # its standard error
    last_age_ns: int  # median of the last I/Os


@dataclass(frozen=True)
class JobResult:
    """Measurements of a job by operation; operations that it did not issue are absent.

    `elapsed_ns` is the measured time, the divisor of rates. It starts after the job's start delay
    and ramp, as `runtime` in fio's JSON. If the search for a latency target succeeds, it starts
    again with the last window, and the results contain the I/Os of that window only. It ends with
    the job's duration or its last completion, whichever is later; if another condition ended the
    job, with the last completion. `began_ns` is its start in the step.
    """

    name: str  # of the job
    elapsed_ns: int
    operations: Mapping[Operation, OperationResult]  # by kind
    thread_ios: tuple[int, ...] = ()  # I/Os of each thread
    # Condition that ended the job early: "steady_state", "latency_target" or "least_rate".
    ended_by: str | None = None
    queue_depth: int | None = None  # of each thread at the end; differs after a latency target
    began_ns: int = 0  # since the step's start
    # Flushes of the job (fsync, fdatasync): `ios` is their number, `bytes` is 0. None: no flushes.
    # A write with O_DSYNC includes its flush, which is not counted here.
    flush: OperationResult | None = None

    @property
    def timed(self) -> Mapping[str, OperationResult]:
        """Results with latencies, by name: the operations, then "flush" if the job sent any."""
        timed: dict[str, OperationResult] = dict(self.operations.items())
        if self.flush is not None:
            timed[FLUSH] = self.flush
        return timed

    adherence: Adherence | None = None  # None: a closed load, or the engine is fio

    def following(self, job: Job) -> JobResult:
        """Return the result, marked as scheduled if the I/Os of `job` have intended arrivals."""
        operations = {
            name: replace(done, scheduled=job.is_scheduled)
            for name, done in self.operations.items()
        }
        return replace(self, operations=operations)


@dataclass(frozen=True)
class StepResult(Shows):
    """Measurements of one `Engine.run`.

    `intervals` maps column names to numpy arrays of equal length, with a row per (interval, job,
    operation): `end_ns` (device time since the step started), `job` (index), `operation` (an
    `OperationNumber`), `ios`, `bytes`, `latency_mean_ns`, `latency_max_ns`, `latency_sd_ns`, and of
    the whole drive `waf`, `watts` (mean power), `temperature_c` (at the end). NaN is unknown;
    `watts` and `temperature_c` may be absent.
    """

    started_ns: int  # on the device's clock (virtual, or monotonic since the engine was opened)
    elapsed_ns: int  # on the device's clock
    jobs: tuple[JobResult, ...]  # in the order of the workload
    intervals: Mapping[str, np.ndarray]
    counters_before: Counters  # of the drive
    counters_after: Counters  # of the drive
    warnings: tuple[str, ...] = ()
    # The data placement interface before and after; None for real drives and drives without one.
    data_placement: tuple[DataPlacementStatus, DataPlacementStatus] | None = None
    # Real drives: "fio" (fio's JSON, for cross-checks), "job_file", "machine" (CPU, other I/O and
    # temperature during the step, see engines.disturbance).
    raw: Mapping[str, object] = field(default_factory=dict)
    # Batches of the step, a row for each (batch, job, operation, kind of latency): the columns of
    # the table `batches` (store/tables.py). Empty if the engine has none.
    batches: Mapping[str, np.ndarray] = field(default_factory=dict)

    def total(self, operation: Operation | None = None) -> tuple[int, int]:
        """Return (I/Os, bytes) of all jobs, for one operation or all."""
        ios = size = 0
        for job in self.jobs:
            for name, result in job.operations.items():
                if operation in (None, name):
                    ios += result.ios
                    size += result.bytes
        return ios, size

    def service(self) -> Histogram | None:
        """Return the service times of all jobs and operations; None if there are none."""
        return merged(op.service for job in self.jobs for op in job.operations.values())

    def table(self) -> pa.Table:
        """Return `intervals` as an Arrow table with the names of jobs and operations."""
        import pyarrow as pa

        table = with_operation_names(pa.table(dict(self.intervals)))
        jobs = table.column("job").combine_chunks().cast(pa.int32())
        names = pa.DictionaryArray.from_arrays(jobs, [job.name for job in self.jobs])
        return table.set_column(table.column_names.index("job"), "job", names)

    @property
    def counted(self) -> Counters:
        """Counters of the step: increases of sums, and levels at its end."""
        return self.counters_after.since(self.counters_before)

    @property
    def waf(self) -> float | None:
        """NAND bytes written per host byte written; None if either is unknown."""
        return self.counters_after.write_amplification_since(self.counters_before)

    @property
    def written_bytes(self) -> int:
        """Bytes that the host wrote; after fast-forwarding, from the drive's counter."""
        counted = self.counted.host_write_bytes
        return self.total("write")[1] if self.elapsed_ns or counted is None else counted

    def _shown(self) -> Shown:
        """Return a row for each operation of each job, and for its flushes."""
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
        """Measured time, without the first delay and the search for a latency target."""
        return self.elapsed_ns - min((job.began_ns for job in self.jobs), default=0)

    def iops(self, operation: Operation | None = None) -> float:
        """Return the I/Os of all jobs per second of `measured_ns`, for one operation or all."""
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

    fraction: float | None  # 0 to 1; None if the end of the step is open
    elapsed_ns: int  # device time
    ios: int  # so far
    iops: float  # over the last interval
    waf: float | None = None  # over the last interval
    counters: Counters | None = None  # None: the drive's counters cannot be read during a step

    @property
    def figures(self) -> str:
        """IOPS and write amplification over the last interval, as text."""
        waf = "" if self.waf is None else f"  WAF {units.number(self.waf, 2)}"
        return f"{units.number(self.iops)} IOPS{waf}"


ProgressHook = Callable[[Progress], None]


class Engine(Protocol):
    """A drive that can be purged, loaded and measured."""

    kind: Literal["sim", "fio"]

    @property
    def write_refusal(self) -> TargetError | None:
        """Error for a run that would write; None if it may run.

        Opening a block device with consent raises this error at once, except with `look_only`.
        """
        ...

    def identify(self) -> DeviceIdentity:
        """Return the identity of the drive."""
        ...

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        """Bring the drive to its state before the first write, and return the method used."""
        ...

    def set_write_cache(self, enabled: bool) -> CacheReport:
        """Enable or disable the volatile write cache, and return its state afterwards."""
        ...

    def run(
        self,
        workload: Workload,
        on_progress: ProgressHook | None = None,
        *,
        keep_running: bool = False,
    ) -> StepResult:
        """Run the workload to its end and measure it.

        With `keep_running` the load continues after the step, so that the next `run` of the same
        load (all but name, seed and duration) follows without a gap. Another load, a purge,
        `stop_load` or an error stops it. An engine with virtual time can ignore the flag.

        Raises:
            EngineError: The load failed; `partial` of the exception has the results until then.
        """
        ...

    def speed_limit(self, workload: Workload) -> float | None:
        """Return an upper bound of a load's throughput in bytes per second, without writing.

        None: no limit is known beside the host link.
        """
        ...

    def stop_load(self) -> None:
        """Stop the load that `run` has left running, if any."""
        ...

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        """Bring the drive to the state after `workload`.

        A simulated drive may do so without simulating time: its `StepResult` then has no latencies
        and `elapsed_ns` 0.
        """
        ...

    def counters(self) -> Counters:
        """Return the drive's counters since it was new."""
        ...

    def health(self) -> Mapping[str, object] | None:
        """Return the drive's SMART data as values that JSON can hold; None if it reports none.

        Takes a few seconds at most on an idle drive.
        """
        ...

    def power_states(self, *, settle: bool = False) -> PowerStates | None:
        """Return the power states and the current one; None if the drive reports none.

        With `settle` the drive is first brought into the state that the engine was opened with.

        Raises:
            TargetError: The drive did not enter that state.
        """
        ...

    def log_events(self) -> None:
        """Enable all data placement events of a simulated drive, so that results include them.

        A real drive keeps the events that its administrator has enabled.
        """
        ...

    def save(self, path: Path) -> bool:
        """Write the device state to `path`, atomically; return False for a real drive."""
        ...

    def restore(self, path: Path) -> None:
        """Load a state that `save` has written for the same drive."""
        ...

    def close(self) -> None:
        """Release the drive."""
        ...


@runtime_checkable
class ScalableEngine(Engine, Protocol):
    """An engine that can simulate a smaller drive of the same kind, for estimates and tests."""

    def least_scale(self) -> float:
        """Return the smallest scale at which the drive can be simulated; 1: its full capacity."""
        ...

    def scales(self) -> Sequence[float]:
        """Return the scales that are larger than the current one, largest first."""
        ...

    def scaled(self, scale: float, *, largest_io_bytes: int) -> Engine:
        """Return an engine for the drive at 1/`scale` of its capacity and time."""
        ...
