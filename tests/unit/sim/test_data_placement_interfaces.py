"""Data placement interfaces from Python: commands between steps, and the reported results.

The rules of the standards are tested in `crates/ssd/tests`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.engines.data_placement_status import FdpStatistics
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError
from writecliff.workload.model import BlockSize, Job, Workload

MIB = 1 << 20


def engine(folder: Path, section: str) -> SimEngine:
    """Return the small drive, which has 8 streams, with this interface."""
    path = write_small_drive(folder)
    path.write_text(path.read_text() + f"\n[data_placement]\n{section}\n")
    return SimEngine(str(path))


def writes(*streams: int, mib: int = 1) -> Workload:
    jobs = (
        Job(name=f"s{n}", stream=n, volume_bytes=mib * MIB, block_sizes=(BlockSize(4096),))
        for n in streams
    )
    return Workload("writes", tuple(jobs))


def test_nvme_streams_between_steps(tmp_path: Path) -> None:
    drive = engine(tmp_path, 'interface = "nvme-streams"\nopen_streams = 3')
    streams = drive.data_placement.streams
    assert drive.data_placement.directives().enabled == ("identify", "streams")
    assert streams.allocate(9) == 3
    result = drive.run(writes(1, 2, 40, 41))
    assert streams.status() == (1, 2, 40)
    assert streams.parameters().nso == 3
    assert len(result.warnings) == 1 and "(41)" in result.warnings[0]
    assert result.data_placement is not None
    before, after = result.data_placement
    assert after.overflow_by_number == {41: MIB}
    assert after.mapping(before)["overflow_bytes"] == MIB
    assert streams.release(2) and not streams.release(2)
    drive.run(writes(41))
    assert streams.status() == (1, 40, 41)
    streams.release_resources()
    assert streams.status() == ()
    streams.enable(False)
    with pytest.raises(ConfigError, match=r"Invalid Field in Command \(02h\)"):
        streams.allocate(1)
    assert "not enabled" in drive.run(writes(1)).warnings[0]


def test_scsi_streams_between_steps(tmp_path: Path) -> None:
    drive = engine(tmp_path, 'interface = "scsi-streams"\nopen_streams = 2')
    scsi = drive.data_placement.scsi
    assert scsi.limits().maximum_number_of_streams == 2
    assert scsi.open() == 1
    drive.run(writes(2))
    assert scsi.status() == (1, 2) and scsi.status(2) == (2,)
    with pytest.raises(ConfigError, match="MAXIMUM NUMBER OF STREAMS OPEN"):
        scsi.open()
    scsi.close(1)
    with pytest.raises(ConfigError, match="INVALID FIELD IN CDB"):
        scsi.close(1)


def test_fdp_between_steps(tmp_path: Path) -> None:
    drive = engine(tmp_path, 'interface = "nvme-fdp"\nhandles = [0, 2, 4]')
    fdp = drive.data_placement.fdp
    assert fdp.configuration().placement_handles == (0, 2, 4)
    assert fdp.usage() == (True, False, True, False, True, False, False, False)
    fdp.enable_events(1, ["reclaim unit not fully written"])
    assert fdp.enabled_events(1) == ("reclaim unit not fully written",)
    result = drive.run(writes(1))
    blocks = fdp.configuration().reclaim_unit_bytes // 512
    assert fdp.handle_status()[1].available_blocks == blocks - MIB // 512
    assert fdp.update([1, 2]) == 1
    (event,) = fdp.events()
    assert (event.placement_id, event.handle, event.code) == (1, 2, 0)
    assert event.time_ns >= result.elapsed_ns
    with pytest.raises(ConfigError, match="Invalid Field"):
        fdp.update([3])
    with pytest.raises(ConfigError, match="unknown event 'reallocated'") as bad:
        fdp.enable_events(1, ["reallocated"])
    assert "media reallocated" in str(bad.value.hint)
    drive.data_placement.reset()
    status = drive.data_placement.status()
    assert status is not None and status.abandoned_bytes > 0


def test_statistics_of_a_step_are_the_counters(tmp_path: Path) -> None:
    drive = engine(tmp_path, 'interface = "nvme-fdp"')
    full = drive.identify().capacity_bytes
    drive.precondition(Workload("fill", (Job(pattern="sequential", volume_bytes=full),)))
    result = drive.precondition(Workload("churn", (Job(volume_bytes=full),)))
    assert result.data_placement is not None
    before, after = result.data_placement
    step = after.statistics.since(before.statistics)
    assert step.hbmw == full
    assert step.dlwa == result.counters_after.write_amplification_since(result.counters_before)
    assert step.dlwa is not None and step.dlwa > 1.5
    erases = [c.erases_mean for c in (result.counters_before, result.counters_after)]
    assert None not in erases
    assert step.mbe == round((erases[1] - erases[0]) * drive.description.raw_bytes)  # type: ignore[operator]
    assert FdpStatistics(0, 0, 0).dlwa is None


def test_a_saved_drive_keeps_its_streams(tmp_path: Path) -> None:
    drive = engine(tmp_path, 'interface = "nvme-streams"')
    drive.run(writes(5, 9))
    drive.save(tmp_path / "state")
    drive.data_placement.streams.release(5)
    drive.restore(tmp_path / "state")
    assert drive.data_placement.streams.status() == (5, 9)


def test_drives_without_an_interface_are_as_before(tmp_path: Path) -> None:
    drive = SimEngine(str(write_small_drive(tmp_path)))
    assert drive.data_placement.status() is None
    assert drive.run(writes(1)).data_placement is None
    with pytest.raises(ConfigError, match="the drive has none, not nvme-fdp"):
        drive.data_placement.fdp.statistics()
    with pytest.raises(ConfigError, match=r"stream \d+ does not exist; the drive has"):
        drive.run(writes(9))


def test_fewer_streams_keep_what_still_fits_of_the_section(tmp_path: Path) -> None:
    for section, feature in (
        ('interface = "nvme-fdp"\nhandles = [6, 2, 0]', "handles = [2, 0]"),
        ('interface = "nvme-fdp"\nhandles = [6]', "handles = [0]"),
        ('interface = "nvme-streams"\nopen_streams = 7', "open_streams = 3"),
    ):
        fewer = engine(tmp_path, section).device.for_streams(4)
        assert feature in fewer.text
        SimEngine.from_device(fewer)
