"""PTS-C 1.x tests in active-range segments, through fio, on a loop device.

Written ranges are found in the image file under the device, which was a single hole before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from writecliff.engines.fio import FioEngine
from writecliff.procedures.framework import run_procedure
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.report import build_report
from writecliff.report.model import ReportModel
from writecliff.store.rundir import RunDirectory

MIB = 1 << 20
SEGMENTS, SIZE = 16, 2 * MIB  # The segments have 32 MiB in total.
RANGE_PCT = 75.0
RANGE = {
    "edition": "pts-c",
    "active_range_pct": RANGE_PCT,
    "ar_amount_gib": SEGMENTS * SIZE / (1 << 30),
    "ar_segments": SEGMENTS,
}
LOOP = {"step_seconds": 0.1, "max_rounds": 5, "wipc_capacities": 0.0}
TESTS: dict[str, dict[str, object]] = {
    "iops": {**LOOP, "read_pcts": [65.0, 0.0], "block_sizes_kib": [1024.0, 4.0]},
    "lat": {**LOOP, "read_pcts": [100.0, 0.0], "block_sizes_kib": [4.0, 0.5]},
    "wsat": {
        "end": ["time"],
        "time_hours": 1.5 / 3600,
        "sample_seconds": 0.5,
        "round_minutes": 1.5 / 60,
    },
}


def written(image: Path) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each extent of a file that is not a hole."""
    fd, at = os.open(image, os.O_RDONLY), 0
    try:
        while True:
            try:
                begin = os.lseek(fd, at, os.SEEK_DATA)
            except OSError:  # The rest of the file is a hole.
                return
            at = os.lseek(fd, begin, os.SEEK_HOLE)
            yield begin, at
    finally:
        os.close(fd)


# `lat` has the load of `iops` at another queue depth.
@pytest.mark.parametrize("test", ["iops", "wsat", pytest.param("lat", marks=pytest.mark.long)])
def test_only_segments_of_the_active_range_are_written(
    test: str, image: Path, attach: Callable[..., str], no_fio_left: None, tmp_path: Path
) -> None:
    loop = attach(image)
    procedure = procedure_from_mapping(test, {**RANGE, **TESTS[test]})
    with FioEngine.open_device(loop, destroy_serial=loop) as engine:
        capacity = engine.identify().capacity_bytes
        run_procedure(procedure, engine, tmp_path / "run")
    range_bytes = int(capacity * RANGE_PCT / 100)
    start = capacity - range_bytes
    pitch = range_bytes // SEGMENTS
    touched = set()
    for begin, end in written(image):
        number, inside = divmod(begin - start, pitch)
        touched.add(number)
        assert 0 <= inside < inside + end - begin <= SIZE
    assert touched == set(range(SEGMENTS))
    report = build_report(RunDirectory.open(tmp_path / "run"))
    assert dict(report.header.columns[2].rows)["AR Segments"] == str(SEGMENTS)
    assert dict(report.header.columns[3].rows)["AR & Amount"] == "75%, 0.03125 GiB"
    assert any(f"the {SEGMENTS} segments are evenly spaced" in text for text in page_of(report))


def page_of(report: ReportModel) -> list[str]:
    """Return all text of the report outside tables and figures, including its remarks."""
    texts = [*report.disclosures, *report.notes]
    for part in report.sections:
        texts += [cell for table in part.tables for row in table.rows for cell in row]
    return texts
