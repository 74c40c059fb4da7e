"""Which pages sweeps with something left out use: how differently pages are used.

Sweeps over the same addresses use much the same pages: those that are changed most. The share of
sweeps that uses a page varies more than chance would have it; what is beyond chance is taken for a
beta distribution, and the share of each page for its mean after what was counted (empirical Bayes).
The model has weights of equally many pages each: odds of these shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from writecliff.synthesis.laid_out import union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from writecliff.synthesis.laid_out import LaidOut

WEIGHTS = 16
_PAGE_BYTES = 4096
_PAGES_MAX = 1 << 24  # of a range; others have no weights
_SHARE_MIN = 0.001  # of sweeps that use a page, and that do not
_ERRORS = 3  # standard errors of the variance that chance gives: less beyond it is none
_UNIT = 1000  # weights are in parts of this


def weights_of(trace: LaidOut, sweeps: Sequence[NDArray[np.int64]]) -> tuple[int, ...]:
    """The weights of pages for sweeps of one operation, or none if pages are used alike."""
    pages = trace.range_bytes // _PAGE_BYTES + 1
    if pages > _PAGES_MAX:
        return ()
    used, expected, chance, over = (np.zeros(pages + 1) for _ in range(4))
    for ios in sweeps:
        covered = union(trace.offset[ios], (trace.offset + trace.length)[ios], _PAGE_BYTES)
        begin, end = covered.begin // _PAGE_BYTES, covered.end // _PAGE_BYTES
        span = slice(int(begin[0]), int(end[-1]))
        density = float((end - begin).sum()) / (span.stop - span.start)
        expected[span] += density
        chance[span] += density * (1 - density)
        over[span] += 1
        np.add.at(used, begin, 1)
        np.add.at(used, end, -1)
    used = np.cumsum(used)
    several = over > 1
    beyond_chance = float(((used - expected)[several] ** 2 - chance[several]).sum())
    if beyond_chance <= _ERRORS * np.sqrt(2 * float((chance[several] ** 2).sum())):
        return ()
    variance = beyond_chance / float((expected[several] ** 2).sum())
    mean = float(expected[several].sum() / over[several].sum())
    # How many sweeps the distribution counts for; the least: pages are used always or never.
    total = max(mean * (1 - mean) / (variance * mean**2) - 1, 1e-3)
    shares = (mean * total + used[several]) / (total + over[several])
    middles = (np.arange(WEIGHTS) + 0.5) / WEIGHTS
    shares = np.clip(np.quantile(shares, middles), _SHARE_MIN, 1 - _SHARE_MIN)
    return tuple(np.maximum(np.rint(_UNIT * shares / (1 - shares)), 1).astype(int).tolist())
