"""How far the work on a trace is. The command line shows it."""

from __future__ import annotations


class TraceProgress:
    """Receives how far the work on a trace is. Override the methods of interest; the others do
    nothing."""

    def part(self, what: str) -> None:
        """Work begins that has a pace and a share of its own, such as "laying the trace out"."""

    def read(self, ios: int, share: float) -> None:
        """So many I/Os of a trace have been read, and this share of its file, 0 to 1."""

    def done(self, share: float) -> None:
        """The share of the part that is done, 0 to 1."""


UNSEEN = TraceProgress()
"""Shows nothing."""
