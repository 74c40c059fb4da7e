"""fio options, with the type, parser, meaning and default of each option.

To add an option, add one field to this module, and use it as an attribute of `Settings`
(`settings.bs`). The parser, the errors and the reference page `docs/reference/fio-options.md` are
derived from the field.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Literal

from writecliff.workload.fiojob import values as read
from writecliff.workload.fiojob.engines import ENGINE_OPTIONS
from writecliff.workload.fiojob.option import Option, Treatment, option, reported, unused
from writecliff.workload.fiojob.splits import (
    Distribution,
    Split,
    WriteModes,
    bssplit,
    distribution,
    write_modes,
)
from writecliff.workload.fiojob.steadiness import SteadyCriterion, steady_criterion
from writecliff.workload.fiojob.values import LARGEST, Size, Triple
from writecliff.workload.model import Arrival

Unified = Literal["none", "mixed", "both"]
WriteHint = Literal["none", "short", "medium", "long", "extreme"]

_LOG_NAME = "\0"  # Placeholder for a log file that is named after its job.


def numbers(text: str, context: read.Context) -> tuple[int, ...]:
    """Parse a list with ranges: `0,2,4-7`."""
    listed: list[int] = []
    for part in text.split(","):
        ends = [read.integer(0, 65535)(end, context) for end in part.split("-")]
        if len(ends) > 2:
            raise read.FioValueError(f"'{part}' is not a range")
        listed += range(ends[0], ends[-1] + 1)
    if len(listed) > 128:
        raise read.FioValueError(f"{len(listed)} numbers exceed fio's limit of 128")
    return tuple(listed)


def log_name(text: str, context: read.Context) -> str:
    """Parse a log file prefix, which is the job name if no value is given."""
    return text.strip() or _LOG_NAME


def named_after_job(prefix: str | None, job: str) -> str:
    """Return a job's log file prefix."""
    return job if prefix in (None, _LOG_NAME) else str(prefix)


_PERCENTILES = "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"


