"""The fio options that have an effect: type, reader, meaning and default of each, in one place.

To add an option, add one field here and use it as an attribute of `Settings` (`settings.bs`). The
reader, the errors and the reference page `docs/reference/fio-options.md` follow from the field.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Literal

from writecliff.workload.fiojob import values as read
from writecliff.workload.fiojob.option import Option, Treatment, honoured, reported, unused
from writecliff.workload.fiojob.options_unused import NO_EFFECT, REFUSED
from writecliff.workload.fiojob.splits import Distribution, Split, bssplit, distribution
from writecliff.workload.fiojob.values import LARGEST, Size, Triple
from writecliff.workload.model import Arrival

Unified = Literal["none", "mixed", "both"]
WriteHint = Literal["none", "short", "medium", "long", "extreme"]

_PERCENTILES = "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"


@dataclass(kw_only=True)
class FioOptions:
    """The options in force for one job; each defaults to fio's own default."""

    # Jobs and their order
    name: str | None = honoured(read.string, "name of the job in results")
    description: str | None = honoured(read.string, "`desc` in the fio-shaped JSON")
    numjobs: int = honoured(read.integer(1, 4096), "threads of the job", default="1")
    stonewall: bool = honoured(
        read.flag, "starts a new step after all jobs before it", "wait_for_previous"
    )
    wait_for: str | None = honoured(read.string, "as stonewall, if it waits for all jobs before it")
    new_group: bool = honoured(read.flag, "starts a new reporting group; does not wait")
    exitall: bool = honoured(read.flag, "only in a step of one job, where it changes nothing")
    exit_what: str = honoured(
        read.choice("group", "stonewall", "all"), "only with exitall", default="group"
    )
    startdelay: int = honoured(
        read.time_us("s"), "start delay, from the start of the run", default="0"
    )
    # Direction
    rw: str = honoured(
        read.string,
        "read, write, trim, rw and their random forms; trimwrite and offset modifiers are refused",
        "readwrite",
        default="read",
    )
    rwmixread: int = honoured(read.integer(0, 100), "share of reads in rw and randrw", default="50")
    percentage_random: Triple[int] = honoured(
        read.triple(0, 100),
        "random jobs: only 100; sequential jobs: any value, since fio ignores it there",
        default="100",
    )
    # Block sizes
    bs: Triple[int] = honoured(
        read.triple(1),
        "block size; one for all operations in use",
        "blocksize",
        default="4096",
    )
    bsrange: Triple[tuple[int, int] | None] | None = honoured(
        read.ranges, "sizes in steps of the smallest, as fio draws them", "blocksize_range"
    )
    bssplit: Triple[Split] | None = honoured(
        bssplit, "mix of block sizes; one for all operations in use"
    )
    blockalign: Triple[int] | None = honoured(read.triple(1), "alignment of random addresses", "ba")
    # Range and end
    size: Size | None = honoured(
        read.size, "range, and volume of one pass of each thread; % of the drive"
    )
    filesize: tuple[int, int] | None = honoured(
        read.number_range, "range, where it differs from the volume (size)"
    )
    io_size: Size | None = honoured(
        read.size, "volume of each thread, beyond or below one pass", "io_limit"
    )
    offset: Size = honoured(
        read.size,
        "start of the range; % of the drive, rounded up to a block",
        "fileoffset",
        default="0",
    )
    offset_align: int = honoured(
        read.integer(0), "to what an offset in % is rounded up", default="0"
    )
    offset_increment: Size = honoured(
        read.size, "shifts the range of each further thread", default="0"
    )
    fill_device: bool = honoured(
        read.boolean, "sequential writes: to the end of the drive", "fill_fs", default="0"
    )
    number_ios: int = honoured(
        read.integer(0, LARGEST),
        "I/Os of each thread; no effect with time_based, as in fio",
        default="0",
    )
    loops: int = honoured(read.integer(0), "passes over size (or io_size)", default="1")
    runtime: int = honoured(
        read.time_us("s"), "ends the job even before its volume", "timeout", default="0"
    )
    time_based: bool = honoured(read.flag, "repeats the job until runtime is over")
    ramp_time: int = honoured(
        read.time_us("s"), "a separate step before the job, which is not reported", default="0"
    )
    # Depth
    iodepth: int = honoured(
        read.integer(1, 65536),
        "queue depth; 1 with synchronous engines and for trims, as in fio",
        default="1",
    )
    ioengine: str = honoured(
        read.string,
        "only whether it is synchronous (queue depth 1); see the guide",
        default="psync",
    )
    iodepth_low: int = honoured(read.integer(0), "only iodepth (keeps the queue full)", default="0")
    iodepth_batch_complete_min: int = honoured(
        read.integer(0),
        "only 0 and 1 (keeps the queue full)",
        "iodepth_batch_complete",
        default="1",
    )
    io_submit_mode: str = honoured(
        read.choice("inline", "offload"),
        "offload only with asynchronous engines",
        default="inline",
    )
    # Addresses
    random_distribution: Distribution = honoured(
        distribution,
        "random, zipf:theta, zoned:... and zoned_abs:...; pareto and normal are refused",
        default="random",
    )
    norandommap: bool = honoured(
        read.flag, "blocks may repeat; without it they still may, with a note"
    )
    randseed: int = honoured(
        read.integer(0, LARGEST),
        "seed of the run; the first job's where jobs differ",
        default="137",
    )
    randrepeat: bool = honoured(
        read.boolean, "runs always repeat; 0 is reported in a note", default="1"
    )
    # Rates and pauses
    rate: Triple[int] = honoured(
        read.triple(0), "bytes per second of each thread, for each operation", default="0"
    )
    rate_iops: Triple[int] = honoured(
        read.triple(0), "I/Os per second of each thread, for each operation", default="0"
    )
    rate_process: Arrival = honoured(
        read.choice("linear", "poisson"), "arrival of rate-limited I/Os", default="linear"
    )
    rate_ignore_thinktime: bool = honoured(
        read.boolean, "only 0, if a job has both rate and thinktime", default="0"
    )
    thinktime: int = honoured(
        read.time_us("us"), "pause after every thinktime_blocks I/Os", default="0"
    )
    thinktime_blocks: int = honoured(read.integer(1), "I/Os between pauses", default="1")
    # Data and flushes
    buffer_compress_percentage: int = honoured(
        read.integer(0, 100), "share that the drive could compress", default="0"
    )
    dedupe_percentage: int = honoured(
        read.integer(0, 100), "share of the writes that repeat data", default="0"
    )
    zero_buffers: bool = honoured(read.flag, "fully compressible")
    buffer_pattern: str | None = honoured(
        read.string, "fully compressible, unless buffer_compress_percentage is given"
    )
    fsync: int = honoured(read.integer(0), "flush after this many writes of a thread", default="0")
    fdatasync: int = honoured(read.integer(0), "as fsync: a drive sees the same flush", default="0")
    sync: Literal["none", "sync", "dsync"] = honoured(
        read.choice("none", "sync", "dsync", **{"0": "none", "1": "sync"}),
        "a flush after every write",
        default="none",
    )
    direct: bool = honoured(
        read.boolean, "always 1: there is no cache above a simulated drive", default="0"
    )
    end_fsync: bool = honoured(read.boolean, "no flush at the end; reported in a note", default="0")
    fsync_on_close: bool = honoured(
        read.boolean, "no flush at the end; reported in a note", default="0"
    )
    # Streams
    write_hint: WriteHint = honoured(
        read.choice("none", "short", "medium", "long", "extreme"),
        "stream 2, 3, 4 or 5 for short, medium, long or extreme; none is stream 0",
        default="none",
    )
    stream_id: int = honoured(
        read.integer(0, 65535), "stream of the writes (SCSI WRITE STREAM)", default="0"
    )
    dataplacement: str = honoured(
        read.choice("none", "fdp", "streams"), "placement of the writes by plids", default="none"
    )
    plids: str | None = honoured(read.string, "stream of the writes; one for each job", "fdp_pli")
    plid_select: str = honoured(
        read.choice("random", "roundrobin", "scheme"),
        "only with one plid, where all but scheme are the same",
        "fdp_pli_select",
        default="roundrobin",
    )
    # Target, units, series
    filename: str | None = honoured(
        read.string, "replaced by the drive of the run; reported in a note"
    )
    directory: str | None = honoured(
        read.string, "replaced by the drive of the run; reported in a note"
    )
    nrfiles: int = honoured(read.integer(1), "only 1: a drive is one file", "nr_files", default="1")
    kb_base: str = honoured(
        read.choice("1024", "1000"), "meaning of k, m, g in the same section", default="1024"
    )
    log_avg_msec: int = honoured(
        read.integer(0), "width of the rows of the measured series", default="0"
    )
    # The fio-shaped JSON
    group_reporting: bool = reported(read.flag, "jobs of a reporting group are one entry")
    stats: bool = reported(read.boolean, "0: the job is left out", default="1")
    percentile_list: tuple[float, ...] = reported(
        read.percentiles, "which percentiles", default=_PERCENTILES
    )
    clat_percentiles: bool = reported(read.boolean, "percentiles of clat_ns", default="1")
    lat_percentiles: bool = reported(read.boolean, "percentiles of lat_ns", default="0")
    slat_percentiles: bool = reported(
        read.boolean, "slat_ns is empty: a simulated drive has no submission", default="0"
    )
    unified_rw_reporting: Unified = reported(
        read.choice("none", "mixed", "both", **{"0": "none", "1": "mixed", "2": "both"}),
        "reads, writes and trims together, as `mixed`",
        default="none",
    )
    disable_lat: bool = reported(read.boolean, "lat_ns is empty", default="0")
    disable_clat: bool = reported(read.boolean, "clat_ns is empty", default="0")
    disable_slat: bool = reported(read.boolean, "slat_ns is always empty", default="0")
    disable_bw_measurement: bool = reported(
        read.boolean, "bw_* and iops_* samples are empty", "disable_bw", default="0"
    )
    gtod_reduce: bool = reported(
        read.boolean, "as disable_lat, _clat, _slat and _bw together", default="0"
    )

    @property
    def shows_clat(self) -> bool:
        return not (self.gtod_reduce or self.disable_clat)

    @property
    def shows_lat(self) -> bool:
        return not (self.gtod_reduce or self.disable_lat)


def _fdp(text: str, context: read.Context) -> str:
    return "fdp" if read.boolean(text, context) else "none"


# Options that set the value of another one.
_STORED_AS = (
    Option("rwmixwrite", Treatment.HONOURED, read.complement, "100 minus rwmixread",
           store_as="rwmixread"),
    Option("buffered", Treatment.HONOURED, read.inverted, "the opposite of direct",
           store_as="direct"),
    Option("fdp", Treatment.HONOURED, _fdp, "as dataplacement=fdp", store_as="dataplacement"),
)  # fmt: skip


@cache
def all_options() -> tuple[Option, ...]:
    """Every known option."""
    used = [replace(field.metadata["option"], name=field.name) for field in fields(FioOptions)]
    no_effect = unused(Treatment.NO_EFFECT, NO_EFFECT)
    return (*used, *_STORED_AS, *no_effect, *unused(Treatment.REFUSED, REFUSED))


@cache
def by_name() -> dict[str, Option]:
    """Options by name and by alias."""
    table: dict[str, Option] = {}
    for option in all_options():
        for name in (option.name, *option.aliases):
            if name in table:
                raise AssertionError(f"fio option {name} has two rows")
            table[name] = option
    return table
