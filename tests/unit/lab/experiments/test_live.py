"""Experiments with real applications: client output, trial statistics, and page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.devices import describe, open_device
from writecliff.errors import ConfigError, WritecliffError
from writecliff.lab.experiments import LIVE, experiment, live_application
from writecliff.lab.experiments.live import cassandra, page, rocksdb
from writecliff.lab.experiments.live.machine import small_drive, stretched
from writecliff.lab.experiments.live.model import MIB, Client, Condition, Part, Ratio, Result, Trial
from writecliff.lab.experiments.live.trials import schedule

RECORDED = Path(__file__).parents[3] / "support/recorded/live"


def test_the_client_of_cassandra_is_understood() -> None:
    lines = (RECORDED / "cassandra.txt").read_text().splitlines()
    client = cassandra.client_of(lines)
    assert (client.operations, client.seconds) == (200_000, 173.1)
    assert client.latency_ns == {
        "mean": 12_978_630,
        "p50": 10_338_547,
        "p99": 56_300_385,
        "p99_9": 309_432_030,
        "max": 555_422_907,
    }
    for without in ("mixed: ", "write latency, mixed"):
        with pytest.raises(WritecliffError, match="no figures"):
            cassandra.client_of([line for line in lines if not line.startswith(without)])


def test_the_client_of_rocksdb_is_understood() -> None:
    text = (RECORDED / "rocksdb.json").read_text()
    client = rocksdb.client_of(text)
    assert (client.operations, round(client.seconds)) == (200_000, 265)
    assert client.latency_ns["p50"] < client.latency_ns["p99"] < client.latency_ns["max"]
    for malformed in ("", "[]", '{"operations": 1}'):
        with pytest.raises(WritecliffError, match="no figures"):
            rocksdb.client_of(malformed)


def test_every_other_pair_begins_with_streams() -> None:
    order = schedule(2, (False, True))
    assert [(n, c.trim, c.streams) for n, c in order] == [
        (0, False, False), (0, False, True), (0, True, False), (0, True, True),
        (1, False, True), (1, False, False), (1, True, True), (1, True, False),
    ]  # fmt: skip


@pytest.mark.parametrize("name", LIVE)
def test_the_parts_fill_a_small_drive(name: str, tmp_path: Path) -> None:
    application = live_application(name)
    path, device = small_drive("sas-ms-480", application.parts, application.unit_bytes, tmp_path)
    again = describe(open_device(path.read_text(), path.name))
    assert again == replace(device, path=path.name)
    wanted = sum(part.size_bytes for part in application.parts)
    assert wanted < device.capacity_bytes < 1.2 * wanted
    assert device.streams == 1 + len(application.parts)
    assert 0.5 < device.flash_bytes("x") / (device.reclaim_units or 0) / application.unit_bytes < 2
    ranges = stretched(application.parts, device.capacity_bytes)
    ends = [offset + size for offset, size in ranges.values()]
    assert [offset for offset, _ in ranges.values()] == [0, *ends[:-1]]
    assert 0 <= device.capacity_bytes - ends[-1] < MIB


def test_ratios_have_an_interval() -> None:
    assert Ratio.of([1.5]) == Ratio(pytest.approx(1.5), None, None)
    ratio = Ratio.of([1.1, 1.2, 1.3])
    assert ratio.mean == pytest.approx((1.1 * 1.2 * 1.3) ** (1 / 3))
    # The logarithms 0.0953, 0.1823 and 0.2624 have the mean 0.1800 and the standard deviation
    # 0.0836, and t is 4.303 at 2 degrees of freedom.
    assert (ratio.low, ratio.high) == (
        pytest.approx(0.973, abs=1e-3),
        pytest.approx(1.473, abs=1e-3),
    )
    assert ratio.reaches(0.9) == "reached"
    assert ratio.reaches(1.2) == "neither reached nor ruled out"
    assert ratio.reaches(1.5) == "not reached"
    assert Ratio.of([1.5]).reaches(1.45) == "reached, in one pair"
    assert page.ratio_text(Ratio(1.5, 1.2, 1.8)) == "1.50 (1.20 to 1.80)"
    assert page.ratio_text(Ratio(1.5, 0.1, 15.0)) == "1.50 (no interval)"


def trial(streams: bool, repeat: int, waf: float, seconds: float) -> Trial:
    points = {"mean": 4e6, "p50": 1e6, "p99": 1e8 * waf, "p99_9": 2e8, "max": 3e8}
    written = [{"numbers": [0], "written_bytes": 900 * MIB}]
    if streams:
        written = [{"numbers": [1], "written_bytes": 300 * MIB},
                   {"numbers": [2], "written_bytes": 600 * MIB}]  # fmt: skip
    session = {
        "waf": waf,
        "slow_down": 10.0,
        "lateness_share": 0.02,
        "lifetime": {"endurance_bytes": 3e12 / waf},
        "wall_s": seconds,
        "operations": {
            "write": {"bytes": 900 * MIB, "requests": 1000, "latency": {"mean_ns": 2e6}}
        },
        "streams": written,
    }
    position = 1 + 2 * repeat + (streams != (repeat % 2 == 1))
    condition = Condition(False, streams)
    return Trial(
        condition, repeat, position, Client(1000, seconds, points), session, f"runs/{position}"
    )


@pytest.fixture
def result() -> Result:
    wafs = {(False, 0): 1.6, (True, 0): 1.2, (False, 1): 1.5, (True, 1): 1.2}
    trials = [trial(streams, n, waf, 10.0 * waf) for (streams, n), waf in wafs.items()]
    return Result(rocksdb.RocksDB(), "sas-ms-480", "x.toml", 1 << 29, 4e6, 150, 14.5, tuple(trials))


def test_streams_are_compared_in_pairs(result: Result) -> None:
    (comparison,) = result.comparisons()
    assert comparison.lifetime.mean == pytest.approx((1.6 / 1.2 * 1.5 / 1.2) ** 0.5)
    assert comparison.throughput.mean == pytest.approx(comparison.lifetime.mean)
    assert comparison.latency["p99"].mean == pytest.approx(1 / comparison.lifetime.mean)
    assert comparison.latency["p50"].mean == 1
    # The client performs 1,000 operations in 16 s of wall time on a drive that is slowed down by
    # 10.
    assert result.trials[0].throughput == pytest.approx(625)
    assert result.trials[0].latency_ns("p50") == 1e5


def test_the_page_says_what_was_claimed_and_found(result: Result) -> None:
    findings = list(page.findings(result))
    assert "lasts 1.29 (" in findings[0]
    assert "claimed 1.33 is neither reached nor ruled out" in findings[0]
    plain = page.mapping(result)
    assert json.loads(json.dumps(plain))["comparisons"][0]["trim"] is False
    shown = page.page(result)
    texts = [
        cell
        for part in shown.sections
        for table in part.tables
        for row in table.rows
        for cell in row
    ]
    assert {"1.60", "write-ahead log", "33 %"} <= set(texts)
    assert [figure.name for part in shown.sections for figure in part.figures] == [
        "waf",
        "operations",
    ]
    # 1,000 requests of 2 ms take 1.6 s of drive time.
    assert result.trials[0].outstanding == pytest.approx(1.25)
    assert not [t for t in findings if "idle" in t]
    (idle,) = [t for t in page.findings(_with(result, wall_s=80.0)) if "idle" in t]
    assert "0.2 writes outstanding" in idle
    (late,) = [t for t in page.findings(_with(result, lateness_share=0.4)) if "late" in t]
    assert "40 %" in late


def _with(result: Result, **session: float) -> Result:
    """Return the result with another session in the first trial."""
    first = result.trials[0]
    other = replace(first, session={**first.session, **session})
    return replace(result, trials=(other, *result.trials[1:]))


def test_unknown_experiments_are_refused() -> None:
    with pytest.raises(ConfigError, match="live experiment"):
        live_application("fms-fio")
    with pytest.raises(ConfigError) as caught:
        experiment("streams-rocksdb")
    assert "--live" in str(caught.value.hint)


@pytest.mark.parametrize("words", [("--repeats", "0"), ("--trim", "sometimes")])
def test_bad_options_are_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, str]
) -> None:
    cli = CommandLine(capsys)
    assert cli(["lab", "experiment", "streams-rocksdb", "--live", *words]).code == 2


def test_a_part_needs_no_stream_of_the_default() -> None:
    for name in LIVE:
        streams = [part.stream for part in live_application(name).parts]
        assert streams == list(range(1, len(streams) + 1))
        assert isinstance(live_application(name).parts[0], Part)
