"""Types of the native module. The public API is pure Python; only this package imports it."""

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
import numpy.typing as npt

from writecliff._native_issuer import *  # noqa: F403
from writecliff._native_traces import *  # noqa: F403

# What `Drive.run` calls about every 50 ms: share done, device time of the step in ns,
# I/Os, IOPS now, write amplification now (None: nothing written), counters as `Drive.counters`.
_Hook = Callable[[float, int, int, float, float | None, Mapping[str, Any]], None]
_ShareHook = Callable[[float], None]

class NativeConfigError(ValueError):
    """Bad input. `args` is (message, hint); the hint is a text or None."""

class PanicException(BaseException):
    """A bug in this module. `args` is (message,); see `recorded_panics`."""

@final
class Device:
    """A parsed and checked device file, of an SSD or a hard disk."""

    def __new__(cls, text: str, file_name: str) -> Device:
        """`file_name` is for messages. Raises NativeConfigError."""
    @property
    def text(self) -> str: ...
    @property
    def file_name(self) -> str: ...
    def describe(self) -> dict[str, Any]:
        """The fields of `DeviceDescription`, with `canonical` (the text that the device hash is
        taken over) and `rows` (as `toml_rows`).
        """
    def scales(self) -> list[float]:
        """Factors by which the drive can be made smaller, largest first; 1 is not among them."""
    def nearest_scale(self, scale: float) -> float:
        """The scale nearest to `scale` that leaves whole word lines, and with them the share of
        spare flash.
        """
    def scaled(self, scale: float, largest_io_bytes: int) -> Device:
        """The drive `scale` times smaller, which answers as the whole one would under loads whose
        largest command is `largest_io_bytes`. Raises NativeConfigError for a scale that is not
        `nearest_scale` of itself.
        """
    def for_streams(
        self, streams: int, capacity_bytes: int | None = None, units: int | None = None
    ) -> Device:
        """The drive with so many streams, and with about `capacity_bytes` and `units` reclaim units
        (default: so many that they keep their size, but enough for the streams). Raises
        NativeConfigError: it would be too small for a drive, or has no flash.
        """

@final
class Drive:
    """A simulated drive, SSD or hard disk. Every method that works lets go of the interpreter.

    While a step runs, other calls raise RuntimeError: what the drive counts comes with the hook.
    """

    def __new__(
        cls, device: Device, seed: int, *, attribute_latency: bool = False, power_state: int = 0
    ) -> Drive:
        """A new drive in one of the power states of its file. `attribute_latency`: it records what
        the time of its commands is spent on, unless it is a disk. Raises NativeConfigError.
        """
    def run(self, workload: str, hook: _Hook | None = None) -> dict[str, Any]:
        """Run a workload (the JSON of `Workload.to_json`) in virtual time.

        Returns started_ns, elapsed_ns, jobs, intervals, before, after, data_placement, warnings:
        the fields of `StepResult`. What the hook raises ends the step and is raised. Raises
        NativeConfigError.
        """
    def fast_forward(self, workload: str, hook: _Hook | None = None) -> dict[str, Any]:
        """The same without simulating time: elapsed_ns is 0 and there are no latencies."""
    def purge(self) -> None:
        """Erase every block, which takes device time. Of a disk: write what its cache holds."""
    def set_write_cache(self, enabled: bool) -> None: ...
    def lose_die(self, die: int) -> None:
        """A die does not answer from now on. Raises NativeConfigError for a drive without
        [die_parity], without this die, or without the space to do without it.
        """
    @property
    def write_cache(self) -> bool: ...
    @property
    def now_ns(self) -> int:
        """Device time."""
    @property
    def data_placement(self) -> DataPlacementCommands: ...
    def counters(self) -> dict[str, Any]:
        """Values since the drive was new, by declared name; None: the drive has no such counter."""
    def check(self) -> None:
        """Check every invariant of the state; raises ValueError naming the first violated one."""
    def save(self, path: str) -> None:
        """Write the state, with what is under way, and sync it. Raises OSError."""
    def restore(self, path: str) -> None:
        """Go back to a saved state of the same device.

        Raises OSError and NativeConfigError; if it fails half way, the drive is a new one.
        """
    def copy_from(self, other: Drive) -> None:
        """Take the state of another drive that does not run.

        It may be of another device if this drive is new, the other has only been fast-forwarded,
        and flash and FTL are the same. Raises NativeConfigError; this drive is a new one then.
        """

