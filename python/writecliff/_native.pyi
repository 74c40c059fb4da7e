"""Types of the native module, which only this package imports; the public API is pure Python."""

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
import numpy.typing as npt

from writecliff._native_issuer import *  # noqa: F403
from writecliff._native_traces import *  # noqa: F403

# Hook of `Drive.run`, called about every 50 ms with the completed share, device time of the step in
# ns, I/Os, current IOPS, current write amplification (None: nothing written), `Drive.counters`.
_Hook = Callable[[float, int, int, float, float | None, Mapping[str, Any]], None]
_ShareHook = Callable[[float], None]

class NativeConfigError(ValueError):
    """Invalid input; `args` is (message, hint), with a text or None as the hint."""

class PanicException(BaseException):
    """A bug in this module; `args` is (message,); see `recorded_panics`."""

@final
class Device:
    """A parsed and checked device file, of an SSD or a hard disk."""

    def __new__(cls, text: str, file_name: str) -> Device:
        """Parse and check a device file; `file_name` is for messages. Raises NativeConfigError."""
    @property
    def text(self) -> str: ...
    @property
    def file_name(self) -> str: ...
    def describe(self) -> dict[str, Any]:
        """Return the fields of `DeviceDescription`, `canonical` and `rows`.

        `canonical` is the text whose hash is the device hash, `rows` the result of `toml_rows`.
        """
    def scales(self) -> list[float]:
        """Return the factors above 1 by which the drive can be scaled down, largest first."""
    def nearest_scale(self, scale: float) -> float:
        """Return the nearest scale with whole word lines, which keeps the spare share."""
    def scaled(self, scale: float, largest_io_bytes: int) -> Device:
        """Return the drive at 1/`scale`, for loads with commands of up to `largest_io_bytes`.

        It performs like the whole drive. Raises NativeConfigError unless `scale` is a result of
        `nearest_scale`.
        """
    def for_streams(
        self, streams: int, capacity_bytes: int | None = None, units: int | None = None
    ) -> Device:
        """Return the drive with other numbers of streams and reclaim units, and another capacity.

        By default, reclaim units keep their size, with enough units for the streams. Raises
        NativeConfigError if the drive would be too small, or has no flash.
        """

@final
class Drive:
    """A simulated drive, SSD or hard disk; long methods release the interpreter lock.

    While a step runs, other calls raise RuntimeError; the hook receives the counters.
    """

    def __new__(
        cls, device: Device, seed: int, *, attribute_latency: bool = False, power_state: int = 0
    ) -> Drive:
        """Create a new drive in a power state of its file.

        `attribute_latency` records the causes of latency, except for disks. Raises
        NativeConfigError.
        """
    def run(self, workload: str, hook: _Hook | None = None) -> dict[str, Any]:
        """Run a workload (the JSON of `Workload.to_json`) in virtual time.

        Returns started_ns, elapsed_ns, jobs, intervals, before, after, data_placement, warnings:
        the fields of `StepResult`. An exception of the hook ends the step and propagates. Raises
        NativeConfigError.
        """
    def fast_forward(self, workload: str, hook: _Hook | None = None) -> dict[str, Any]:
        """Apply a workload without simulating time: elapsed_ns is 0 and there are no latencies."""
    def purge(self) -> None:
        """Erase every block, which takes device time; a disk writes the data of its cache."""
    def set_write_cache(self, enabled: bool) -> None: ...
    def lose_die(self, die: int) -> None:
        """Make a die fail permanently.

        Raises NativeConfigError if the drive has no [die_parity], no such die, or too little spare
        space.
        """
    @property
    def write_cache(self) -> bool: ...
    @property
    def now_ns(self) -> int:
        """Device time."""
    @property
    def data_placement(self) -> DataPlacementCommands: ...
    def counters(self) -> dict[str, Any]:
        """Return the values since the drive was new by name; None: no such counter."""
    def check(self) -> None:
        """Check all invariants of the state; raise ValueError with the first violation."""
    def save(self, path: str) -> None:
        """Write the state, with outstanding operations, and sync the file. Raises OSError."""
    def restore(self, path: str) -> None:
        """Load a saved state of the same device.

        Raises OSError and NativeConfigError; the drive may then be a new drive.
        """
    def copy_from(self, other: Drive) -> None:
        """Copy the state of another idle drive.

        The devices may differ if this drive is new, the other drive has only been fast-forwarded,
        and flash and FTL are equal. Raises NativeConfigError; this drive is then a new drive.
        """

