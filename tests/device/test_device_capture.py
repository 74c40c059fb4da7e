"""Captures of block devices, tested with known I/O on loop devices, as root with tracefs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.dangers import Bench, require
from writecliff.capture.block import run
from writecliff.capture.block.device import traced_device
from writecliff.capture.block.run import BlockCapture, capture_device
from writecliff.capture.trace import Trace, read_trace
from writecliff.capture.trace_file import TraceFile
from writecliff.errors import StoreError, TargetError, WritecliffError

pytestmark = pytest.mark.usefixtures("needs_tracefs")
KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def _fio(device: str, *options: str) -> list[str]:
    return [
        "fio", "--name=job", f"--filename={device}", "--output=/dev/null", "--ioengine=libaio",
        "--direct=1", *options,
    ]  # fmt: skip


def _captured(device: str, folder: Path, command: list[str]) -> Trace:
    done = capture_device(Path(device), folder / "t.parquet", command=command)
    assert done.exit_code == 0
    assert done.metadata["lost_events"] == 0
    return read_trace(done.output)


def _instances(pid: int | None = None) -> set[str]:
    """Return the tracefs instances of a process, because parallel tests may have others."""
    mine = f"writecliff-{pid or os.getpid()}-*"
    return {path.name for path in (run.find_tracefs() / "instances").glob(mine)}


def test_every_request_is_there_once_with_its_address(loop: str, tmp_path: Path) -> None:
    log = tmp_path / "fio_iops"
    trace = _captured(
        loop,
        tmp_path,
        _fio(
            loop,
            "--rw=randwrite",
            "--bs=4k",
            "--size=64M",
            "--number_ios=1000",
            "--iodepth=8",
            "--log_offset=1",
            f"--write_iops_log={log}",
            "--log_avg_msec=0",
        ),
    )
    assert not _instances()
    logged = [
        line.split(",") for line in next(tmp_path.glob("fio_iops*.log")).read_text().splitlines()
    ]
    rows, requests = trace.table.to_pylist(), trace.requests
    assert requests is not None
    writes = [row for row in rows if row["op"] == "write"]
    assert len(writes) == len(logged) == 1000
    assert Counter(row["offset_bytes"] for row in writes) == Counter(int(row[4]) for row in logged)
    assert {row["length_bytes"] for row in writes} == {4 * KIB}
    assert {row["process"] for row in writes} == {"fio"}
    assert set(requests["errno"].to_pylist()) == {0}
    issued, completed = (requests[name].to_numpy() for name in ("issue_ns", "complete_ns"))
    assert (trace.table["time_ns"].to_numpy() <= issued).all()
    assert (issued < completed).all()
    assert trace.is_block


def test_discards_flushes_and_reads_are_told_apart(loop: str, tmp_path: Path) -> None:
    script = f"""
        dd if=/dev/zero of={loop} bs=64k count=4 oflag=direct conv=fsync status=none
        dd if={loop} of=/dev/null bs=4k count=3 skip=500 iflag=direct status=none
        blkdiscard --offset 1M --length 2M {loop}
    """
    trace = _captured(loop, tmp_path, ["sh", "-ec", script])
    assert trace.requests is not None
    rows = [
        (row["op"], row["offset_bytes"], row["length_bytes"])
        for row, flags in zip(
            trace.table.to_pylist(), trace.requests["flags"].to_pylist(), strict=True
        )
        # Exclude the kernel's own reads of the partition table.
        if row["process"] in ("dd", "blkdiscard") and (row["op"] != "read" or flags == "sync")
    ]
    assert [row for row in rows if row[0] == "write"] == [
        ("write", place * 64 * KIB, 64 * KIB) for place in range(4)
    ]
    reads = [("read", place * 4 * KIB, 4 * KIB) for place in (500, 501, 502)]
    assert [row for row in rows if row[0] == "read"] == reads
    discards = [row for row in rows if row[0] == "punch"]
    assert sum(length for _, _, length in discards) == 2 * MIB
    assert discards[0][1] == MIB
    assert ("fsync", 0, 0) in rows


def test_a_partition_is_a_part_of_its_disk(bench: Bench, tmp_path: Path) -> None:
    part = bench.partitioned()
    disk = part.removesuffix("p1")
    script = f"""
        dd if=/dev/zero of={disk} bs=4k count=1 seek=10 oflag=direct status=none
        dd if=/dev/zero of={part} bs=4k count=1 seek=10 oflag=direct status=none
    """
    trace = _captured(part, tmp_path, ["sh", "-ec", script])
    writes = [
        row for row in trace.table.to_pylist() if row["op"] == "write" and row["process"] == "dd"
    ]
    assert [(row["offset_bytes"], row["path"]) for row in writes] == [(40 * KIB, Path(part).name)]
    assert trace.metadata["device"]["first_sector"] == 2048


def _statistics(device: str) -> dict[str, tuple[int, int]]:
    """Return the kernel's request and byte counts, by trace operation."""
    name = Path(device).name
    numbers = [int(word) for word in Path(f"/sys/block/{name}/stat").read_text().split()]
    return {
        "read": (numbers[0], 512 * numbers[2]),
        "write": (numbers[4], 512 * numbers[6]),
        "punch": (numbers[11], 512 * numbers[13]),
        "fsync": (numbers[15], 0),
    }


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline", "bfq"])
def test_requests_are_those_that_the_kernel_counts(
    scheduler: str, loop: str, tmp_path: Path
) -> None:
    """Check merges, journal, readahead and discards against /sys/block/NAME/stat."""
    chosen = Path(f"/sys/block/{Path(loop).name}/queue/scheduler")
    for program in ("mkfs.ext4", "fstrim"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if scheduler not in chosen.read_text():
        pytest.skip(f"this kernel has no scheduler {scheduler}")
    chosen.write_text(scheduler)
    place = tmp_path / "mounted"
    place.mkdir()
    script = f"""
        mkfs.ext4 -q -F {loop} && mount {loop} {place}
        trap 'umount {place}' EXIT
        dd if=/dev/zero of={place}/a bs=300 count=5000 conv=fsync status=none
        fio --name=j --directory={place} --size=8M --rw=randrw --bs=4k --fsync=16 --numjobs=2 \
            --ioengine=psync --number_ios=800 --output=/dev/null
        umount {place} && mount {loop} {place}
        cat {place}/a {place}/j* > /dev/null
        rm {place}/a && sync && fstrim {place}
    """
    before = _statistics(loop)
    trace = _captured(loop, tmp_path, ["bash", "-ec", script])
    counted = {
        op: tuple(now - then for now, then in zip(after, before[op], strict=True))
        for op, after in _statistics(loop).items()
    }
    captured = {op: [0, 0] for op in counted}
    assert trace.requests is not None
    request_flags = trace.requests["flags"].to_pylist()
    for row, flags in zip(trace.table.to_pylist(), request_flags, strict=True):
        # The kernel counts Write Zeroes commands as writes, although they transfer no data.
        op = "write" if "zeroes" in flags else row["op"]
        captured[op][0] += 1
        captured[op][1] += row["length_bytes"]
    assert any("zeroes" in flags for flags in request_flags)  # mkfs issues these requests.
    # The kernel also counts pure flush requests, and counts the post-flush of a request as another
    # request.
    flushes, more = counted["fsync"][0], counted["write"][0] - captured["write"][0]
    assert 0 <= more <= flushes
    captured["write"][0] += more
    assert {op: tuple(sums) for op, sums in captured.items()} == counted
    assert min(count for count, _ in counted.values()) > 0
    assert trace.metadata["open_at_end"] == trace.metadata["open_at_start"] == 0


def test_a_device_without_requests_is_captured_by_its_bios(loop: str, tmp_path: Path) -> None:
    zram = Path("/sys/class/zram-control/hot_add")
    if not zram.exists():
        pytest.skip("this kernel has no zram, whose devices take bios")
    number = zram.read_text().strip()
    try:
        Path(f"/sys/block/zram{number}/disksize").write_text("16M")
        device = f"/dev/zram{number}"
        trace = _captured(
            device,
            tmp_path,
            _fio(device, "--rw=randrw", "--bs=4k", "--size=8M", "--number_ios=200"),
        )
    finally:
        Path("/sys/class/zram-control/hot_remove").write_text(number)
    assert trace.table["process"].to_pylist().count("fio") == 200
    assert trace.requests is not None
    assert trace.requests["complete_ns"].null_count == 0
    assert not trace.metadata["device"]["requests"]


def test_a_trace_of_a_device_can_be_replayed(loop: str, tmp_path: Path, cli: CommandLine) -> None:
    command = _fio(loop, "--rw=randwrite", "--bs=64k", "--size=64M")
    _captured(loop, tmp_path, command)
    answer = cli(
        [
            "replay",
            str(tmp_path / "t.parquet"),
            "--on",
            "sim:sata-tlc-120",
            "--json",
            "--output",
            str(tmp_path / "replay"),
        ]
    )
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["waf"] >= 1


def test_lost_events_are_counted_and_said(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_BUFFER_MAX_BYTES", 8 << 10)
    monkeypatch.setattr("writecliff.capture.block.run._PERIOD_S", 600.0)
    done = capture_device(
        Path(loop),
        tmp_path / "t.parquet",
        command=_fio(loop, "--rw=randwrite", "--bs=4k", "--size=8M", "--number_ios=2000"),
    )
    lost, metadata = done.metadata["lost_events"], done.metadata
    assert lost > 0
    assert metadata["losses"]["dropped"] + metadata["losses"]["overrun"] == lost
    # Each request has three events, but only some requests are in the trace.
    assert metadata["events"] + lost >= 3 * 2000
    assert sum(metadata["requests"].values()) < 2000
    assert any(f"lost {lost:,} events" in note for note in metadata["notes"])


def test_requests_outstanding_at_the_end_are_reported(loop: str, tmp_path: Path) -> None:
    """Freeze the device, so that a request never completes."""
    device = traced_device(Path(loop))
    capture = BlockCapture(device, tmp_path / "t.parquet")
    try:
        (capture._instance.events / "block/block_rq_complete/enable").write_text("0")
        capture.start()
        subprocess.run(
            ["dd", "if=/dev/zero", f"of={loop}", "bs=4k", "count=3", "oflag=direct", "status=none"],
            check=True,
        )
        capture.stop()
        metadata = capture.finish({})
    finally:
        capture.close()
    requests = read_trace(tmp_path / "t.parquet").requests
    assert requests is not None
    assert requests["complete_ns"].null_count == requests.num_rows == metadata["open_at_end"] >= 3
    assert any("outstanding when the capture ended" in note for note in metadata["notes"])


def test_what_a_killed_capture_left_is_removed(loop: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "writecliff", "capture", "--device", loop, "--for", "1h"]
    child = subprocess.Popen([*words, "-o", str(tmp_path / "k.parquet")])
    require(lambda: _instances(child.pid))
    child.send_signal(signal.SIGKILL)
    child.wait()
    with run.instance():
        pass
    assert not _instances(child.pid)


def test_an_instance_of_a_living_process_stays() -> None:
    with run.instance() as made:
        assert run.remove_stale(made.folder.parent.parent) == []
        assert made.folder.is_dir()


def test_a_signal_ends_a_capture_and_the_trace_is_whole(loop: str, tmp_path: Path) -> None:
    output = tmp_path / "s.parquet"
    words = [sys.executable, "-m", "writecliff", "capture", "--device", loop, "--json"]
    child = subprocess.Popen(
        [*words, "-o", str(output)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    root = run.find_tracefs() / "instances"

    def recording() -> bool:
        # A new tracefs instance is active before it is configured, so enable its events afterwards.
        return any(
            (root / name / "events/block/block_rq_complete/enable").read_text()[0] == "1"
            and (root / name / "tracing_on").read_text() == "1\n"
            for name in _instances(child.pid)
        )

    require(recording)
    subprocess.run(
        ["dd", "if=/dev/zero", f"of={loop}", "bs=4k", "count=5", "oflag=direct", "status=none"],
        check=True,
    )
    child.send_signal(signal.SIGINT)
    assert child.stdout is not None
    answer = json.loads(child.stdout.read())
    assert child.wait() == 0
    assert answer["requests"]["write"] == 5
    assert read_trace(output).rows == sum(answer["requests"].values())
    assert not _instances(child.pid)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--device", "/dev/no-such-device", "--for", "1s"],
            "the device /dev/no-such-device does not exist",
        ),
        (["--device", "/tmp", "--for", "1s"], "a directory, not a block device"),
        (["--device", "LOOP", "--for", "0s"], "--for must be greater than 0, not 0s"),
        (["--device", "LOOP", "--for", "1s", "--", "true"], "are mutually exclusive"),
        (["--device", "LOOP", "--reads", "--for", "1s"], "--reads does not apply to --device"),
        (
            ["--device", "LOOP", "--", "no-such-program"],
            "the program no-such-program does not exist",
        ),
        (["--for", "1s"], "--for requires --device"),
    ],
)
def test_mistakes_are_said_in_one_line(
    words: list[str], message: str, loop: str, tmp_path: Path, cli: CommandLine
) -> None:
    output = tmp_path / "t.parquet"
    given = [loop if word == "LOOP" else word for word in words]
    answer = cli(["capture", "-o", str(output), *given])
    assert answer.code == 2
    first = answer.err.splitlines()[0]
    assert first.startswith("error: ") and message in first
    assert not list(tmp_path.glob("t.parquet*"))
    assert not _instances()


def test_an_idle_device_is_an_error_and_its_trace_says_so(
    loop: str, tmp_path: Path, cli: CommandLine
) -> None:
    output = tmp_path / "t.parquet"
    answer = cli(["capture", "-o", str(output), "--device", loop, "--", "true"])
    assert answer.code == 2
    assert f"error: {loop} received no I/O requests during the capture" in answer.err
    trace = read_trace(output)
    assert trace.rows == 0
    assert f"no requests reached {loop}" in trace.metadata["notes"]


def test_a_trace_that_cannot_be_written_ends_the_capture(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: TraceFile, batch: object) -> None:
        raise StoreError("cannot write t.parquet: no space left on device")

    monkeypatch.setattr(TraceFile, "add", full)
    with pytest.raises(StoreError, match="no space left"):
        capture_device(Path(loop), tmp_path / "t.parquet", seconds=600)
    assert not list(tmp_path.glob("t.parquet*"))
    assert not _instances()


def test_only_root_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TargetError, match="requires root"), run.instance():
        pass


def test_a_kernel_without_tracefs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOUNTS", tmp_path / "mounts")
    (tmp_path / "mounts").write_text("proc /proc proc rw 0 0\n")
    monkeypatch.setattr(run, "STANDARD", tmp_path / "absent")
    with pytest.raises(WritecliffError, match="this kernel does not support tracefs") as error:
        run.find_tracefs()
    assert error.value.exit_code == 2


def test_the_benchmark_counts_what_it_captured(cli: CommandLine) -> None:
    answer = cli("lab bench capture --iops 2000 --seconds 1 --pairs 1 --json")
    assert answer.code == 0, answer.err
    (row,) = json.loads(answer.out)["rows"]
    assert row["requests"] >= row["captured_iops"] * 0.9 > 0
    assert row["lost_events"] == 0
    assert 0 < row["machine_cpu_pct"] <= row["capture_cpu_pct"]
