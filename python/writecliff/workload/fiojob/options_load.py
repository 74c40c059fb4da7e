"""Options that make up the load: what is issued, where, how fast, and for how long."""

from __future__ import annotations

from writecliff.workload.fiojob.option import Option, honoured
from writecliff.workload.fiojob.splits import bssplit, distribution
from writecliff.workload.fiojob.values import (
    LARGEST,
    boolean,
    choice,
    complement,
    flag,
    integer,
    inverted,
    number_range,
    ranges,
    size,
    string,
    time_us,
    triple,
)

_HINT_STREAMS = "stream 2, 3, 4 or 5 for short, medium, long or extreme; none is stream 0"

LOAD: tuple[Option, ...] = (
    # Jobs and their order
    honoured("name", string, "name of the job in results"),
    honoured("description", string, "`desc` in the fio-shaped JSON"),
    honoured("numjobs", integer(1, 4096), "threads of the job", default="1"),
    honoured("stonewall", flag, "starts a new step after all jobs before", "wait_for_previous"),
    honoured("wait_for", string, "as stonewall, if it waits for all jobs before"),
    honoured("new_group", flag, "starts a new reporting group; does not wait"),
    honoured("exitall", flag, "only in a step of one job, where it changes nothing"),
    honoured(
        "exit_what", choice("group", "stonewall", "all"), "only with exitall", default="group"
    ),
    honoured("startdelay", time_us("s"), "start delay, from the start of the run", default="0"),
    # Direction
    honoured(
        "rw",
        string,
        "read, write, trim, rw and their random forms; trimwrite and offset modifiers are refused",
        "readwrite",
        default="read",
    ),
    honoured("rwmixread", integer(0, 100), "share of reads in rw and randrw", default="50"),
    honoured("rwmixwrite", complement, "100 minus rwmixread", store_as="rwmixread"),
    honoured(
        "percentage_random",
        triple(0, 100),
        "only 100 (all random) or, for sequential jobs, anything: fio does not use it there",
        default="100",
    ),
    # Block sizes
    honoured(
        "bs", triple(1), "block size; one for all operations in use", "blocksize", default="4096"
    ),
    honoured(
        "bsrange", ranges, "sizes in steps of the smallest, as fio draws them", "blocksize_range"
    ),
    honoured("bssplit", bssplit, "mix of block sizes; one for all operations in use"),
    honoured("blockalign", triple(1), "alignment of random addresses", "ba"),
    # Range and end
    honoured("size", size, "range, and volume of one pass of each thread; % of the drive"),
    honoured("filesize", number_range, "range, where it differs from the volume (size)"),
    honoured("io_size", size, "volume of each thread, beyond or below one pass", "io_limit"),
    honoured(
        "offset",
        size,
        "start of the range; % of the drive, rounded up to a block",
        "fileoffset",
        default="0",
    ),
    honoured("offset_align", integer(0), "to what an offset in % is rounded up", default="0"),
    honoured("offset_increment", size, "shifts the range of each further thread", default="0"),
    honoured(
        "fill_device", boolean, "sequential writes: to the end of the drive", "fill_fs", default="0"
    ),
    honoured(
        "number_ios",
        integer(0, LARGEST),
        "I/Os of each thread; without effect with time_based, as in fio",
        default="0",
    ),
    honoured("loops", integer(0), "passes over size (or io_size)", default="1"),
    honoured(
        "runtime", time_us("s"), "ends the job even before its volume", "timeout", default="0"
    ),
    honoured("time_based", flag, "runs for runtime, over and over"),
    honoured(
        "ramp_time", time_us("s"), "a step of its own before, which is not reported", default="0"
    ),
    # Depth
    honoured(
        "iodepth",
        integer(1, 65536),
        "queue depth; 1 with synchronous engines and for trims, as in fio",
        default="1",
    ),
    honoured(
        "ioengine",
        string,
        "only whether it is synchronous (queue depth 1); see the guide",
        default="psync",
    ),
    honoured("iodepth_low", integer(0), "only iodepth (keeps the queue full)", default="0"),
    honoured(
        "iodepth_batch_complete_min",
        integer(0),
        "only 0 and 1 (keeps the queue full)",
        "iodepth_batch_complete",
        default="1",
    ),
    honoured(
        "io_submit_mode",
        choice("inline", "offload"),
        "offload only with asynchronous engines",
        default="inline",
    ),
    # Addresses
    honoured(
        "random_distribution",
        distribution,
        "random, zipf:theta, zoned:... and zoned_abs:...; pareto and normal are refused",
        default="random",
    ),
    honoured("norandommap", flag, "blocks may repeat; without it they still may, with a note"),
    honoured(
        "randseed",
        integer(0, LARGEST),
        "seed of the run; the first job's where jobs differ",
        default="137",
    ),
    honoured("randrepeat", boolean, "runs always repeat; 0 is told in a note", default="1"),
    # Rates and pauses
    honoured("rate", triple(0), "bytes per second of each thread, for each operation", default="0"),
    honoured(
        "rate_iops", triple(0), "I/Os per second of each thread, for each operation", default="0"
    ),
    honoured(
        "rate_process",
        choice("linear", "poisson"),
        "arrival of rate-limited I/Os",
        default="linear",
    ),
    honoured(
        "rate_ignore_thinktime",
        boolean,
        "only 0, if a job has both rate and thinktime",
        default="0",
    ),
    honoured("thinktime", time_us("us"), "pause after every thinktime_blocks I/Os", default="0"),
    honoured("thinktime_blocks", integer(1), "I/Os between pauses", default="1"),
    # Data and flushes
    honoured(
        "buffer_compress_percentage",
        integer(0, 100),
        "share that the drive could compress",
        default="0",
    ),
    honoured(
        "dedupe_percentage", integer(0, 100), "share of the writes that repeat data", default="0"
    ),
    honoured("zero_buffers", flag, "fully compressible"),
    honoured(
        "buffer_pattern", string, "fully compressible, unless buffer_compress_percentage is given"
    ),
    honoured("fsync", integer(0), "flush after this many writes of a thread", default="0"),
    honoured("fdatasync", integer(0), "as fsync: a drive sees the same flush", default="0"),
    honoured(
        "sync",
        choice("none", "sync", "dsync", **{"0": "none", "1": "sync"}),
        "a flush after every write",
        default="none",
    ),
    honoured("direct", boolean, "always 1: nothing caches above a simulated drive", default="0"),
    honoured("buffered", inverted, "the opposite of direct", store_as="direct"),
    honoured("end_fsync", boolean, "no flush at the end; told in a note", default="0"),
    honoured("fsync_on_close", boolean, "no flush at the end; told in a note", default="0"),
    # Streams
    honoured(
        "write_hint",
        choice("none", "short", "medium", "long", "extreme"),
        _HINT_STREAMS,
        default="none",
    ),
    honoured(
        "stream_id", integer(0, 65535), "stream of the writes (SCSI WRITE STREAM)", default="0"
    ),
    honoured(
        "dataplacement",
        choice("none", "fdp", "streams"),
        "placement of the writes by plids",
        default="none",
    ),
    honoured(
        "fdp",
        lambda text, context: "fdp" if boolean(text, context) else "none",
        "as dataplacement=fdp",
        store_as="dataplacement",
    ),
    honoured("plids", string, "stream of the writes; one a job", "fdp_pli"),
    honoured(
        "plid_select",
        choice("random", "roundrobin", "scheme"),
        "only with one plid, where all but scheme are the same",
        "fdp_pli_select",
        default="roundrobin",
    ),
    # Target, units, series
    honoured("filename", string, "replaced by the drive of the run; told in a note"),
    honoured("directory", string, "replaced by the drive of the run; told in a note"),
    honoured("nrfiles", integer(1), "only 1: a drive is one file", "nr_files", default="1"),
    honoured(
        "kb_base", choice("1024", "1000"), "meaning of k, m, g in the same section", default="1024"
    ),
    honoured("log_avg_msec", integer(0), "width of the rows of the measured series", default="0"),
)
