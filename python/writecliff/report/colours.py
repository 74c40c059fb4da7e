"""Colours of series: a series has the same colour in all plots of a page.

A label identifies a series. New labels get colours that the page has not used yet; if none are
left, colours that the plot has not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from writecliff.report.style import MARKERS, SERIES

# A few series get distant colours; those of one plot get theirs in the order of the scale.
_DISTANT_FIRST = (0, 5, 3, 7, 1, 6, 2, 4)
_COUNT = len(SERIES)
_page: ContextVar[dict[str, int] | None] = ContextVar("colours of the page", default=None)


@contextmanager
def one_page() -> Iterator[None]:
    """Share colours between the plots that are drawn in the block.

    Each plot outside such a block has its own colours.
    """
    token = _page.set({})
    try:
        yield
    finally:
        _page.reset(token)


def looks(labels: Sequence[str]) -> list[int]:
    """Return a number for each series of a plot, for `colour`, `marker` and `again`."""
    seen = _page.get()
    seen = {} if seen is None else seen
    new = [label for label in dict.fromkeys(labels) if label not in seen]
    here = {seen[label] % _COUNT for label in labels if label in seen}
    page = {look % _COUNT for look in seen.values()}
    free = [place for place in _DISTANT_FIRST if place not in page]
    if len(free) < len(new):
        free = [place for place in _DISTANT_FIRST if place not in here] or list(_DISTANT_FIRST)
    chosen = sorted(free[: len(new)])
    for number, label in enumerate(new):
        again, place = divmod(number, len(chosen))
        seen[label] = chosen[place] + _COUNT * again
    numbers: list[int] = []
    for label in labels:  # labels from different plots may share a colour
        look = seen[label]
        while look in numbers:
            look += _COUNT
        numbers.append(look)
    return numbers


def colour(look: int) -> str:
    """Return the colour of a series."""
    return SERIES[look % _COUNT]


def marker(look: int) -> str:
    """Return the marker of a series, which distinguishes lines without colours."""
    return MARKERS[look % _COUNT]


def again(look: int) -> bool:
    """Return `True` if another series of the plot has the same colour.

    Such a series must look different.
    """
    return look >= _COUNT
