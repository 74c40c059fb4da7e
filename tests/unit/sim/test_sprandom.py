"""SPRandom: one pass over the flash instead of many drive fills."""

from __future__ import annotations

from pathlib import Path

from tests.support.small_drive import write_small_drive
from writecliff import Job, SimEngine, Workload
from writecliff.workload.model import Addresses


def test_it_leaves_a_drive_nearly_in_steady_state(tmp_path: Path) -> None:
    device = str(write_small_drive(tmp_path))
    drive = SimEngine(device).description
    size, units = drive.capacity_bytes, drive.reclaim_units or 0
    kept_free = 8  # gc_high_watermark in the device file.
    spare = (drive.mapped_bytes or 0) * (units - kept_free) / units / size - 1

    def waf_after(fill: Job) -> float:
        engine = SimEngine(device)
        engine.precondition(Workload("fill", (fill,)))
        before = engine.counters()
        engine.precondition(Workload("after", (Job(volume_bytes=size // 10),), seed=2))
        after = engine.counters()
        written = [after[name] - before[name] for name in ("nand_write_bytes", "host_write_bytes")]
        return written[0] / written[1]

    steady = waf_after(Job(volume_bytes=8 * size))
    filled = waf_after(Job(volume_bytes=size))
    writes = Addresses("sprandom", spare_pct=100 * spare, regions=50)
    sprandom = waf_after(Job(addresses=writes, volume_bytes=round(size * (1 + spare))))
    assert abs(sprandom - steady) < 0.05 * steady < abs(filled - steady)
