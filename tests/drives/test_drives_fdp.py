"""Flexible data placement: the probe, streams as placement handles, and statistics."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.guest_drives import Drive
from writecliff.engines.base import StepResult
from writecliff.engines.blockdev.data_placement_probe import probe, verdict
from writecliff.engines.blockdev.nvme import fdp
from writecliff.engines.blockdev.nvme.drive import NvmeDrive
from writecliff.engines.blockdev.topology import System, device_at
from writecliff.engines.fio import FioEngine
from writecliff.errors import EngineError
from writecliff.workload.model import BlockSize, Job, Workload

MIB = 1 << 20
UNIT = 8 * MIB
NEW_KERNEL = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 16)


def run(drive: Drive, *streams: int) -> StepResult:
    """Write 2 MiB to each stream."""
    jobs = tuple(
        Job(
            name=f"s{stream}",
            block_sizes=(BlockSize(65536),),
            read_pct=0,
            volume_bytes=2 * MIB,
            stream=stream,
        )
        for stream in streams
    )
    with FioEngine.open_device(drive.path, destroy_serial=drive.serial) as engine:
        engine.purge()
        return engine.run(Workload("streams", jobs))


def taken(result: StepResult) -> dict[int, int]:
    """Return the bytes that the step wrote to each handle, modulo the reclaim unit size."""
    assert result.data_placement is not None
    before, after = result.data_placement
    filled = {
        handle.placement_id: (then.available_blocks - handle.available_blocks) * 512 % UNIT
        for then, handle in zip(before.handles, after.handles, strict=True)
    }
    return {handle: size for handle, size in filled.items() if size}


def test_the_probe(nvme_fdp: Drive, generation: str) -> None:
    capabilities = probe(nvme_fdp.path)
    assert (capabilities.fdp_handles, capabilities.disk) == (8, nvme_fdp.name)
    assert "FDP: 8 placement handles" in " ".join(verdict(capabilities))
    if NEW_KERNEL:
        assert (capabilities.max_write_streams, capabilities.write_stream_granularity_bytes) == (
            8,
            UNIT,
        )
        assert "passes 8 write streams to the drive" in " ".join(verdict(capabilities))


def test_a_plain_drive(nvme: Drive) -> None:
    capabilities = probe(nvme.path)
    assert (capabilities.fdp_handles, capabilities.max_write_streams or 0) == (0, 0)


def test_streams_arrive_as_placement_handles(nvme_fdp: Drive, tools: Callable[..., Path]) -> None:
    tools("newer")
    result = run(nvme_fdp, 1, 5, 7)
    assert taken(result) == {1: 2 * MIB, 5: 2 * MIB, 7: 2 * MIB}
    assert any("placement handles of the drive, by NVMe passthrough" in w for w in result.warnings)


def test_streams_arrive_as_hints(nvme_fdp: Drive, tools: Callable[..., Path]) -> None:
    """Use the kernel's write streams with a fio version too old for passthrough."""
    if not NEW_KERNEL:
        pytest.skip("write streams came with Linux 6.16")
    tools("older")
    result = run(nvme_fdp, 1, 4)
    assert taken(result) == {1: 2 * MIB, 4: 2 * MIB}
    assert any("streams are write hints" in w for w in result.warnings)


def test_an_old_fio_says_what_is_missing(nvme_fdp: Drive, tools: Callable[..., Path]) -> None:
    tools("older")
    stream = 5 if NEW_KERNEL else 1
    message = "write streams by hints up to 4" if NEW_KERNEL else "fio-3.33 cannot place writes"
    with pytest.raises(EngineError, match=message):
        run(nvme_fdp, stream)


def test_statistics_and_waf_of_a_step(nvme_fdp: Drive, generation: str) -> None:
    job = Job(name="w", block_sizes=(BlockSize(65536),), read_pct=0, volume_bytes=20 * MIB)
    with FioEngine.open_device(nvme_fdp.path, destroy_serial=nvme_fdp.serial) as engine:
        result = engine.run(Workload("w", (job,)))
        health = engine.health()
    assert result.data_placement is not None
    before, after = result.data_placement
    grown = after.statistics.since(before.statistics)
    assert grown.hbmw == 20 * MIB
    assert result.waf == pytest.approx(grown.dlwa) and result.waf is not None
    assert 1 <= result.waf < 1.2
    assert after.limit == 8 and len(after.handles) == 8
    assert health is not None and health["nand_write_source"] == "FDP statistics (log 22h)"


def test_events_of_the_drive(nvme_fdp: Drive) -> None:
    """Release a reclaim unit before it is full; the drive logs the events that the run enabled."""
    system = System()
    drive = NvmeDrive(system, device_at(system, Path(nvme_fdp.path)))
    with FioEngine.open_device(nvme_fdp.path, destroy_serial=nvme_fdp.serial) as engine:
        job = Job(name="w", block_sizes=(BlockSize(65536),), read_pct=0, volume_bytes=MIB)
        engine.run(Workload("w", (job,)))  # The job has no stream, so it uses the default handle.
        before = fdp.read_status(drive)
        drive.command("fdp", "update", nvme_fdp.path, "--pids=0")
        after = fdp.read_status(drive)
    assert before is not None and after is not None
    assert after.events_since(before) == {"reclaim unit not fully written": 1}
    (event,) = after.mapping(before)["log"]
    assert (event["placement_id"], event["namespace"], event["handle"]) == (0, 1, 0)
    assert after.handles[0].available_blocks == UNIT // 512
