"""I/O streams of a trace by operation and size, where rare sizes are grouped into classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from writecliff.synthesis.laid_out import FLUSH, READ, TRIM, WRITE
from writecliff.workload.io_model import ModelStreams

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.synthesis.laid_out import LaidOut

LETTERS = "rwft"  # Letters indexed by operation number.
_EXACT = 32  # Maximum number of sizes per operation that have a separate stream.
_UNIT_BYTES = 4096


@dataclass(frozen=True)
class StreamsOf:
    """Streams of a trace, with the stream number of each I/O."""

    model: ModelStreams
    of: NDArray[np.int32]

    @property
    def operation(self) -> NDArray[np.uint8]:
        """Operation number of each stream."""
        return np.array([LETTERS.index(letter) for letter in self.model.operations], np.uint8)

    @property
    def length(self) -> NDArray[np.int64]:
        """I/O size of each stream in bytes, or the mean size for a class of sizes."""
        return np.array(self.model.lengths, np.int64)


def streams_of(trace: LaidOut, *, exact: int = _EXACT) -> StreamsOf:
    """Return a trace's I/O streams.

    The `exact` most frequent sizes of each operation have separate streams. All other sizes are
    grouped by octave, and each group uses its mean size.
    """
    of = np.zeros(len(trace), np.int32)
    letters: list[str] = []
    lengths: list[int] = []
    several: list[int] = []
    for operation in (READ, WRITE, TRIM, FLUSH):
        rows = np.flatnonzero(trace.operation == operation)
        if not len(rows):
            continue
        sizes, which, counts = np.unique(
            trace.length[rows], return_inverse=True, return_counts=True
        )
        classes = _classes(sizes, counts, exact)
        used, number = np.unique(classes, return_inverse=True)
        taken = set(used[used > 0].tolist())
        for class_ in used:
            inside = classes == class_
            lengths.append(_mean_size(sizes[inside], counts[inside], taken))
            several.append(int(inside.sum() > 1))
            letters.append(LETTERS[operation])
        of[rows] = (number.reshape(-1)[which.reshape(-1)] + len(letters) - len(used)).astype(
            np.int32
        )
    return StreamsOf(ModelStreams("".join(letters), tuple(lengths), tuple(several)), of)


def _classes(sizes: NDArray[np.int64], counts: NDArray[np.int64], exact: int) -> NDArray[np.int64]:
    """Return the class of each size, which is the size if it is frequent, otherwise its octave."""
    frequent = np.argsort(-counts, kind="stable")[:exact]
    classes = -1 - np.floor(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    classes[frequent] = sizes[frequent]
    return classes


def _mean_size(sizes: NDArray[np.int64], counts: NDArray[np.int64], taken: set[int]) -> int:
    """Return the mean of several sizes, or the next larger size that is not in `taken`."""
    if len(sizes) == 1:
        return int(sizes[0])
    unit = min(_UNIT_BYTES, int(np.gcd.reduce(sizes)))
    mean = float((sizes * counts).sum() / counts.sum())
    size = max(unit, round(mean / unit) * unit)
    while size in taken:
        size += unit
    return size
