"""Names of drive operations, for results and texts."""

from __future__ import annotations

from typing import Final

FLUSH: Final = "flush"
"""An operation that moves no data and does not count as an I/O."""


def plural_of(operation: str) -> str:
    """Return an operation's plural for texts.

    >>> plural_of("flush"), plural_of("read, service time")
    ('flushes', 'reads, service time')
    """
    name, comma, rest = operation.partition(",")
    return f"{name}{'es' if name == FLUSH else 's'}{comma}{rest}"