@dataclass(kw_only=True)
class FioOptions:
    """Options of a job, with fio's defaults."""

    # Job names and order.
    name: str | None = option(read.string, None, "job name in the results")
    description: str | None = option(read.string, None, "`desc` in the fio JSON")
    numjobs: int = option(read.integer(1, 4096), "1", "threads of the job")
    stonewall: bool = option(
        read.flag, None, "starts a new step after all earlier jobs", "wait_for_previous"
    )
    wait_for: str | None = option(
        read.string, None, "treated as stonewall if it waits for all earlier jobs"
    )
    new_group: bool = option(read.flag, None, "starts a new reporting group; does not wait")
    exitall: bool = option(read.flag, None, "the end of this job ends all jobs of the step")
    exit_what: str = option(
        read.choice("group", "stonewall", "all"),
        "group",
        "with exitall; group: only if one group runs; all: no step follows",
    )
    startdelay: int = option(read.time_us("s"), "0", "start delay, from the start of the run")
    # Direction
    rw: str = option(
        read.string,
        "read",
        "all directions; with `:N`, runs of N I/Os (random), or holes of N bytes (sequential)",
        "readwrite",
    )
    rw_sequencer: str = option(
        read.choice("sequential", "identical"), "sequential", "identical is rejected with runs"
    )
    rwmixread: int = option(read.whole_percent, "50", "percentage of reads in rw and randrw")
    percentage_random: Triple[int] = option(
        read.triple(0, 100, read.whole_percent),
        "100",
        "random jobs: the remaining I/Os continue where the operation's last I/O ended; "
        "not for trims and runs; sequential jobs: fio ignores it",
    )
    # Block sizes
    bs: Triple[int] = option(read.triple(1), "4096", "block size, for each operation", "blocksize")
    bsrange: Triple[tuple[int, int] | None] | None = option(
        read.ranges,
        None,
        "sizes in multiples of the smallest size, chosen as in fio",
        "blocksize_range",
    )
    bssplit: Triple[Split] | None = option(bssplit, None, "mix of block sizes, for each operation")
    blockalign: Triple[int] | None = option(
        read.triple(1), None, "alignment of random addresses", "ba"
    )
    # Address range and end conditions.
    size: Size | None = option(
        read.size, None, "address range and pass volume of each thread; % of the drive"
    )
    filesize: tuple[int, int] | None = option(
        read.number_range, None, "address range, if it differs from the volume (size)"
    )
    io_size: Size | None = option(
        read.size, None, "volume of each thread, more or less than one pass", "io_limit"
    )
    offset: Size = option(
        read.size,
        "0",
        "start of the range; a percentage of the drive is rounded up to a block",
        "fileoffset",
    )
    offset_align: int = option(
        read.integer(0), "0", "offsets in % are rounded up to a multiple of this value"
    )
    offset_increment: Size = option(read.size, "0", "shifts the range of each further thread")
    fill_device: bool = option(
        read.boolean, "0", "sequential writes: to the end of the drive", "fill_fs"
    )
    number_ios: int = option(
        read.integer(0, LARGEST), "0", "I/Os of each thread; no effect with time_based, as in fio"
    )
    loops: int = option(read.integer(0), "1", "passes over size (or io_size)")
    runtime: int = option(
        read.time_us("s"), "0", "ends the job even before its volume is reached", "timeout"
    )
    time_based: bool = option(read.flag, None, "repeats the job until runtime has elapsed")
    ramp_time: int = option(
        read.time_us("s"), "0", "initial period of the job that is excluded from the results"
    )
    steadystate: SteadyCriterion | None = option(
        steady_criterion, None, "with ss_dur: ends the job in steady state", "ss"
    )
    steadystate_duration: int = option(
        read.time_us("s"), "0", "window that must be steady", "ss_dur"
    )
    steadystate_ramp_time: int = option(
        read.time_us("s"), "0", "time before the first window", "ss_ramp"
    )
    steadystate_check_interval: int = option(
        read.time_us("s"), "1", "interval of the values in the window", "ss_interval"
    )
    # Replay
    read_iolog: str | None = option(
        read.string, None, "replays the I/Os of a log in version 2 or 3 at their times"
    )
    replay_no_stall: bool = option(
        read.boolean, "0", "replays the I/Os of a log as fast as possible"
    )
    replay_time_scale: int = option(
        read.integer(1, 10**6), "100", "speed of a log's times in percent"
    )
    replay_scale: int = option(read.integer(1), "1", "divides the offsets of a log")
    replay_align: int = option(
        read.integer(0), "0", "log offsets are rounded down to a multiple of this value"
    )
    replay_skip: str | None = option(
        read.string, None, "operations of a log to omit: read, write, trim, sync"
    )
    replay_redirect: str | None = option(
        read.string, None, "allows a log that names several files; all are the drive of the run"
    )
    # Depth
    iodepth: int = option(
        read.integer(1, 65536),
        "1",
        "queue depth; 1 with synchronous engines and for trims, as in fio",
    )
    ioengine: str = option(
        read.string, "psync", "distinguishes synchronous engines (queue depth 1); see the guide"
    )
    iodepth_low: int = option(read.integer(0), "0", "only iodepth (fills the queue)")
    iodepth_batch_complete_min: int = option(
        read.integer(0), "1", "only 0 and 1 (both fill the queue)", "iodepth_batch_complete"
    )
    latency_target: int = option(
        read.time_us("us"),
        "0",
        "searches for the queue depth that meets this latency, up to iodepth",
    )
    latency_window: int = option(read.time_us("us"), "0", "measurement time per queue depth")
    latency_percentile: tuple[float, ...] = option(
        read.floats, "100", "percentage of the I/Os that must meet latency_target"
    )
    latency_run: bool = option(read.boolean, "0", "continues at the resulting queue depth")
    io_submit_mode: str = option(
        read.choice("inline", "offload"), "inline", "offload only with asynchronous engines"
    )
    # Addresses
    random_distribution: Distribution = option(
        distribution,
        "random",
        "random, zoned:... and zoned_abs:..., zipf:theta, pareto:h, normal:spread, sequence:blocks",
    )
    random_sequence_stride: bool = option(
        read.boolean, "0", "each pass of a sequence starts at the end of the previous pass's group"
    )
    sprandom: bool = option(
        read.boolean, "0", "writes that bring the drive to the state after many random overwrites"
    )
    spr_op: tuple[float, ...] = option(read.floats, "0.15", "spare flash that sprandom assumes")
    spr_num_regions: int = option(
        read.integer(1, 10_000),
        "100",
        "fractions of the flash, each with its fraction of valid data",
    )
    spr_cs: int = option(read.integer(0, LARGEST), "0", "no effect; reported in a note")
    norandommap: bool = option(
        read.flag, None, "blocks may repeat; without norandommap they may also repeat, with a note"
    )
    randseed: int = option(
        read.integer(0, LARGEST), "137", "seed of the run; if jobs differ, the first job's seed"
    )
    randrepeat: bool = option(read.boolean, "1", "runs always repeat; 0 is reported in a note")
    num_range: int = option(
        read.integer(1, 256), "1", "only for trims; each range is a separate command, with a note"
    )
    zonemode: str | None = option(
        read.choice("none", "strided", "zbd"),
        None,
        "strided: sequential I/O skips zoneskip bytes after each zonesize; zbd: writes are"
        " sequential within each zone",
    )
    zonesize: int = option(
        read.integer(0, LARGEST),
        "0",
        "strided: accessed bytes of each zone; zbd: zone size, 256 MiB by default",
    )
    zonecapacity: int = option(
        read.integer(0, LARGEST), "0", "zbd: writable bytes of each zone, if less than its size"
    )
    read_beyond_wp: bool = option(
        read.boolean, "0", "zbd: 0: reads are moved to written data; 1: reads are not moved"
    )
    max_open_zones: int = option(read.integer(0, 4096), "0", "zbd: limit on open zones of all jobs")
    job_max_open_zones: int = option(
        read.integer(0, 4096), "0", "zbd: limit on open zones of each thread; needs max_open_zones"
    )
    zone_reset_threshold: float = option(
        read.share, "0", "zbd: fraction of the range above which zones are reset"
    )
    zone_reset_frequency: float = option(
        read.share, "0", "zbd: fraction of the writes that then reset their zone"
    )
    write_zone_remainder: bool = option(
        read.boolean, "0", "zbd: the last write of a zone may be shorter than a block"
    )
    zonerange: int = option(
        read.integer(0, LARGEST), "0", "strided: zone size, if it differs from zonesize"
    )
    zoneskip: int = option(read.integer(0, LARGEST), "0", "strided: bytes skipped after each zone")
    # Rates and pauses.
    rate: Triple[int] = option(
        read.triple(0), "0", "bytes per second of each thread, for each operation"
    )
    rate_iops: Triple[int] = option(
        read.triple(0), "0", "I/Os per second of each thread, for each operation"
    )
    rate_process: Arrival = option(
        read.choice("linear", "poisson"), "linear", "arrival of rate-limited I/Os"
    )
    rate_ignore_thinktime: bool = option(
        read.boolean,
        "0",
        "1: pauses delay the schedule of a rate; 0: the rate catches up after pauses",
    )
    rate_min: Triple[int] = option(
        read.triple(0), "0", "minimum bytes/s of each operation; a slower job ends", "ratemin"
    )
    rate_iops_min: Triple[int] = option(
        read.triple(0), "0", "minimum I/Os per second of each operation; a slower job ends"
    )
    rate_cycle: int = option(
        read.integer(1), "1000", "period for measuring a minimum rate, in ms", "ratecycle"
    )
    thinktime: int = option(read.time_us("us"), "0", "pause after every thinktime_blocks I/Os")
    thinktime_blocks: int = option(read.integer(1), "1", "I/Os between pauses")
    thinktime_iotime: int = option(
        read.time_us("s"), "0", "time of I/O between pauses; not with a rate or thinktime_blocks"
    )
    flow: int = option(
        read.integer(0, 1 << 20),
        "0",
        "fraction of the I/Os of its flow_id that each thread issues; not with rates",
    )
    flow_id: int = option(read.integer(), "0", "group of jobs that share their I/Os by flow")
    # Data contents and flushes.
    buffer_compress_percentage: int = option(
        read.whole_percent, "0", "percentage of the data that the drive could compress"
    )
    dedupe_percentage: int = option(
        read.whole_percent, "0", "percentage of the writes that repeat data"
    )
    zero_buffers: bool = option(read.flag, None, "fully compressible")
    buffer_pattern: str | None = option(
        read.string, None, "fully compressible, unless buffer_compress_percentage is given"
    )
    fsync: int = option(read.integer(0), "0", "flush after this many writes of a thread")
    fdatasync: int = option(read.integer(0), "0", "treated as fsync: a drive sees the same flush")
    sync: Literal["none", "sync", "dsync"] = option(
        read.choice("none", "sync", "dsync", **{"0": "none", "1": "sync"}),
        "none",
        "in all forms, each write is on the media when it completes",
    )
    writefua: bool = option(read.boolean, "0", "treated as sync=dsync")
    direct: bool = option(read.boolean, "0", "always 1: there is no cache above a simulated drive")
    end_fsync: bool = option(read.boolean, "0", "no flush at the end; reported in a note")
    fsync_on_close: bool = option(read.boolean, "0", "no flush at the end; reported in a note")
    write_mode: WriteModes = option(
        write_modes,
        "write",
        "NVMe commands instead of writes: zeroes become writes of zeros, uncor trims, verify "
        "reads, zone_append writes at the write pointer; with percentages, a mix",
    )
    deac: bool = option(read.boolean, "0", "write_mode=zeroes as trims")
    sg_write_mode: str = option(
        read.choice(
            "write", "write_and_verify", "write_same", "write_same_ndob", "write_stream",
            "verify_bytchk_00", "verify_bytchk_01", "verify_bytchk_11",
            verify="write_and_verify", same="write_same", write_stream_16="write_stream",
        ),
        "write",
        "SCSI commands instead of writes: write_same becomes writes of zeros, write_and_verify "
        "writes to the media, verify_bytchk reads",
    )  # fmt: skip
    # Streams
    write_hint: WriteHint = option(
        read.choice("none", "short", "medium", "long", "extreme"),
        "none",
        "stream 2, 3, 4 or 5 for short, medium, long or extreme; none is stream 0",
    )
    stream_id: int = option(read.integer(0, 65535), "0", "stream of the writes (SCSI WRITE STREAM)")
    dataplacement: str = option(
        read.choice("none", "fdp", "streams"), "none", "data placement of the writes, by plids"
    )
    plids: tuple[int, ...] | None = option(
        numbers, None, "streams of the writes; required", "fdp_pli"
    )
    plid_select: str = option(
        read.choice("random", "roundrobin", "scheme"),
        "roundrobin",
        "distribution of writes over plids; scheme is rejected",
        "fdp_pli_select",
    )
    # Target, units and series.
    filename: str | None = option(
        read.string, None, "path replaced by the drive under test; a note names the path"
    )
    directory: str | None = option(
        read.string, None, "path replaced by the drive under test; a note names the path"
    )
    nrfiles: int = option(
        read.integer(1), "1", "equal segments of the range; sequential I/Os take turns", "nr_files"
    )
    file_service_type: str = option(
        read.string, "roundrobin", "sequential: one after another; other values: in turn"
    )
    kb_base: str = option(
        read.choice("1024", "1000"), "1024", "meaning of k, m, g in the same section"
    )
    log_avg_msec: int = option(
        read.integer(0), "0", "interval of the measured series and of log files"
    )
    # Log files and JSON output in fio's format.
    write_bw_log: str | None = reported(log_name, None, "one row per window, in KiB/s")
    write_iops_log: str | None = reported(log_name, None, "one row per window, in IOPS")
    write_lat_log: str | None = reported(
        log_name, None, "one row per window, in ns: _lat and an equal _clat (there is no slat)"
    )
    log_window_value: str = reported(
        read.choice("avg", "max", "both", **{"0": "avg", "1": "max", "average": "avg"}),
        "avg",
        "mean or maximum latency of a window",
        "log_max_value",
    )
    per_job_logs: bool = reported(
        read.boolean, "1", "0: one log file for all jobs with the same name"
    )
    disk_util: bool = reported(read.boolean, "1", "0: no `disk_util`")
    group_reporting: bool = reported(read.flag, None, "jobs of a reporting group share one entry")
    stats: bool = reported(read.boolean, "1", "0: the job is omitted")
    continue_on_error: str = reported(
        read.choice("none", "read", "write", "io", "verify", "all", **{"0": "none", "1": "all"}),
        "none",
        "`total_err` and `first_error`, which are always 0: a simulated drive reports no errors",
    )
    percentile_list: tuple[float, ...] = reported(
        read.percentiles, _PERCENTILES, "percentiles to report"
    )
    clat_percentiles: bool = reported(read.boolean, "1", "percentiles of clat_ns")
    lat_percentiles: bool = reported(read.boolean, "0", "percentiles of lat_ns")
    slat_percentiles: bool = reported(
        read.boolean, "0", "slat_ns is empty: submission takes no time on a simulated drive"
    )
    unified_rw_reporting: Unified = reported(
        read.choice("none", "mixed", "both", **{"0": "none", "1": "mixed", "2": "both"}),
        "none",
        "reads, writes and trims combined, as `mixed`",
    )
    disable_lat: bool = reported(read.boolean, "0", "lat_ns is empty")
    disable_clat: bool = reported(read.boolean, "0", "clat_ns is empty")
    disable_slat: bool = reported(read.boolean, "0", "slat_ns is always empty")
    disable_bw_measurement: bool = reported(
        read.boolean, "0", "bw_* and iops_* samples are empty", "disable_bw"
    )
    gtod_reduce: bool = reported(read.boolean, "0", "combines disable_lat, _clat, _slat and _bw")

    @property
    def shows_clat(self) -> bool:
        """`True` if the JSON contains completion latencies."""
        return not (self.gtod_reduce or self.disable_clat)

    @property
    def shows_lat(self) -> bool:
        """`True` if the JSON contains total latencies."""
        return not (self.gtod_reduce or self.disable_lat)


