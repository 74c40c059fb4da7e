"""Options of fio that change nothing on a simulated drive, and those that are refused.

Each table maps a reason to the options it holds for: `name`, with `/alias` for each further
spelling and `=value,...` for values with which a refused option has no effect and is accepted.
"""

from __future__ import annotations

from writecliff.workload.fiojob.engines import ENGINE_OPTIONS

NO_EFFECT: dict[str, str] = {
    "histogram logs are not written; the fio JSON has the bins": (
        "write_hist_log log_hist_msec log_hist_coarseness"
    ),
    "rows of log files hold a window each, no single I/O": "log_offset log_issue_time",
    "rows of log files have priority 0": "log_prio",
    "log files are written as they are, and counted from the start of the job": (
        "log_entries log_compression log_compression_cpus log_store_compressed log_unix_epoch "
        "log_alternate_epoch log_alternate_epoch_clock_id/job_start_clock_id"
    ),
    "option of an I/O engine, which a simulated drive replaces": ENGINE_OPTIONS,
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
    "log_avg_msec sets the width of the rows (default 1 s)": "bwavgtime iopsavgtime",
    "a simulated drive has no trim errors to count": "block_error_percentiles",
    "concerns fio's text output": "significant_figures unit_base error_dump",
    "a drive has no files to create, lay out or remove": (
        "filename_format unique_filename lockfile openfiles fallocate overwrite "
        "create_serialize create_fsync create_on_open allow_file_create unlink unlink_each_loop "
        "filetype"
    ),
    "there is no page cache above a simulated drive": "fadvise_hint pre_read invalidate",
    "a simulated drive is never mounted": "allow_mounted_write",
    "writes of a simulated drive are never torn": "atomic",
    "reads of a simulated drive come from the media or from its write buffer": "readfua",
    "a drive cannot tell threads from processes": "thread",
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
    "saves system calls only; the queue is kept full in either case": (
        "iodepth_batch/iodepth_batch_submit iodepth_batch_complete_max"
    ),
    "overlapping I/Os are safe on a simulated drive": "serialize_overlap",
    "busy or sleeping, a pause takes the same time": "thinktime_spin",
    "the queue drains before each pause in either mode": "thinktime_blocks_type",
    "changes system calls only; a simulated drive sees the same I/Os": (
        "hipri hipri_percentage fixedbufs registerfiles sqthread_poll sqthread_poll_cpu "
        "nonvectored uncached nowait force_async cmd_type userspace_reap libaio_vectored"
    ),
    "addresses come from the workload's own generator": "random_generator softrandommap",
    "every random choice follows from the seed": "allrandrepeat",
    "a simulated drive uses only the compressibility of the data": (
        "refill_buffers scramble_buffers buffer_compress_chunk"
    ),
    "duplicates repeat earlier data of their thread (dedupe_mode=repeat)": (
        "dedupe_global dedupe_mode dedupe_working_set_percentage"
    ),
    "a log is read at once": "read_iolog_chunked",
    "only with merge_blktrace_file, which is refused": (
        "merge_blktrace_scalars merge_blktrace_iters"
    ),
    "a job continues as soon as its flow allows": "flow_sleep",
    "obsolete in fio as well": "flow_watermark verifysort verifysort_nr",
    "only with plid_select=scheme, which is refused": "dp_scheme",
}

REFUSED: dict[str, str] = {
    "a directory of files is not a drive": "opendir",
    "a drive cannot grow": "file_append=0",
    "no files are created; remove this job": "create_only=0",
    "sequential and random I/Os of different size in one job are not available": "bs_is_seq_rand=0",
    "a drive accepts whole sectors only": "bs_unaligned/blocksize_unaligned=0",
    "Linux no longer has write barriers; use fsync": "write_barrier=0",
    "there is no page cache to write back; use fsync": "sync_file_range",
    "there is no file system to sync": "end_syncfs=0",
    "a ramp by volume is not available; use ramp_time": "ramp_size=0",
    "the job would only verify, and data are not kept": "verify_only=0",
    "address logs are not written": "write_iolog",
    "block traces are not merged; replay them one by one": "merge_blktrace_file",
    "commands in a job file are not executed": "exec_prerun exec_postrun",
    "pauses in processor cycles are not available; use thinktime": "thinkcycles=0",
    "a job does not end at a slow I/O; see the maximum latency instead": "max_latency=0",
    "belongs to fio's tiobench profile; the threads of a job are numjobs": "threads=1",
    "fio's built-in profiles are not available": "profile",
    "special NVMe reads are not available": "read_mode=read",
    "SCSI passthrough is not available": "cdb_len",
    "obsolete; fio refuses it as well": "percentage_sequential rwmixcycle",
}
