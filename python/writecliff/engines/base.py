"""The seam between procedures and drives: what an engine promises, and what it hands back.

A procedure sees only this module. `SimEngine` (virtual time) and `FioEngine` (a real block device
or file through fio) both implement `Engine`; whatever one of them cannot know is `None`, never a
made-up figure.
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
    """The number of an operation in the columns of series: its place in `OPERATIONS`."""

    READ = 0
    WRITE = 1
    TRIM = 2


def with_operation_names(table: pa.Table) -> pa.Table:
    """A table whose column `operation` has names in place of numbers."""
    import pyarrow as pa

    numbers = table.column("operation").combine_chunks().cast(pa.int8())
    names = pa.DictionaryArray.from_arrays(numbers, list(OPERATIONS))
    return table.set_column(table.column_names.index("operation"), "operation", names)


SCM = "storage-class memory"  # what a drive has instead of a type of NAND


@dataclass(frozen=True, kw_only=True)
class DeviceIdentity:
    """Who the drive is, for the report's header block. Unknown fields are None."""

    target: str  # as the user named it: "sim:sata-tlc-120", "/dev/sdb", "file:/tmp/x.img"
    vendor: str | None = None  # "Samsung"
    model: str  # as the drive says
    serial: str | None = None  # as the drive says
    firmware: str | None = None  # its revision
    capacity_bytes: int  # user capacity
    sector_bytes: int  # of a logical sector
    interface: str | None = None  # "SATA 6Gb/s", "NVMe"
    nand_type: str | None = None  # "TLC"
    rated_tbw_bytes: int | None = None  # that the vendor warrants
    device_hash: str | None = None  # simulated drives: hash of the device description
    simulated: bool  # or a real drive
    rotational: bool | None = None  # a hard disk; None where the kernel cannot know
    rated_cycles: int | None = None  # erase cycles of its flash; real drives do not tell
    scale: float = 1.0  # simulated drives: simulated so many times smaller, in as much less time
    backing: str | None = None  # what identifies a target without a serial number
    form_factor: str | None = None  # "2.5 inches"
    adapter: str | None = None  # the host adapter that a real drive is behind
    pcie: str | None = None  # the PCIe link of an NVMe drive, or of the adapter: "Gen 4 x 4"
    # What the user says for the report's header: "sponsor", "note".
    remarks: Mapping[str, str] = field(default_factory=dict)

    @property
    def without_flash(self) -> str | None:
        """What the drive is instead of one with flash, as far as is known: "a hard disk"."""
        if self.rotational:
            return A_HARD_DISK
        return AN_SCM_DRIVE if self.nand_type == SCM else None

    @property
    def scale_text(self) -> str:
        """ "simulated at 1/32 of its capacity"; "" for a drive that is tested whole."""
        return "" if self.scale == 1.0 else f"simulated at 1/{self.scale:g} of its capacity"


def described_as(identity: DeviceIdentity, said: Mapping[str, str]) -> DeviceIdentity:
    """The identity with what the user says of the drive and the test; see `open_target`."""
    return replace(
        identity,
        nand_type=said.get("nand_type", identity.nand_type),
        form_factor=said.get("form_factor", identity.form_factor),
        remarks={name: said[name] for name in ("sponsor", "note") if name in said},
    )


@dataclass(frozen=True)
class PurgeReport:
    """How the drive was brought to the state of "no writes"; reports must disclose it."""

    method: str  # "simulated purge", "NVMe format (user data erase)", "blkdiscard", ...
    conformant: bool  # False for weak substitutes such as blkdiscard or nothing at all
    note: str = ""  # what the reader must know


NOT_PURGED = PurgeReport(
    "not purged by writecliff",
    False,
    "the run was started with --no-purge; the drive began in the state that it was in",
)


# Called now and then with the share of a purge that is done, 0..1, by drives that tell.
PurgeHook = Callable[[float], None]


def unseen(share: float) -> None:
    """A `PurgeHook` that shows nothing."""


@dataclass(frozen=True)
class CacheReport:
    """State of the volatile write cache after asking for it."""

    enabled: bool | None  # None: the drive does not tell
    note: str = ""  # what the reader must know


@dataclass(frozen=True)
class PowerState:
    """One of the power states of an NVMe drive, as the drive describes it."""

    number: int  # 0 is the one with the most power
    watts_max: float | None  # that the drive draws in it; None: not told
    operational: bool  # whether it does I/O in it
    entry_us: int  # to get into it, at most
    exit_us: int  # to get out of it, at most
    # Dies of the flash that may be active at once, which real drives do not tell.
    max_active_dies: int | None = None

    @property
    def limits_text(self) -> str:
        """ "4.6 W at most, 8 dies active at most"."""
        dies = self.max_active_dies
        limit = "" if dies is None else f", {dies} dies active at most"
        return f"{watts_text(self.watts_max)}{limit}"


def watts_text(watts_max: float | None) -> str:
    """The most power that a drive says it draws in a state."""
    return "maximum power not reported" if watts_max is None else f"{watts_max:g} W at most"


