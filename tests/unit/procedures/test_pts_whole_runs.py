"""Whole default runs of the standard's tests, step by step: docs/reference/pts-conformance.md.

Nothing is shortened, and the only options are edition and revision. The drive is a formula, and
nothing is stored, so a day of its time takes a second. Conditions are checked from the requested
I/Os and the measurements, never from the procedure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, pairwise
from typing import Any

import pytest

from tests.support.fake_engine import FakeEngine
from writecliff.engines.base import ProgressHook, StepResult
from writecliff.procedures.framework import simulate
from writecliff.procedures.model import Procedure, StepRow
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.pts import PtsProcedure
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.suite.plan import plan_suite
from writecliff.workload.model import Job, Workload

KIB, GIB, MINUTE_NS = 1 << 10, 1 << 30, 60_000_000_000
CAPACITY = 120_034_123_776
MIXES = [100.0, 95.0, 65.0, 50.0, 35.0, 5.0, 0.0]
SIZES = [int(size * KIB) for size in (1024, 128, 64, 32, 16, 8, 4, 0.5)]
SEVEN = [32, 16, 8, 6, 4, 2, 1]
ENTERPRISE, CLIENT = ("pts-e", "1.x"), ("pts-c", "1.x")
MERGED = ("pts-e", "2.0"), ("pts-c", "2.0")
EDITIONS = [ENTERPRISE, CLIENT, *MERGED]


@dataclass
class Watched(FakeEngine):
    """Records the requests in order: "purge", "cache on", or the job of a step."""

    asked: list[str | Job] = field(default_factory=list)

    def _run(self, workload: Workload, on_progress: ProgressHook | None) -> StepResult:
        (job,) = workload.jobs
        self.asked += [call for call in self.calls if not call.startswith("run ")]
        self.calls.clear()
        self.asked.append(job)
        return super()._run(workload, on_progress)


@dataclass
class Samples(RunProgress):
    """Record of the steps that were steady-state samples."""

    flags: list[bool] = field(default_factory=list)

    def step_result(self, result: StepResult, *, sample: bool) -> None:
        self.flags.append(sample)


@dataclass(frozen=True)
class Whole:
    """A complete run."""

    procedure: Procedure
    setup: Mapping[str, str]  # Entries in the header block.
    rows: Sequence[StepRow]
    samples: Sequence[bool]
    asked: Sequence[str | Job]

    def phase(self, name: str) -> list[StepRow]:
        return [row for row in self.rows if row.phase == name]

    def jobs(self, phase: str) -> list[Job]:
        """Return the drive's jobs in the phases whose names start with `phase`."""
        jobs = [job for job in self.asked if not isinstance(job, str)]
        assert len(jobs) == len(self.rows)
        pairs = zip(self.rows, jobs, strict=True)
        return [job for row, job in pairs if row.phase.startswith(phase)]

    def sampled(self, rows: Sequence[StepRow]) -> list[bool]:
        by_start = dict(zip((row.started_ns for row in self.rows), self.samples, strict=True))
        return [by_start[row.started_ns] for row in rows]


@cache
def whole(test: str, edition: tuple[str, str], **options: Any) -> Whole:
    given = {"edition": edition[0], "revision": edition[1], **options}
    drive, samples = Watched(capacity_bytes=CAPACITY), Samples()
    procedure = procedure_from_mapping(test, given)
    rows = simulate(procedure, drive, samples).rows
    return Whole(procedure, procedure.setup(drive.identify()), rows, samples.flags, drive.asked)


@pytest.fixture
def run() -> Callable[..., Whole]:
    """`run(test, (edition, revision), **options)`, once each."""
    return whole


# -- requirements of every test ------------------------------------------------------------------

EVERY = [
    *((test, ENTERPRISE) for test in ("iops", "tp", "lat", "wsat", "hir", "xsr", "ecw", "dirth")),
    *((test, edition) for edition in (CLIENT, *MERGED) for test in ("iops", "tp", "lat", "wsat")),
]
LOOPED = [(test, edition) for test, edition in EVERY if test != "xsr"]


def names(cases: Sequence[tuple[str, tuple[str, str]]]) -> list[str]:
    return ["-".join((test, *edition)) for test, edition in cases]


every = pytest.mark.parametrize(("test", "edition"), EVERY, ids=names(EVERY))


@every
def test_no_option_deviates(run: Any, test: str, edition: Any) -> None:
    assert run(test, edition).procedure.deviations() == ()


