"""Knee of a sweep over the queue depth."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from writecliff.report.headline import Headline
from writecliff.report.sweep_page import knee_of, knee_text


def knee(rates: Mapping[str, float], *, key: str = "load.queue_depth", kind: str = "sweep") -> Any:
    """Return the knee of runs with these IOPS by depth, half of them reads."""
    members = {depth: SimpleNamespace(settings={key: depth}) for depth in rates}
    folder = SimpleNamespace(kind=kind, members=members)
    halves = {
        depth: [
            Headline(key=f"{way}_iops", label=f"{way}s, IOPS", value=rate / 2, unit="IOPS")
            for way in ("read", "write")
        ]
        for depth, rate in rates.items()
    }
    reports = {depth: SimpleNamespace(quoted=halve) for depth, halve in halves.items()}
    return knee_of(cast(Any, folder), cast(Any, reports))


def test_the_knee_is_the_least_depth_with_nine_tenths_of_the_most() -> None:
    comparison = knee({"1": 100.0, "4": 390.0, "16": 910.0, "64": 1000.0})
    assert (comparison.queue_depth, comparison.iops) == (16, 910.0)
    assert knee_text(comparison).startswith("The knee is at queue depth 16, with 910 IOPS")


def test_other_sweeps_have_no_knee() -> None:
    rates = {"1": 100.0, "4": 390.0, "16": 910.0}
    assert knee(rates, key="load.block_size") is None
    assert knee(rates, kind="suite") is None
    assert knee({"1": 100.0, "4": 390.0}) is None
