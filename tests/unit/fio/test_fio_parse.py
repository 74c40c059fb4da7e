"""fio's json+ as results, compared with documents recorded from fio 3.33 and shortened."""

from __future__ import annotations

import json
import math
import shutil
import statistics
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from writecliff.engines.base import Operation
from writecliff.engines.fio import parse
from writecliff.engines.fio.intervals import IntervalSeries, difference
from writecliff.engines.fio.process import DocumentSplitter
from writecliff.errors import EngineError
from writecliff.workload.model import Job

RECORDED = Path(__file__).parent / "fixtures" / "fio-3.33-two-jobs.out"


@pytest.fixture
def documents() -> list[dict[str, Any]]:
    return DocumentSplitter().feed(RECORDED.read_bytes())


def fio_bin(value_ns: int) -> tuple[int, int]:
    """Return (fio's key, upper end) of a latency's bin, as computed in stat.c."""
    if value_ns.bit_length() <= 7:
        return value_ns, value_ns
    error_bits = value_ns.bit_length() - 7
    index = ((error_bits + 1) << 6) + (63 & (value_ns >> error_bits))
    width = 1 << ((index >> 6) - 1)
    start = (1 << ((index >> 6) + 5)) + (index % 64) * width
    return start + width // 2, start + width - 1


def stats_of(latencies_ns: list[int]) -> parse.OperationStats:
    """Return fio's report of these latencies."""
    bins: dict[int, int] = {}
    for value in latencies_ns:
        key, _ = fio_bin(value)
        bins[key] = bins.get(key, 0) + 1
    sd = statistics.stdev(latencies_ns) if len(latencies_ns) > 1 else 0.0
    return parse.OperationStats(
        ios=len(latencies_ns),
        bytes=4096 * len(latencies_ns),
        runtime_ms=1000,
        min_ns=min(latencies_ns),
        max_ns=max(latencies_ns),
        mean_ns=statistics.fmean(latencies_ns),
        sd_ns=sd,
        bins=bins,
    )


def test_documents_and_messages_are_separated_however_they_arrive() -> None:
    data = b"fio: pid=9, err=28/file:io_u.c:1876\n" + RECORDED.read_bytes() + b"fio: bye\n"
    splitter = DocumentSplitter()
    parsed = [doc for start in range(len(data)) for doc in splitter.feed(data[start : start + 1])]
    assert len(parsed) == 3
    assert list(splitter.messages) == ["fio: pid=9, err=28/file:io_u.c:1876", "fio: bye"]


WRITE: Operation = "write"


def test_broken_json_is_an_engine_error() -> None:
    with pytest.raises(EngineError, match="cannot be read"):
        DocumentSplitter().feed(b"{\n x\n}\n")


def test_recorded_figures(documents: list[dict[str, Any]]) -> None:
    stats = parse.read_document(documents[-1])
    assert set(stats) == {(0, "read"), (0, "write"), (1, "trim")}
    assert stats[0, "read"].ios == 20
    assert stats[0, "read"].bytes == 20 * 4096
    assert stats[1, "trim"].bytes == 6 * 65536
    for operation_stats in stats.values():
        assert sum(operation_stats.bins.values()) == operation_stats.ios
        assert operation_stats.min_ns <= operation_stats.mean_ns <= operation_stats.max_ns


def test_recorded_histogram_keeps_fios_moments(documents: list[dict[str, Any]]) -> None:
    pytest.importorskip("writecliff._native", reason="the native module is not built")
    asked = (Job(name="mix"), Job(name="trim", start_delay_ns=7 * parse.MS))
    jobs = parse.job_results(asked, parse.read_document(documents[-1]))
    assert [(job.name, job.began_ns) for job in jobs] == [("mix", 0), ("trim", 7 * parse.MS)]
    assert set(jobs[0].operations) == {"read", "write"}
    read, raw = jobs[0].operations["read"], documents[-1]["jobs"][0]["read"]["lat_ns"]
    assert read.response is None
    assert read.service.count == raw["N"]
    assert (read.service.min_ns, read.service.max_ns) == (raw["min"], raw["max"])
    assert read.service.mean_ns == pytest.approx(raw["mean"])
    for q in (0.5, 0.99, 0.9999):
        value = read.service.quantile(q).value_ns
        assert value is None or value <= raw["max"]


def test_bytes_of_one_block_size_follow_from_the_ios(documents: list[dict[str, Any]]) -> None:
    """Check a running job, whose bytes fio counts before its I/Os."""
    assert parse.read_document(documents[-1], {0: 8192})[0, "read"].bytes == 20 * 8192


def test_missing_keys_are_an_engine_error() -> None:
    with pytest.raises(EngineError, match="unexpected form"):
        parse.read_document({"jobs": [{"groupid": 0}]})


@pytest.mark.parametrize(
    ("value", "upper"), [(0, 0), (127, 127), (128, 129), (12_345, 12_415), (10**6, 1_007_615)]
)
def test_bin_upper_end(value: int, upper: int) -> None:
    assert parse.bin_upper_ns(value) == upper