@every
def test_purge_and_then_the_write_cache_come_first(run: Any, test: str, edition: Any) -> None:
    asked = run(test, edition).asked
    purges = [n for n, what in enumerate(asked) if what == "purge"]
    cache = "cache on" if edition[0] == "pts-c" else "cache off"
    assert purges[0] == 0
    assert {asked[n + 1] for n in purges} == {cache}
    # The throughput test purges the drive before each block size.
    tests_of_their_own = 2 if test == "tp" and edition != CLIENT else 1
    assert len(purges) == tests_of_their_own


@every
def test_active_range_and_data_pattern(run: Any, test: str, edition: Any) -> None:
    whole = run(test, edition)
    share = 0.75 if edition == ("pts-c", "2.0") else 1.0
    for job in whole.jobs(""):
        largest = max(size.bytes for size in job.block_sizes)
        assert job.range_bytes == round(share * CAPACITY) // largest * largest
        assert (job.offset_bytes, job.segments) == (0, None)
        assert (job.compressible_pct, job.duplicate_pct) == (0.0, 0.0)
    setup = whole.setup
    assert (setup["active_range"], setup["ar_segments"]) == (f"{100 * share:g}%", "N/A")
    assert setup["data_pattern"] == "RND"


@every
def test_steps_follow_each_other_without_a_pause(run: Any, test: str, edition: Any) -> None:
    pairs = pairwise(run(test, edition).rows)
    assert all(before.ended_ns == after.started_ns for before, after in pairs)


@pytest.mark.parametrize(("test", "edition"), LOOPED, ids=names(LOOPED))
def test_rounds_end_with_the_first_steady_window(run: Any, test: str, edition: Any) -> None:
    """Check the rule, computed independently: spread at most 20 %, slope x 4 at most 10 %."""
    whole = run(test, edition)
    for phase in loops(test, edition):
        rounds = by_round(whole.phase(phase))
        tracked = [[value(rows) for rows in rounds] for value in variables(test, edition, phase)]
        steady = [
            last
            for last in range(5, len(rounds) + 1)
            if all(is_steady(values[last - 5 : last]) for values in tracked)
            and (test != "wsat" or fills_before(rounds[last - 5]) >= 2)
        ]
        assert steady and steady[0] == len(rounds) <= 25


def loops(test: str, edition: tuple[str, str]) -> list[str]:
    """Return the phases that end when they are steady."""
    if test == "tp":
        return ["rounds-1024k", *(["rounds-128k"] if edition != CLIENT else [])]
    return {
        "hir": ["precondition"],
        "ecw": ["precondition", "rounds"],
        "dirth": ["precondition", "rounds"],
    }.get(test, ["rounds"])


def variables(
    test: str, edition: tuple[str, str], phase: str
) -> list[Callable[[Sequence[StepRow]], float]]:
    """Return the tracking variables of a loop, as functions of the rows of a round."""
    if test == "iops":
        cells = [(4 * KIB, 0.0)]
        if edition[1] == "2.0":
            cells += [(64 * KIB, 65.0), (1024 * KIB, 100.0)]
        return [lambda rows, cell=cell: of_cell(rows, cell).iops for cell in cells]  # type: ignore[misc]
    if test == "lat":
        return [lambda rows: of_cell(rows, (4 * KIB, 0.0)).latency_mean_ns or 0.0]
    if test == "tp":
        return [lambda rows: rows[1].bytes_per_s]
    if test in ("ecw", "dirth"):
        # The first step after the pre-writes: TC 32/QD 32
        first = 0 if phase == "precondition" else 5
        return [lambda rows: rows[first].iops]
    return [lambda rows: rows[-1].iops]


def of_cell(rows: Sequence[StepRow], cell: tuple[int, float]) -> StepRow:
    (row_of_cell,) = (row for row in rows if (row.block_bytes, row.read_pct) == cell)
    return row_of_cell


def by_round(rows: Sequence[StepRow]) -> list[list[StepRow]]:
    return [list(group) for _, group in groupby(rows, key=lambda row: row.round)]


def is_steady(values: Sequence[float]) -> bool:
    mean = sum(values) / 5
    slope = sum((n - 2) * value for n, value in enumerate(values)) / 10
    return max(values) - min(values) <= 0.2 * mean and abs(slope) * 4 <= 0.1 * mean


def fills_before(rows: Sequence[StepRow]) -> float:
    """Return the drive fills when the sample of a round, its last step, starts."""
    return (rows[-1].host_write_bytes_total - rows[-1].host_write_bytes) / CAPACITY


