"""What a command prints with `--json`, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Schema:
    """The object that a command prints."""

    command: str
    keys: Mapping[str, str] = field(default_factory=dict)  # with their meaning; of the top level
    more: str = ""  # the section of json.md that describes it further
    version: int = 1
