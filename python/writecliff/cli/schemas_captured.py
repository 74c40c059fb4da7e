"""What the captures print with `--json`."""

from __future__ import annotations

from collections.abc import Mapping

from writecliff.cli.schema import Schema

_SKIPPED = {
    "skipped_lines": "lines (of binary formats: records) that are no I/Os",
    "skipped": "by reason: `reason`, `lines`, `first_line` (from 1), `expected` (the format has "
    "such lines; others are damage)",
    "notes": "sentences",
}

CAPTURED: Mapping[str, Schema] = {
    "trace-convert": Schema(
        "trace convert",
        {
            "trace": "the file that was read",
            "output": "the file that was written",
            "format": "of what was read",
            "written_as": "the format of what was written",
            "ios": "that were written",
            "left_out": "I/Os that the new format cannot have",
            "moved": "I/Os at a time before that of one before, which got that time",
            **_SKIPPED,
        },
    ),
    "trace-formats": Schema(
        "trace formats",
        {"formats": "`name`, `title`, `columns`, `units` and `written` (by `convert`) of each"},
    ),
    "trace-examples": Schema(
        "trace examples",
        {"examples": "`name`, `title`, `path` and `bytes` of each captured trace that ships"},
    ),
    "replay-timed": Schema(
        "replay",
        {
            "trace": "the file that was replayed on a real drive",
            "target": "the drive, as it was named",
            "speed": "how many times as fast as it was recorded",
            "ios": "that were issued, by operation",
            "elapsed_s": "up to the last completion",
            "timing": "how far times were kept: `lateness_ns` (from when an I/O was due until it "
            "was issued: `mean`, `p50`, `p99`, `p99_9`, `max`), `waited` (for others, by their "
            "depth), `left` (never issued), `intended_ns` and `length_ns` (up to the last I/O, due "
            "and issued), `length_error_pct`, `in_flight_max`",
            "response_ms": "from when I/Os were due, by operation: `mean`, `p50`, `p99`, "
            "`p99_9`, `max`",
            "service_ms": "the same from when they were issued, of flushes too",
            "notes": "sentences",
            "issued_trace": "the trace of what was issued, with the three times of each I/O",
        },
    ),
    "characterise": Schema(
        "characterise",
        {
            "trace": "the file",
            "format": "its format; several for an archive of several",
            "ios": "all I/Os",
            "read_pct": "reads among the reads and writes, by number",
            "read_bytes": "that were read",
            "write_bytes": "that were written",
            "duration_s": "from the first arrival to the last",
            "operations": "`ios` and `bytes` of `read`, `write`, `flush`, `discard`",
            "sizes": "the 8 most frequent sizes, then all others (`size_bytes`: `null`): `ios`, "
            "`share_pct`, `reads`, `writes`",
            "streams": "I/O streams by share of the reads and writes: `access` (`random`, "
            "`sequential`), `operation`, `size_bytes`, `share_pct`, `ios`; at most 32",
            "sequential_pct": "reads and writes that begin where one of the last 32 runs of their "
            "operation and volume ended",
            "sequential": "the same of reads and of writes: `read_pct`, `write_pct`",
            "alignment": "`ios_pct` whose address and length are multiples of `bytes`",
            "queue_depth": "I/Os under way at an arrival, itself included: `mean`, `p50`, `p90`, "
            "`p99`, `max`, `ios`, `distribution` (depth, percentage); `null` without completions",
            "response_ms": "by operation: `count`, `mean`, `p50`, `p90`, `p99`, `p99_9`, `max`; "
            "`points` (ms, percentage up to it); `null` without completions",
            "arrivals": "`between_us`, `ios_per_s`, `peak_ios_per_s`, `peak_to_mean`, "
            "`index_of_dispersion` (variance by mean) over windows of 1 s, `idle` periods "
            "(`at_least_ms`, `periods`, `time_pct`), `idle_longest_ms`",
            "unique_bytes": "of different 4 KiB blocks that were read or written",
            "unique": "the same of reads and writes, and its error: `sampled_one_in` blocks "
            "(1: exact), `relative_error_pct` (one standard deviation)",
            "hottest": "by `blocks_pct` of the most used blocks: `traffic_pct`, `read_pct`, "
            "`write_pct`",
            "reuse": "`distance_bytes` of other blocks between two uses of one (SHARDS), "
            "`first_use_pct`, `hits` (`hit_pct` of an LRU cache of `cache_bytes`)",
            "updates": "written blocks: `overwritten_pct`, `reads_of_written_pct`, and between two "
            "writes of a block `interval_s` and `interval_bytes`",
            "content": "of traces with hashes: `writes`, `distinct`, `duplicate_pct`; else `null`",
            "intervals": "of `length_s`: `rows` with counts, bytes and `working_set_bytes`",
            "volumes": "the same figures of each volume, the busiest first; at most 1024",
            "volumes_total": "how many there are",
            "heat": "I/Os by address (rows) and time (columns) of the 4 busiest volumes",
            "processes": "`process`, `ios`, `bytes` of the busiest ones",
            "out_of_order": "I/Os at a time before that of one before",
            "drive": "what it means for a drive: `writes_per_day_bytes`, `writes_per_year_bytes`, "
            "`footprint_overwrites_per_day`, `read_not_written_bytes`, `replay` (with `--on`: "
            "`waf`, `endurance_bytes`, `years`, ...)",
            "against": "the same of the trace of `--against`, or `null`",
            "report": "the page",
            **_SKIPPED,
        },
    ),
    "synthesise": Schema(
        "synthesise",
        {
            "trace": "the file",
            "format": "its format; several for an archive of several",
            "ios": "of the trace that were used, flushes included; as many as of a pass",
            "duration_s": "from the first arrival to the last",
            "workload": "the workload file that was written",
            "fio_job": "the fio job file that was written",
            "model": "how compact the model is: `numbers` in all, `streams`, `states`, "
            "`transitions`, `phases`, `periods`, `places`, or `sweeps` and `intervals`; "
            "`range_bytes` that its addresses take, `span_bytes` of those of the trace; `seed`",
            "measures": "trace and workload side by side: `name`, `unit`, `trace`, `synthetic`, "
            "`kind` of the `difference` (`points` of percent, or `percent` of the trace's), "
            "`bound` (`null`: none is promised), `within`",
            "missed": "names of the measures that do not keep their bound",
            "played": "with `--on`, else `null`: `target`, `capacity_bytes`, `overprovision_pct`, "
            "`passes` on each of `drives` drives (`settling` and `measured` without time, "
            "`timed_settling` and `timed`); of `trace`, `synthetic` and `fio_job` (`null` "
            "if it cannot be played) `waf`, `iops`, `response_ns` (`mean`, `p50`, `p99`, `p99_9`, "
            "`max`), `reads_p99_9_ns`, `writes_p99_9_ns`, `waf_of_drives`, `p99_9_ns_of_drives`; "
            "`differences` in percent of the trace's, `fio_job_differences`; `spread` of the "
            "drives under the trace, in percent of their mean; `bounds`, `within`",
            "fio_notes": "what fio's language does not say",
            "report": "the page",
            **_SKIPPED,
        },
    ),
    "capture": Schema(
        "capture",
        {
            "trace": "the file",
            "created": "ISO 8601 time",
            "duration_ns": "of the capture",
            "root": "the folder that it was limited to, or `null`",
            "command": "its words",
            "program": "name and version",
            "exit_code": "of the command; 128 + n for signal n",
            "load": "size of a ready-made load, where it says one",
            "notes": "sentences: what is missing in the trace",
            "hints": "write hints: `delivered`, `refused`, `errors` (by name), `repaired`",
            "reads": "whether reads were captured",
            "bytes_written": "by the program",
            "bytes_read": "by the program",
            "implied_syncs": "rows `fsync` that no call, but a write with `O_DIRECT` or the like "
            "brought about",
            "files": "how many",
            "processes": "how many",
            "dropped": "events that were lost",
            "sources": '`"preload"` or `"strace"`',
        },
    ),
    "capture-device": Schema(
        "capture --device",
        {
            "trace": "the file",
            "level": '`"block"`',
            "created": "ISO 8601 time of the begin",
            "duration_ns": "of the capture",
            "device": "`path`, `name`, `number` (major:minor), `disk` (its whole disk), `model`, "
            "`size_bytes`, `first_sector` (on the disk), `requests` (`false`: it takes bios as "
            "they come), `scheduler`",
            "requests": "by `op` of the trace: `read`, `write`, `punch` (discard), `fsync` (flush)",
            "bytes": "the same",
            "lost_events": "that the kernel could not keep",
            "losses": "by the kernel's reason: `overrun`, `commit_overrun`, `dropped`",
            "open_at_start": "requests that were issued before, and completed during the capture",
            "open_at_end": "requests that had no completion by its end",
            "requeued": "requests that the driver returned to the queue",
            "merged": "requests that became part of others, and are not in the trace",
            "other_commands": "of drivers and zones, which move no data and are not in the trace",
            "events": "that were read",
            "overhead": "of the capture: `cpu_s`, `cpu_pct` (of one processor), `machine_cpu_pct` "
            "(of all `processors`), `peak_rss_bytes`",
            "command": "its words; empty without one",
            "program": "its name, or `null`",
            "exit_code": "of the command; 128 + n for signal n",
            "notes": "sentences: what is missing in the trace",
        },
    ),
    "capture-stack": Schema(
        "capture --stack",
        {
            "report": "the page",
            "folder": "of the page, its numbers (CSV) and the traces `calls.parquet`, "
            "`device.parquet`",
            "command": "its words",
            "exit_code": "of the command; 128 + n for signal n",
            "root": "the folder whose files were captured",
            "file_system": "`type`, `mount`, and its device as `capture --device` has it",
            "program_ns": "when the command had ended",
            "duration_ns": "when all was written back",
            "steps": "`name` (`calls`, `bios`, `requests`), `reads`, `writes`, `discards` (each "
            "`count`, `bytes`, `mean_bytes`, `median_bytes`, `sequential_share`, `sizes`), `syncs` "
            "(sync calls, bios that ask for a flush, flushes), `write_amplification` (bytes "
            "written for each byte of the calls)",
            "origins": "requests by `origin` and `op`: as a direction of a step, and "
            "`queue_p50_ns`, `service_p50_ns`, `service_p99_ns`",
            "page_cache": "`hit_ratio`, `asked_bytes` (by read calls), `read_in_bytes` (of data), "
            "`readahead_bytes`, `added_pages`, `removed_pages`, `dirtied_folios`",
            "journal": "`commits`, `handles`, `blocks` of jbd2; `null` on other file systems",
            "data_amplification": "of data alone, without metadata and journal",
            "write_wait": "from the last write call to the driver, by pages of 4 KiB: `pages` (of "
            "which it is known), `of_pages`, `p50_ns`, `p90_ns`, `p99_ns`, `max_ns`; `null` where "
            "files cannot be located",
            "lost_events": "that the kernel could not keep",
            "notes": "sentences: what is missing",
        },
    ),
}