@final
class Server:
    """A simulated drive that is served in real time, with its data.

    The server has its own threads: all methods return at once except the constructor (with a state)
    and `end`, which release the interpreter lock. After `end`, all methods raise RuntimeError.
    """

    def __new__(
        cls,
        device: Device,
        seed: int,
        *,
        slow_down: float | None = None,
        like: Drive | None = None,
        state: str | None = None,
        contents_file: str | None = None,
        compress: bool = False,
        memory_limit_bytes: int | None = None,
    ) -> Server:
        """Start to serve a new drive, a copy of another drive, or a drive from a state file.

        `slow_down` is the ratio of wall time to device time; None: requests complete at once. Data
        are in memory, up to a limit, or in a sparse file. Raises NativeConfigError, OSError.
        """
    def listen_nbd(self, address: str) -> str:
        """Accept NBD connections at "unix:PATH" or "HOST:PORT".

        Returns the address with its actual port. Raises NativeConfigError, OSError.
        """
    def listen_nvme(
        self, addresses: list[str], *, serial: str, hosts: list[str] | None = None
    ) -> tuple[list[str], str]:
        """Accept NVMe/TCP connections at addresses "HOST:PORT".

        `hosts` are the qualified names of hosts that may connect; None: all hosts. Returns the
        addresses with their actual ports, and the subsystem's qualified name. Raises
        NativeConfigError, OSError.
        """
    def seed_cuts(self, seed: int) -> None:
        """Seed the next power cut; each further power cut uses the next seed."""
    def power_cut(self) -> dict[str, Any]:
        """Cut and restore the power, and return the fields of `writecliff.serve.PowerCut`.

        Raises OSError.
        """
    def plan_cuts(
        self,
        *,
        write: int | None = None,
        after_ns: tuple[int, int] | None = None,
        cuts: int = 1,
    ) -> None:
        """Schedule `cuts` power cuts, at write number `write` or at random times in `after_ns`.

        Raises NativeConfigError.
        """
    def power_cuts(self) -> list[dict[str, Any]]:
        """Return the power cuts so far, with the fields of `writecliff.serve.PowerCut`."""
    def snapshot(self) -> dict[str, Any]:
        """Return the fields of `writecliff.serve.Snapshot`; "recent" is since the last call."""
    def keep_trace(self) -> None:
        """Start to record the requests of clients for `take_trace`."""
    def take_trace(self) -> dict[str, Any]:
        """Return the requests since the last call in order of submission, as arrays of uint64.

        Columns are time_ns (device time; without timing, wall time since the start), offset_bytes,
        length_bytes, session, stream, operation (0 read, 1 write, 2 trim, 3 flush). "lost" is the
        number of requests that were dropped because more than 1,048,576 were waiting.
        """
    recovered: bool  # the previous server with this state file was killed
    def stop(self) -> None:
        """Close all connections after the outstanding requests; the figures are then final."""
    def end(self, state: str | None = None) -> None:
        """Close all connections, stop the drive, and write drive and data to a state file.

        Without `state`, the constructor's state file is unchanged. Raises OSError.
        """

@final
class KernelTrace:
    """Trace buffers of a tracing instance of the kernel (tracefs), for a block device."""

    def __new__(
        cls, instance: str, header_page: str, formats: list[str],
        others: list[tuple[str, list[str]]], sectors: tuple[int, int],
    ) -> KernelTrace:  # fmt: skip
        """Open the buffers of the folder `instance`.

        `header_page` is the kernel's file of this name, `formats` are the formats of block layer
        events, `others` the formats and requested fields of other events. `sectors` are the first
        sector and the end of the device (512 bytes). Raises NativeConfigError, OSError.
        """
    def drain(self, began_ns: int, until_ns: int, last: bool) -> dict[str, Any]:
        """Read the buffers, and return requests and other events as arrays.

        Requests are in order of creation and include those that completed by `until_ns` on the
        instance's clock (with `last`: all): time_ns, issue_ns, complete_ns (since `began_ns`; -1:
        unknown), offset_bytes, length_bytes, operation (0 read, 1 write, 2 discard, 3 flush), flags
        (bits: sync, FUA, preflush, readahead, metadata, zeroes, erase, atomic), thread_id, name,
        errno. Other events: event_time_ns, event_kind (index in `others`), event_thread_id,
        event_values (rows with the largest number of fields). Raises OSError.
        """
    def close(self) -> None:
        """Close the buffers; the kernel does not remove an instance that is open."""
    @property
    def names(self) -> list[str]:
        """Return the names of threads by number."""
    def counts(self) -> dict[str, int]:
        """Return the counts so far.

        events, read_bytes, lost (events lost according to the pages), unknown_completions (of
        requests that were issued before), unissued, open (issued, not completed), requeued, merged,
        other (commands without data).
        """