@dataclass(frozen=True)
class PowerStates:
    """The power state that a drive is in, and those that it has."""

    state: int  # in force
    states: tuple[PowerState, ...]  # by number
    autonomous: bool | None = None  # whether it goes to states without I/O when idle
    before: int | None = None  # the state that it was found in, where one was asked for

    @property
    def watts_max(self) -> float | None:
        """Of the state in force."""
        return self.states[self.state].watts_max if self.state < len(self.states) else None

    @property
    def text(self) -> str:
        """ "1 of 0 to 4, 4.6 W at most"; "0, the only one, maximum power not reported"."""
        last = len(self.states) - 1
        which = f"{self.state} of 0 to {last}" if last else f"{self.state}, the only one"
        limits = self.states[self.state].limits_text if self.state <= last else watts_text(None)
        return f"{which}, {limits}"


@dataclass(frozen=True)
class OperationResult:
    """What one kind of operation of one job measured.

    `service` holds one latency an I/O, from issue to completion. `response` counts from the
    intended arrival and exists only for rate-driven jobs (else None); `latency` is the one that
    figures without the prefix `service/` are read from. `causes` says what the service times were
    spent on; None: the drive does not record it.
    """

    ios: int  # completed
    bytes: int  # transferred
    service: Histogram
    response: Histogram | None = None
    causes: LatencyCauses | None = None
    scheduled: bool = False  # the I/Os had intended arrivals

    def latency(self, basis: Basis = "arrival") -> Histogram | None:
        """Return the latencies of a basis; None if the engine cannot measure it (fio: arrival)."""
        return histogram_of(basis, service=self.service, response=self.response,
                            scheduled=self.scheduled)  # fmt: skip


def together(results: Sequence[OperationResult]) -> OperationResult | None:
    """Return the sum of results of one operation without response times; None for no results."""
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
    """One job of a workload, by operation; operations that it never issued are absent.

    `elapsed_ns` is the length of the time that the results cover, by which rates divide. It starts
    when the job starts: after its start delay and its ramp, as `runtime` in fio's JSON. A latency
    target that was found starts it again at the last window, whose I/Os alone are in the results.
    It ends with the job's duration or its last completion, whichever is later; with the last
    completion if another end of the job came first. `began_ns` is where it starts in the step.
    """

    name: str  # of the job
    elapsed_ns: int
    operations: Mapping[Operation, OperationResult]  # by kind
    thread_ios: tuple[int, ...] = ()  # I/Os of each thread
    # What ended it before its own end, of those that the job asked for: "steady_state",
    # "latency_target", "least_rate".
    ended_by: str | None = None
    queue_depth: int | None = None  # of each thread at the end; differs after a latency target
    began_ns: int = 0  # since the step's start
    # Flushes that the job sent (fsync, fdatasync): `ios` is their number, `bytes` is 0. None: it
    # sent none. A write with O_DSYNC includes its flush, which is not counted here.
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
    """Everything measured in one `Engine.run`.

    `intervals` maps column names to numpy arrays of one length, a row an (interval, job,
    operation): `end_ns` (device time since the step began), `job` (index), `operation` (an
    `OperationNumber`), `ios`, `bytes`, `latency_mean_ns`, `latency_max_ns`, `latency_sd_ns`, and of
    the whole drive `waf`, `watts` (mean power), `temperature_c` (at the end). NaN is unknown;
    `watts` and `temperature_c` may be absent.
    """

    started_ns: int  # on the device's clock (virtual, or monotonic since the engine was opened)
    elapsed_ns: int  # by the same clock
    jobs: tuple[JobResult, ...]  # in the order of the workload
    intervals: Mapping[str, np.ndarray]
    counters_before: Counters  # of the drive
    counters_after: Counters  # of the drive
    warnings: tuple[str, ...] = ()  # sentences
    # The data placement interface before and after; None for a real drive, and for one without.
    data_placement: tuple[DataPlacementStatus, DataPlacementStatus] | None = None
    # Of real drives: "fio" (its own JSON, for cross-checks), "job_file", "machine" (CPU, other I/O
    # and temperature during the step, see engines.disturbance).
    raw: Mapping[str, object] = field(default_factory=dict)
    # Batches of the step, a row for each (batch, job, operation, kind of latency): the columns of
    # the table `batches` (store/tables.py). Empty if the engine has none.
    batches: Mapping[str, np.ndarray] = field(default_factory=dict)

    def total(self, operation: Operation | None = None) -> tuple[int, int]:
        """(I/Os, bytes) over all jobs, of one operation or of all."""
        ios = size = 0
        for job in self.jobs:
            for name, result in job.operations.items():
                if operation in (None, name):
                    ios += result.ios
                    size += result.bytes
        return ios, size

    def service(self) -> Histogram | None:
        """The service times of all jobs and operations together; None if there are none."""
        return merged(op.service for job in self.jobs for op in job.operations.values())

    def table(self) -> pa.Table:
        """`intervals` as an Arrow table, with jobs and operations by name."""
        import pyarrow as pa

        table = with_operation_names(pa.table(dict(self.intervals)))
        jobs = table.column("job").combine_chunks().cast(pa.int32())
        names = pa.DictionaryArray.from_arrays(jobs, [job.name for job in self.jobs])
        return table.set_column(table.column_names.index("job"), "job", names)

    @property
    def counted(self) -> Counters:
        """What the drive counted in the step, and levels at its end."""
        return self.counters_after.since(self.counters_before)

    @property
    def waf(self) -> float | None:
        """NAND bytes written per host byte written; None if either is unknown."""
        return self.counters_after.write_amplification_since(self.counters_before)

    @property
    def written_bytes(self) -> int:
        """By the host. The fast-forward clock counts no I/Os, but the drive does its bytes."""
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
        """Measured time of the step, in ns: without the delay before its first job, and without
        the search for a latency target.
        """
        return self.elapsed_ns - min((job.began_ns for job in self.jobs), default=0)

    def iops(self, operation: Operation | None = None) -> float:
        """I/Os of all jobs per second of `measured_ns`."""
        return self.total(operation)[0] / (self.measured_ns / 1e9) if self.measured_ns > 0 else 0.0