def loads(rows: Sequence[StepRow]) -> set[tuple[Any, ...]]:
    """Return the pattern, threads and queue depth of the rows."""
    return {(row.pattern, row.threads, row.queue_depth) for row in rows}


def lengths(rows: Sequence[StepRow]) -> list[float]:
    """Return the step durations in minutes."""
    return [row.elapsed_ns / MINUTE_NS for row in rows]


def cells(rows: Sequence[StepRow]) -> list[tuple[Any, ...]]:
    return [(row.read_pct, row.block_bytes) for row in rows]


def demand(edition: tuple[str, str]) -> tuple[int, int]:
    return (4, 32) if edition[0] == "pts-e" else (2, 16)


# -- IOPS, throughput, latency -------------------------------------------------------------------


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("test", ["iops", "tp", "lat"])
def test_twice_the_capacity_is_written_first_at_the_demand_of_the_test(
    run: Any, test: str, edition: Any
) -> None:
    whole = run(test, edition)
    toio = {"iops": demand(edition), "tp": (1, 32), "lat": (1, 1)}[test]
    rows = [row for row in whole.rows if row.phase.startswith("precondition")]
    for row in rows:
        block = int(row.phase.partition("-")[2].rstrip("k") or 128) * KIB
        assert (row.block_bytes, row.read_pct) == (block, 0.0)
        assert row.host_write_bytes == pytest.approx(2 * CAPACITY, abs=block)
    assert len(rows) == len(loops(test, edition))
    assert loads(rows) == {("sequential", *toio)}
    setup = whole.setup
    assert setup["precondition_duration"] == "Twice User Capacity"
    assert setup["precondition_toio"] == "TC {}/QD {}".format(*toio)


@pytest.mark.parametrize("edition", EDITIONS)
def test_rounds_of_iops(run: Any, edition: Any) -> None:
    for rows in by_round(run("iops", edition).phase("rounds")):
        assert cells(rows) == [(mix, size) for mix in MIXES for size in SIZES]
        assert lengths(rows) == [1] * 56
        assert loads(rows) == {("random", *demand(edition))}


@pytest.mark.parametrize("edition", EDITIONS)
def test_rounds_of_throughput(run: Any, edition: Any) -> None:
    whole = run("tp", edition)
    phases = dict.fromkeys(row.phase for row in whole.rows)
    sizes = [1024, 128] if edition != CLIENT else [1024]
    assert [phase for phase in phases if phase.startswith("rounds")] == [
        f"rounds-{size}k" for size in sizes
    ]
    for size in sizes:
        for rows in by_round(whole.phase(f"rounds-{size}k")):
            assert cells(rows) == [(100.0, size * KIB), (0.0, size * KIB)]
            assert lengths(rows) == [1, 1]
            assert loads(rows) == {("sequential", 1, 32)}


@pytest.mark.parametrize("edition", EDITIONS)
def test_rounds_of_latency(run: Any, edition: Any) -> None:
    whole = run("lat", edition)
    for rows in by_round(whole.phase("rounds")):
        assert cells(rows) == [(mix, size) for mix in (100, 65, 0) for size in (8192, 4096, 512)]
        assert lengths(rows) == [1] * 9
        assert loads(rows) == {("random", 1, 1)}
    after = whole.phase("rth")
    assert cells(after) == ([(0.0, 4096)] if edition[1] == "2.0" else [])
    assert lengths(after) == [20] * len(after)


# -- write saturation ----------------------------------------------------------------------------


@pytest.mark.parametrize("edition", EDITIONS)
def test_write_saturation(run: Any, edition: Any) -> None:
    whole = run("wsat", edition)
    rows = whole.phase("rounds")
    assert whole.rows[0] == rows[0]  # The run has no earlier rows.
    assert set(cells(rows)) == {(0.0, 4096)}
    assert loads(rows) == {("random", *demand(edition))}
    for number, group in enumerate(by_round(rows), 1):
        assert lengths(group) == [1] * 31, number  # Samples are 30 minutes apart.
        assert whole.sampled(group) == [False] * 30 + [True]
    for name in ("latency_mean_ns", "latency_p999_ns", "latency_p9999_ns", "latency_p99999_ns",
                 "latency_max_ns", "host_write_bytes_total", "drive_fills"):  # fmt: skip
        assert all(getattr(row, name) for row in rows), name
    after = whole.phase("rth")
    assert cells(after) == ([(0.0, 4096)] if edition[1] == "2.0" else [])
    assert lengths(after) == [20] * len(after)


