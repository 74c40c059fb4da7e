"""The simulated engine through its public API."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.small_drive import write_small_drive
from writecliff import Addresses, BlockSize, Job, SimEngine, Workload, _native
from writecliff.engines.base import Progress, StepResult
from writecliff.errors import ConfigError
from writecliff.workload.model import Segments, Zone, workload_from_mapping

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def engine(tmp_path: Path) -> SimEngine:
    return SimEngine(str(write_small_drive(tmp_path)))


def fill(engine: SimEngine, times: int = 1) -> None:
    capacity = engine.identify().capacity_bytes
    big = (BlockSize(131072),)
    engine.precondition(
        Workload("fill", (Job(pattern="sequential", block_sizes=big, volume_bytes=capacity),))
    )
    engine.precondition(Workload("churn", (Job(volume_bytes=times * capacity),), seed=99))


def figures(result: StepResult) -> list[object]:
    rows: list[object] = [result.started_ns, result.elapsed_ns, result.counters_after]
    for job in result.jobs:
        for name, operation in job.operations.items():
            rows += [job.name, name, operation.ios, operation.bytes, operation.service.to_bytes()]
    rows += [column.tobytes() for column in result.intervals.values()]
    return rows


MIX = Workload(
    "mix",
    (
        Job(name="a", read_pct=70, queue_depth=8, threads=2, duration_ns=500_000_000),
        Job(name="b", stream=1, rate_iops=2000, arrival="poisson", duration_ns=500_000_000),
    ),
    interval_ns=100_000_000,
)


def test_same_device_load_and_seed_give_the_same_bytes(tmp_path: Path) -> None:
    path = str(write_small_drive(tmp_path, gc='"d-choices"'))

    def run(seed: int) -> list[object]:
        engine = SimEngine(path, seed=seed)
        fill(engine, 2)
        return figures(engine.run(MIX))

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_restore_then_continue_equals_run_through(engine: SimEngine, tmp_path: Path) -> None:
    fill(engine, 2)
    engine.run(MIX)
    assert engine.save(tmp_path / "state")
    through = figures(engine.run(MIX))
    engine.run(MIX)
    engine.restore(tmp_path / "state")
    assert figures(engine.run(MIX)) == through
    engine.check()
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".part"] == []


def test_a_damaged_or_foreign_state_is_refused(engine: SimEngine, tmp_path: Path) -> None:
    engine.save(tmp_path / "state")
    data = bytearray((tmp_path / "state").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "state").write_bytes(data)
    with pytest.raises(ConfigError, match="state"):
        engine.restore(tmp_path / "state")
    with pytest.raises(ConfigError, match="not a writecliff device state"):
        (tmp_path / "other").write_text("hello, this is no state")
        engine.restore(tmp_path / "other")


def test_intervals_add_up_to_the_totals(engine: SimEngine) -> None:
    fill(engine)
    result = engine.run(MIX)
    for index, job in enumerate(result.jobs):
        for code, name in enumerate(("read", "write", "trim")):
            mask = (result.intervals["job"] == index) & (result.intervals["operation"] == code)
            ios = int(result.intervals["ios"][mask].sum())
            assert ios == (job.operations[name].ios if name in job.operations else 0)
    waf = result.intervals["waf"]
    assert np.nanmin(waf) >= 1.0


def test_service_and_response_time_differ_when_the_drive_cannot_keep_up(engine: SimEngine) -> None:
    fill(engine, 2)
    rate = Job(rate_iops=100_000, queue_depth=4, ios=20_000)
    write = engine.run(Workload("too much", (rate,))).jobs[0].operations["write"]
    assert write.response is not None
    assert write.response.count == write.service.count == 20_000
    service, response = write.service.mean_ns, write.response.mean_ns
    assert service and response and response > 50 * service


def test_rates_are_kept(engine: SimEngine) -> None:
    result = engine.run(Workload("slow", (Job(rate_iops=5000, duration_ns=1_000_000_000),)))
    assert result.total() == (5000, 5000 * 4096)
    assert result.elapsed_ns == pytest.approx(1e9, rel=1e-3)


def test_think_time_lets_the_drive_idle(engine: SimEngine) -> None:
    job = Job(think_ns=10_000_000, think_after_ios=100, ios=1000)
    result = engine.run(Workload("bursts", (job,)))
    assert result.elapsed_ns > 9 * 10_000_000


def test_bursts_are_followed_by_pauses_without_io(engine: SimEngine) -> None:
    ms = 1_000_000
    job = Job(threads=2, queue_depth=4, burst_ns=5 * ms, pause_ns=15 * ms, duration_ns=60 * ms)
    result = engine.run(Workload("bursts", (job,), interval_ns=5 * ms))
    busy = [0] * 12
    writes = result.intervals["operation"] == 1
    for end_ns, ios in zip(
        result.intervals["end_ns"][writes], result.intervals["ios"][writes], strict=True
    ):
        busy[int(end_ns) // (5 * ms) - 1] += int(ios)
    # I/Os outstanding at the end of a burst complete at the start of the pause.
    assert [place for place, ios in enumerate(busy) if ios > 8] == [0, 4, 8]
    assert sum(busy[2:4] + busy[6:8] + busy[10:12]) == 0
    assert result.elapsed_ns == 60 * ms


def test_trims_free_the_drive(engine: SimEngine) -> None:
    fill(engine, 2)
    capacity = engine.identify().capacity_bytes
    big = (BlockSize(1 << 20),)
    trim = Job(pattern="sequential", trim_pct=100, block_sizes=big, volume_bytes=capacity)
    engine.run(Workload("trim", (trim,)))
    engine.check()
    result = engine.run(Workload("again", (Job(volume_bytes=capacity // 2),)))
    assert result.counters_after.write_amplification_since(result.counters_before) == 1.0


def test_each_stream_by_itself_amplifies_nothing(engine: SimEngine) -> None:
    quarter = engine.identify().capacity_bytes // 4 // 131072 * 131072
    jobs = tuple(
        Job(
            name=f"log {n}",
            pattern="sequential",
            block_sizes=(BlockSize(131072),),
            offset_bytes=n * quarter,
            range_bytes=quarter,
            stream=n,
            volume_bytes=(n + 1) * 2 * quarter,
        )
        for n in range(4)
    )
    after = engine.run(Workload("logs", jobs)).counters_after
    assert after.gc_moved_bytes == 0


def test_the_workload_definition_is_the_same_on_both_sides() -> None:
    job = Job(
        name="everything",
        pattern="sequential",
        read_pct=30.0,
        trim_pct=5.0,
        block_sizes=(BlockSize(4096, 2.0), BlockSize(8192, 1.0)),
        threads=2,
        queue_depth=3,
        offset_bytes=4096,
        range_bytes=1 << 30,
        align_bytes=4096,
        addresses=Addresses(kind="zoned", zones=(Zone(50.0, 5.0), Zone(50.0, 95.0))),
        compressible_pct=50.0,
        duplicate_pct=20.0,
        stream=1,
        rate_iops=10.0,
        arrival="poisson",
        think_ns=5,
        think_after_ios=7,
        start_delay_ns=11,
        flush_every_writes=13,
        duration_ns=17,
        volume_bytes=1 << 20,
        ios=19,
    )
    segmented = Job(segments=Segments(16, 1 << 28), ios=1)
    zoned = Job(addresses=job.addresses, ios=1)
    ordered = Job(addresses=Addresses("sequence", blocks=(2, 0, 1)), flow_weight=3, ios=1)
    for candidate in (Job(ios=1), segmented, zoned, ordered):
        workload = Workload("w", (candidate,), seed=5, interval_ns=7)
        _native.check_workload(workload.to_json(), 1 << 31, 2)
        assert workload_from_mapping(json.loads(workload.to_json())) == workload
    # The native crate recognises every field of the model, because it rejects unknown fields.
    with pytest.raises(_native.NativeConfigError, match=r"zoned|sequential"):
        _native.check_workload(Workload("w", (job,)).to_json(), 1 << 31, 2)


def test_a_toml_workload_is_the_python_one() -> None:
    text = """
        name = "mix"
        [[job]]
        read = "70 %"
        block_size = "8 KiB"
        queue_depth = 16
        range = "50 %"
        duration = "2 s"
    """
    (step,) = json.loads(_native.parse_workload_toml(text, "x.toml", 1 << 30))["steps"]
    read = workload_from_mapping(step["workload"])
    job = Job(
        read_pct=70.0,
        block_sizes=(BlockSize(8192),),
        queue_depth=16,
        range_bytes=1 << 29,
        duration_ns=2_000_000_000,
    )
    assert read == Workload("mix", (job,))


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (Job(), "duration"),
        (Job(ios=1, range_bytes=1 << 40), "range"),
        (Job(ios=1, stream=200), "stream"),
        (Job(ios=1, block_sizes=(BlockSize(100),)), "512"),
        (Job(ios=1, read_pct=120), "read"),
    ],
)
def test_impossible_workloads_are_refused_in_words(
    engine: SimEngine, job: Job, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        engine.run(Workload("w", (job,)))


def test_counters_can_be_read_while_it_runs(engine: SimEngine) -> None:
    seen: list[Progress] = []
    fill(engine)
    result = engine.run(Workload("watched", (Job(queue_depth=32, ios=600_000),)), seen.append)
    assert len(seen) >= 3
    written = [look.counters.host_write_bytes for look in seen if look.counters]
    assert written == sorted(set(written))
    before, after = result.counters_before, result.counters_after
    assert before.host_write_bytes < written[0] <= written[-1] <= after.host_write_bytes
    assert all(look.counters and look.counters.erases_max > 0 for look in seen)


def test_health_is_what_a_smart_log_would_say(engine: SimEngine) -> None:
    engine.run(Workload("w", (Job(ios=5000),)))
    health = engine.health()
    assert health is not None
    assert json.loads(json.dumps(health)) == health
    assert health["host_write_bytes"] == engine.counters().host_write_bytes == 5000 * 4096
    assert {"percentage_used", "erases_min", "erases_mean", "erases_max"} <= set(health)


def test_asking_a_running_drive_itself_is_an_error_not_a_deadlock(engine: SimEngine) -> None:
    with pytest.raises(RuntimeError, match="is running"):
        engine.run(Workload("w", (Job(queue_depth=32, ios=400_000),)), lambda _: engine.counters())


def test_reads_of_nothing_are_warned_of(engine: SimEngine) -> None:
    read = Workload("reads", (Job(read_pct=100, ios=1000),))
    (warning,) = engine.run(read).warnings
    assert warning.startswith("100 % of the data read had never been written")
    fill(engine)
    assert engine.run(read).warnings == ()


def test_a_raising_hook_stops_the_run_and_leaves_a_sound_drive(engine: SimEngine) -> None:
    class Stop(Exception):
        pass

    def hook(_: object) -> None:
        raise Stop

    with pytest.raises(Stop):
        engine.run(Workload("long", (Job(queue_depth=32, ios=10_000_000),)), hook)
    engine.check()
    assert engine.run(Workload("more", (Job(ios=100),))).total() == (100, 409_600)


def test_the_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(blocks) == 1
    small = str(write_small_drive(tmp_path))
    exec(blocks[0].replace("sata-tlc-120", small).replace("(10)", "(0.01)"), {})
    assert "Quantile" in capsys.readouterr().out


def test_a_load_that_begins_with_silence_leaves_the_drive_time_for_itself(tmp_path: Path) -> None:
    """Check a drive that was fast-forwarded to its state and has not completed a command since."""

    def moved(start_delay_ns: int) -> int:
        engine = SimEngine(str(write_small_drive(tmp_path)))
        fill(engine)
        reads = Job(read_pct=100.0, volume_bytes=4096, start_delay_ns=start_delay_ns)
        done = engine.run(Workload("reads", (reads,)))
        return done.counters_after.gc_moved_bytes - done.counters_before.gc_moved_bytes

    assert moved(0) == 0
    assert moved(5_000_000_000) > 0
