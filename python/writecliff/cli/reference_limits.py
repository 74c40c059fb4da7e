"""The reference of limits: what is refused for its size or number, from the constants themselves.

`python -m writecliff.cli.reference_limits > docs/reference/limits.md` writes it; a test holds it.
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

Made from the program's own constants. What exceeds a limit is refused before it runs, in one line
that names the file and the limit, with exit code 2, unless the table says otherwise.
"""
REFUSED = "refused"


def limits() -> Mapping[str, list[tuple[str, str, str]]]:
    """The limits by what they are of: what is limited, the limit, and what happens beyond it."""
    native = dict(_native.limits())
    return {
        "Files that are given": [
            ("text or TOML file", _size(input_files.TEXT_BYTES_MAX), REFUSED),
            ("pipe, device or folder in place of a file", "none", REFUSED),
            ("digits of a whole number", _count(input_files.DIGITS_MAX), REFUSED),
            ("fio's JSON output", _size(fio_json.JSON_BYTES_MAX), REFUSED),
            ("streams, or time steps, of an I/O capture", _count(capture_file.ROWS_MAX), REFUSED),
            ("streams of rules", _count(rules.STREAMS_MAX - 1), REFUSED),
        ],
        "Workloads": [
            ("jobs that run together", _count(native["jobs"]), REFUSED),
            ("threads of a job", _count(native["threads"]), REFUSED),
            ("outstanding I/Os of a thread", _count(native["queue_depth"]), REFUSED),
            ("memory of all threads of a step", _size(native["threads_bytes"]), REFUSED),
            ("rows of a step's series: intervals × jobs × 3", _count(native["series_rows"]),
             "refused where the workload says how long it takes; else the step ends with an error"),
            ("block", _size(native["block_bytes"]), REFUSED),
            ("segments of the active range", _count(native["segments"]), REFUSED),
            ("files in turn", _count(native["files"]), REFUSED),
            ("zones that the host keeps", _count(native["zones"]), REFUSED),
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
            ("an I/O", _size(native["trace_io_bytes"]), "skipped and counted"),
            ("unpacked bytes for each byte of a packed trace",
             f"{_count(native['trace_unpacked_ratio'])}, and "
             f"{_size(native['trace_unpacked_bytes'])} in any case",
             REFUSED),
            ("number of a file in a capture", _count(trace.FILES_MAX), REFUSED),
        ],
        "Stored runs": [
            ("number of a job in a step", _count(checked.JOBS_MAX), "the run counts as damaged"),
            ("a count, or a number of bytes or ns", _count(checked.NUMBER_MAX),
             "the run counts as damaged"),
            ("rows of a table", "the memory of this machine",
             'refused: "need 38 GB of memory; this machine has 24 GB"'),
            ("unpacked bytes for each byte of an archive of runs",
             f"{unpacking.RATIO_MAX:,}, and {_size(unpacking.FREE_BYTES)} in any case", REFUSED),
            ("entries of an archive of runs", _count(unpacking.ENTRIES_MAX), REFUSED),
            ("folders in a name of an archive of runs", _count(unpacking.DEPTH_MAX), REFUSED),
        ],
        "Served drives": [
            ("connections", _count(native["served_connections"]), "closed"),
            ("outstanding requests of an NBD client", _count(native["served_nbd_requests"]),
             "the next one is read when one is answered"),
        ],
        "Real drives": [
            ("an I/O of a replayed trace", _size(native["issued_io_bytes"]), "left out, counted"),
        ],
    }  # fmt: skip


def reference() -> str:
    """The page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD
    for title, rows in limits().items():
        yield f"## {title}\n\n| what | at most | beyond it |\n|---|---|---|"
        yield from (f"| {what} | {most} | {then} |" for what, most, then in rows)
        yield ""


def _count(number: int) -> str:
    return f"{number:,}"


def _size(number: int) -> str:
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if number >= 1 << bits:
            return f"{number >> bits:,} {unit}"
    return f"{number:,} B"


if __name__ == "__main__":
    print(reference(), end="")
