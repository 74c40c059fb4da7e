"""ACT: rates compared with its documentation, configuration files, assessment and search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from writecliff.errors import ConfigError
from writecliff.procedures.campaigns.act import Act
from writecliff.procedures.campaigns.act_config import ActOptions, config_lines, read_config
from writecliff.procedures.campaigns.act_judge import (
    THRESHOLDS_MS,
    next_multiple,
    slices_of,
    trial_of,
)
from writecliff.procedures.campaigns.act_load import jobs_of, record_sizes
from writecliff.procedures.model import StepRow
from writecliff.report.campaigns.act_text import dump_lines, table_text

OLD_FILE = """
# act config file for testing 1 device at 3 times normal load
device-names: /dev/sdb
queue-per-device: no
num-queues: 2
threads-per-queue: 8
test-duration-sec: 86400
report-interval-sec: 1
read-reqs-per-sec: 6000
large-block-ops-per-sec: 70
read-req-num-512-blocks: 3
large-block-op-kbytes: 128
use-valloc: no
num-write-buffers: 256
scheduler-mode: noop
"""


def act(**options: object) -> Act:
    return Act(ActOptions(**options))  # type: ignore[arg-type]


def test_1x_is_what_act_derives() -> None:
    """Check floor(131072 / 1536) = 85 records per block; 1000 / 85 x 2 = 23.53 reads and writes."""
    rates = act().rates()
    assert (rates.reads, rates.writes, rates.stored_bytes) == (2000, 0, 1536)
    assert rates.large_reads == rates.large_writes == pytest.approx(2 * 1000 / 85)
    assert act(load="3x").rates().large_writes == pytest.approx(3 * 2 * 1000 / 85)


def test_records_are_rounded_as_the_version_does() -> None:
    """Check that 1500 bytes are stored as 1504 in ACT 6 (87 per block) and as 1536 in 3.0 (85)."""
    assert act(record_bytes=1500).rates().large_reads == pytest.approx(2 * 1000 / 87)
    old = act(record_bytes=1500, model="3.x").rates()
    assert old.stored_bytes == 1536
    assert old.large_reads == pytest.approx(2 * 1000 / 85)


def test_the_options_of_the_load_model() -> None:
    assert act(update_pct=50.0).rates().reads == 2500
    assert act(replication_factor=2).rates().large_writes == pytest.approx(4 * 1000 / 85)
    assert act(defrag_lwm_pct=60.0).rates().large_writes == pytest.approx(2.5 * 1000 / 85)
    assert act(no_defrag_reads=True).rates().large_reads == 0
    committed = act(commit_to_device=True).rates()
    assert committed.writes == 1000
    assert committed.large_writes == pytest.approx(1000 / 85)
    assert committed.large_reads == pytest.approx(2000 / 85)


def test_jobs_of_both_models() -> None:
    new = act(load="2x")
    reads, large_reads, large_writes = jobs_of(
        new.options, new.rates(), sector_bytes=512, seconds=5.0
    )
    assert (reads.threads, reads.queue_depth, reads.rate_iops) == (40, 1, 4000)
    assert reads.align_bytes == 512
    assert [size.bytes for size in reads.block_sizes] == [1536]
    assert (large_reads.read_pct, large_writes.read_pct) == (100, 0)
    assert (large_reads.dsync, large_writes.dsync) == (False, True)
    assert {job.duration_ns for job in (reads, large_reads, large_writes)} == {5_000_000_000}
    old = act(model="3.x", disable_odsync=True, tomb_raider=True)
    queues, _, writes, raider = jobs_of(old.options, old.rates(), sector_bytes=4096, seconds=1.0)
    assert (queues.threads, queues.queue_depth) == (2, 8)
    assert [size.bytes for size in queues.block_sizes] == [4096]
    assert not writes.dsync
    assert raider.pattern == "sequential"


def test_a_range_of_records_is_read_in_whole_sectors() -> None:
    rates = act(record_bytes=1000, record_bytes_range_max=2500).rates()
    assert [size.bytes for size in record_sizes(rates, 512)] == [1024, 1536, 2048, 2560]


def test_an_old_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "act.txt"
    file.write_text(OLD_FILE)
    config = read_config(file)
    assert config.devices == ("/dev/sdb",)
    assert len(config.notes) == 4
    procedure = Act.from_mapping(config.options)
    rates = procedure.rates()
    assert procedure.options.model == "3.x"
    assert procedure.multiple == 3
    assert (rates.reads, rates.large_reads, rates.large_writes) == (6000, 70, 70)
    assert rates.stored_bytes == 1536


def test_what_is_echoed_is_read_again(tmp_path: Path) -> None:
    procedure = act(load="6x", record_bytes=2000, commit_to_device=True, quick=True)
    file = tmp_path / "act.conf"
    file.write_text("\n".join(config_lines(procedure.options, "/dev/sdb")).replace("num-dev", "#"))
    again = Act.from_mapping({**read_config(file).options, "quick": True})
    assert again.rates() == procedure.rates()
    assert again.steps_of_test == procedure.steps_of_test


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("read-reqs-per-second: 5", "did you mean 'read-reqs-per-sec'"),
        ("read-reqs-per-sec: many", "whole number"),
        ("tomb-raider: maybe", "yes or no"),
        ("device-names: /dev/sda,/dev/sdb", "2 devices"),
    ],
)
def test_mistakes_are_reported_with_their_line(line: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "act.conf"
    file.write_text(f"# comment\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        read_config(file)
    assert message in f"{caught.value} {caught.value.hint}"
    assert "act.conf" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"load": "fast"}, "invalid load"),
        ({"large_block_op_kbytes": 96}, "power of two"),
        ({"record_bytes": 200_000}, "does not fit into a large block"),
        ({"read_req_num_512_blocks": 257}, "257 exceeds the large block size"),
        ({"disable_odsync": True, "commit_to_device": True}, "are mutually exclusive"),
        ({"read_reqs_per_sec": 0, "write_reqs_per_sec": 0}, "rate of zero"),
        ({"load": "1.5x", "search": True}, "whole multiple"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        act(**options)


# -- judgement ------------------------------------------------------------------------------


ROW = StepRow(
    "certify", 1, 1, "1x", None, None, None, None, None, 0, 10**9, 1000, 0, 0, 1000.0,
    None, None, None, None, None, 0, 0, 0.0, None, None,
)  # fmt: skip


def row(over: dict[int, int], *, reads: int = 1000, lag_s: float = 0.0, behind_s: float = 0.0,
        multiple: float = 1.0) -> StepRow:  # fmt: skip
    figures = {"multiple": multiple, "reads": reads, "lag_s": lag_s, "behind_s": behind_s}
    figures |= {f"over_{ms}ms": float(over.get(ms, 0)) for ms in THRESHOLDS_MS}
    return replace(ROW, figures=figures)


@pytest.mark.parametrize(
    ("over", "passed"),
    [({1: 49}, True), ({1: 50}, False), ({8: 9}, True), ({8: 10}, False), ({64: 1}, False)],
)
def test_the_limits_are_less_than(over: dict[int, int], passed: bool) -> None:
    (first_slice,) = slices_of([row(over)], 1)
    assert first_slice.passed is passed


def test_a_slice_is_of_all_its_reads_and_an_incomplete_one_is_left_out() -> None:
    rows = [row({1: 90}), row({1: 0}), row({1: 900})]
    (first_slice,) = slices_of(rows, 2)
    assert first_slice.over_pct[1] == pytest.approx(4.5)
    assert first_slice.passed


def test_lag_adds_up_over_steps_and_stops_the_test() -> None:
    rows = [row({}, behind_s=4.0) for _ in range(3)]
    trial = trial_of(1.0, rows, steps_a_slice=10, steps_wanted=10)
    assert trial.lag_s == pytest.approx(12.0)
    assert trial.stopped(10.0)
    assert not trial.stopped(0.0)
    assert act(report_interval_sec=1.0, test_duration_sec=10.0).next_load(rows, "certify", 1.0) == 0


def search(limit: int, first: int, most: int) -> tuple[list[int], int]:
    """Return the loads that a search tries on a drive that passes up to `limit`."""
    tried: list[int] = []
    while load := next_multiple(
        [m for m in tried if m <= limit], [m for m in tried if m > limit], first, most
    ):
        tried.append(load)
    return tried, max((m for m in tried if m <= limit), default=0)


@pytest.mark.parametrize("limit", range(40))
def test_the_search_finds_the_largest_load(limit: int) -> None:
    tried, largest = search(limit, 4, 32)
    assert largest == min(limit, 32)
    assert len(tried) == len(set(tried)) <= 10


def steps(procedure: Act, rows: Sequence[StepRow], phase: str) -> float:
    return procedure.next_load(rows, phase, procedure.multiple)


def test_a_search_continues_when_a_trial_is_decided() -> None:
    procedure = act(search=True, load="2x", report_interval_sec=60.0, slice_sec=120.0)
    assert steps(procedure, [], "search") == 2
    good = [row({}, multiple=2.0), row({}, multiple=2.0)]
    assert steps(procedure, good[:1], "search") == 2
    assert steps(procedure, good, "search") == 4
    lagging = [*good, row({}, multiple=4.0, lag_s=11.0)]
    assert steps(procedure, lagging, "search") == 3


def test_dumps_are_as_act_prints_them() -> None:
    counts = [9997, 0, 2, 1, 5, 6] + [0] * 58
    assert list(dump_lines("reads", counts)) == [
        "reads (10011 total)",
        " (00: 0000009997) (02: 0000000002) (03: 0000000001) (04: 0000000005)",
        " (05: 0000000006)",
    ]


def test_the_table_is_that_of_act_latency() -> None:
    slices = slices_of([row({1: 26, 2: 7}), row({1: 10})], 1)
    assert table_text(slices, old=False) == (
        "        reads\n"
        "        %>(ms)\n"
        "slice        1      2      8     64\n"
        "-----   ------ ------ ------ ------\n"
        "    1     2.60   0.70   0.00   0.00\n"
        "    2     1.00   0.00   0.00   0.00\n"
        "-----   ------ ------ ------ ------\n"
        "  avg     1.80   0.35   0.00   0.00\n"
        "  max     2.60   0.70   0.00   0.00\n"
    )
