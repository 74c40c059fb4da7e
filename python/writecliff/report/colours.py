"""Which colour a series has: the same in all plots of a page.

A series is known by its label. Labels that a page has not seen get colours that it has not used, as
long as there are some, and otherwise those that their plot has not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from writecliff.report.style import MARKERS, SERIES

# Few series get colours far apart; those of one plot get theirs in the order of the scale.
_APART = (0, 5, 3, 7, 1, 6, 2, 4)
_COUNT = len(SERIES)
_page: ContextVar[dict[str, int] | None] = ContextVar("colours of the page", default=None)


@contextmanager
def one_page() -> Iterator[None]:
    """Plots that are drawn inside share their colours; each one outside has its own."""
    token = _page.set({})
    try:
        yield
    finally:
        _page.reset(token)


def looks(labels: Sequence[str]) -> list[int]:
    """A number for each of the series of a plot, for `colour`, `marker` and `again`."""
    known = _page.get()
    known = {} if known is None else known
    new = [label for label in dict.fromkeys(labels) if label not in known]
    here = {known[label] % _COUNT for label in labels if label in known}
    page = {look % _COUNT for look in known.values()}
    free = [place for place in _APART if place not in page]
    if len(free) < len(new):
        free = [place for place in _APART if place not in here] or list(_APART)
    chosen = sorted(free[: len(new)])
    for number, label in enumerate(new):
        again, place = divmod(number, len(chosen))
        known[label] = chosen[place] + _COUNT * again
    found: list[int] = []
    for label in labels:  # two that the page first had in plots of their own may share a colour
        look = known[label]
        while look in found:
            look += _COUNT
        found.append(look)
    return found


def colour(look: int) -> str:
    """The colour of a series."""
    return SERIES[look % _COUNT]


def marker(look: int) -> str:
    """The marker of a series, which distinguishes lines without colours."""
    return MARKERS[look % _COUNT]


def again(look: int) -> bool:
    """Whether the plot has another series of the same colour, which must look different."""
    return look >= _COUNT
