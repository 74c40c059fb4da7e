"""The I/O of one step of the way: how much, in which sizes, in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
_SIZES_SHOWN = 8
_STREAMS = 8  # interleaved sequential streams that are recognised
_FILE_SPAN = 1 << 44  # apart from each other, addresses of several files are one space


@dataclass(frozen=True)
class Traffic:
    """I/Os of one direction."""

    count: int = 0
    bytes: int = 0
    median_bytes: int = 0
    sequential_share: float | None = None  # None without I/Os
    sizes: Mapping[int, int] = field(default_factory=dict)  # the most frequent, with their counts

    @property
    def mean_bytes(self) -> float | None:
        return self.bytes / self.count if self.bytes else None

    def mapping(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "bytes": self.bytes,
            "mean_bytes": self.mean_bytes,
            "median_bytes": self.median_bytes if self.bytes else None,
            "sequential_share": self.sequential_share,
            "sizes": [{"bytes": size, "count": count} for size, count in self.sizes.items()],
        }


def traffic(offset_bytes: Numbers, length_bytes: Numbers, file: Numbers | None = None) -> Traffic:
    """Sum I/Os up, which are in the order of their times; `file`: the file of each."""
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
    """The share of I/Os that begin where one of the last few ended."""
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
    """All I/O of one step of the way."""

    name: str
    reads: Traffic = Traffic()
    writes: Traffic = Traffic()
    discards: Traffic = Traffic()
    syncs: int = 0  # fsync and the like; flushes of a drive

    def mapping(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "reads": self.reads.mapping(),
            "writes": self.writes.mapping(),
            "discards": self.discards.mapping(),
            "syncs": self.syncs,
        }
