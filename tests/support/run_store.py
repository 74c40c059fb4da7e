"""Small runs for tests of the run store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.support.synthetic_run import Drive, build_run

PAST_NS = 1_700_000_000_000_000_000


def make_run(
    path: Path, *, finish: str | None = "complete", iops: float = 11_800.0, **changes: Any
) -> Path:
    """Store a write saturation run of twelve two-second steps on a small drive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drive = Drive(capacity_bytes=120_000_000_000, saturated_iops=iops, cliff_fills=0.0,
                  settling_fills=1e-6)  # fmt: skip
    return build_run(
        path, drive, finish=finish, rounds=6, steps_per_round=2, step_s=2.0, changes=changes
    )


def aged(root: Path) -> Path:
    """Backdate the files of a store and return its path.

    The catalogue does not trust the modification time of a file that has just changed.
    """
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            _set_back(os.path.join(folder, name))
        _set_back(folder)
    return root


def _set_back(path: str) -> None:
    about = os.stat(path)
    os.utime(path, ns=(PAST_NS + about.st_ino, PAST_NS + about.st_ino))
