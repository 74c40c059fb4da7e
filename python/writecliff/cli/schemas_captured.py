"""What the captures print with `--json`."""

from __future__ import annotations

from collections.abc import Mapping

from writecliff.cli.schema import Schema

CAPTURED: Mapping[str, Schema] = {
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