def test_every_bin_ends_where_fios_does() -> None:
    for bits in range(34):
        for value in {1 << bits, (1 << bits) + (1 << bits) // 3, (2 << bits) - 1}:
            middle, upper = fio_bin(value)
            assert parse.bin_upper_ns(value) == parse.bin_upper_ns(middle) == upper, value


def test_recorded_bins_have_fios_layout(documents: list[dict[str, Any]]) -> None:
    for operation_stats in parse.read_document(documents[-1]).values():
        assert [fio_bin(middle)[0] for middle in operation_stats.bins] == list(operation_stats.bins)


def test_latencies_beyond_fios_last_bin_count_as_the_maximum() -> None:
    native = pytest.importorskip("writecliff._native", reason="the native module is not built")
    slow = replace(
        stats_of([1000] * 9 + [94_000_000_000]), bins={1004: 9, parse.LAST_BIN_NS + (1 << 26): 1}
    )
    histogram = parse.histogram_of(slow)
    assert isinstance(histogram, native.Histogram)
    lower, _, counts = histogram.buckets()
    assert counts[-1] == 1
    assert lower[-1] > parse.CEILING_NS
    (warning,) = parse.ceiling_warnings(("job",), {(0, "write"): slow})
    assert "17.2 s" in warning


def test_interval_rows_are_what_was_added() -> None:
    first = [1000, 5000, 90_000, 2000]
    second = [3000, 7000, 60_000]
    row = difference(stats_of(first), stats_of(first + second))
    assert row is not None
    assert (row.ios, row.bytes) == (3, 3 * 4096)
    assert row.mean_ns == pytest.approx(statistics.fmean(second))
    assert row.sd_ns == pytest.approx(statistics.stdev(second))
    assert 60_000 <= row.max_ns <= 60_000 * (1 + 1 / 64)


def test_a_new_maximum_of_the_run_is_exact() -> None:
    row = difference(stats_of([1000, 2000]), stats_of([1000, 2000, 123_457]))
    assert row is not None
    assert row.max_ns == 123_457
    assert math.isnan(row.sd_ns)  # A single I/O has no standard deviation.
    assert difference(stats_of([1000]), stats_of([1000])) is None


def test_what_a_step_cut_out_of_a_load_did() -> None:
    first, second = [1000, 5000, 90_000, 2000], [3000, 7000, 60_000]
    added = parse.stats_since(stats_of(first), stats_of(first + second))
    assert added is not None
    assert (added.ios, sum(added.bins.values()), added.bytes) == (3, 3, 3 * 4096)
    assert 3000 * (1 - 1 / 64) <= added.min_ns <= 3000
    assert 60_000 <= added.max_ns <= 60_000 * (1 + 1 / 64)
    assert added.mean_ns == pytest.approx(statistics.fmean(second))
    faster = parse.stats_since(stats_of(first), stats_of([*first, 777]))
    assert faster is not None
    # The bin contains a new minimum, and its end is the maximum.
    assert (faster.min_ns, faster.max_ns) == (777, 783)
    assert parse.stats_since(stats_of(first), stats_of(first)) is None


def test_a_series_that_begins_at_a_cut_has_what_came_after() -> None:
    first, more = [1000] * 5, [2000, 3000]
    begin = (2000.0, {(0, WRITE): replace(stats_of(first), runtime_ms=2000)})
    series = IntervalSeries((0.0,), 1000, begin)
    for runtime_ms, ios in ((3000, 1), (4000, 2)):
        series.add({(0, WRITE): replace(stats_of(first + more[:ios]), runtime_ms=runtime_ms)})
    columns = series.columns()
    assert (columns["end_ns"] // 10**6).tolist() == [1000, 2000]
    assert columns["ios"].tolist() == [1, 1]
    assert (series.elapsed_ms, series.ios, series.latest[0]) == (2000, 2, 4000)
    assert series.stats[0, WRITE].ios == 2


def test_a_report_in_the_first_millisecond_is_no_row_of_its_own() -> None:
    series = IntervalSeries((0.0,), 100)
    series.add({(0, WRITE): replace(stats_of([1000]), runtime_ms=0)})
    series.add({(0, WRITE): replace(stats_of([1000] * 3), runtime_ms=100)})
    columns = series.columns()
    assert ((columns["end_ns"] // 10**6).tolist(), columns["ios"].tolist()) == ([100], [3])


def test_series_of_the_recorded_run(documents: list[dict[str, Any]]) -> None:
    series = IntervalSeries((0.0, 0.0), 1000)
    for document in documents:
        series.add(parse.read_document(document))
    columns = series.columns()
    final = parse.read_document(documents[-1])
    for (job, operation), operation_stats in final.items():
        code = ("read", "write", "trim").index(operation)
        mine = (columns["job"] == job) & (columns["operation"] == code)
        assert columns["ios"][mine].sum() == operation_stats.ios
        assert columns["bytes"][mine].sum() == operation_stats.bytes
        assert columns["latency_max_ns"][mine].max() == operation_stats.max_ns
        mean = (columns["latency_mean_ns"] * columns["ios"])[mine].sum() / operation_stats.ios
        assert mean == pytest.approx(operation_stats.mean_ns)
    assert sorted(set(columns["end_ns"])) == [895_000_000, 1_895_000_000, 2_501_000_000]
    assert len({len(column) for column in columns.values()}) == 1


def test_a_sliver_at_the_end_joins_the_last_row() -> None:
    series = IntervalSeries((0.0,), 1000)
    first, last = stats_of([1000] * 5), stats_of([1000] * 5 + [2000])
    series.add({(0, "write"): first})
    series.add({(0, "write"): replace(last, runtime_ms=1003)})
    columns = series.columns()
    assert list(columns["ios"]) == [6]
    assert list(columns["end_ns"]) == [1_003_000_000]


def test_a_stall_is_a_row_without_ios_but_an_ended_job_has_no_rows() -> None:
    series = IntervalSeries((0.0, 0.0), 1000)
    done = stats_of([1000])
    for second in (1, 2, 3):
        running = replace(stats_of([1000] * (1 if second < 3 else 9)), runtime_ms=1000 * second)
        series.add({(0, "write"): running, (1, "write"): done})
    columns = series.columns()
    mine = columns["job"] == 0
    assert list(columns["ios"][mine]) == [1, 0, 8]
    assert math.isnan(columns["latency_mean_ns"][mine][1])
    assert list(columns["ios"][~mine]) == [1]


def document_with_flushes(latencies_ns: list[int], *, writes: int, runtime_ms: int) -> Any:
    """Check fio's report of a job with fdatasync, whose `total_ios` is 0."""

    def section(of: parse.OperationStats) -> dict[str, Any]:
        latency = {"min": of.min_ns, "max": of.max_ns, "mean": of.mean_ns, "stddev": of.sd_ns}
        bins = {str(middle): count for middle, count in of.bins.items()}
        return {"total_ios": 0, "lat_ns": {**latency, "N": of.ios, "bins": bins}}

    none = {"io_bytes": 0, "runtime": 0, "lat_ns": {"N": 0}}
    write = section(stats_of([7000] * writes))
    job = {"read": none, "trim": none, "sync": section(stats_of(latencies_ns)),
           "write": {**write, "io_bytes": 4096 * writes, "runtime": runtime_ms}}  # fmt: skip
    return {"jobs": [{"groupid": 0, **job}]}


def test_flushes_are_measured_and_are_no_ios() -> None:
    first = parse.read_document(document_with_flushes([150_000] * 9, writes=10, runtime_ms=1000))
    last = parse.read_document(
        document_with_flushes([150_000] * 9 + [400_000] * 6, writes=16, runtime_ms=2000), {0: 4096}
    )
    whole, second = IntervalSeries((0.0,), 1000), IntervalSeries((0.0,), 1000, (1000.0, first))
    for series in (whole, second):
        series.add(last)
    assert (whole.ios, second.ios) == (16, 6)
    assert set(whole.columns()["operation"]) == {1} and whole.columns()["ios"].sum() == 16
    (job,) = parse.job_results((Job(name="log"),), whole.stats)
    (later,) = parse.job_results((Job(name="log"),), second.stats)
    assert job.flush is not None and later.flush is not None
    assert (job.flush.ios, job.flush.bytes, job.operations["write"].bytes) == (15, 0, 65536)
    assert job.flush.service.mean_ns == 250_000 and job.flush.service.max_ns == 400_000
    assert (later.flush.ios, later.flush.service.mean_ns) == (6, 400_000)
    assert job.elapsed_ns == 2_000_000_000


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_real_log_takes_as_long_as_its_writes_and_flushes(tmp_path: Path) -> None:
    from writecliff.engines.fio.finished import finished_steps

    done = subprocess.run(
        ["fio", "--name=log", f"--filename={tmp_path / 'x'}", "--size=1m", "--bs=4k", "--rw=write",
         "--fdatasync=2", "--output-format=json+", "--lat_percentiles=1"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    document = json.loads(done.stdout[done.stdout.index("{") :])
    (step,) = finished_steps(document, "log")
    (job,) = step.result.jobs
    assert job.flush is not None and job.flush.ios == 127 and job.operations["write"].ios == 256
    assert job.flush.service.mean_ns == pytest.approx(document["jobs"][0]["sync"]["lat_ns"]["mean"])


def test_a_delayed_job_ends_after_its_delay() -> None:
    series = IntervalSeries((0.0, 5000.0), 1000)
    series.add({(0, "write"): stats_of([1000]), (1, "write"): stats_of([1000])})
    assert series.elapsed_ms == 6000
