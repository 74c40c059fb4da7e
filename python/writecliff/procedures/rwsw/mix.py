"""I/O streams as the load of one job: each I/O is of a stream, drawn by its share.

Sequential streams go on in order, each from a random address; random ones go to the whole range. As
in the composite workload of the PTS, I/Os of all sizes begin on 4 KiB boundaries, but for those of
a sequential stream of smaller ones. What a capture says of addresses is not part of its streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from writecliff.traces.io_capture import StreamShare
from writecliff.workload.model import KIB, BlockSize, OwnBlocks

ALIGN_BYTES = 4 * KIB
DISCLOSURE = "I/Os of every size begin on 4 KiB boundaries; a sequential stream goes on in order"


def job_fields(streams: Sequence[StreamShare]) -> dict[str, object]:
    """The fields of a `Job` with all of `streams`; of one alone with its own access."""
    reads = [one for one in streams if one.stream.operation == "read"]
    writes = [one for one in streams if one.stream.operation == "write"]
    total = sum(one.share_pct for one in streams)
    fields: dict[str, Any] = {
        "read_pct": 100 * sum(one.share_pct for one in reads) / total if writes else 100.0,
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
    """The sizes of one operation, with the part of each that is sequential."""
    shares: dict[int, list[float]] = {}
    for one in streams:
        of_size = shares.setdefault(one.stream.size_bytes, [0.0, 0.0])
        of_size[one.stream.access == "sequential"] += one.share_pct
    return tuple(
        BlockSize(size, random + ordered, 100 * ordered / (random + ordered))
        for size, (random, ordered) in sorted(shares.items())
    )


def largest_bytes(streams: Iterable[StreamShare]) -> int:
    return max(one.stream.size_bytes for one in streams)


def mean_bytes(streams: Iterable[StreamShare]) -> float:
    """Of an I/O; the shares add up to 100 %."""
    return sum(one.stream.size_bytes * one.share_pct / 100 for one in streams)
