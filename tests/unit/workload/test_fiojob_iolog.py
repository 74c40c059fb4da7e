"""fio's I/O logs as jobs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from writecliff import SimEngine
from writecliff.cli.main import main
from writecliff.errors import ConfigError
from writecliff.traces.characterise import characterise
from writecliff.traces.source import open_trace
from writecliff.workload.fiojob import load_fio_job
from writecliff.workload.model import IoLog, Job, Workload

VERSION_2 = """\
fio version 2 iolog
/dev/sda add
/dev/sda open
/dev/sda write 0 4096
/dev/sda wait 500 0
/dev/sda read 4096 8192
/dev/sda sync 0 0
/dev/sda trim 65536 4096
/dev/sda close
"""
VERSION_3 = """\
fio version 3 iolog
10 /dev/sda add
12 /dev/sda open
100 /dev/sda write 0 4096
600 /dev/sda read 4096 8192
600 /dev/sda datasync 0 0
650 /dev/sda trim 65536 4096
900 /dev/sda close
"""


def _job(folder: Path, log: str, extra: str = "") -> Job:
    (folder / "io.log").write_text(log)
    file = folder / "job.fio"
    file.write_text(f"[j]\nread_iolog={folder / 'io.log'}\nioengine=libaio\niodepth=8\n{extra}\n")
    (workload,) = load_fio_job(file, device_capacity_bytes=1 << 20).workloads
    (job,) = workload.jobs
    return job


ROWS = ("wrft", (0, 4096, 0, 65536), (4096, 8192, 0, 4096))


def test_both_versions_have_times(tmp_path: Path) -> None:
    job = _job(tmp_path, VERSION_3)
    assert job.log == IoLog(*ROWS, (0, 500_000, 500_000, 550_000))
    assert (job.queue_depth, job.ios, job.duration_ns) == (8, 3, None)
    waits = _job(tmp_path, VERSION_2)
    assert waits.log == IoLog(*ROWS, (0, 500_000, 500_000, 500_000))


@pytest.mark.parametrize(
    ("extra", "log", "ios"),
    [
        ("replay_no_stall=1", IoLog(*ROWS), 3),
        ("replay_time_scale=50", IoLog(*ROWS, (0, 1_000_000, 1_000_000, 1_100_000)), 3),
        ("replay_scale=4\nreplay_align=4096\nreplay_no_stall=1",
         IoLog("wrft", (0, 0, 0, 16384), (4096, 8192, 0, 4096)), 3),
        ("replay_skip=trim,sync\nreplay_no_stall=1", IoLog("wr", (0, 4096), (4096, 8192)), 2),
        ("loops=3\nreplay_no_stall=1", IoLog(*ROWS), 9),
        ("time_based\nruntime=5\nreplay_no_stall=1", IoLog(*ROWS), None),
    ],
)  # fmt: skip
def test_options_change_the_log(extra: str, log: IoLog, ios: int | None, tmp_path: Path) -> None:
    job = _job(tmp_path, VERSION_3, extra)
    assert (job.log, job.ios) == (log, ios)


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("0, 0, 4096\n", "io.log:1: the file is not a fio I/O log"),
        ("fio version 2 iolog\n/d add\n", "contains no I/Os"),
        (
            "fio version 2 iolog\n/d read 100 512\n",
            "io.log:2: offset 100 or length 512 is not a multiple",
        ),
        (
            "fio version 2 iolog\n/d read 0\n",
            "io.log:2: '/d read 0' is not a valid action in a version 2",
        ),
        ("fio version 3 iolog\n/d read 0 512\n", "io.log:2: '/d' is not a whole number"),
        (
            "fio version 3 iolog\n1 /d wait 5 0\n",
            "io.log:2: the action wait is allowed only in version 2",
        ),
        ("fio version 2 iolog\n/d read 0 0\n", "io.log:2: the log contains an I/O of 0 bytes"),
        ("fio version 2 iolog\n/d read 1048576 512\n", "extends to byte 1049088"),
        ("fio version 2 iolog\n/d read 0 512\n/e read 0 512\n", "names 2 files"),
    ],
)
def test_broken_logs_are_refused_with_their_line(log: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _job(tmp_path, log)
    assert message in str(caught.value)


def test_a_block_trace_is_not_taken_for_a_log(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\x07\x61\x74\x65" + bytes(44))
    file = tmp_path / "job.fio"
    file.write_text(f"[j]\nread_iolog={tmp_path / 'b'}\n")
    with pytest.raises(ConfigError, match="binary block trace"):
        load_fio_job(file, device_capacity_bytes=1 << 20)


GIB = 1 << 30


def test_trims_of_4_gib_and_more_are_split_as_the_kernel_does() -> None:
    log = IoLog("wttf", (0, 512, 8 * GIB, 0), (512, 4 * GIB, 5 * GIB, 0), (0, 1, 2, 3))
    assert log.operations == "wtttttf"
    assert log.offsets == (0, 512, 2 * GIB + 512, 8 * GIB, 10 * GIB, 12 * GIB, 0)
    assert log.lengths == (512, 2 * GIB, 2 * GIB, 2 * GIB, 2 * GIB, GIB, 0)
    assert log.times_ns == (0, 1, 1, 2, 2, 2, 3)
    assert log.ios == 6
    assert IoLog("t", (0,), (4 * GIB - 512,)).lengths == (4 * GIB - 512,)
    assert IoLog("t", (0,), (4 * GIB,)).times_ns == ()


def test_reads_and_writes_of_4_gib_name_their_line(tmp_path: Path) -> None:
    text = VERSION_3.replace("0 /dev/sda write 0 4096", f"0 /dev/sda write 0 {4 * GIB}")
    with pytest.raises(ConfigError, match=r"io\.log:4: an I/O of 4294967296 bytes"):
        _job(tmp_path, text)


def test_a_log_from_python_names_the_io_that_no_command_can_have() -> None:
    job = Job(log=IoLog("rw", (0, 0), (4096, 4 * GIB)), ios=2)
    with pytest.raises(ConfigError, match="I/O 2 has 4294967296 bytes"):
        SimEngine("sata-tlc-120").run(Workload("w", (job,)))


def test_converted_traces_with_trims_of_4_gib_and_more_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trims = [f"{n} d trim {n * GIB} {n * GIB}" for n in (1, 4, 5, 20)]
    source = tmp_path / "source.log"
    source.write_text("\n".join(
        ["fio version 3 iolog", "0 d add", "0 d open", *trims, "21 d write 0 4096", "22 d close"]
    ))  # fmt: skip
    total = (1 + 4 + 5 + 20) * GIB
    for name in ("copy.parquet", "copy.txt", "copy.log"):
        copy = tmp_path / name
        assert main(["trace", "convert", str(source), str(copy)]) == 0
        capfd.readouterr()
        page = str(tmp_path / "page.html")
        assert main(["characterise", str(copy), "--json", "--output", page]) == 0
        operations = json.loads(capfd.readouterr().out)["operations"]
        assert operations["discard"]["bytes"] == total, name
        source = copy
    job = tmp_path / "job.fio"
    job.write_text(f"[j]\nread_iolog={source}\n")
    output = str(tmp_path / "run")
    assert main(["run", str(job), "--on", "sim:sata-tlc-120", "--json", "--output", output]) == 0
    answer = json.loads(capfd.readouterr().out)
    (result,) = answer["steps"][0]["jobs"]
    assert result["operations"]["trim"]["bytes"] == total
    assert result["operations"]["trim"]["ios"] == 1 + 2 + 3 + 10


PAUSES = "fio version 2 iolog\n/d read 0 4096\n{}\n/d read 4096 4096\n/d sync\n"


@pytest.mark.parametrize("pause", ["/d wait 700 0", "/d wait 700", "wait 700"])
def test_run_and_characterise_read_the_same_pauses(pause: str, tmp_path: Path) -> None:
    log = PAUSES.format(pause)
    job = _job(tmp_path, log)
    assert job.log == IoLog("rrf", (0, 4096, 0), (4096, 4096, 0), (0, 700_000, 700_000))
    source = open_trace(tmp_path / "io.log")
    (batch,) = source.batches()
    assert batch["time_ns"].tolist() == [0, 700_000, 700_000]
    assert not source.skipped()


def _stamped(count: int, step: int) -> str:
    lines = (f"{number * step} /d read 0 4096\n" for number in range(count))
    return "fio version 3 iolog\n0 /d add\n0 /d open\n" + "".join(lines)


@pytest.mark.parametrize(
    ("count", "step", "doubt"),
    [
        (3000, 1_000_000, "3,000 I/Os in 49 min 59 s are 1.000 a second: .* are nanoseconds, div"),
        (4, 1_000_000_000, "if these are nanoseconds, divide"),
        (3000, 0, None),  # The log contains no times.
        (30_000, 1, None),
        (3000, 1000, None),
        (3000, 50_000, None),
        (4, 5_000_000, None),
    ],
)
def test_times_of_another_unit_are_doubted(
    count: int, step: int, doubt: str | None, tmp_path: Path
) -> None:
    (tmp_path / "io.log").write_text(_stamped(count, step))
    file = tmp_path / "job.fio"
    file.write_text(f"[j]\nread_iolog={tmp_path / 'io.log'}\n")
    notes = load_fio_job(file, device_capacity_bytes=1 << 20).notes
    measured = characterise(open_trace(tmp_path / "io.log"), tmp_path / "io.log").notes
    for texts in (notes, measured):
        matches = [text for text in texts if re.search(doubt or "fio's times are", text)]
        assert len(matches) == (doubt is not None), texts