def _fdp(text: str, context: read.Context) -> str:
    return "fdp" if read.boolean(text, context) else "none"


# Options that set the value of another option.
_STORED_AS = (
    Option("rwmixwrite", Treatment.HONOURED, read.complement, "100 minus rwmixread",
           store_as="rwmixread"),
    Option("buffered", Treatment.HONOURED, read.inverted, "inverse of direct",
           store_as="direct"),
    Option("fdp", Treatment.HONOURED, _fdp, "treated as dataplacement=fdp",
           store_as="dataplacement"),
)  # fmt: skip


@cache
def all_options() -> tuple[Option, ...]:
    """Return all known options."""
    used = [replace(field.metadata["option"], name=field.name) for field in fields(FioOptions)]
    no_effect = unused(Treatment.NO_EFFECT, NO_EFFECT)
    return (*used, *_STORED_AS, *no_effect, *unused(Treatment.REFUSED, REFUSED))


@cache
def by_name() -> dict[str, Option]:
    """Return all options by name and by alias."""
    table: dict[str, Option] = {}
    for row in all_options():
        for name in (row.name, *row.aliases):
            if name in table:
                raise AssertionError(f"the fio option {name} has two rows")
            table[name] = row
    return table


# -- options unused --------------------------------------------------------------------------------

