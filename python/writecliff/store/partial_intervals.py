"""Merging of partial intervals, so that rates cover intervals of nearly full length.

A step ends when its last I/Os complete. Its last interval may therefore be much shorter than other
intervals, which makes the rate meaningless: six I/Os in 300 µs are not 20,000 IOPS. An interval
shorter than half of its step's longest interval is therefore merged into the previous interval, or
if it is the first interval, into the next one. Rates are calculated from sums over the total time,
so no I/O is lost.

Reports, CSV files and the dashboard use merged intervals. The `intervals` table contains the
unmerged intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

# Minimum length of a full interval, relative to the longest interval in its step.
SHARE_LEAST = 0.5


def whole_ends(
    seq: npt.NDArray[np.float64] | npt.NDArray[np.int64], end_ns: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the end of the merged interval that contains each row.

    Args:
        seq: Step number of each row, in ascending order.
        end_ns: End of each row's interval since the step began, ascending within a step; rows for
            several jobs or operations have equal ends.
    """
    if not len(seq):
        return end_ns
    new_step = np.append(True, seq[1:] != seq[:-1])
    begins = np.flatnonzero(new_step | np.append(True, end_ns[1:] != end_ns[:-1]))
    ends, first = end_ns[begins], new_step[begins]
    width = ends - np.where(first, 0.0, np.append(0.0, ends[:-1]))
    step = np.cumsum(first) - 1
    longest = np.maximum.reduceat(width, np.flatnonzero(first))
    partial = width < SHARE_LEAST * longest[step]
    # A group ends before each full interval that follows another full interval in the same step.
    full_before = np.zeros(len(ends), dtype=bool)
    counted = np.cumsum(~partial)
    at_begin = (counted - ~partial)[np.flatnonzero(first)][step]
    full_before[1:] = (counted[:-1] - at_begin[1:] > 0) & ~first[1:]
    group = np.cumsum(first | (~partial & full_before)) - 1
    last = np.append(np.flatnonzero(np.diff(group)), len(group) - 1)
    rows = np.diff(np.append(begins, len(seq)))
    return np.repeat(ends[last][group], rows)
