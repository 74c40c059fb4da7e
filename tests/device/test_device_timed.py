"""Timed I/O on a loop device: workloads with rates, and traces at their original times."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.device.test_device_engine import opened
from writecliff.api import characterise_trace, replay_timed
from writecliff.cli.main import main
from writecliff.engines.base import Progress
from writecliff.errors import ConfigError, EngineError, TargetError
from writecliff.workload.model import BlockSize, Job, Workload

SECOND = 1_000_000_000
MIB = 1 << 20
IOS = 400
STEP_US = 2000


def trace(path: Path, *, reach: int = 64 * MIB, operations: str = "RW") -> Path:
    """Write a trace of 4 KiB reads and writes, one every 2 ms; the last I/O ends at `reach`."""
    lines = [
        f"{n * STEP_US},{operations[n % len(operations)]},{(reach - 4096) * n // (IOS - 1) // 4096 * 8},8"
        for n in range(IOS)
    ]
    path.write_text("ts,op,lba,n\n" + "\n".join(lines) + "\n")
    return path


COLUMNS = "time=ts:us,operation=op,offset=lba:sectors,length=n:sectors"


def test_a_workload_with_rates_is_issued_at_its_times(loop: str) -> None:
    jobs = (
        Job(name="writes", rate_iops=1000, queue_depth=32, ios=500),
        Job(name="reads", read_pct=100, rate_iops=500, arrival="poisson", queue_depth=32,
            block_sizes=(BlockSize(4096, 3), BlockSize(16384, 1)), ios=250),
    )  # fmt: skip
    seen: list[Progress] = []
    with opened(loop) as engine:
        result = engine.run(Workload("timed", jobs, interval_ns=SECOND // 10), seen.append)
    writes, reads = (job.operations for job in result.jobs)
    assert writes["write"].ios == 500
    assert reads["read"].ios == 250
    assert all(
        operation.response is not None
        for job in result.jobs
        for operation in job.operations.values()
    )
    timing = result.raw["timing"]
    assert isinstance(timing, dict)
    assert timing["left"] == 0
    # The last write is due after 499 intervals of 1 ms. In the Poisson process, the last read is
    # due after 0.5 s on average, with a standard deviation of 0.03 s, so it is hardly ever due
    # after 0.65 s.
    assert 499_000_000 <= timing["intended_ns"] < 650_000_000
    assert timing["lateness_ns"]["max"] >= timing["lateness_ns"]["mean"] > 0
    # The response time of an I/O starts at its due time and includes the delay of its issue.
    response, service = writes["write"].response, writes["write"].service
    assert response is not None and response.mean_ns is not None and service.mean_ns is not None
    assert response.mean_ns > service.mean_ns
    assert any(text.startswith("timed I/O: 99 % ") for text in result.warnings)
    assert sum(result.intervals["ios"]) == result.total()[0]
    machine = result.raw["machine"]
    assert isinstance(machine, dict) and machine["foreign_bytes"]["write"] == 0
    assert seen and 0 < seen[-1].ios <= result.total()[0]


def test_the_same_workload_issues_the_same_ios_as_on_a_simulated_drive(loop: str) -> None:
    """Check that both engines use the same random generators."""
    from writecliff.engines.sim import SimEngine

    sizes = (BlockSize(4096, 1), BlockSize(8192, 1))
    job = Job(read_pct=30, block_sizes=sizes, rate_iops=2000, ios=400, queue_depth=64)
    load = Workload("same", (job,), seed=7)
    with opened(loop) as engine:
        real = engine.run(load).jobs[0].operations
    simulated = SimEngine("sata-tlc-120").run(load).jobs[0].operations
    for name in ("read", "write"):
        assert real[name].ios == simulated[name].ios  # type: ignore[index]


def test_a_load_that_writes_needs_the_serial_number(loop: str) -> None:
    from writecliff.engines.fio import FioEngine

    job = Job(rate_iops=100, ios=5)
    before = Path(loop).read_bytes()
    with FioEngine.open_device(loop, destroy_serial=None) as engine:
        with pytest.raises(TargetError, match="is open for reading only"):
            engine.run(Workload("w", (job,)))
        reads = engine.run(Workload("r", (Job(rate_iops=100, ios=5, read_pct=100),)))
    assert reads.total("read") == (5, 5 * 4096)
    assert Path(loop).read_bytes() == before


def test_closed_loops_stay_with_fio(loop: str) -> None:
    with opened(loop) as engine:
        closed = engine.run(Workload("closed", (Job(ios=10),)))
        timed = engine.run(Workload("timed", (Job(ios=10, rate_iops=1000),)))
    assert "fio" in closed.raw and "timing" not in closed.raw
    assert "timing" in timed.raw and "fio" not in timed.raw


def test_a_drive_that_is_too_slow_is_said_to_be(loop: str) -> None:
    # The job has queue depth 1 and a rate that no loop device reaches.
    job = Job(rate_iops=5_000_000, ios=2000)
    with opened(loop) as engine:
        result = engine.run(Workload("fast", (job,)))
    assert any("did not keep up" in text for text in result.warnings)
    assert result.raw["timing"]["waited"] > 0  # type: ignore[index]


def test_a_trace_is_replayed_at_its_times_and_kept(
    loop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, issued_path = trace(tmp_path / "t.csv"), tmp_path / "issued.parquet"
    words = ["replay", given, "--on", loop, "--destroy", loop, "--columns", COLUMNS,
             "--output", issued_path, "--json"]  # fmt: skip
    assert main([*map(str, words)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ios"] == {"read": IOS // 2, "write": IOS // 2}
    assert answer["timing"]["intended_ns"] == (IOS - 1) * STEP_US * 1000
    assert answer["timing"]["length_ns"] >= answer["timing"]["intended_ns"]
    table = pq.read_table(issued_path).to_pydict()
    assert table["time_ns"] == [n * STEP_US * 1000 for n in range(IOS)]
    due, issued, done = (np.array(table[k]) for k in ("time_ns", "issue_ns", "complete_ns"))
    assert (issued >= due).all() and (done >= issued).all()
    late = answer["timing"]["lateness_ns"]["max"]
    assert late * 1.07 >= (issued - due).max() >= late * 0.93
    # The trace of issued I/Os can be compared with the original.
    first = characterise_trace(given, columns=COLUMNS).measures
    second = characterise_trace(issued_path).measures
    same = ("ios", "read_bytes", "write_bytes", "sizes", "streams", "unique_bytes")
    assert {key: first[key] for key in same} == {key: second[key] for key in same}
    assert second["response_ms"]["read"]["count"] == IOS // 2


def test_each_replay_is_kept_under_a_name_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the command on targets with dots in their names as well."""
    monkeypatch.chdir(tmp_path)
    image = tmp_path / "disk.of.mine"
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    words = ["replay", "t.csv", "--on", f"file:{image}", "--columns", COLUMNS, "--speed", "50"]
    trace(tmp_path / "t.csv", operations="R")
    assert main(words) == main(words) == 0
    names = sorted(path.name for path in (tmp_path / "traces").iterdir())
    assert len(names) == 2
    pattern = r"replay-t-file-.*disk\.of\.mine-\d{8}-\d{6}(-2)?\.parquet"
    assert all(re.fullmatch(pattern, name) for name in names), names