@pytest.mark.parametrize(("revision", "hours"), [("1.x", 24), ("2.0", 6)])
def test_a_drive_that_never_settles_is_written_for_the_time_of_the_standard(
    revision: str, hours: int
) -> None:
    drive = FakeEngine(capacity_bytes=CAPACITY, noise=0.9)
    test = procedure_from_mapping("wsat", {"revision": revision})
    rows = simulate(test, drive).rows
    assert sum(lengths([row for row in rows if row.phase == "rounds"])) == hours * 60
    assert test.deviations() == ()


# -- host idle recovery, cross stimulus recovery -------------------------------------------------


def test_host_idle_recovery(run: Any) -> None:
    whole, waits = run("hir", ENTERPRISE), (5, 10, 15, 25, 50)
    assert list(dict.fromkeys(row.phase for row in whole.rows)) == [
        "precondition",
        *(f"{kind}-{wait}" for wait in waits for kind in ("wait", "baseline")),
    ]
    assert set(cells(whole.rows)) == {(0.0, 4096)}
    assert loads(whole.rows) == {("random", 4, 32)}
    for rows in by_round(whole.phase("precondition")):
        assert lengths(rows) == [1] * 30
        assert whole.sampled(rows) == [False] * 29 + [True]
    for wait in waits:
        jobs = whole.jobs(f"wait-{wait}")[: len(whole.phase(f"wait-{wait}"))]
        assert {(job.burst_ns, job.pause_ns) for job in jobs} == {(5 * 10**9, wait * 10**9)}
        assert sum(job.duration_ns or 0 for job in jobs) == 360 * (5 + wait) * 10**9
        assert sum(lengths(whole.phase(f"baseline-{wait}"))) == 30
    assert {job.pause_ns for job in whole.jobs("baseline")} == {0}
    assert whole.setup["wait_states"] == "1,2,3,5,10"


def test_cross_stimulus_recovery(run: Any) -> None:
    whole = run("xsr", ENTERPRISE)
    groups = [("sequential", 1024 * KIB, 8), ("random", 8 * KIB, 6), ("sequential", 1024 * KIB, 8)]
    assert list(dict.fromkeys(row.phase for row in whole.rows)) == ["ag1", "ag2", "ag3"]
    for name, (pattern, block, hours) in zip(("ag1", "ag2", "ag3"), groups, strict=True):
        rows = whole.phase(name)
        assert sum(lengths(rows)) == hours * 60
        assert set(cells(rows)) == {(0.0, block)}
        assert loads(rows) == {(pattern, 1, 32)}


# -- composite workload, demand intensity --------------------------------------------------------


@pytest.mark.parametrize(("test", "read_pct"), [("ecw", 40.0), ("dirth", 65.0)])
def test_demand_variation(run: Any, test: str, read_pct: float) -> None:
    whole = run(test, ENTERPRISE)
    for rows in by_round(whole.phase("precondition")):
        assert lengths(rows) == [1] * 30
        assert loads(rows) == {("random", 32, 32)}
        assert whole.sampled(rows) == [True] + [False] * 29
        assert {row.read_pct for row in rows} == {0.0}
    for rows in by_round(whole.phase("rounds")):
        before, loop = rows[:5], rows[5:]
        assert lengths(rows) == [1] * 54
        assert (loads(before), {row.read_pct for row in before}) == ({("random", 32, 32)}, {0.0})
        assert [(row.threads, row.queue_depth) for row in loop] == [
            (threads, depth) for threads in SEVEN for depth in SEVEN
        ]
        assert {row.read_pct for row in loop} == {read_pct}
    points = {}
    for point in ("max", "mid", "min"):
        rows = whole.phase(f"rth-{point}")
        assert lengths(rows) == [1] * 60 + [10]
        assert [row.read_pct for row in rows] == [0.0] * 60 + [read_pct]
        ((_, *points[point]),) = loads(rows)
    assert points["min"] == [1, 1]


def test_the_composite_is_that_of_jesd219(run: Any) -> None:
    shares = {512: 4, 1024: 1, 1536: 1, 2048: 1, 2560: 1, 3072: 1, 3584: 1, 4096: 67, 8192: 10,
              16384: 7, 32768: 3, 65536: 3}  # fmt: skip
    for job in run("ecw", ENTERPRISE).jobs(""):
        assert {size.bytes: size.weight for size in job.block_sizes} == shares
        zones = [(zone.access_pct, zone.size_pct) for zone in job.addresses.zones]
        assert zones == [(50, 5), (30, 15), (20, 80)]


