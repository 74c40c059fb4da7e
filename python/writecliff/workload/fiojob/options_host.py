"""Options about the host, its file system and its memory: without meaning on a simulated drive."""

from __future__ import annotations

from writecliff.workload.fiojob.option import Option, no_effect

_FILES = "a drive has no files to create, lay out or remove"
_HOST_CPU = "host processors take no part in a simulated run"
_HOST_MEMORY = "buffers of the host take no part in a simulated run"
_PAGE_CACHE = "no page cache lies above a simulated drive"
_CLOCK = "a simulated run has its own, exact clock"
_SUBMISSION = "how the kernel is called; a simulated drive sees the same I/Os"
_VERIFY = "only with verify, which is refused"
_ERRORS = "a simulated drive reports no errors"
_RANDOM = "addresses come from the workload's own generator"
_REPEATS = "duplicates repeat what their thread wrote before (dedupe_mode=repeat)"
_DATA = "the drive of the model sees only how compressible data are"
_DEPTH = "saves system calls; the queue is kept full all the same"
_REPLAY = "only with read_iolog, which is refused"
_GENERATOR = "only with latency_target, which is refused"

HOST: tuple[Option, ...] = (
    # Files
    no_effect("filename_format", _FILES),
    no_effect("unique_filename", _FILES),
    no_effect("lockfile", _FILES),
    no_effect("openfiles", _FILES),
    no_effect("file_service_type", _FILES),
    no_effect("fallocate", _FILES),
    no_effect("fadvise_hint", _PAGE_CACHE),
    no_effect("overwrite", _FILES),
    no_effect("create_serialize", _FILES),
    no_effect("create_fsync", _FILES),
    no_effect("create_on_open", _FILES),
    no_effect("allow_file_create", _FILES),
    no_effect("allow_mounted_write", "a simulated drive is never mounted"),
    no_effect("unlink", _FILES),
    no_effect("unlink_each_loop", _FILES),
    no_effect("filetype", _FILES),
    no_effect("pre_read", _PAGE_CACHE),
    no_effect("invalidate", _PAGE_CACHE),
    no_effect("atomic", "writes of a simulated drive are never torn"),
    # Host processors, memory, clocks, identity
    no_effect("thread", "threads and processes of the host are the same to a drive"),
    no_effect("nice", _HOST_CPU),
    no_effect("cpumask", _HOST_CPU),
    no_effect("cpus_allowed", _HOST_CPU),
    no_effect("cpus_allowed_policy", _HOST_CPU),
    no_effect("numa_cpu_nodes", _HOST_CPU),
    no_effect("numa_mem_policy", _HOST_MEMORY),
    no_effect("gpu_dev_id", _HOST_MEMORY),
    no_effect("mem", _HOST_MEMORY, "iomem"),
    no_effect("iomem_align", _HOST_MEMORY, "mem_align"),
    no_effect("hugepage-size", _HOST_MEMORY),
    no_effect("lockmem", _HOST_MEMORY),
    no_effect("clocksource", _CLOCK),
    no_effect("gtod_cpu", _CLOCK),
    no_effect("cgroup", _HOST_CPU),
    no_effect("cgroup_nodelete", _HOST_CPU),
    no_effect("cgroup_weight", _HOST_CPU),
    no_effect("uid", "no file of the host is opened"),
    no_effect("gid", "no file of the host is opened"),
    no_effect("comm", _HOST_CPU),
    no_effect("ioscheduler", "no scheduler of the kernel lies above a simulated drive"),
    no_effect("exitall_on_error", _ERRORS),
    no_effect("ignore_error", _ERRORS),
    no_effect("continue_on_error", _ERRORS),
    # Submission
    no_effect("iodepth_batch", _DEPTH, "iodepth_batch_submit"),
    no_effect("iodepth_batch_complete_max", _DEPTH),
    no_effect("serialize_overlap", "overlapping I/Os of a simulated drive lose no data"),
    no_effect("thinktime_spin", "a pause is a pause, busy or not"),
    no_effect("thinktime_blocks_type", "the queue is empty before each pause in either way"),
    no_effect("rate_cycle", "only with rate_min, which is refused", "ratecycle"),
    no_effect("hipri", _SUBMISSION),
    no_effect("hipri_percentage", _SUBMISSION),
    no_effect("fixedbufs", _SUBMISSION),
    no_effect("registerfiles", _SUBMISSION),
    no_effect("sqthread_poll", _SUBMISSION),
    no_effect("sqthread_poll_cpu", _SUBMISSION),
    no_effect("nonvectored", _SUBMISSION),
    no_effect("uncached", _SUBMISSION),
    no_effect("nowait", _SUBMISSION),
    no_effect("force_async", _SUBMISSION),
    no_effect("cmd_type", _SUBMISSION),
    no_effect("userspace_reap", _SUBMISSION),
    no_effect("libaio_vectored", _SUBMISSION),
    # Randomness and data
    no_effect("random_generator", _RANDOM),
    no_effect("softrandommap", _RANDOM),
    no_effect("allrandrepeat", "every random choice of a run follows from its seed"),
    no_effect("refill_buffers", _DATA),
    no_effect("scramble_buffers", _DATA),
    no_effect("buffer_compress_chunk", _DATA),
    no_effect("dedupe_global", _REPEATS),
    no_effect("dedupe_mode", _REPEATS),
    no_effect("dedupe_working_set_percentage", _REPEATS),
    # Companions of options that are refused
    no_effect("do_verify", _VERIFY),
    no_effect("verify_interval", _VERIFY),
    no_effect("verify_offset", _VERIFY),
    no_effect("verify_fatal", _VERIFY),
    no_effect("verify_dump", _VERIFY),
    no_effect("verify_async", _VERIFY),
    no_effect("verify_async_cpus", _VERIFY),
    no_effect("verify_backlog", _VERIFY),
    no_effect("verify_backlog_batch", _VERIFY),
    no_effect("verify_state_load", _VERIFY),
    no_effect("verify_state_save", _VERIFY),
    no_effect("verify_pattern_interval", _VERIFY),
    no_effect("verify_write_sequence", _VERIFY),
    no_effect("verify_header_seed", _VERIFY),
    no_effect("verify_policy", _VERIFY),
    no_effect("experimental_verify", _VERIFY),
    no_effect("trim_verify_zero", _VERIFY),
    no_effect("trim_backlog", _VERIFY),
    no_effect("trim_backlog_batch", _VERIFY),
    no_effect("read_iolog_chunked", _REPLAY),
    no_effect("replay_no_stall", _REPLAY),
    no_effect("replay_redirect", _REPLAY),
    no_effect("replay_scale", _REPLAY),
    no_effect("replay_align", _REPLAY),
    no_effect("replay_time_scale", _REPLAY),
    no_effect("replay_skip", _REPLAY),
    no_effect("merge_blktrace_scalars", _REPLAY),
    no_effect("merge_blktrace_iters", _REPLAY),
    no_effect("latency_window", _GENERATOR),
    no_effect("latency_percentile", _GENERATOR),
    no_effect("latency_run", _GENERATOR),
    no_effect("steadystate_duration", "only with steadystate, which is refused", "ss_dur"),
    no_effect("steadystate_ramp_time", "only with steadystate, which is refused", "ss_ramp"),
    no_effect("steadystate_check_interval", "only with steadystate, which is refused",
              "ss_interval"),
    no_effect("flow_sleep", "only with flow, which is refused"),
    no_effect("flow_watermark", "obsolete in fio, too"),
    no_effect("verifysort", "obsolete in fio, too"),
    no_effect("verifysort_nr", "obsolete in fio, too"),
    no_effect("priohint", "only with prio, which is refused"),
    no_effect("dp_scheme", "only with plid_select=scheme, which is refused"),
)  # fmt: skip
