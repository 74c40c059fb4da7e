"""Flawed runs whose reports must state their flaws."""

from __future__ import annotations

from pathlib import Path

from tests.support.synthetic_run import Drive, build_run
from writecliff.engines.base import CacheReport, PurgeReport

NEVER_SETTLING = Drive(drift_per_fill=0.35, has_waf=False)


def unsteady_real_run(path: Path) -> Path:
    """Store a run on a real drive without steady state: weak purge, resumed once, shallow queue."""
    return build_run(
        path,
        NEVER_SETTLING,
        simulated=False,
        finish="interrupted",
        steps_per_round=5,
        step_s=372.0,
        changes={
            "purge": PurgeReport("blkdiscard", False, "the drive may keep data mapped"),
            "write_cache": CacheReport(None),
            "deviations": (
                {
                    "option": "queue_depth",
                    "standard": 32,
                    "used": 8,
                    "level": "recommended",
                    "clause": "PTS WSAT",
                },
            ),
            "interruptions": (
                {"after_steps": 10, "resumed": "2026-03-02T16:20:00+00:00", "exact": False},
            ),
            "warnings": (
                "the write cache is unknown, but the test requires it to be off",
                "host CPU was busy: 12 % steal",
            ),
        },
    )


def killed_early_run(path: Path) -> Path:
    """Store a run of three one-second steps that was killed with SIGKILL."""
    return build_run(path, rounds=1, steps_per_round=3, step_s=1.0, finish=None)
