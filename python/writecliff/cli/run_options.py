"""The options of a run as such: where it is kept, whether it goes on, whether it starts at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where the run is kept, and how much is said."""

    output: Path | None = None
    """Directory of the run; it must not exist or be empty (default: runs/TEST-TARGET-TIME)."""

    resume: Path | None = None
    """Go on with the unfinished run in this directory, with its options."""

    dry_run: bool = False
    """Show what would be done and how much would be written; touch nothing."""

    quiet: bool = False
    """No progress on stderr."""


NEW_RUN = RunOptions()
