"""Known reasons for errors and missing simulations, written by hand in `notes.toml`.

Notes are shown next to figures, and do not change the figures.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from writecliff.published.conditions import preset_of
from writecliff.published.figures import PublishedFigure

SHIPPED = Path(__file__).parent / "notes.toml"


@dataclass(frozen=True)
class Note:
    """A reason and the figures that it applies to, which match every field that is set."""

    reason: str
    device: str | None = None  # Drive name in the source, or the preset name.
    metric: str | None = None
    item: str | None = None
    access: str | None = None
    read_pct: float | None = None
    block_kib: float | None = None

    def is_about(self, figure: PublishedFigure) -> bool:
        """Return `True` if the note applies to a figure."""
        block_kib = None if figure.block_bytes is None else figure.block_bytes / 1024
        same = (self.block_kib in (None, block_kib)) and all(
            getattr(self, name) in (None, getattr(figure, name))
            for name in ("metric", "item", "access", "read_pct")
        )
        return same and self.device in (None, figure.device, preset_of(figure.device))


def note_of(figure: PublishedFigure) -> str:
    """Return all reasons for a figure as one text, or "" if there are none."""
    return "; ".join(note.reason for note in notes() if note.is_about(figure))


@lru_cache(maxsize=1)
def notes() -> tuple[Note, ...]:
    """Return the shipped notes."""
    return tuple(Note(**table) for table in tomllib.loads(SHIPPED.read_text("utf-8"))["note"])