def test_twice_as_fast_takes_half_the_time(loop: str, tmp_path: Path) -> None:
    done = replay_timed(trace(tmp_path / "t.csv", operations="R"), loop, columns=COLUMNS, speed=2.0)
    assert done.timing["intended_ns"] == (IOS - 1) * STEP_US * 500
    assert done.ios == {"read": IOS}


def test_a_trace_that_does_not_fit_is_refused_before_anything_is_written(
    loop: str, tmp_path: Path
) -> None:
    large = trace(tmp_path / "t.csv", reach=256 * MIB)
    before = Path(loop).read_bytes()
    with pytest.raises(TargetError, match="I/Os exceed its capacity"):
        replay_timed(large, loop, columns=COLUMNS, destroy_serial=loop)
    with pytest.raises(TargetError, match="is open for reading only"):
        replay_timed(trace(tmp_path / "s.csv"), loop, columns=COLUMNS)
    assert Path(loop).read_bytes() == before
    done = replay_timed(large, loop, columns=COLUMNS, destroy_serial=loop, wrap=True, speed=10.0)
    assert sum(done.ios.values()) == IOS


def test_the_volumes_of_a_trace_are_not_laid_over_each_other(loop: str, tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text(
        "".join(f"{n * 10_000},srv,{n % 2},Read,{4096 * n},4096,10\n" for n in range(40))
    )
    with pytest.raises(ConfigError, match="2 volumes"):
        replay_timed(path, loop)
    assert sum(replay_timed(path, loop, volume="srv.1").ios.values()) == 20
    with pytest.raises(ConfigError, match="volume"):
        replay_timed(path, loop, volume="srv.7")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--on", "sim:sata-tlc-120", "--speed", "2"), "--speed applies only to real drives"),
        (("--on", "sim:sata-tlc-120", "--wrap"), "--wrap applies only to real drives"),
        (("--on", "{loop}", "--assign", "none"), "--assign applies only to simulated drives"),
        (("--on", "{loop}", "--fills", "2"), "--fills applies only to simulated drives"),
        (("--on", "{loop}", "--speed", "0"), "the speed must be a finite number above 0"),
    ],
)
def test_options_that_have_no_effect_are_refused(
    loop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...], message: str,
) -> None:  # fmt: skip
    given = trace(tmp_path / "t.csv")
    all_words = [word.format(loop=loop) for word in words]
    assert main(["replay", str(given), *all_words]) != 0
    assert message in capsys.readouterr().err


def test_an_error_of_the_drive_ends_a_timed_load(loop: str, tmp_path: Path) -> None:
    """Truncate the backing file, so that I/O fails beyond its end."""
    from writecliff.engines.fio import FioEngine

    job = Job(rate_iops=200, ios=200, read_pct=100, offset_bytes=64 * MIB, range_bytes=MIB)
    with FioEngine.open_device(loop, destroy_serial=None) as engine:
        image = next(tmp_path.glob("disk.img"))
        with image.open("r+b") as file:
            file.truncate(32 * MIB)
        with pytest.raises(EngineError) as caught:
            engine.run(Workload("r", (job,)))
    assert "error at byte" in str(caught.value) or "size" in str(caught.value)
