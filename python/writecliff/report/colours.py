"""Series colours, which give a series the same colour in all plots on a page.

A series is identified by its label. New labels get colours that the page does not use yet. If the
page uses all colours, new labels get colours that the plot does not use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from writecliff.report.style import MARKERS, SERIES

# If a plot has few series, their colours are far apart. The series in a plot receive colours in the
# order of the colour scale.
_DISTANT_FIRST = (0, 5, 3, 7, 1, 6, 2, 4)
_COUNT = len(SERIES)
_page: ContextVar[dict[str, int] | None] = ContextVar("colours of the page", default=None)


@contextmanager
def one_page() -> Iterator[None]:
    """Share colours between the plots drawn within the block.

    A plot outside such a block has its own colours.
    """
    token = _page.set({})
    try:
        yield
    finally:
        _page.reset(token)


def looks(labels: Sequence[str]) -> list[int]:
    """Return a number for each series in a plot, for use in `colour`, `marker` and `again`."""
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
    for label in labels:  # Labels in different plots may share a colour.
        look = seen[label]
        while look in numbers:
            look += _COUNT
        numbers.append(look)
    return numbers


def colour(look: int) -> str:
    """Return a series' colour."""
    return SERIES[look % _COUNT]


def marker(look: int) -> str:
    """Return a series' marker, which distinguishes lines independently of colour."""
    return MARKERS[look % _COUNT]


def again(look: int) -> bool:
    """Return `True` if another series in the plot has the same colour.

    Two series with the same colour must differ in another way.
    """
    return look >= _COUNT