def served_load(
    address: str,
    *,
    protocol: str,
    write: bool,
    block_bytes: int,
    range_bytes: int,
    queue_depth: int,
    requests: int,
    seed: int,
) -> dict[str, Any]:
    """Send random requests of one size, a multiple of 4096 bytes, to a server.

    `protocol` is "nbd" or "nvme-tcp", the address "unix:PATH" or "HOST:PORT". Returns latency (a
    Histogram, measured by the client) and elapsed_ns. Raises NativeConfigError, OSError.
    """

@final
class DataPlacementCommands:
    """Commands of a drive's data placement interface; see `writecliff.engines.sim`.

    Commands that the drive rejects raise NativeConfigError with the standard's status.
    """

    def directives(self) -> dict[str, int]: ...
    def enable_streams(self, enabled: bool) -> None: ...
    def stream_parameters(self) -> dict[str, int]: ...
    def stream_status(self) -> list[int]: ...
    def allocate_streams(self, wanted: int) -> int: ...
    def release_stream(self, id: int) -> bool: ...
    def release_stream_resources(self) -> None: ...
    def scsi_open_stream(self) -> int: ...
    def scsi_close_stream(self, id: int) -> None: ...
    def scsi_stream_status(self, first: int) -> list[int]: ...
    def scsi_block_limits(self) -> dict[str, int]: ...
    def fdp_configuration(self) -> dict[str, Any]: ...
    def fdp_usage(self) -> list[bool]: ...
    def fdp_handle_status(self) -> list[dict[str, int]]: ...
    def fdp_update(self, ids: list[int]) -> int: ...
    def fdp_enable_events(self, id: int, names: list[str], enabled: bool) -> None: ...
    def fdp_enable_all_events(self) -> None: ...
    def fdp_enabled_events(self, id: int) -> list[str]: ...
    def fdp_events(self, of_host: bool) -> list[dict[str, Any]]: ...
    def fdp_statistics(self) -> dict[str, int]: ...
    def controller_reset(self) -> None: ...
    def status(self) -> dict[str, Any] | None:
        """Return the fields of `DataPlacementStatus`; None for a drive without an interface."""

@final
class Quantile:
    """A quantile of a histogram: an upper bound of at most the maximum, with its interval."""

    @property
    def q(self) -> float: ...
    @property
    def value_ns(self) -> int | None:
        """Upper bound of the bucket of the nearest-rank sample; None: not enough samples."""
    @property
    def count(self) -> int: ...
    @property
    def low_ns(self) -> int | None:
        """Lower end of the order-statistic confidence interval (95 %)."""
    @property
    def high_ns(self) -> int | None:
        """Upper end of the interval; None if the sample is too small."""