# fio options that have no effect on a simulated drive, and fio options that are rejected.
#
# Each table lists options by reason: an entry is `name`, with `/alias` for each other spelling, and
# `=value,...` for values that make a rejected option acceptable because it has no effect.

NO_EFFECT: dict[str, str] = {
    "histogram logs are not written; fio's JSON output contains the bins": (
        "write_hist_log log_hist_msec log_hist_coarseness"
    ),
    "each row of a log file holds a window, not an individual I/O": "log_offset log_issue_time",
    "rows of log files have priority 0": "log_prio",
    "log files are written uncompressed, and counted from the start of the job": (
        "log_entries log_compression log_compression_cpus log_store_compressed log_unix_epoch "
        "log_alternate_epoch log_alternate_epoch_clock_id/job_start_clock_id"
    ),
    "I/O engine option; a simulated drive replaces the engine": ENGINE_OPTIONS,
    "data are not stored, so verification is skipped": (
        "verify verify_pattern verify_mode verify_bytchk trim_percentage "
        "do_verify verify_interval verify_offset verify_fatal verify_dump verify_async "
        "verify_async_cpus verify_backlog verify_backlog_batch verify_state_load "
        "verify_state_save verify_pattern_interval verify_write_sequence verify_header_seed "
        "verify_policy experimental_verify trim_verify_zero trim_backlog trim_backlog_batch"
    ),
    "data and protection information are not stored, so nothing is checked": (
        "md_per_io_size pi_act pi_chk apptag apptag_mask"
    ),
    "a simulated drive ignores priorities": (
        "prio prioclass priohint cmdprio_percentage cmdprio_class cmdprio cmdprio_hint "
        "cmdprio_bssplit"
    ),
    "log_avg_msec sets the interval of the rows (default 1 s)": "bwavgtime iopsavgtime",
    "a simulated drive has no trim errors to count": "block_error_percentiles",
    "affects only fio's text output": "significant_figures unit_base error_dump",
    "a drive has no files to create, lay out or remove": (
        "filename_format unique_filename lockfile openfiles fallocate overwrite "
        "create_serialize create_fsync create_on_open allow_file_create unlink unlink_each_loop "
        "filetype"
    ),
    "there is no page cache above a simulated drive": "fadvise_hint pre_read invalidate",
    "a simulated drive is never mounted": "allow_mounted_write",
    "writes to a simulated drive are never torn": "atomic",
    "reads from a simulated drive are served by the media or the write buffer": "readfua",
    "a drive cannot distinguish threads from processes": "thread",
    "host CPUs are not simulated": (
        "nice cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes cgroup cgroup_nodelete "
        "cgroup_weight comm"
    ),
    "host memory is not simulated": (
        "numa_mem_policy gpu_dev_id mem/iomem iomem_align/mem_align hugepage-size lockmem"
    ),
    "simulated time is exact": "clocksource gtod_cpu",
    "no file is opened": "uid gid",
    "there is no I/O scheduler above a simulated drive": "ioscheduler",
    "a simulated drive reports no errors": (
        "exitall_on_error ignore_error recover_zbd_write_error"
    ),
    "a simulated drive has no limit on open zones": "ignore_zone_limits",
    "saves only system calls; the queue stays full in either case": (
        "iodepth_batch/iodepth_batch_submit iodepth_batch_complete_max"
    ),
    "overlapping I/Os are safe on a simulated drive": "serialize_overlap",
    "a pause takes the same time whether busy or sleeping": "thinktime_spin",
    "the queue drains before each pause in either mode": "thinktime_blocks_type",
    "changes only system calls; a simulated drive sees the same I/Os": (
        "hipri hipri_percentage fixedbufs registerfiles sqthread_poll sqthread_poll_cpu "
        "nonvectored uncached nowait force_async cmd_type userspace_reap libaio_vectored"
    ),
    "addresses are generated by the workload's own generator": "random_generator softrandommap",
    "every random choice is determined by the seed": "allrandrepeat",
    "a simulated drive uses only the compressibility of the data": (
        "refill_buffers scramble_buffers buffer_compress_chunk"
    ),
    "duplicates repeat earlier data of the same thread (dedupe_mode=repeat)": (
        "dedupe_global dedupe_mode dedupe_working_set_percentage"
    ),
    "a log is read in one pass": "read_iolog_chunked",
    "only with merge_blktrace_file, which is rejected": (
        "merge_blktrace_scalars merge_blktrace_iters"
    ),
    "a job continues as soon as its flow allows": "flow_sleep",
    "obsolete in fio as well": "flow_watermark verifysort verifysort_nr",
    "only with plid_select=scheme, which is rejected": "dp_scheme",
}

