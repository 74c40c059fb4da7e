"""The bench itself: every drive is present, has its properties, and can be written, pulled and slowed."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guest.qmp import Qmp, QmpError
from tests.support.guest_drives import Drive, drives_by_serial, pull
from tests.support.processes import WAIT_LIMIT_S
from writecliff.engines.fio import FioEngine
from writecliff.workload.model import Job, Workload

SECOND = 1_000_000_000
MIB = 1 << 20


def run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_four_drives_are_found_and_identified(drive: Drive) -> None:
    with FioEngine.open_device(drive.path, destroy_serial=drive.serial) as engine:
        identity = engine.identify()
    assert identity.capacity_bytes == drive.size_bytes == 128 * MIB
    assert identity.serial == drive.serial


def test_each_drive_takes_a_short_fio_step(drive: Drive) -> None:
    job = Job(pattern="random", ios=20)
    with FioEngine.open_device(drive.path, destroy_serial=drive.serial) as engine:
        result = engine.run(Workload("smoke", (job,)))
    assert result.total()[0] == 20


@pytest.mark.parametrize(
    ("generation", "nvme_cli", "fio"),
    [("older", "2.3", "fio-3.33"), ("newer", "2.16", "fio-3.41")],
)
def test_the_tools_are_of_two_generations(
    generation: str, nvme_cli: str, fio: str, tools: Callable[[str], Path], nvme: Drive
) -> None:
    folder = tools(generation)
    assert f"nvme version {nvme_cli} " in run("nvme", "version")
    assert run("fio", "--version").strip() == fio
    identity = json.loads(run("nvme", "id-ctrl", nvme.controller, "--output-format=json"))
    assert identity["sn"].strip() == nvme.serial
    for tool in ("smartctl", "hdparm", "sg_inq"):
        assert (folder / tool).exists()


def test_the_plain_drive_has_a_cache_and_several_formats(nvme: Drive) -> None:
    assert json.loads(run("nvme", "id-ctrl", nvme.controller, "-o", "json"))["vwc"] & 1
    formats = json.loads(run("nvme", "id-ns", nvme.path, "-o", "json"))["lbafs"]
    assert {(lba_format["ds"], lba_format["ms"]) for lba_format in formats} >= {
        (9, 0),
        (12, 0),
        (9, 8),
    }


def test_the_other_drive_has_placement_handles(nvme_fdp: Drive) -> None:
    attributes = json.loads(run("nvme", "id-ctrl", nvme_fdp.controller, "-o", "json"))["ctratt"]
    assert attributes & (1 << 19)


def test_the_scsi_drive_has_permanent_streams(scsi: Drive) -> None:
    counted = Path("/sys/bus/pseudo/drivers/scsi_debug/group_number_stats")
    assert counted.exists()
    assert "permanent stream count = 5" in run("dmesg")


def test_a_drive_comes_and_goes(plug: Callable[..., Drive], qmp: Qmp) -> None:
    drive = plug("QMORE001", size_bytes=16 * MIB)
    assert drive.size_bytes == 16 * MIB
    pull(qmp, drive.identifier)
    deadline = time.monotonic() + WAIT_LIMIT_S
    while "QMORE001" in drives_by_serial():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_drive_can_be_slowed(plug: Callable[..., Drive], qmp: Qmp) -> None:
    drive = plug("QSLOW001", size_bytes=16 * MIB)
    zero = dict.fromkeys(("bps", "bps_rd", "bps_wr", "iops_rd", "iops_wr"), 0)
    qmp.execute("block_set_io_throttle", id=drive.identifier, iops=50, **zero)
    job = Job(pattern="random", duration_ns=2 * SECOND, queue_depth=4)
    with FioEngine.open_device(drive.path, destroy_serial=drive.serial) as engine:
        assert engine.run(Workload("slow", (job,))).iops() < 150


def test_the_monitor_says_what_is_wrong(qmp: Qmp) -> None:
    with pytest.raises(QmpError, match="device_del: Device 'nothing' not found"):
        qmp.execute("device_del", id="nothing")


@pytest.mark.parametrize(
    "module",
    ["dm-flakey", "dm-delay", "dm-log-writes", "dm-multipath", "dm-crypt", "bcache", "raid1"]
    + ["ext4", "xfs", "btrfs", "loop", "null_blk", "nvmet", "nvme-loop", "nbd", "ublk_drv"],
)
def test_modules_can_be_loaded(module: str) -> None:
    run("modprobe", "--dry-run", module)
