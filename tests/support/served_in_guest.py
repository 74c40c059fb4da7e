"""A drive served by this process, attached with the guest kernel's NVMe/TCP initiator."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import WAIT_LIMIT_S
from writecliff.serve import DriveServer

HOST_ID = "12345678-1234-1234-1234-123456789abc"
HOST = ("--hostnqn", f"nqn.2014-08.org.nvmexpress:uuid:{HOST_ID}", "--hostid", HOST_ID)


def run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=WAIT_LIMIT_S)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def namespace(serial: str) -> Path:
    """Wait for the block device of the connected drive and return it."""
    for _ in range(100):
        for controller in Path("/sys/class/nvme").glob("nvme*"):
            if (controller / "serial").read_text().strip() == serial:
                for device in Path("/dev").glob("nvme*n1"):
                    file = Path(f"/sys/block/{device.name}/device/serial")
                    if file.exists() and file.read_text().strip() == serial:
                        return device
        time.sleep(0.1)
    raise AssertionError(f"no namespace of {serial}")


def served(server: DriveServer, port: int = 0) -> tuple[str, str]:
    """Serve the drive and return its port and NQN; port 0 selects a free port."""
    (uri,) = server.listen_nvme([f"127.0.0.1:{port}"])
    match = re.fullmatch(r"nvme\+tcp://127\.0\.0\.1:(\d+)/(.*)", uri)
    assert match is not None
    return match[1], match[2]


@contextmanager
def connected(
    server: DriveServer, *options: str, at: tuple[str, str] | None = None
) -> Iterator[Path]:
    """Attach the server's drive; `at` is the result of `served` if it is already served."""
    port, name = at or served(server)
    where = ("-t", "tcp", "-a", "127.0.0.1", "-s", port)
    assert name in run("nvme", "discover", *where, *HOST)
    run("nvme", "connect", *where, "-n", name, "-i", "2", *HOST, *options)
    assert server.identity.serial is not None
    try:
        yield namespace(server.identity.serial)
    finally:
        run("nvme", "disconnect", "-n", name)


def write_and_check(
    device: Path, mkfs: tuple[str, ...], folder: Path, engine: str = "libaio"
) -> None:
    """Verify writes with fio, discard all blocks, and store a file in a new file system."""
    verify = ("--rw=randwrite", "--bs=16k", "--size=4m", "--iodepth=8", "--verify=crc32c")
    job = ("--name=v", f"--filename={device}", f"--ioengine={engine}", "--direct=1")
    run("fio", *job, *verify, "--verify_fatal=1")
    run("blkdiscard", str(device))
    run(*mkfs, str(device))
    data = b"x" * 1_000_000
    for write in (True, False):
        run("mount", str(device), str(folder))
        try:
            if write:
                (folder / "file").write_bytes(data)
            assert (folder / "file").read_bytes() == data
        finally:
            run("umount", str(folder))


def kernel_warnings(before: str, *, lost: bool = False) -> list[str]:
    """Return the kernel's warnings since `before`, an earlier output of dmesg.

    With `lost`, the drive was removed, so timeouts and I/O errors are expected.
    """
    lines = run("dmesg").removeprefix(before).splitlines()
    pattern = r"WARNING|BUG|Oops|Call Trace|blocked for" + ("" if lost else "|timeout|I/O error")
    return [s for s in lines if re.search(pattern, s)]