REFUSED: dict[str, str] = {
    "a directory of files is not a drive": "opendir",
    "a drive cannot grow": "file_append=0",
    "no files are created; remove this job": "create_only=0",
    "different sizes of sequential and random I/Os are not supported": "bs_is_seq_rand=0",
    "a drive accepts only whole sectors": "bs_unaligned/blocksize_unaligned=0",
    "Linux no longer has write barriers; use fsync": "write_barrier=0",
    "there is no page cache to write back; use fsync": "sync_file_range",
    "there is no file system to sync": "end_syncfs=0",
    "a ramp by volume is not supported; use ramp_time": "ramp_size=0",
    "the job would only verify, and data are not stored": "verify_only=0",
    "address logs are not written": "write_iolog",
    "block traces are not merged; replay them individually": "merge_blktrace_file",
    "commands in a job file are not executed": "exec_prerun exec_postrun",
    "pauses in CPU cycles are not supported; use thinktime": "thinkcycles=0",
    "a job does not stop at a slow I/O; see the maximum latency instead": "max_latency=0",
    "belongs to fio's tiobench profile; numjobs sets the threads of a job": "threads=1",
    "fio's built-in profiles are not supported": "profile",
    "special NVMe reads are not supported": "read_mode=read",
    "SCSI passthrough is not supported": "cdb_len",
    "obsolete; fio also rejects it": "percentage_sequential rwmixcycle",
}
