"""Bounds on the writes of a run: never below the actual volume, and tight enough to be useful."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.cli.progress import written_text
from writecliff.engines.sim import SimEngine
from writecliff.procedures.bounds import Speeds, interface_bytes_per_s, plan_of
from writecliff.procedures.framework import simulate
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.workload.model import KIB, BlockSize, Job, Workload

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("interface", "megabytes_per_s"),
    [
        ("SATA 6Gb/s", 600),
        ("SATA 3.0 Gb/s", 300),
        ("SATA", 600),
        ("SAS 12Gb/s", 1200),
        ("SCSI/SAS", 2400),
        ("NVMe PCIe 3.0 x4", 3938),
        ("NVMe (16.0 GT/s x4)", 7877),
        ("NVMe (2.5 GT/s x1)", 250),
        ("NVMe", 16_000),
        ("virtio", 16_000),
        (None, 16_000),
    ],
)
def test_the_link_is_as_fast_as_its_name_says(
    interface: str | None, megabytes_per_s: float
) -> None:
    assert interface_bytes_per_s(interface) / 1e6 == pytest.approx(megabytes_per_s, abs=1)


@pytest.mark.parametrize(
    ("jobs", "megabytes_per_s"),
    [
        ([Job()], 600),
        ([Job(read_pct=100)], 0),
        ([Job(trim_pct=100)], 0),
        ([Job(read_pct=80)], 0.2 * 1.05 * 600),
        ([Job(rate_bytes_per_s=10e6)], 10.1),
        ([Job(rate_iops=1000, block_sizes=(BlockSize(128 * KIB),))], 132.4),
        ([Job(rate_bytes_per_s=10e6), Job(rate_bytes_per_s=20e6, read_pct=100)], 10.1),
        ([Job(), Job()], 600),
    ],
)
def test_a_load_writes_no_more_than_its_rates_and_mixes_allow(
    jobs: list[Job], megabytes_per_s: float
) -> None:
    rate = Speeds("SATA 6Gb/s").writes(Workload("w", tuple(jobs)))
    assert rate / 1e6 == pytest.approx(megabytes_per_s, rel=0.001)


def test_what_the_engine_knows_of_the_drive_bounds_it() -> None:
    """Check that the bound for a small NVMe drive that writes 40 MB/s is not 44.7 drive fills."""
    drive = SimEngine("nvme-tlc-960").identify()
    test = procedure_from_mapping("wsat", {"end": ["time"], "time_hours": 0.001})
    link, measured = plan_of(test, drive), plan_of(test, drive, lambda load: 40e6)
    assert link.write_bytes_max == pytest.approx(3938e6 * 60, rel=0.001)
    assert measured.write_bytes_likely == 40_000_000 * 60
    # Reads prove nothing about the write speed.
    assert measured.write_bytes_max == link.write_bytes_max
    assert link.write_bytes_likely is None
    text = written_text(measured, replace(drive, capacity_bytes=10**9, rated_tbw_bytes=None))
    assert text.startswith("likely at most 2.4 GB (2.4 drive fills), at twice the speed of its")
    assert written_text(link, drive).startswith("at most 236 GB (0.25 drive fills")


QUICK = {"quick": True}
ROUND = {"round_minutes": 0.1, "histogram": False}
CASES = [
    # Random writes are slower than the link, whose rate is the only known limit.
    ("wsat", {"end": ["time"], "time_hours": 2 / 3600, "sample_seconds": 0.5}, 12),
    ("wsat", {"end": ["capacity"], "drive_fills": 0.5, "sample_seconds": 0.1, **ROUND}, 1.2),
    ("act", {**QUICK, "state": "fill", "load": "1x"}, 1.1),
    (
        "consistency",
        {**QUICK, "range_pcts": [100.0], "seconds": 2.0, "steady_from_seconds": 1.0},
        8,
    ),
    ("hir", {**QUICK, "reading": "36-min", "write_minutes": 1 / 12, "waits_seconds": [5.0]}, 12),
    ("xsr", {**QUICK, "sequential_hours": 0.001, "random_hours": 0.001}, 6),
]


@pytest.mark.parametrize(
    ("name", "options", "factor"), CASES, ids=[f"{case[0]}-{n}" for n, case in enumerate(CASES)]
)
def test_bounds_are_true_and_say_something(
    tmp_path: Path, name: str, options: Mapping[str, Any], factor: float
) -> None:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    procedure = procedure_from_mapping(name, options)
    bound = procedure.plan(engine.identify()).write_bytes_max
    history = simulate(procedure, engine)
    written = sum(row.host_write_bytes for row in history.rows)
    assert bound is not None
    assert written <= bound <= factor * written, (written, bound)
