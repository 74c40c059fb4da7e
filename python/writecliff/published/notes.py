"""Why figures are missed or not simulated: `notes.toml`, filled in by people who looked.

Notes are shown beside figures and change none of them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from writecliff.errors import ConfigError
from writecliff.published.conditions import preset_of
from writecliff.published.figures import PublishedFigure

SHIPPED = Path(__file__).parent / "notes.toml"
_KEYS = ("device", "metric", "item", "access", "read_pct", "block_kib", "reason")


@dataclass(frozen=True)
class Note:
    """A reason, and which figures it is about: those that agree in all that is not None."""

    reason: str
    device: str | None = None  # as the source calls it, or its preset
    metric: str | None = None
    item: str | None = None
    access: str | None = None
    read_pct: float | None = None
    block_kib: float | None = None

    def about(self, figure: PublishedFigure) -> bool:
        block_kib = None if figure.block_bytes is None else figure.block_bytes / 1024
        pairs = (
            (self.metric, figure.metric),
            (self.item, figure.item),
            (self.access, figure.access),
            (self.read_pct, figure.read_pct),
            (self.block_kib, block_kib),
        )
        names = (None, figure.device, preset_of(figure.device))
        return self.device in names and all(mine in (None, its) for mine, its in pairs)


def note_of(figure: PublishedFigure) -> str:
    """All reasons that are given for a figure; empty where there is none."""
    return "; ".join(note.reason for note in notes() if note.about(figure))


@lru_cache(maxsize=1)
def notes() -> tuple[Note, ...]:
    return read_notes(SHIPPED)


def read_notes(path: Path) -> tuple[Note, ...]:
    """The table array `[[note]]` of a file. Raises ConfigError naming the note by its number."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("note", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    found = []
    for number, table in enumerate(tables, 1):
        unknown = [key for key in table if key not in _KEYS]
        if unknown:
            raise ConfigError(
                f"{path}: note {number} has '{unknown[0]}'", hint=f"known: {', '.join(_KEYS)}"
            )
        if not table.get("reason") or len(table) < 2:
            raise ConfigError(f"{path}: note {number} needs a reason and what it is about")
        found.append(Note(**table))
    return tuple(found)
