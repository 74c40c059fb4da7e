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
            "overhead": "of the capture: `cpu_s`, `cpu_pct` (of one processor), "
            "`peak_rss_bytes`, `processors` of the machine",
            "command": "its words; empty without one",
            "program": "its name, or `null`",
            "exit_code": "of the command; 128 + n for signal n",
            "notes": "sentences: what is missing in the trace",
        },
    ),
}
