"""Simulated drives served to the guest under load: file systems, placement, and reconnects."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes import WAIT_LIMIT_S
from tests.support.served_in_guest import connected, kernel_warnings, run, served, write_and_check
from tests.support.small_drive import write_small_drive
from writecliff.serve import DriveServer, ServeOptions

MIB = 1 << 20


@contextmanager
def serving(path: Path, state: Path | None = None) -> Iterator[DriveServer]:
    """Serve the drive `path` without timing."""
    run("modprobe", "nvme-tcp")
    server = DriveServer(f"sim:{path}", ServeOptions(slow_down=None, state=state))
    try:
        yield server
    finally:
        server.end()


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_LIMIT_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def written(server: DriveServer) -> int:
    return server.snapshot().operations["write"].bytes


@pytest.mark.long
def test_file_systems_are_made_on_a_served_drive(
    tools: Callable[[str], Path], tmp_path: Path
) -> None:
    tools("newer")
    before = run("dmesg")
    with serving(write_small_drive(tmp_path)) as server, connected(server) as device:
        for mkfs in (("mkfs.xfs", "-q", "-f"), ("mkfs.btrfs", "-q", "-f")):
            write_and_check(device, mkfs, tmp_path, engine="io_uring")
    assert not kernel_warnings(before)


def test_fio_writes_with_placement_identifiers(
    tools: Callable[[str], Path], tmp_path: Path
) -> None:
    tools("newer")
    path = write_small_drive(tmp_path)
    placement = '[data_placement]\ninterface = "nvme-fdp"\n\n[ftl]'
    path.write_text(path.read_text().replace("[ftl]", placement))
    with serving(path) as server, connected(server) as device:
        node = str(device).replace("nvme", "ng")
        job = ("--name=p", f"--filename={node}", "--ioengine=io_uring_cmd", "--cmd_type=nvme")
        load = ("--rw=randwrite", "--bs=16k", "--size=4m", "--iodepth=8", "--verify=crc32c")
        run("fio", *job, *load, "--fdp=1", "--fdp_pli=1,2", "--verify_fatal=1")
        streams = {stream.number: stream.bytes for stream in server.snapshot().streams}
    assert sorted(streams) == [1, 2]
    assert sum(streams.values()) == 4 * MIB


def test_a_drive_that_is_disconnected_under_load_can_be_connected_again(tmp_path: Path) -> None:
    before = run("dmesg")
    with serving(write_small_drive(tmp_path)) as server:
        at = served(server)
        for _ in range(2):
            start = server.snapshot().operations["read"].requests
            with connected(server, at=at) as device:
                words = ("--name=r", f"--filename={device}", "--ioengine=libaio", "--direct=1")
                load = ("--rw=randread", "--iodepth=16", "--time_based", "--runtime=120")
                reader = subprocess.Popen(
                    ("fio", *words, *load), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                until(lambda: server.snapshot().operations["read"].requests > start + 200)  # noqa: B023
            assert reader.wait(60) != 0
            assert not device.exists()
    assert not kernel_warnings(before, lost=True)


@pytest.mark.parametrize("how", ["power cut", pytest.param("restart", marks=pytest.mark.long)])
def test_io_goes_on_when_the_server_is_back(how: str, tmp_path: Path) -> None:
    """Check that the host reconnects by itself, and that no acknowledged data are lost."""
    before = run("dmesg")
    path, state = write_small_drive(tmp_path), tmp_path / "drive.state"
    with serving(path, state) as server:
        at = served(server)
        with connected(server, "--reconnect-delay", "1", at=at) as device:
            words = ("--name=w", f"--filename={device}", "--ioengine=libaio", "--direct=1")
            load = ("--rw=write", "--bs=16k", "--size=8m", "--rate=,4m", "--iodepth=4")
            verify = ("--verify=crc32c", "--verify_fatal=1", "--do_verify=1")
            writer = subprocess.Popen(
                ("fio", *words, *load, *verify), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            until(lambda: written(server) >= 2 * MIB)
            assert writer.poll() is None
            if how == "power cut":
                server.power_cut()
                output = writer.communicate(timeout=WAIT_LIMIT_S)[0]
            else:
                server.end()
                with serving(path, state) as again:
                    served(again, int(at[0]))
                    output = writer.communicate(timeout=WAIT_LIMIT_S)[0]
    assert writer.returncode == 0, output
    assert not kernel_warnings(before, lost=True)
