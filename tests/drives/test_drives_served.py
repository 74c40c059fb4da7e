"""A simulated drive served to the guest kernel's NVMe/TCP initiator and NBD client."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.served_in_guest import HOST, connected, kernel_warnings, run, write_and_check
from tests.support.small_drive import write_small_drive
from writecliff.cli.main import main
from writecliff.lab.bench.serve import DEPTHS
from writecliff.lab.bench.serve import run as run_bench
from writecliff.serve import DriveServer, ServeOptions


def command(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "writecliff", *words)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DriveServer]:
    run("modprobe", "nvme-tcp")
    options = ServeOptions(slow_down=None, state=tmp_path / "drive.state")
    server = DriveServer(f"sim:{write_small_drive(tmp_path)}", options)
    yield server
    server.end()


def written_zeros(journal: Path) -> int:
    """Return the bytes of Write Zeroes in a server's journal (`crates/serve/src/journal.rs`)."""
    records, position, total = journal.read_bytes(), 8, 0
    while position < len(records):
        end = position + 1 + records[position]
        fields = iter(records[position + 1 : end])
        is_change, is_zeros = next(fields) == 1, records[end - 1] == 1
        if is_change and next(fields) == 1 and is_zeros:  # The record is a write.
            _varint(fields)  # Skip the offset.
            total += _varint(fields)
        position = end
    return total


def _varint(fields: Iterator[int]) -> int:
    """Decode an integer of `postcard`: 7 bits per byte, least significant first."""
    value = shift = 0
    for byte in fields:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return value


@pytest.mark.parametrize(
    "how", [(), ("--hdr-digest", "--data-digest"), ("--disable-sqflow",)], ids=" ".join
)
def test_the_guest_uses_a_served_drive(
    server: DriveServer, generation: str, how: tuple[str, ...], tmp_path: Path
) -> None:
    before = run("dmesg")
    with connected(server, *how) as device:
        listed = json.loads(run("nvme", "id-ns", str(device), "-o", "json"))
        assert listed["nsze"] * 512 == 960_000_000
        write_and_check(device, ("mkfs.ext4", "-q", "-F"), tmp_path)
        smart = json.loads(run("nvme", "smart-log", str(device), "-o", "json"))
        written = server.snapshot().counters.host_write_bytes
        # Data Units Written does not count Write Zeroes, which newer kernels use for mkfs.
        data = written - written_zeros(tmp_path / "drive.state.journal")
        assert data >= 5_000_000
        assert 0 <= int(smart["data_units_written"]) * 512_000 - data < 512_000
        run("nvme", "format", str(device), "-l", "1", "--force")
        assert run("blockdev", "--getss", str(device)).strip() == "4096"
    assert not kernel_warnings(before)


def test_the_guest_uses_a_drive_over_nbd(tmp_path: Path) -> None:
    """Use the drive over two connections of the kernel's NBD client."""
    run("modprobe", "nbd")
    before = run("dmesg")
    device, socket = Path("/dev/nbd1"), tmp_path / "drive.sock"
    server = DriveServer(f"sim:{write_small_drive(tmp_path)}", ServeOptions(slow_down=None))
    try:
        server.listen_nbd(f"unix:{socket}")
        run("nbd-client", "-unix", str(socket), str(device), "-C", "2")
        try:
            assert run("blockdev", "--getsize64", str(device)).strip() == "960000000"
            folder = tmp_path / "mounted"
            folder.mkdir()
            write_and_check(device, ("mkfs.xfs", "-q", "-f"), folder)
        finally:
            run("nbd-client", "-d", str(device))
        operations = server.snapshot().operations
        assert operations["write"].bytes >= 5_000_000
        assert operations["trim"].bytes >= 960_000_000
        assert operations["flush"].requests > 0
    finally:
        server.end()
    assert not kernel_warnings(before)


@pytest.mark.long
def test_the_kernels_own_target_is_measured_beside_a_server() -> None:
    """Measure the kernel's target with the same client; check that it can be measured again."""
    for _ in range(2):
        rows = run_bench("sim:sata-tlc-120", seconds=0.1, kernel=True)
        measured = [row for row, _ in zip(rows, DEPTHS, strict=False)]
        rows.close()
        assert [row["transport"] for row in measured] == ["nvmet-tcp"] * 2
        assert [row["case"] for row in measured] == ["randread-4k-qd32", "randread-4k-qd1"]
        assert all(0 < row["latency_p50_us"] <= row["latency_p99_9_us"] for row in measured)
        assert not any(Path("/sys/kernel/config/nvmet/ports").iterdir())
        assert not any(Path("/sys/kernel/config/nvmet/subsystems").iterdir())