@final
class Server:
    """A simulated drive that is served in real time, with its data.

    Its threads are its own: every method returns at once, but the constructor (with a state) and
    `end`, which let go of the interpreter. After `end`, all others raise RuntimeError.
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
        """Begin to serve a new drive, one like another, or one from a state file.

        `slow_down` is how many nanoseconds of wall time one of the drive takes; None: requests
        complete at once. Data live in memory, up to a limit, or in a sparse file. Raises
        NativeConfigError, OSError.
        """
    def listen_nbd(self, address: str) -> str:
        """Accept NBD connections at "unix:PATH" or "HOST:PORT"; returns the address with its real
        port. Raises NativeConfigError, OSError.
        """
    def listen_nvme(
        self, addresses: list[str], *, serial: str, hosts: list[str] | None = None
    ) -> tuple[list[str], str]:
        """Accept NVMe/TCP connections at all of the addresses, each "HOST:PORT"; `hosts` are the
        qualified names that may connect, None admits all. Returns the addresses with their real
        ports, and the subsystem's qualified name. Raises NativeConfigError, OSError.
        """
    def seed_cuts(self, seed: int) -> None:
        """Seed the power cuts to come; each further one takes the next seed."""
    def power_cut(self) -> dict[str, Any]:
        """Cut the power now, and give it back: the fields of `writecliff.serve.PowerCut`. Raises
        OSError.
        """
    def plan_cuts(
        self,
        *,
        write: int | None = None,
        after_ns: tuple[int, int] | None = None,
        cuts: int = 1,
    ) -> None:
        """Cut the power `cuts` times: at the `write`th write, from 1, or after a random time of
        `after_ns`, from the first to the second. Raises NativeConfigError.
        """
    def power_cuts(self) -> list[dict[str, Any]]:
        """The power cuts so far: the fields of `writecliff.serve.PowerCut`."""
    def snapshot(self) -> dict[str, Any]:
        """The fields of `writecliff.serve.Snapshot`; "recent" is since the last call."""
    def keep_trace(self) -> None:
        """Begin to keep the requests of clients for `take_trace`."""
    def take_trace(self) -> dict[str, Any]:
        """The requests since the last call in the order in which they were submitted, as arrays of
        uint64: time_ns (the drive's; without timing, wall time since serving began), offset_bytes,
        length_bytes, session, stream, operation (0 read, 1 write, 2 trim, 3 flush); and "lost", how
        many were not kept because more than 1,048,576 waited to be taken.
        """
    recovered: bool  # the previous server with this state file was killed
    def stop(self) -> None:
        """Close all connections once the drive has completed its outstanding requests; the figures
        no longer change afterwards.
        """
    def end(self, state: str | None = None) -> None:
        """Close all connections, stop the drive and write drive and data to a state file, or
        leave the constructor's state file unchanged. Raises OSError.
        """

@final
class KernelTrace:
    """The trace buffers of a tracing instance of the kernel (tracefs), and the requests of one
    block device that its events are about.
    """

    def __new__(
        cls, instance: str, header_page: str, formats: list[str],
        others: list[tuple[str, list[str]]], sectors: tuple[int, int],
    ) -> KernelTrace:  # fmt: skip
        """Open the buffers of the folder `instance`. `header_page`, `formats`: the files of that
        name of the kernel; formats of events of the block layer. `others`: formats of other events,
        and the fields of them that are wanted. `sectors`: first and end of the part of the device
        (512 bytes). Raises NativeConfigError, OSError.
        """
    def drain(self, began_ns: int, until_ns: int, last: bool) -> dict[str, Any]:
        """Read what is in the buffers. The requests in the order in which they were made, as far as
        they are done by `until_ns` on the instance's clock (with `last`: all), as arrays: time_ns,
        issue_ns, complete_ns (since `began_ns`; -1: not known), offset_bytes, length_bytes,
        operation (0 read, 1 write, 2 discard, 3 flush), flags (bits: sync, FUA, preflush,
        readahead, metadata, zeroes, erase, atomic), thread_id, name, errno. The other
        events: event_time_ns, event_kind (its place in `others`), event_thread_id, event_values
        (as many to a row as the event with the most fields has). Raises OSError.
        """
    def close(self) -> None:
        """Close the buffers; the kernel does not remove an instance that is open."""
    @property
    def names(self) -> list[str]:
        """Names of threads by their numbers."""
    def counts(self) -> dict[str, int]:
        """So far: events, read_bytes, lost (events that pages say were lost), unknown_completions
        (of requests that were issued before), unissued, open (issued, not completed), requeued,
        merged, other (commands that move no data).
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
    """Random requests of one size, `queue_depth` of them outstanding, to a server of `protocol`
    "nbd" or "nvme-tcp" at "unix:PATH" or "HOST:PORT", in blocks of a multiple of 4096 bytes.
    Returns latency (a Histogram, as the client sees it) and elapsed_ns. Raises NativeConfigError,
    OSError.
    """

@final
class DataPlacementCommands:
    """The commands of a drive's data placement interface; see `writecliff.engines.sim`.

    All raise NativeConfigError with the standard's status for what the drive refuses.
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
        """The fields of `DataPlacementStatus`; None for a drive without an interface."""

@final
class SimBench:
    """Benchmark cases on a device; `scale` shortens what is measured."""

    def __new__(cls, device: Device, scale: float) -> SimBench: ...
    def run(self, case: str) -> dict[str, str | float]:
        """Run one case, preparing what it needs; its name as `case`, its figures by name."""

@final
class Quantile:
    """A quantile of a histogram: an upper bound never above the maximum, with its evidence."""

    @property
    def q(self) -> float: ...
    @property
    def value_ns(self) -> int | None:
        """Upper bound of the bucket of the nearest-rank sample; None: not enough samples."""
    @property
    def count(self) -> int: ...
    @property
    def low_ns(self) -> int | None:
        """Order-statistic confidence interval (95 %), lower end."""
    @property
    def high_ns(self) -> int | None:
        """Upper end; None if the sample is too small to bound it."""

@final
class Histogram:
    """Log-linear latency histogram: exact below 128 ns, then 64 buckets per power of two.

    The layout is that of fio's json+ bins, without their 17 s ceiling. Counts are 64 bit.
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
        """Raises ValueError unless 0 < q < 1."""
    def buckets(
        self,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """(lower_ns inclusive, upper_ns inclusive, count) of the non-empty buckets, ascending."""
    @staticmethod
    def from_buckets(
        midpoints_ns: npt.NDArray[np.uint64],
        counts: npt.NDArray[np.uint64],
        min_ns: int,
        max_ns: int,
        mean_ns: float,
        sd_ns: float,
    ) -> Histogram:
        """From (value, count) pairs such as fio's json+ bins, each value anywhere in its bucket,
        and the exact moments that came with them. Raises ValueError.
        """
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Histogram:
        """Raises ValueError for what `to_bytes` did not write."""

@final
class FileTrace:
    """File operations of a program, in the order of time."""

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
        """Append rows. `op` has numbers of words, which `ops` gives a meaning: 0 write, 1 truncate
        (offset: the new size), 2 unlink, 3 punch, 4 fsync, 5 create, 255 left out. `stream`,
        `origin` and `folder` are by class (see `row_classes`); the origin is a label for counting.
        `time_ns` decides when a page cache writes back. Raises NativeConfigError.
        """
    def footprint(
        self, writeback: str, copies: int = 1, hook: _ShareHook | None = None
    ) -> dict[str, int]:
        """peak_bytes (repeated or not), end_bytes, written_bytes (of one round), in 4 KiB blocks.

        `writeback`: when writes reach the drive, see `writebacks`. `copies`: so many of the program
        beside each other. `hook` gets the share that is done. Raises NativeConfigError.
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
        """The writes and TRIMs that the trace becomes, in `repeats` rounds, or in whole rounds
        until `fills` drive fills. `hook` gets the share that is done. Raises NativeConfigError.
        """

@final
class BlockTrace:
    """A trace laid on a drive."""

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
        """Replay on a new drive. Returns waf (of the second half; None: nothing written), before
        and after (counters around that half), host_bytes and nand_bytes (a series), blocks (by
        origin, stream and lifetime, flat; bucket n: lived for 2^(n-1) to below 2^n written blocks,
        the last one: alive at the end), streams, buckets, oracle (what it chose, or None); of the
        timed part reads, writes (histograms), timed_ns, timed_written_bytes.

        `mistag`: share of the writes that go to a wrong stream. `hook`: as in `Drive.run`; its
        share is that of all that is fast-forwarded, with a time of 0, then that of the timed part.
        Raises NativeConfigError.
        """

def bench_cases() -> list[str]:
    """The benchmark's cases, in the order in which they are best run on one device."""

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
    """Return sections and features of SSDs, each with sections that are not modelled with it."""

def toml_rows(text: str, file_name: str) -> list[tuple[str, str, str, int]]:
    """Dotted key, value as it is written, comment and line of every value of a TOML text. Raises
    NativeConfigError.
    """

def toml_changed(text: str, file_name: str, changes: list[tuple[str, str, str | None]]) -> str:
    """The text with other values: (dotted key, TOML value, comment or None to keep the one that is
    there). Raises NativeConfigError: a key whose table is not there.
    """

def limits() -> list[tuple[str, int]]:
    """The limits of workloads, traces, and served and real drives: name and number."""

def recorded_panics() -> list[tuple[str, str, str]]:
    """Return the first panics of the process in any thread: message, source location, stack."""

def panic_for_test(message: str, *, in_thread: bool = False) -> None:
    """Panic, to test the reports of panics; with `in_thread`, in a separate thread."""

def latency_causes() -> list[tuple[str, str]]:
    """All causes that latency is attributed to, from the host inwards: name and meaning."""

def counter_declarations() -> list[tuple[str, str, str, bool, bool, bool]]:
    """All drive counters: name, unit, meaning, whether it is a level, whether it grows with the
    size of the drive, whether it is not a whole number.
    """

def parse_size(text: str) -> int:
    """Bytes of "4 KiB", "120 GB", ... Raises NativeConfigError."""

def parse_time(text: str) -> int:
    """Nanoseconds of "50 us", "1.2 ms", ... Raises NativeConfigError."""

def parse_workload_toml(text: str, file_name: str, capacity_bytes: int) -> str:
    """A workload file as the JSON that `workload_from_mapping` reads; shares of the drive become
    bytes. Raises NativeConfigError.
    """

def check_workload(json: str, capacity_bytes: int, streams: int) -> None:
    """Check a workload (as JSON) against a drive; raises NativeConfigError."""

def power_losses(
    device: Device, seed: int, queue_depth: int, writes: list[int]
) -> list[dict[str, Any]]:
    """Cut the power of a new drive after each number of `writes`, random ones of 4 KiB, since a
    flush. Returns a row for each: "confirmed_writes", "lost_writes", "torn_units",
    "interrupted_erases", "saved_slots", "hold_up_ns", "rebuild_ns", "elapsed_ns". Raises
    NativeConfigError, as for drives whose power cannot be cut.
    """

def validate_data_placement(
    load: str, overprovision: float, *, streams: bool, gc_destination: str = "per-stream",
    gc_pacing: str = "incremental", self_tuned: bool = False, policy: str = "greedy",
    data: float = 0.2, writes: float = 0.8, request: int = 32, pages_per_block: int = 256,
    blocks: int = 4096, seed: int = 1, warm_up: int = 10, measured: int = 10,
) -> tuple[float, float]:  # fmt: skip
    """Measure what keeping data apart is worth; returns (measured, best possible) write
    amplification, NaN where no best is known. `load`: "hot-cold" (`data`, `writes`: shares of the
    hot class), "by-size" or "by-rate" (four sequential writers, requests of `request` slots).
    `gc_destination`: "per-stream", "host-unit" or "shared"; `gc_pacing`: "incremental" or
    "per-victim". `warm_up` and `measured` are in overwrites. Raises NativeConfigError.
    """

def validate_handles(
    units: int, user_units: int, pages_per_block: int, *, persistent: bool,
    rates: tuple[float, float, float], capacities: float,
    settled: tuple[float, float] | None = None, seed: int = 1,
) -> tuple[float, float]:  # fmt: skip
    """Write amplification of a drive with the GC policy of the emulator WARP, under its three
    writers of `rates` (shares of the slots): from the empty drive until `capacities` have been
    written, and between the two volumes of `settled`, also in capacities (NaN without them).
    `persistent`: relocated data stay with their handle. Raises NativeConfigError.
    """

def validate_power_cuts(seed: int, drive: int, cuts: int) -> dict[str, Any]:
    """Cut the power of small drive number `drive` of `seed` `cuts` times, under random commands.
    Returns its kind, counts, "rebuild_ns_max" and "violation" (None if nothing was lost that must
    not be); see `validate.power_cuts`. Raises NativeConfigError for no cuts.
    """

def validate_reduction(
    policy: str, overprovision: float, sizes: list[int], duplicates: float, *, pages_per_block: int,
    blocks: int, seed: int = 1, warm_up: int = 10, measured: int = 10,
) -> tuple[float, float]:  # fmt: skip
    """Measure a drive that stores less than the host writes; returns (measured, theory) write
    amplification, in bytes. `sizes`: the sectors (512 B) that 4 KiB slots take, each as often;
    `duplicates`: the share of the writes that repeat data. `policy`: "fifo", or "greedy" for data
    of one size without duplicates. Raises NativeConfigError.
    """

def validate_waf(
    policy: str, overprovision: float, pages_per_block: int, blocks: int, seed: int = 1,
    warm_up: int = 10, measured: int = 10,
) -> tuple[float, float]:  # fmt: skip
    """Measure one case; returns (measured, theory) write amplification. `policy`: "greedy", "fifo",
    "random", "d=N", or "streams" (four sequential writers, a stream each). Raises
    NativeConfigError.
    """