def _latency_cells(histogram: Histogram | None) -> tuple[str, ...]:
    if histogram is None:
        return (units.UNKNOWN,) * 4
    slow = (_quantile_text(histogram, q) for q in (0.5, 0.99))
    return (units.latency(histogram.mean_ns), *slow, units.latency(histogram.max_ns))


def _quantile_text(histogram: Histogram, q: float) -> str:
    """A latency, or that there are too few I/Os for it."""
    found = histogram.quantile(q)
    return units.latency(found.value_ns) if found.value_ns is not None else "not enough samples"


@dataclass(frozen=True)
class Progress:
    """A live look at a running step; `fraction` in 0..1 or None when the end is open."""

    fraction: float | None
    elapsed_ns: int  # device time
    ios: int  # so far
    iops: float  # over the last interval
    waf: float | None = None  # over the last interval
    counters: Counters | None = None  # the drive's, where they can be read while it runs

    @property
    def figures(self) -> str:
        """IOPS and write amplification over the last interval, in words."""
        waf = "" if self.waf is None else f"  WAF {units.number(self.waf, 2)}"
        return f"{units.number(self.iops)} IOPS{waf}"


ProgressHook = Callable[[Progress], None]


class Engine(Protocol):
    """A drive that can be purged, loaded and measured. See the module text for the contract."""

    kind: Literal["sim", "fio"]

    @property
    def write_refusal(self) -> TargetError | None:
        """Error that refuses a run that writes, before it starts; None if it may run. Opening a
        block device with consent raises this error at once, except with `look_only`.
        """
        ...

    def identify(self) -> DeviceIdentity: ...

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport: ...

    def set_write_cache(self, enabled: bool) -> CacheReport: ...

    def run(
        self,
        workload: Workload,
        on_progress: ProgressHook | None = None,
        *,
        keep_running: bool = False,
    ) -> StepResult:
        """Run the workload to its end and measure it. Raises `EngineError` if it cannot; whatever
        was measured until then is on the exception as `partial`.

        With `keep_running` the load goes on after the step, so that a next `run` of the same load
        (all but name, seed and duration) continues it without a gap. Another load, a purge,
        `stop_load` or an error ends it. An engine that can stop the drive's time need do nothing.
        """
        ...

    def speed_limit(self, workload: Workload) -> float | None:
        """The most bytes a second that the drive may transfer under a load, found without writing;
        None: no more is known than the host link.
        """
        ...

    def stop_load(self) -> None:
        """End a load that `run` has left running; does nothing if there is none."""
        ...

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        """Bring the drive to the state after `workload`. A simulated drive may do so without
        simulating time (its `StepResult` then has no latencies and `elapsed_ns` 0).
        """
        ...

    def counters(self) -> Counters: ...

    def health(self) -> Mapping[str, object] | None:
        """What the drive says of its own condition (SMART), as plain values that JSON can hold;
        None where it says nothing. Takes some seconds at most, on an idle drive.
        """
        ...

    def power_states(self, *, settle: bool = False) -> PowerStates | None:
        """The power state in force; None where a drive has none, or does not tell. With `settle`
        the drive is first brought into the state that the engine was opened with, if any. Raises
        TargetError if it cannot be.
        """
        ...

    def log_events(self) -> None:
        """Enable all data placement events of a simulated drive, so that results include them.

        A real drive keeps the events that its administrator has enabled.
        """
        ...

    def save(self, path: Path) -> bool:
        """Write the complete device state to `path` (atomically); False where the drive itself is
        the state (a real one).
        """
        ...

    def restore(self, path: Path) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class ScalableEngine(Engine, Protocol):
    """An engine that can also run on a smaller drive of the same kind, as estimates and quick tests
    do.
    """

    def least_scale(self) -> float:
        """How many times smaller it must be to run at all; 1: as it is."""
        ...

    def scales(self) -> Sequence[float]:
        """How many times smaller than the whole drive it can be, largest first, beyond what it
        is.
        """
        ...

    def scaled(self, scale: float, *, largest_io_bytes: int) -> Engine:
        """The same drive, simulated `scale` times smaller and shorter; this one is not touched."""
        ...
