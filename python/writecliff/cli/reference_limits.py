"""Reference page of size and count limits, generated from the program's constants.

`python -m writecliff.cli.reference_limits > docs/reference/limits.md` writes the page. A test
compares the page with the constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from writecliff import _native, input_files
from writecliff.capture import rules, trace
from writecliff.runs import fio_json, unpacking
from writecliff.store import checked
from writecliff.traces import capture_file
from writecliff.workload.fiojob import arithmetic, syntax

_HEAD = """\
# Limits

This page lists the sizes and counts that writecliff accepts, taken from its constants. Unless the
table says otherwise, input beyond a limit is rejected before the run, with exit code 2 and an error
that names the file and the limit.

[Features that are not modelled](../explanation/model.md#features-that-are-not-modelled) describes
the limits of the model in detail.
"""
# Device file keys whose bounds limit the model, each with drive kind, section, key and description.
_MODEL = (
    ("SSDs", "", "user_capacity", "capacity of an SSD"),
    ("SSDs", "flash", "channels", "channels"),
    ("SSDs", "flash", "dies_per_channel", "dies per channel"),
    ("SSDs", "flash", "planes_per_die", "planes per die"),
    ("SSDs", "flash", "blocks_per_plane", "blocks per plane, and reclaim units"),
    ("SSDs", "flash", "pages_per_block", "pages per block"),
    ("SSDs", "ftl", "streams", "streams, or reclaim unit handles"),
    ("SSDs", "data_placement", "reclaim_groups", "reclaim groups"),
    ("SSDs", "link", "queues", "I/O queues"),
    ("SSDs", "link", "queue_depth", "commands per queue"),
    ("Hard disks", "", "user_capacity", "capacity of a hard disk"),
    ("Storage-class memory", "", "user_capacity", "capacity of a storage-class memory drive"),
)
# Features of real drives that the model lacks or supports in only one form.
_FEATURES = [
    ("namespaces of a drive", "1", "not modelled"),
    ("arbitration", "order of arrival", "round robin, weights and urgent classes have no effect"),
    ("zones (ZNS)", "none", "`host_zones` of a workload; the drive does not enforce zones"),
    ("virtual functions (SR-IOV), ANA, reservations", "none", "not modelled"),
    (
        "PCIe, SATA, SAS",
        "a rate in each direction and a time per command",
        "packets, doorbells, interrupts and link errors are not modelled",
    ),
    ("host stack", "none", "run programs on a [served drive](../guides/serve.md)"),
]
# A physical page address of a simulated drive has 32 bits and identifies a 4 KiB slot.
_FLASH_ADDRESSED = 4096 << 32
REFUSED = "rejected"


def limits() -> Mapping[str, list[tuple[str, str, str]]]:
    """Return the limits by subject: description, limit, and consequence of exceeding the limit."""
    native = dict(_native.limits())
    return {
        "Simulated drives": [
            *((text, _upper_bound(*key), REFUSED) for *key, text in _MODEL),
            ("flash of an SSD at full size", f"less than {_size(_FLASH_ADDRESSED)}",
             "[simulated at a reduced scale](../guides/devices.md#very-large-drives), or rejected "
             "by commands that cannot scale the drive"),
        ],
        "The model": _FEATURES,
        "Input files": [
            ("text or TOML file", _size(input_files.TEXT_BYTES_MAX), REFUSED),
            ("pipe, device or folder instead of a file", "not accepted", REFUSED),
            ("digits of an integer", _count(input_files.DIGITS_MAX), REFUSED),
            ("fio JSON output", _size(fio_json.JSON_BYTES_MAX), REFUSED),
            ("streams or time steps of an I/O capture", _count(capture_file.ROWS_MAX), REFUSED),
            ("stream number in rules", _count(rules.STREAMS_MAX - 1), REFUSED),
        ],
        "Workloads": [
            ("concurrent jobs", _count(native["jobs"]), REFUSED),
            ("threads of a job", _count(native["threads"]), REFUSED),
            ("outstanding I/Os per thread", _count(native["queue_depth"]), REFUSED),
            ("memory of all threads of a step", _size(native["threads_bytes"]), REFUSED),
            ("rows of a step's series: intervals × jobs × 3", _count(native["series_rows"]),
             "rejected if the workload gives its duration; otherwise the step ends with an error"),
            ("block size", _size(native["block_bytes"]), REFUSED),
            ("segments of the active range", _count(native["segments"]), REFUSED),
            ("files used in turn", _count(native["files"]), REFUSED),
            ("host zones (`host_zones`)", _count(native["zones"]), REFUSED),
            ("regions of an address distribution", _count(native["regions"]), REFUSED),
        ],
        "fio job files": [
            ("sections", _count(syntax.JOBS_MAX), REFUSED),
            ("characters of an option's value", _count(syntax.VALUE_CHARACTERS_MAX), REFUSED),
            ("included files", _count(syntax.INCLUDED_MAX), REFUSED),
            ("terms of a calculated value", _count(arithmetic.TERMS_MAX), REFUSED),
        ],
        "Traces": [
            ("line of a text trace", _size(native["trace_line_bytes"]), "skipped and counted"),
            ("I/O size", _size(native["trace_io_bytes"]), "skipped and counted"),
            ("unpacked bytes per byte of a packed trace",
             f"{_count(native['trace_unpacked_ratio'])}, and "
             f"{_size(native['trace_unpacked_bytes'])} in any case",
             REFUSED),
            ("file number in a capture", _count(trace.FILES_MAX), REFUSED),
        ],
        "Stored runs": [
            ("job number in a step", _count(checked.JOBS_MAX), "the run counts as damaged"),
            ("count, bytes or nanoseconds", _count(checked.NUMBER_MAX),
             "the run counts as damaged"),
            ("rows of a table", "memory of the machine",
             'rejected: "need 38 GB of memory; this machine has 24 GB"'),
            ("unpacked bytes per byte of a run archive",
             f"{unpacking.RATIO_MAX:,}, and {_size(unpacking.FREE_BYTES)} in any case", REFUSED),
            ("entries of a run archive", _count(unpacking.ENTRIES_MAX), REFUSED),
            ("folders in a path of a run archive", _count(unpacking.DEPTH_MAX), REFUSED),
        ],
        "Served drives": [
            ("connections", _count(native["served_connections"]), "further connections are closed"),
            ("outstanding requests of an NBD client", _count(native["served_nbd_requests"]),
             "further requests are read after an earlier request completes"),
        ],
        "Real drives": [
            ("I/O size of a replayed trace", _size(native["issued_io_bytes"]),
             "skipped and counted"),
        ],
    }  # fmt: skip


def reference() -> str:
    """Return the reference page as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD
    for title, rows in limits().items():
        yield f"## {title}\n\n| subject | at most | beyond the limit |\n|---|---|---|"
        yield from (f"| {what} | {most} | {then} |" for what, most, then in rows)
        yield ""


def _upper_bound(kind: str, section: str, key: str) -> str:
    """Return the upper bound of a device file key."""
    sections = {name: keys for name, _, keys in dict(_native.device_keys())[kind]}
    takes = next(key_takes for name, key_takes, *_ in sections[section] if name == key)
    return takes.rpartition(" to ")[2]


def _count(number: int) -> str:
    return f"{number:,}"


def _size(number: int) -> str:
    for unit, bits in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if number >= 1 << bits:
            return f"{number >> bits:,} {unit}"
    return f"{number:,} B"


if __name__ == "__main__":
    print(reference(), end="")