def test_dirth_is_the_oltp_load(run: Any) -> None:
    whole = run("dirth", ENTERPRISE)
    assert {row.block_bytes for row in whole.rows} == {8192}
    assert whole.setup["subtitle"] == "DIRTH - OLTP - RND 8KiB RW = 65:35"


# -- active ranges of the client edition ---------------------------------------------------------

RANGES = plan_suite("pts-c", "sim:x")


@pytest.mark.parametrize("name", RANGES)
def test_each_active_range_of_the_client_suite(run: Any, name: str) -> None:
    test, stored = RANGES[name].test, RANGES[name].options
    options = {  # The values are tuples, because runs are shared by their options.
        option: tuple(value) if isinstance(value, list) else value
        for option, value in stored.items()
        if option != "edition"
    }
    whole = run(test, CLIENT, **options)
    pct, gib = options["active_range_pct"], options["ar_amount_gib"]
    assert whole.asked[0] == "purge"
    assert whole.procedure.deviations() == ()
    for job in whole.jobs("precondition"):
        assert job.segments is None  # The job covers the whole active range.
    for job in whole.jobs("rounds"):
        assert job.segments is not None
        assert (job.segments.count, job.segments.amount_bytes) == (2048, gib * GIB)
    for job in whole.jobs(""):
        assert job.range_bytes == pytest.approx(pct / 100 * CAPACITY, abs=1 << 20)
    setup = whole.setup
    assert (setup["ar_segments"], setup["ar_amount"]) == ("2048", f"{pct:g}%, {gib:g} GiB")


# -- where sources differ ------------------------------------------------------------------------

POINTS = ("half-way to TC 1/QD 1", "5 ms")  # Operating points in ECW and DIRTH.


@pytest.mark.parametrize(
    ("test", "edition", "options", "here"),
    [
        ("iops", ENTERPRISE, {}, ["TC 4/QD 32, the test has TC 4/QD 32"]),
        ("iops", CLIENT, {}, ["100 %, all of it, without segments",
                              "TC 2/QD 16, the test has TC 2/QD 16"]),
        ("tp", CLIENT, {"active_range_pct": 75.0, "ar_amount_gib": 8.0},
         ["75 %, 8 GiB of it in 2048 segments", "TC 1/QD 32, the test has TC 1/QD 32"]),
        ("iops", MERGED[1], {}, ["75 %", "TC 2/QD 16, the test has TC 2/QD 16"]),
        ("lat", ENTERPRISE, {},
         ["TC 1/QD 1, the test has TC 1/QD 1", "the average", "the longest"]),
        ("lat", MERGED[0], {"histogram_reads": True},
         ["TC 1/QD 1, the test has TC 1/QD 1", "the average", "the longest", "0/100, 100/0"]),
        ("wsat", ENTERPRISE, {}, ["steady or 24 h", "after 2 x user capacity"]),
        ("wsat", MERGED[0], {}, ["steady or 6 h", "after 2 x user capacity"]),
        ("wsat", ENTERPRISE, {"end": ("capacity",)}, ["4X user capacity"]),
        ("hir", ENTERPRISE, {}, ["rounds of 30 min until steady", "the last"]),
        ("hir", ENTERPRISE, {"reading": "36-min"}, ["36 min"]),
        ("xsr", ENTERPRISE, {}, ["8/6/8 h"]),
        ("xsr", ENTERPRISE, {"reading": "6-8-6"}, ["6/8/6 h"]),
        ("ecw", ENTERPRISE, {}, ["7 x 7, 5 min", "averages of the window", *POINTS]),
        ("ecw", MERGED[0], {"reading": "6x6"},
         ["6 x 6, 10 min", "averages of the window", *POINTS]),
        ("dirth", ENTERPRISE, {"operating_points": "last"}, ["the last round", *POINTS]),
    ],
)  # fmt: skip
def test_the_choice_between_sources_is_named(
    test: str, edition: Any, options: dict[str, Any], here: list[str]
) -> None:
    given = {"edition": edition[0], "revision": edition[1], **options}
    procedure = procedure_from_mapping(test, given)
    assert isinstance(procedure, PtsProcedure)
    assert [choice.here for choice in procedure.choices()] == here
    assert procedure.deviations() == ()
