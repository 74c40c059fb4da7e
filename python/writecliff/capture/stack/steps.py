"""Volume, sizes and order of the I/Os at a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
_SIZES_SHOWN = 8
_STREAMS = 8  # Maximum number of interleaved sequential streams that are recognised.
_FILE_SPAN = 1 << 44  # Distance between files in a common address space.


@dataclass(frozen=True)
class Traffic:
    """I/Os in one direction."""

    count: int = 0
    bytes: int = 0
    median_bytes: int = 0
    # Fraction of sequential I/Os; `None` if there are no I/Os.
    sequential_share: float | None = None
    sizes: Mapping[int, int] = field(default_factory=dict)  # Counts of the most frequent I/O sizes.

    @property
    def mean_bytes(self) -> float | None:
        """Mean I/O size in bytes, or `None` if there are no I/Os."""
        return self.bytes / self.count if self.bytes else None

    def mapping(self) -> dict[str, Any]:
        """Return the traffic in the format of `writecliff capture --stack --json`."""
        return {
            "count": self.count,
            "bytes": self.bytes,
            "mean_bytes": self.mean_bytes,
            "median_bytes": self.median_bytes if self.bytes else None,
            "sequential_share": self.sequential_share,
            "sizes": [{"bytes": size, "count": count} for size, count in self.sizes.items()],
        }


def traffic(offset_bytes: Numbers, length_bytes: Numbers, file: Numbers | None = None) -> Traffic:
    """Summarise I/Os given in time order, where `file` is the file of each I/O."""
    count = len(length_bytes)
    if not count:
        return Traffic()
    sizes, counts = np.unique(length_bytes, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:_SIZES_SHOWN]
    return Traffic(
        count=count,
        bytes=int(length_bytes.sum()),
        median_bytes=int(np.percentile(length_bytes, 50, method="inverted_cdf")),
        sequential_share=_sequential(offset_bytes, length_bytes, file),
        sizes={int(sizes[at]): int(counts[at]) for at in most},
    )


def _sequential(offset: Numbers, length: Numbers, file: Numbers | None) -> float:
    """Return the fraction of I/Os that start at the end of a previous I/O."""
    begin = offset.astype(np.int64)
    if file is not None:
        begin = begin + file.astype(np.int64) * _FILE_SPAN
    end = begin + length.astype(np.int64)
    follows = np.zeros(len(begin), bool)
    for back in range(1, min(_STREAMS, len(begin) - 1) + 1):
        follows[back:] |= begin[back:] == end[:-back]
    return float(follows.mean())


@dataclass(frozen=True)
class Step:
    """Reads and writes at a layer."""

    name: str
    reads: Traffic = Traffic()
    writes: Traffic = Traffic()
    discards: Traffic = Traffic()
    syncs: int = 0  # Number of fsync and similar calls, or of drive flushes.

    def mapping(self) -> dict[str, Any]:
        """Return the layer in the format of `writecliff capture --stack --json`."""
        return {
            "name": self.name,
            "reads": self.reads.mapping(),
            "writes": self.writes.mapping(),
            "discards": self.discards.mapping(),
            "syncs": self.syncs,
        }