@final
class Histogram:
    """Log-linear latency histogram: exact below 128 ns, then 64 buckets per power of two.

    The layout is that of fio's json+ bins, without their limit of 17 s. Counts have 64 bits.
    """

    def __new__(cls) -> Histogram: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__ = None  # type: ignore[assignment]
    def record(self, value_ns: int, count: int = 1) -> None: ...
    def merge(self, other: Histogram) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def min_ns(self) -> int | None: ...
    @property
    def max_ns(self) -> int | None: ...
    @property
    def mean_ns(self) -> float | None: ...
    @property
    def sd_ns(self) -> float | None: ...
    def quantile(self, q: float) -> Quantile:
        """Return a quantile; raise ValueError unless 0 < q < 1."""
    def buckets(
        self,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Return (inclusive lower_ns, inclusive upper_ns, count) of non-empty buckets."""
    @staticmethod
    def from_buckets(
        midpoints_ns: npt.NDArray[np.uint64],
        counts: npt.NDArray[np.uint64],
        min_ns: int,
        max_ns: int,
        mean_ns: float,
        sd_ns: float,
    ) -> Histogram:
        """Create a histogram from (value, count) pairs such as fio's json+ bins, and exact moments.

        A value may be anywhere in its bucket. Raises ValueError.
        """
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Histogram:
        """Read the result of `to_bytes`; raise ValueError for other data."""

@final
class FileTrace:
    """File operations of a program, in order of time."""

    def __new__(cls) -> FileTrace: ...
    def __len__(self) -> int: ...
    def add(
        self,
        op: npt.NDArray[np.int32],
        file: npt.NDArray[np.int32],
        offset_bytes: npt.NDArray[np.int64],
        length_bytes: npt.NDArray[np.int64],
        row_class: npt.NDArray[np.uint32],
        ops: npt.NDArray[np.uint8],
        stream: npt.NDArray[np.uint16],
        origin: npt.NDArray[np.uint16],
        folder: npt.NDArray[np.uint16] | None = None,
        time_ns: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Append rows.

        `ops` maps the numbers in `op` to operations: 0 write, 1 truncate (offset: the new size),
        2 unlink, 3 punch, 4 fsync, 5 create, 255 ignored. `stream`, `origin` and `folder` are by
        class (see `row_classes`); the origin is a label for counting. `time_ns` determines when a
        page cache writes back. Raises NativeConfigError.
        """
    def footprint(
        self, writeback: str, copies: int = 1, hook: _ShareHook | None = None
    ) -> dict[str, int]:
        """Return peak_bytes (with or without repetition), end_bytes, written_bytes of a round.

        Sizes are in whole 4 KiB blocks. `writeback` determines when writes reach the drive, see
        `writebacks`. `copies` is the number of parallel instances of the program. `hook` receives
        the completed share. Raises NativeConfigError.
        """
    def lay_out(
        self,
        capacity_bytes: int,
        writeback: str,
        repeats: int | None = None,
        fills: float | None = None,
        *,
        allocator: str = "next-fit",
        trim: bool = True,
        copies: int = 1,
        hook: _ShareHook | None = None,
    ) -> BlockTrace:
        """Convert the trace to writes and TRIMs, for `repeats` rounds or until `fills` drive fills.

        `hook` receives the completed share. Raises NativeConfigError.
        """

@final
class BlockTrace:
    """Block I/Os of a file trace on a drive."""

    @property
    def requests(self) -> int: ...
    @property
    def written_bytes(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def mean_bytes(self) -> int: ...  # of files, over the blocks written from the second round on
    @property
    def redrawn_bytes(self) -> int: ...  # per round, written to addresses drawn anew in each
    @property
    def undrawn_bytes(self) -> int: ...  # of a round, overwritten in an order that no one knows
    @property
    def rounds(self) -> int: ...
    def replay(
        self,
        device: Device,
        scheme: str,
        streams: int,
        *,
        mistag: float = 0.0,
        seed: int = 1,
        timed_bytes: int = 0,
        queue_depth: int = 32,
        readers: int = 4,
        command_bytes: int = 131_072,
        reads_per_block: float | None = None,
        hook: _Hook | None = None,
    ) -> dict[str, Any]:
        """Replay the trace on a new drive.

        Returns waf (of the second half; None: nothing written), before and after (counters around
        that half), host_bytes and nand_bytes (a series), blocks (by origin, stream and lifetime,
        flat; lifetimes of bucket n are 2^(n-1) to below 2^n written blocks; the last bucket has
        blocks that are valid at the end), streams, buckets, oracle (its choice, or None), and for
        the timed part reads, writes (histograms), timed_ns, timed_written_bytes.

        `mistag` is the share of writes to a wrong stream. `hook` is that of `Drive.run`; it
        receives the share of the fast-forwarded part, with a time of 0, then that of the timed
        part. Raises NativeConfigError.
        """

def ftl_limit(device: Device, overwrites: float, seed: int) -> tuple[int, int] | None:
    """Return the slots that a minimal FTL writes for the host and relocates.

    It fills the device's slots in order and overwrites them at random `overwrites` times. None
    without spare flash beyond the reserve of the study. Raises NativeConfigError.
    """

def device_keys() -> list[
    tuple[str, list[tuple[str, bool, list[tuple[str, str, bool, str, str]]]]]
]:
    """Return the keys of device files, by kind of drive.

    A section has a name ("" at the top of the file), a flag for required sections, and its keys. A
    key has a name, the accepted values in words, a flag for required keys, a default in words (""
    without a default), and a meaning in Markdown.
    """

def workload_keys() -> list[tuple[str, bool, list[tuple[str, str, bool, str, str]]]]:
    """Return the tables of workload files, by their headings, and their keys, as `device_keys`."""

def not_modelled_together() -> list[tuple[str, list[str]]]:
    """Return sections and features of SSDs, each with sections that cannot be combined with it."""

def toml_rows(text: str, file_name: str) -> list[tuple[str, str, str, int]]:
    """Return dotted key, text, comment and line of every value of a TOML text.

    Raises NativeConfigError.
    """

def toml_changed(text: str, file_name: str, changes: list[tuple[str, str, str | None]]) -> str:
    """Return the text with changed values: (dotted key, TOML value, comment).

    None keeps the current comment. Raises NativeConfigError if the table of a key does not exist.
    """

def limits() -> list[tuple[str, int]]:
    """Return name and value of the limits of workloads, traces, and served and real drives."""

def recorded_panics() -> list[tuple[str, str, str]]:
    """Return the first panics of the process in any thread: message, source location, stack."""

def panic_for_test(message: str, *, in_thread: bool = False) -> None:
    """Panic, to test the reports of panics; with `in_thread`, in a separate thread."""

def latency_causes() -> list[tuple[str, str]]:
    """Return name and meaning of all causes of latency, from the host to the flash."""

def counter_declarations() -> list[tuple[str, str, str, bool, bool, bool]]:
    """Return all drive counters: name, unit, meaning, and three flags.

    The flags are true for a level, for proportionality to the size of the drive, and for a value
    that is not a whole number.
    """

def parse_size(text: str) -> int:
    """Return the bytes of "4 KiB", "120 GB" and so on. Raises NativeConfigError."""

def parse_time(text: str) -> int:
    """Return the nanoseconds of "50 us", "1.2 ms" and so on. Raises NativeConfigError."""

def parse_workload_toml(text: str, file_name: str, capacity_bytes: int) -> str:
    """Convert a workload file to the JSON that `workload_from_mapping` reads.

    Shares of the drive become bytes. Raises NativeConfigError.
    """

def check_workload(json: str, capacity_bytes: int, streams: int) -> None:
    """Check a workload (as JSON) against a drive; raise NativeConfigError if it does not fit."""

def power_losses(
    device: Device, seed: int, queue_depth: int, writes: list[int]
) -> list[dict[str, Any]]:
    """Cut the power of a new drive after each number of random 4 KiB `writes` since a flush.

    Returns a row for each: "confirmed_writes", "lost_writes", "torn_units", "interrupted_erases",
    "saved_slots", "hold_up_ns", "rebuild_ns", "elapsed_ns". Raises NativeConfigError, also for
    drives without modelled power cuts.
    """

def validate_data_placement(
    load: str, overprovision: float, *, streams: bool, gc_destination: str = "per-stream",
    gc_pacing: str = "incremental", self_tuned: bool = False, policy: str = "greedy",
    data: float = 0.2, writes: float = 0.8, request: int = 32, pages_per_block: int = 256,
    blocks: int = 4096, seed: int = 1, warm_up: int = 10, measured: int = 10,
) -> tuple[float, float]:  # fmt: skip
    """Measure the effect of data placement; return (measured, best possible) write amplification.

    NaN: the best is unknown. `load` is "hot-cold" (`data` and `writes` are shares of the hot
    class), "by-size" or "by-rate" (four sequential writers, requests of `request` slots).
    `gc_destination` is "per-stream", "host-unit" or "shared", `gc_pacing` "incremental" or
    "per-victim". `warm_up` and `measured` are in overwrites. Raises NativeConfigError.
    """

def validate_handles(
    units: int, user_units: int, pages_per_block: int, *, persistent: bool,
    rates: tuple[float, float, float], capacities: float,
    settled: tuple[float, float] | None = None, seed: int = 1,
) -> tuple[float, float]:  # fmt: skip
    """Measure the write amplification of a drive with the GC policy of the emulator WARP.

    Three writers have `rates` (shares of the slots). The first figure is from the empty drive until
    `capacities` have been written, the second between the two volumes of `settled`, also in
    capacities (NaN without them). With `persistent`, relocated data stay with their handle. Raises
    NativeConfigError.
    """

def validate_power_cuts(seed: int, drive: int, cuts: int) -> dict[str, Any]:
    """Cut the power of a small drive `cuts` times under random commands.

    `drive` is the number of the drive of `seed`. Returns its kind, counts, "rebuild_ns_max" and
    "violation" (None: no durable data were lost); see `validate.power_cuts`. Raises
    NativeConfigError if `cuts` is 0.
    """

def validate_reduction(
    policy: str, overprovision: float, sizes: list[int], duplicates: float, *, pages_per_block: int,
    blocks: int, seed: int = 1, warm_up: int = 10, measured: int = 10,
) -> tuple[float, float]:  # fmt: skip
    """Measure a drive with data reduction; return (measured, theory) write amplification in bytes.

    `sizes` are the equally frequent sizes of 4 KiB slots in sectors (512 B), `duplicates` is the
    share of writes that repeat data. `policy` is "fifo", or "greedy" for data of one size without
    duplicates. Raises NativeConfigError.
    """

def validate_waf(
    policy: str, overprovision: float, pages_per_block: int, blocks: int, seed: int = 1,
    warm_up: int = 10, measured: int = 10,
) -> tuple[float, float]:  # fmt: skip
    """Measure a case; return (measured, theory) write amplification.

    `policy` is "greedy", "fifo", "random", "d=N", or "streams" (four sequential writers with a
    stream each). Raises NativeConfigError.
    """
