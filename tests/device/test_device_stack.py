"""I/O stacks of programs with known I/O: ext4 on a loop device, as root with tracefs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.capture.stack.origins import NAMES
from writecliff.capture.stack.result import OriginRow, Stack
from writecliff.capture.stack.run import capture_stack
from writecliff.report.io_stack import write_stack

pytestmark = pytest.mark.usefixtures("needs_tracefs")
KIB, MIB = 1 << 10, 1 << 20
JOURNAL, METADATA = NAMES[3], NAMES[2]


@pytest.fixture
def mounted(loop: str, tmp_path: Path) -> Iterator[Path]:
    """Yield the mount point of an empty ext4 file system with 4 KiB blocks."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
    subprocess.run(["mkfs.ext4", "-q", "-F", "-b", "4096", loop], check=True)
    folder = tmp_path / "mounted"
    folder.mkdir()
    subprocess.run(["mount", loop, folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def _stack(mounted: Path, program: str) -> Stack:
    """Capture the I/O stack of a Python program that runs in the file system."""
    script = mounted.parent / "program.py"
    script.write_text(f"import mmap, os\nos.chdir({str(mounted)!r})\n{program}")
    command = [sys.executable, "-S", str(script)]
    stack = capture_stack(command, mounted.parent / "stack", root=mounted)
    assert stack.exit_code == 0
    assert stack.lost_events == 0
    return stack


def _row(stack: Stack, name: str, op: str) -> OriginRow | None:
    return next((row for row in stack.origins if (row.name, row.op) == (name, op)), None)


def test_direct_writes_reach_the_drive_one_by_one(mounted: Path) -> None:
    prepared = """
fd = os.open("f", os.O_CREAT | os.O_RDWR)
os.write(fd, bytes(4 << 20)); os.fsync(fd); os.close(fd)
"""
    subprocess.run(
        [sys.executable, "-c", f"import os; os.chdir({str(mounted)!r})\n{prepared}"], check=True
    )
    stack = _stack(
        mounted,
        """
fd = os.open("f", os.O_RDWR | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
for n in range(1000): os.pwrite(fd, page, (n * 619 % 1024) * 4096)
""",
    )
    assert (stack.calls.writes.count, stack.calls.writes.bytes) == (1000, 4096 * 1000)
    data = _row(stack, NAMES[0], "write")
    assert data is not None
    assert (data.traffic.count, data.traffic.sizes) == (1000, {4096: 1000})
    assert stack.data_amplification == 1
    # Syncs implied by direct writes do not count as the program's syncs.
    assert stack.calls.syncs == 0
    assert data.service_p50_ns is not None and data.service_p50_ns > 0


def test_small_buffered_writes_reach_it_as_a_few_large_ones(mounted: Path) -> None:
    stack = _stack(
        mounted,
        """
fd = os.open("f", os.O_CREAT | os.O_WRONLY)
for n in range(4096): os.write(fd, b"x" * 512)
os.fsync(fd)
""",
    )
    assert (stack.calls.writes.count, stack.calls.writes.bytes) == (4096, 2 * MIB)
    assert stack.calls.writes.sequential_share > 0.99
    assert stack.calls.syncs == 1
    assert stack.written_bytes("data") == 2 * MIB
    assert stack.requests.writes.count < 100
    assert stack.requests.syncs >= 1
    journal = _row(stack, JOURNAL, "write")
    assert journal is not None and journal.traffic.bytes >= 2 * 4096
    assert stack.journal is not None and stack.journal.commits >= 1
    assert stack.amplification(stack.requests) > 1
    assert stack.cache.dirtied_folios > 0
    assert stack.waits is not None
    assert stack.waits.pages == stack.waits.of_pages == 2 * MIB // 4096
    assert stack.waits.max_ns < stack.duration_ns


def test_overwrites_in_the_page_cache_reach_it_once(mounted: Path) -> None:
    stack = _stack(
        mounted,
        """
fd = os.open("f", os.O_CREAT | os.O_WRONLY)
for n in range(1000): os.pwrite(fd, b"x" * 4096, n % 10 * 4096)
""",
    )
    assert stack.calls.writes.bytes == 1000 * 4096
    assert stack.written_bytes("data") == 10 * 4096
    assert stack.data_amplification == pytest.approx(0.01)
    # The data were written back after the program ended.
    assert stack.program_ns < stack.duration_ns


def test_reading_again_hits_the_page_cache(mounted: Path) -> None:
    file = mounted / "f"
    file.write_bytes(bytes(4 * MIB))
    program = """
fd = os.open("f", os.O_RDONLY)
for n in range(1024): os.pread(fd, 4096, n * 4096)
"""
    cold = "fd = os.open('f', os.O_RDONLY)\nos.fsync(fd)\nos.posix_fadvise(fd, 0, 0, 4)\n"
    stack = _stack(mounted, cold + program)
    assert stack.cache.asked_bytes == stack.calls.reads.bytes == 4 * MIB
    assert stack.cache.read_in_bytes == 4 * MIB
    assert stack.cache.hit_ratio == 0
    assert stack.cache.readahead_bytes > 0
    assert stack.requests.reads.count < 1024
    (mounted.parent / "stack").rename(mounted.parent / "first")
    again = _stack(mounted, program)
    assert again.cache.hit_ratio == 1
    assert again.cache.read_in_bytes == 0


def test_creating_files_writes_metadata_and_the_journal(mounted: Path) -> None:
    stack = _stack(mounted, "for n in range(200): os.close(os.open(f'f{n}', os.O_CREAT))\n")
    assert stack.calls.writes.count == 0
    assert stack.written_bytes("data") == 0
    assert stack.written_bytes("journal") > 0
    assert stack.amplification(stack.requests) is None
    assert all(row.name in (JOURNAL, METADATA) for row in stack.origins if row.op == "write")


def test_other_programs_are_a_row_apart(mounted: Path, loop: str) -> None:
    reader = "subprocess.run(['dd', 'if=' + device, 'of=/dev/null', 'bs=64k', 'count=16', 'iflag=direct', 'status=none'], env={})"
    stack = _stack(mounted, f"import subprocess\ndevice = {loop!r}\n{reader}\n")
    row = _row(stack, NAMES[4], "read")
    assert row is not None and row.traffic.bytes == MIB
    assert stack.requests.reads.bytes < MIB


def test_the_command_writes_a_page_numbers_and_traces(mounted: Path) -> None:
    folder = mounted.parent / "out"
    words = ["capture", "--stack", "--root", str(mounted), "-o", str(folder), "--json", "--"]
    load = ["dd", "if=/dev/zero", f"of={mounted}/f", "bs=4k", "count=64", "conv=fsync"]
    answer = subprocess.run(
        [sys.executable, "-m", "writecliff", *words, *load],
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(answer.stdout)
    calls, _, requests = document["steps"]
    assert (calls["writes"]["count"], calls["writes"]["bytes"]) == (64, 256 * KIB)
    assert requests["writes"]["bytes"] >= 256 * KIB
    names = {path.name for path in folder.iterdir()}
    assert {"stack.html", "steps.csv", "origins.csv", "calls.parquet", "device.parquet"} <= names
    page = (folder / "stack.html").read_text()
    assert "The program wrote 262 kB" in page
    assert "journal" in page
    assert page.count("<svg") == 2


def test_the_same_stack_gives_the_same_page(mounted: Path) -> None:
    stack = _stack(mounted, "open('f', 'wb').write(bytes(10000))\n")
    first = write_stack(stack, mounted.parent / "stack").read_bytes()
    assert write_stack(stack, mounted.parent / "stack").read_bytes() == first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--stack"], "--stack requires a command"),
        (["--stack", "--root", "/proc", "--", "true"], "/proc is on a file system of type proc"),
        (["--stack", "--root", "/no/such", "--", "true"], "the folder /no/such does not exist"),
        (["--stack", "--device", "/dev/loop0", "--", "true"], "--device does not apply to --stack"),
        (["--stack", "--for", "1s", "--", "true"], "--for does not apply to --stack"),
    ],
)
def test_mistakes_are_said_in_one_line(
    words: list[str], message: str, tmp_path: Path, cli: CommandLine
) -> None:
    answer = cli(["capture", "-o", str(tmp_path / "out"), *words])
    assert answer.code == 2
    first = answer.err.splitlines()[0]
    assert first.startswith("error: ") and message in first
    assert not (tmp_path / "out").exists()