def test_attach_and_detach(
    generation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attach and detach with the commands; check that the block size outlives the server.

    Rejected attempts run in separate processes, which do not hold the device open; starting a
    process takes seconds in the guest.
    """

    def writecliff(*words: str) -> str:
        capsys.readouterr()
        code = main([*words])
        output = capsys.readouterr()
        assert code == 0, output.err
        return output.out

    host = ("--host-nqn", HOST[1])
    options = ServeOptions(slow_down=None, state=tmp_path / "drive.state")
    for size, again in (("512", False), ("4096", True)):
        server = DriveServer(f"sim:{write_small_drive(tmp_path)}", options)
        assert server.restored is again
        try:
            (uri,) = server.listen_nvme(["127.0.0.1:0"])
            attached = json.loads(writecliff("attach", uri.rpartition("/")[0], *host, "--json"))
            device = attached["device"]
            assert uri.endswith(attached["nqn"])
            assert run("blockdev", "--getss", device).strip() == size
            smart = json.loads(run("nvme", "smart-log", device, "-o", "json"))
            assert smart["temperature"] == 313
            if not again:
                run("nvme", "format", device, "-l", "1", "--force")
            with open(device, "rb"):
                in_use = subprocess.run(
                    command("detach", device), capture_output=True, text=True, check=False
                )
            assert (in_use.returncode, "in use" in in_use.stderr) == (2, True), in_use.stderr
            assert writecliff("detach", device) == f"{device} detached\n"
            assert not Path(device).exists()
        finally:
            server.end()
    refused = subprocess.run(
        command("attach", uri, *host), capture_output=True, text=True, check=False, timeout=60
    )
    assert (refused.returncode, "start the server on that machine" in refused.stderr) == (
        2,
        True,
    ), refused


def _set_hint(path: Path, hint: int) -> int:
    """Set the write hint of a file or node (F_SET_RW_HINT) and return the open descriptor."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.fcntl(descriptor, 1036, struct.pack("Q", hint))
    return descriptor


def test_a_file_system_has_the_stream_of_its_loop_device(tmp_path: Path) -> None:
    """Check that a file system writes with the stream of the loop device under it.

    File hints do not leave their file system. The hint of a device node becomes the write stream of
    direct I/O to the node, and thus of a loop device over the node and of a file system on that
    loop device. The kernel retains the first stream of a loop device, so each stream needs a
    separate loop device.
    """
    if not os.uname().release.startswith("7."):
        pytest.skip("the kernel has no write streams")
    run("modprobe", "nvme-tcp")
    run("modprobe", "loop")
    path = write_small_drive(tmp_path)
    placement = '[data_placement]\ninterface = "nvme-fdp"\n\n[ftl]'
    path.write_text(path.read_text().replace("[ftl]", placement))
    server = DriveServer(f"sim:{path}", ServeOptions(slow_down=None))
    folder = tmp_path / "mounted"
    folder.mkdir()
    try:
        with connected(server) as device:
            loops: list[str] = []
            try:
                written = {n: _written_by_loop(server, device, folder, n, loops) for n in (2, 3, 4)}
            finally:
                for loop in loops:
                    run("losetup", "--detach", loop)
    finally:
        server.end()
    # Write stream n corresponds to placement identifier n - 1.
    assert all(list(numbers) == [n - 1] for n, numbers in written.items()), written


def _written_by_loop(
    server: DriveServer, device: Path, folder: Path, hint: int, loops: list[str]
) -> dict[int, int]:
    """Return the bytes written by a file system on a loop device, by placement identifier.

    The loop device, which is added to `loops`, is over a node with this write hint; the written
    file has another hint.
    """
    node = Path(f"/dev/stream-{hint}")
    os.mknod(node, 0o60600, device.stat().st_rdev)
    os.close(_set_hint(node, hint))
    part = ("--offset", str((hint - 2) * 300 << 20), "--sizelimit", str(300 << 20))
    loop = run("losetup", "--find", "--show", "--direct-io=on", *part, str(node)).strip()
    loops.append(loop)
    run("mkfs.ext4", "-q", "-F", loop)
    os.sync()
    before = {stream.number: stream.bytes for stream in server.snapshot().streams}
    run("mount", loop, str(folder))
    file = _set_hint(folder / "file", 5)
    os.write(file, bytes(4 << 20))
    os.fsync(file)
    os.close(file)
    run("umount", str(folder))
    now = {stream.number: stream.bytes for stream in server.snapshot().streams}
    grown = {number: size - before.get(number, 0) for number, size in now.items()}
    return {number: size for number, size in grown.items() if size}
