"""I/O streams as the load of one job, where each I/O is assigned to a stream at random.

Sequential streams continue in order, each from a random address, and random streams access the
whole range. As in the composite workload of the PTS, I/Os of all sizes start on 4 KiB boundaries,
except for sequential streams of smaller I/Os. Streams do not include a capture's addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from writecliff.traces.io_capture import StreamShare
from writecliff.workload.model import KIB, BlockSize, OwnBlocks

ALIGN_BYTES = 4 * KIB
DISCLOSURE = "I/Os of every size start on 4 KiB boundaries; a sequential stream continues in order"


def job_fields(streams: Sequence[StreamShare]) -> dict[str, object]:
    """Return the fields of a `Job` for all `streams`, where a single stream retains its access."""
    reads = [share for share in streams if share.stream.operation == "read"]
    writes = [share for share in streams if share.stream.operation == "write"]
    total = sum(share.share_pct for share in streams)
    fields: dict[str, Any] = {
        "read_pct": 100 * sum(share.share_pct for share in reads) / total if writes else 100.0,
        "pattern": "random",
        "block_sizes": _sizes(reads or writes),
        "align_bytes": ALIGN_BYTES,
    }
    if len(streams) == 1:
        (only,) = streams
        if only.stream.access == "sequential":
            return {
                **fields,
                "pattern": "sequential",
                "block_sizes": (BlockSize(only.stream.size_bytes),),
                "align_bytes": None,
            }
    if reads and writes:
        fields["writes"] = OwnBlocks(_sizes(writes), ALIGN_BYTES)
    return fields


def _sizes(streams: Iterable[StreamShare]) -> tuple[BlockSize, ...]:
    """Return an operation's block sizes, each with its fraction of sequential I/Os."""
    shares: dict[int, list[float]] = {}
    for share in streams:
        of_size = shares.setdefault(share.stream.size_bytes, [0.0, 0.0])
        of_size[share.stream.access == "sequential"] += share.share_pct
    return tuple(
        BlockSize(size, random + ordered, 100 * ordered / (random + ordered))
        for size, (random, ordered) in sorted(shares.items())
    )


def largest_bytes(streams: Iterable[StreamShare]) -> int:
    """Return the largest I/O size of the streams."""
    return max(share.stream.size_bytes for share in streams)


def mean_bytes(streams: Iterable[StreamShare]) -> float:
    """Return the mean I/O size of streams whose percentages add up to 100 %."""
    return sum(share.stream.size_bytes * share.share_pct / 100 for share in streams)
