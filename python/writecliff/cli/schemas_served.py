"""What the commands of served and attached drives print with `--json`."""

from __future__ import annotations

from collections.abc import Mapping

from writecliff.cli.schema import Schema

SERVED: Mapping[str, Schema] = {
    "serve": Schema(
        "serve",
        {
            "target": "the drive",
            "addresses": "URIs for clients",
            "transports": "their schemes: `nvme+tcp`, `nbd`, `nbd+unix`",
            "slow_down": "wall time per time of the drive; `null` with `--fast`",
            "restored": "whether it began with the state of a file",
            "wall_s": "how long it was served",
            "device_time_ns": "by the drive's clock",
            "operations": "by name (`read`, `write`, `trim`, `flush`): `requests`, `bytes`, "
            "`iops`, `bytes_per_s` by wall time, and `latency` by the drive's clock (`mean_ns`, "
            "`p50_ns`, `p99_ns`, `p99_9_ns`, `max_ns`)",
            "waf": "write amplification; `null` if nothing was written",
            "lifetime": "if it were written all the time at the session's rate and write "
            "amplification, until its flash has its rated cycles: `endurance_bytes`, "
            "`write_bytes_per_s`, `years`, `rated_cycles`; `null` without writes or flash",
            "streams": "for each stream of the drive that was written: `numbers` (identifiers that "
            "clients gave), `requests`, `written_bytes`, `moved_bytes` (by garbage collection and "
            "wear levelling), `waf`, and `endurance_bytes` and `years` of a drive of which all is "
            "written like it; `null` on drives that compress",
            "mixed_moved_bytes": "moved of data of several streams together",
            "lateness": "from when clients should have learnt of completions until these were "
            "sent, by wall time; with `--fast` the whole time of requests in the server",
            "lateness_share": "the larger of its median and mean over that of the drive's latency",
            "counters": "of the drive, since it was new",
            "contents_bytes": "what the data take, of memory or of their file",
            "power_cycles": "power-ups of the drive, as SMART counts them",
            "power_cuts": "each with `wall_ns`, `seed`, `writes` (that the drive had been sent), "
            "`outstanding` (requests without a reply), `pages_open` (of 4 KiB, with changes that "
            "were not durable), `pages_undone` (of these), `undone_as` (why NVMe allows it: "
            "`unacknowledged`, or on a drive with a volatile cache `unflushed`), and if they are "
            "modelled, else `null`: `hold_up_ns` (by capacitors), `rebuild_ns` (from power-up "
            "until it took commands) and `rebuild_parts_ns`: `start`, `checkpoint`, `journal`, "
            "`scan`, `erase`",
            "state": "the file that was written, or `null`",
            "run": "the directory of `--output`, or `null`",
            "report": "its page, or `null`",
            "warnings": "sentences",
        },
    ),
    "attach": Schema(
        "attach",
        {
            "device": "the block device of its first namespace",
            "devices": "those of all its namespaces",
            "nqn": "the qualified name of its subsystem",
        },
    ),
    "power-cut": Schema(
        "power-cut",
        {
            "target": "the drive",
            "addresses": "at which it is served",
            "pid": "the process that serves it",
            "number": "how often its power was cut, this time included",
            "cut": "as each of `power_cuts` of `serve`",
        },
    ),
    "detach": Schema(
        "detach",
        {"devices": "that are gone", "nqn": "the qualified name of its subsystem"},
    ),
}
