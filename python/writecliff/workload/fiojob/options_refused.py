"""Options of fio that would change the load in a way that cannot be had. Each says why."""

from __future__ import annotations

from writecliff.workload.fiojob.option import Option, refused

_OFF = ("0",)
_VERIFY = "data are not kept on a simulated drive, so there is nothing to verify"
_ZONED = "zoned drives are not simulated"
_MINIMUM = "a job that ends when it falls below a rate is not available; compare the result instead"
_PRIORITY = "the drive of the model has no priorities"
_COMMANDS = "commands from a job file are not executed"
_REPLAY = "replay is not part of a job; workloads are generated"
_FLOW = "flow control between jobs is not available; use rate_iops to set their proportion"
_SPRANDOM = "fast preconditioning has its own command; simulated drives precondition at once"
_PI = "protection information is not simulated"
_ENGINE = "belongs to an engine that does no I/O to a drive"
_MIXED_SIZES = "sequential and random I/Os of different size in one job are not available"

REFUSED: tuple[Option, ...] = (
    refused("opendir", "files of a directory are not a drive"),
    refused("file_append", "files cannot grow on a drive", neutral=_OFF),
    refused("create_only", "no files are created; leave this job out", neutral=_OFF),
    refused("rw_sequencer", "holes and runs within a pattern are not available",
            neutral=("sequential",)),
    refused("bs_is_seq_rand", _MIXED_SIZES, neutral=_OFF),
    refused("bs_unaligned", "a drive takes whole sectors only", "blocksize_unaligned",
            neutral=_OFF),
    refused("random_sequence_stride", "strides of random addresses are not available",
            neutral=_OFF),
    refused("num_range", "several ranges in one trim are not available", neutral=("1",)),
    refused("write_barrier", "barriers are gone from Linux; use fsync", neutral=_OFF),
    refused("sync_file_range", "writes back a page cache, which is not there; use fsync"),
    refused("end_syncfs", "there is no file system to sync", neutral=_OFF),
    refused("ramp_size", "a ramp by volume is not available; use ramp_time", neutral=_OFF),
    refused("verify", _VERIFY, neutral=("0",)),
    refused("verify_pattern", _VERIFY),
    refused("verify_only", _VERIFY, neutral=_OFF),
    refused("trim_percentage", _VERIFY, neutral=_OFF),
    refused("write_iolog", "address logs are not written"),
    refused("read_iolog", _REPLAY),
    refused("merge_blktrace_file", _REPLAY),
    refused("exec_prerun", _COMMANDS),
    refused("exec_postrun", _COMMANDS),
    refused("zonemode", _ZONED, neutral=("none",)),
    refused("zonesize", _ZONED, neutral=_OFF),
    refused("zonecapacity", _ZONED, neutral=_OFF),
    refused("zonerange", _ZONED, neutral=_OFF),
    refused("zoneskip", _ZONED, neutral=_OFF),
    refused("read_beyond_wp", _ZONED, neutral=_OFF),
    refused("max_open_zones", _ZONED, neutral=_OFF),
    refused("job_max_open_zones", _ZONED, neutral=_OFF),
    refused("ignore_zone_limits", _ZONED, neutral=_OFF),
    refused("zone_reset_threshold", _ZONED),
    refused("zone_reset_frequency", _ZONED),
    refused("recover_zbd_write_error", _ZONED, neutral=_OFF),
    refused("write_zone_remainder", _ZONED, neutral=_OFF),
    refused("prio", _PRIORITY, neutral=_OFF),
    refused("prioclass", _PRIORITY, neutral=_OFF),
    refused("cmdprio_percentage", _PRIORITY, neutral=_OFF),
    refused("cmdprio_class", _PRIORITY, neutral=_OFF),
    refused("cmdprio", _PRIORITY, neutral=_OFF),
    refused("cmdprio_bssplit", _PRIORITY),
    refused("thinktime_iotime", "pauses by time of I/O are not available; use thinktime_blocks",
            neutral=_OFF),
    refused("thinkcycles", "pauses in processor cycles are not available; use thinktime",
            neutral=_OFF),
    refused("rate_min", _MINIMUM, "ratemin", neutral=_OFF),
    refused("rate_iops_min", _MINIMUM, neutral=_OFF),
    refused("max_latency", "jobs do not end at a slow I/O; read the maximum instead",
            neutral=_OFF),
    refused("latency_target", "a search for a queue depth is not available; run a sweep instead",
            neutral=_OFF),
    refused("steadystate", "steady state is judged by the test procedures; use `writecliff test`",
            "ss"),
    refused("flow_id", _FLOW, neutral=_OFF),
    refused("flow", _FLOW, neutral=_OFF),
    refused("profile", "fio's built-in profiles are not available"),
    refused("sprandom", _SPRANDOM, neutral=_OFF),
    refused("spr_op", _SPRANDOM),
    refused("spr_num_regions", _SPRANDOM),
    refused("spr_cs", _SPRANDOM),
    refused("readfua", "reads that bypass a cache are not available", neutral=_OFF),
    refused("writefua", "forced unit access is not available; use sync=dsync", neutral=_OFF),
    refused("sg_write_mode", "only plain writes and stream writes (stream_id) are available",
            neutral=("write", "write_stream", "write_stream_16")),
    refused("write_mode", "special NVMe writes are not available", neutral=("write",)),
    refused("read_mode", "special NVMe reads are not available", neutral=("read",)),
    refused("verify_mode", _VERIFY, neutral=("read",)),
    refused("verify_bytchk", _VERIFY),
    refused("deac", "special NVMe writes are not available", neutral=_OFF),
    refused("cdb_len", "SCSI passthrough is not available"),
    refused("md_per_io_size", _PI, neutral=_OFF),
    refused("pi_act", _PI),
    refused("pi_chk", _PI),
    refused("apptag", _PI),
    refused("apptag_mask", _PI),
    refused("cpuload", _ENGINE),
    refused("cpuchunks", _ENGINE),
    refused("cpumode", _ENGINE),
    refused("hostname", _ENGINE),
    refused("port", _ENGINE),
    refused("protocol", _ENGINE),
    refused("thp", "memory-mapped I/O is not available", neutral=_OFF),
    refused("uri", "network drives are not available"),
    refused("percentage_sequential", "obsolete; fio refuses it, too"),
    refused("rwmixcycle", "obsolete; fio refuses it, too"),
)  # fmt: skip
