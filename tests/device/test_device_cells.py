"""PTS cells on a loop device: IOPS, MB/s, mean and p99.99 latency must equal fio's own.

Both sets of figures come from the same run: fio's figures from its final JSON, and writecliff's
figures from the values passed to procedures and reports. Composite loads run with sector sizes of
512 and 4096 bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from writecliff.engines.base import StepResult
from writecliff.engines.fio import FioEngine
from writecliff.errors import EngineError
from writecliff.workload.model import Addresses, BlockSize, Job, Workload, Zone

pytest.importorskip("writecliff._native", reason="the native module is not built")

KIB, MIB = 1 << 10, 1 << 20
SECOND = 1_000_000_000
SHORT = SECOND
RESOLUTION = 1 / 128  # Half a bin of either histogram, relative to the value.
pytestmark = pytest.mark.usefixtures("no_fio_left")


def cell(size: int, read_pct: float, threads: int, depth: int, *, sequential: bool = False) -> Job:
    return Job(
        name="cell",
        pattern="sequential" if sequential else "random",
        read_pct=read_pct,
        block_sizes=(BlockSize(size),),
        threads=threads,
        queue_depth=depth,
        duration_ns=SHORT,
    )


CELLS = {
    "RND 4K W": cell(4 * KIB, 0, 4, 32),
    "RND 8K 65/35": cell(8 * KIB, 65, 2, 16),
    "RND 0.5K 50/50": cell(512, 50, 4, 32),
    "RND 4K R QD1": cell(4 * KIB, 100, 1, 1),
    "SEQ 1M W": cell(MIB, 0, 1, 32, sequential=True),
    "SEQ 1M R": cell(MIB, 100, 1, 32, sequential=True),
}


def fios_job(result: StepResult) -> dict[str, Any]:
    document = result.raw["fio"]
    assert isinstance(document, dict)
    (job,) = document["jobs"]
    return job


@pytest.mark.measures  # A busy machine may perform too few I/Os per second for the percentiles.
@pytest.mark.parametrize("job", CELLS.values(), ids=CELLS.keys())
def test_figures_of_a_cell_are_fios_own(loop: str, job: Job) -> None:
    with FioEngine.open_device(loop, destroy_serial=loop) as engine:
        result = engine.run(Workload("cell", (job,)))
    theirs = fios_job(result)
    seconds, compared = result.elapsed_ns / 1e9, 0
    assert set(result.jobs[0].operations) <= {"read", "write"}
    for name, mine in result.jobs[0].operations.items():
        raw = theirs[name]
        # Use the same run time for both figures, because fio rounds it to milliseconds before
        # dividing.
        assert seconds == pytest.approx(raw["runtime"] / 1000, abs=0.0015)
        assert mine.ios / seconds == pytest.approx(raw["iops"], rel=RESOLUTION)
        assert result.iops(name) == pytest.approx(raw["iops"], rel=RESOLUTION)
        assert mine.bytes / seconds == pytest.approx(raw["bw_bytes"], rel=RESOLUTION)
        assert mine.service.mean_ns == pytest.approx(raw["lat_ns"]["mean"], rel=1e-9)
        assert (mine.service.count, mine.service.max_ns) == (raw["total_ios"], raw["lat_ns"]["max"])
        for percent, value in raw["lat_ns"]["percentile"].items():
            ours = mine.service.quantile(float(percent) / 100)
            # fio reports a figure even if there are too few samples beyond it.
            if ours.value_ns is None:
                assert raw["total_ios"] * (1 - float(percent) / 100) < 10
                continue
            # writecliff reports the upper end of the bin (or the maximum in the bin), but fio
            # reports its midpoint.
            assert ours.value_ns == pytest.approx(value, rel=RESOLUTION)
            compared += 1
    assert compared >= (3 if job.block_sizes[0].bytes <= 8 * KIB else 1)


SIZES = (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 8, 16, 32, 64)
SHARES = (4, 1, 1, 1, 1, 1, 1, 67, 10, 7, 3, 3)
MEAN_KIB = sum(size * share for size, share in zip(SIZES, SHARES, strict=True)) / 100


def composite(ios: int, *, read_pct: float = 40) -> Job:
    return Job(
        name="composite",
        read_pct=read_pct,
        block_sizes=tuple(
            BlockSize(round(size * KIB), share) for size, share in zip(SIZES, SHARES, strict=True)
        ),
        align_bytes=512,
        addresses=Addresses("zoned", zones=(Zone(50, 5), Zone(30, 15), Zone(20, 80))),
        queue_depth=8,
        ios=ios,
    )


@pytest.mark.parametrize("sector", [512, 4096])
def test_the_composite_load_runs_on_any_sector(
    attach: Callable[..., str], image: Path, sector: int
) -> None:
    loop = attach(image, "--sector-size", str(sector))
    with FioEngine.open_device(loop, destroy_serial=loop) as engine:
        assert engine.identify().sector_bytes == sector
        result = engine.run(Workload("ecw", (composite(20_000),)))
        if sector == 4096:
            with pytest.raises(EngineError, match="not a multiple of the target's 4096-byte"):
                engine.run(Workload("half", (cell(512, 0, 1, 1),)))
    reads, writes = result.total("read"), result.total("write")
    assert reads[0] + writes[0] == 20_000
    # The expected value is 40 %, within five standard deviations.
    assert reads[0] == pytest.approx(8_000, abs=350)
    raised = [text for text in result.warnings if "were rounded up" in text]
    assert len(raised) == (1 if sector == 4096 else 0)
    mean = (reads[1] + writes[1]) / 20_000 / KIB
    # 10 % of the I/Os grow to 4 KiB. The standard deviation of the mean of 20,000 I/Os is 0.08 KiB.
    expected = (
        MEAN_KIB
        if sector == 512
        else MEAN_KIB
        + sum(
            (4 - size) * share / 100 for size, share in zip(SIZES, SHARES, strict=True) if size < 4
        )
    )
    assert mean == pytest.approx(expected, abs=0.45)


@pytest.mark.parametrize("sector", [512, 4096])
def test_its_zones_take_their_shares(attach: Callable[..., str], image: Path, sector: int) -> None:
    """Check the locations of 600 writes: the blocks of the file that are no longer holes."""
    loop = attach(image, "--sector-size", str(sector))
    with FioEngine.open_device(loop, destroy_serial=loop) as engine:
        engine.run(Workload("ecw", (composite(600, read_pct=0),)))
    size = os.stat(image).st_size
    blocks = [at // 4096 * 4096 for at in written_sectors(loop)]
    hot = sum(at < size * 0.05 for at in set(blocks))
    middle = sum(size * 0.05 <= at < size * 0.2 for at in set(blocks))
    cold = sum(at >= size * 0.2 for at in set(blocks))
    # Few of 300 writes to the 1,638 blocks in the hot zone overlap. With mixed sizes, fractions are
    # approximate.
    assert hot > middle > 0
    assert hot > cold > 0
    assert max(blocks) > size * 0.6
    if sector == 512:
        assert any(
            at % 4096 for at in written_sectors(loop)
        )  # Not all offsets are multiples of 4 KiB.


def written_sectors(device: str) -> list[int]:
    data = Path(device).read_bytes()
    blank = bytes(512)
    return [at for at in range(0, len(data), 512) if data[at : at + 512] != blank]
