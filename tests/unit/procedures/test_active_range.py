"""Active ranges, preconditioning demand and editions, by the clauses of the standard."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.fake_engine import FakeEngine
from writecliff.errors import ConfigError
from writecliff.procedures.framework import continued
from writecliff.procedures.iops import Iops, IopsOptions
from writecliff.procedures.model import History, Step, StepRow
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.procedures.tp import Tp, TpOptions
from writecliff.procedures.wsat import Wsat, WsatOptions
from writecliff.suite.plan import plan_suite
from writecliff.workload.model import KIB, BlockSize, Job, Workload

GIB = 1 << 30
DRIVE = replace(FakeEngine().identify(), capacity_bytes=120_034_123_776, sector_bytes=512)


def test_the_client_suite_has_a_run_for_each_active_range() -> None:
    members = plan_suite("pts-c", "sim:sata-tlc-120")
    ranges = ["100-8gib", "100-16gib", "75-8gib", "75-16gib"]
    assert list(members) == [
        *(f"iops-{suffix}" for suffix in ranges),
        *(f"tp-{suffix}" for suffix in ranges),
        *(f"lat-{suffix}" for suffix in ranges),
        *(f"wsat-{suffix}" for suffix in ranges),
    ]
    for name, member in members.items():
        procedure = procedure_from_mapping(member.test, member.options)
        assert procedure.deviations() == (), name
        assert procedure.edition == "PTS-C 1.2"


def test_other_suites_have_one_run_for_each_test() -> None:
    eight = ["iops", "tp", "lat", "wsat", "hir", "xsr", "ecw", "dirth"]
    assert list(plan_suite("pts-e", "sim:x")) == eight
    assert list(plan_suite("pts-c", "sim:x", common={"revision": "2.0"})) == eight[:4]
    amount = {"iops": {"ar_amount_gib": 4.0}}
    named = plan_suite("pts-c", "sim:x", tests=["iops", "hir"], special=amount)
    assert list(named) == ["iops", "hir"]


@pytest.mark.parametrize("test", ["hir", "xsr", "ecw", "dirth"])
def test_enterprise_tests_do_not_claim_the_client_edition(test: str) -> None:
    editions = {
        key: procedure_from_mapping(test, dict(zip(("edition", "revision"), key, strict=True)))
        for key in (("pts-e", "1.x"), ("pts-c", "1.x"), ("pts-c", "2.0"))
    }
    assert [procedure.edition for procedure in editions.values()] == [
        "PTS-E 1.1",
        "PTS-E 1.1 test, client settings",
        "PTS 2.0.2 test, client settings",
    ]


def test_segments_are_disclosed_where_the_edition_has_none() -> None:
    def deviations(**options: object) -> list[str]:
        test = Iops(IopsOptions(**options))  # type: ignore[arg-type]
        return [str(deviation) for deviation in test.deviations()]

    assert deviations(edition="pts-e", ar_amount_gib=8.0) == [
        "ar_amount_gib is 8; required by PTS active range: all of it"
    ]
    assert deviations(edition="pts-c", ar_amount_gib=16.0, active_range_pct=75.0) == []
    assert deviations(edition="pts-c", ar_amount_gib=4.0, ar_segments=1024) == [
        "ar_amount_gib is 4; required by PTS active range: 8,16",
        "ar_segments is 1024; required by PTS active range: 2048",
    ]
    assert deviations(edition="pts-c", ar_amount_gib=8.0, active_range_pct=50.0) == [
        "active_range_pct is 50; required by PTS active range: 100"
    ]


@pytest.mark.parametrize("stimulus", ["rnd-4k-w", "composite"])
def test_segments_limit_every_step_and_end_where_the_drive_ends(stimulus: str) -> None:
    options = WsatOptions(
        edition="pts-c",
        revision="2.0",
        stimulus=stimulus,
        ar_amount_gib=8.0,
    )
    test = Wsat(options)
    (job,) = test.stages(DRIVE)[0].steps(History(), 1)[0].workload.jobs
    assert job.segments is not None
    assert (job.segments.count, job.segments.amount_bytes) == (2048, 8 * GIB)
    assert job.range_bytes == round(0.75 * DRIVE.capacity_bytes) // max(
        size.bytes for size in job.block_sizes
    ) * max(size.bytes for size in job.block_sizes)
    left = DRIVE.capacity_bytes - job.offset_bytes - job.range_bytes
    assert 0 <= left < 1 << 20
    assert test.setup(DRIVE)["ar_amount"] == "75%, 8 GiB"


def test_streams_of_a_sequential_stimulus_share_the_segments() -> None:
    test = Wsat(WsatOptions(revision="2.0", stimulus="seq-128k-90", ar_amount_gib=8.0))
    (job,) = test.stages(DRIVE)[0].steps(History(), 1)[0].workload.jobs
    assert (job.pattern, job.threads, job.thread_stride_bytes) == ("sequential", 4, 2 * GIB)


def test_tp_goes_on_in_the_segments() -> None:
    test = Tp(TpOptions(edition="pts-c", ar_amount_gib=8.0))
    (stage,) = test.stages(DRIVE)
    (fill,) = test.wipc(DRIVE, 1 << 20)
    assert fill.workload.jobs[0].segments is None  # The fill covers the whole active range.
    reads, writes = stage.steps(History(), 1)
    for access in (reads, writes):
        (job,) = access.workload.jobs
        assert job.segments is not None and job.segments.length(1 << 20) == 4 << 20
    # The ranges placed end to end have 8 GiB in total.
    done = [row(0.0, 5 << 30, threads=1), row(0.0, 5 << 30, threads=1)]
    (job,) = continued(writes, done, DRIVE.capacity_bytes).workload.jobs
    assert job.write_start_bytes == 2 << 30
    # On a real drive, the step starts at the segment that the previous minute had reached.
    real = Tp(TpOptions(edition="pts-c", ar_amount_gib=8.0))
    drive = replace(DRIVE, simulated=False)
    (stage,) = real.stages(drive)
    history = History()
    here = history.begin(stage)
    here.rows.append(row(0.0, (1 << 30) + (6 << 20), threads=1))
    (job,) = stage.steps(history, 2)[1].workload.jobs
    assert job.start_bytes == (1 << 30) + (4 << 20)


@pytest.mark.parametrize(
    ("given", "threads", "depth"),
    [
        ({}, 4, 32),
        ({"edition": "pts-c"}, 2, 16),
        ({"threads": 3, "queue_depth": 7}, 3, 7),
        ({"wipc_threads": 1, "wipc_queue_depth": 32}, 1, 32),
    ],
)
def test_preconditioning_has_the_demand_of_the_test(
    given: dict[str, object], threads: int, depth: int
) -> None:
    test = Iops(IopsOptions(**given))  # type: ignore[arg-type]
    (step,) = test.wipc(DRIVE)
    (job,) = step.workload.jobs
    assert (job.threads, job.queue_depth) == (threads, depth)
    assert test.setup(DRIVE)["precondition_toio"] == f"TC {threads}/QD {depth}"
    # Each thread starts at a different position, and all threads together write the whole range
    # twice.
    assert job.thread_stride_bytes * (threads - 1) < (job.range_bytes or 0)
    assert job.volume_bytes == round(2 * DRIVE.capacity_bytes / (128 * KIB)) * 128 * KIB


def row(read_pct: float, bytes_: int, **more: object) -> StepRow:
    values: dict[str, object] = dict.fromkeys(StepRow.__dataclass_fields__)
    values |= {"pattern": "sequential", "block_bytes": 1 << 20, "read_pct": read_pct}
    values |= {"threads": 1, "queue_depth": 32, "bytes": bytes_}
    values |= {"read_bytes": round(bytes_ * read_pct / 100), "figures": {}, **more}
    return StepRow(**values)  # type: ignore[arg-type]


def step(read_pct: float, threads: int = 1) -> Step:
    job = Job(
        pattern="sequential",
        read_pct=read_pct,
        threads=threads,
        queue_depth=32,
        block_sizes=(BlockSize(1 << 20),),
        range_bytes=10 << 20,
        duration_ns=1,
    )
    return Step("s", Workload("w", (job,)), continues=True)


def test_streams_go_on_where_the_same_access_ended() -> None:
    rows = [row(0.0, 7 << 20), row(100.0, 2 << 20), row(0.0, 6 << 20), row(0.0, 99, threads=2)]
    (job,) = continued(step(0.0), rows, 1 << 30).workload.jobs
    # The stream has written 13 blocks in a range of 10 blocks.
    assert job.write_start_bytes == 3 << 20
    (job,) = continued(step(100.0), rows, 1 << 30).workload.jobs
    assert job.start_bytes == 2 << 20
    # There is no earlier step of the same kind.
    assert continued(step(50.0), rows, 1 << 30) == step(50.0)


def test_reads_and_writes_of_a_mix_have_streams_of_their_own() -> None:
    (job,) = continued(step(75.0), [row(75.0, 8 << 20)], 1 << 30).workload.jobs
    assert (job.start_bytes, job.write_start_bytes) == (6 << 20, 2 << 20)


def test_every_sequential_step_of_a_test_continues() -> None:
    test = Tp(TpOptions())
    for stage in test.stages(DRIVE):
        assert all(step.continues for step in stage.steps(History(), 1))


@pytest.mark.parametrize(("amount_gib", "pct"), [(120.0, 100.0), (16.0, 5.0)])
def test_segments_larger_than_the_range_are_refused(amount_gib: float, pct: float) -> None:
    test = Wsat(WsatOptions(edition="pts-c", ar_amount_gib=amount_gib, active_range_pct=pct))
    with pytest.raises(ConfigError, match=r"GiB of segments do not fit into the active range"):
        test.stages(DRIVE)
