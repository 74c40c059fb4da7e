"""Ready workloads: each is whole, says where it is from, and can be laid on drives."""

from __future__ import annotations

import json

import pytest

from writecliff.cli.main import main
from writecliff.errors import ConfigError
from writecliff.profiles import profile, profile_names, profile_workload, volume_workload
from writecliff.workload.model import KIB

CAPACITY = 960_000_000_000
# Those that are no single application's: a service of several threads, an endurance workload.
SPECIAL = {"messenger", "jesd219-enterprise"}


def shares(name: str) -> dict[float, float]:
    (job,) = profile(name).jobs
    total = sum(size.weight for size in job.block_sizes)
    return {size.bytes / KIB: 100 * size.weight / total for size in job.block_sizes}


def test_there_are_24_applications_and_each_says_what_it_is() -> None:
    names = set(profile_names())
    assert names >= SPECIAL
    assert len(names - SPECIAL) == 24
    for name in names:
        found = profile(name)
        assert found.name == name
        assert found.title and len(found.source) > 10, name
        assert 0 <= found.jobs[0].read_pct <= 100


def test_the_servers_are_those_of_the_white_paper() -> None:
    assert shares("web-server") == {
        0.5: 22, 1: 15, 2: 8, 4: 23, 8: 15, 16: 2, 32: 6, 64: 7, 128: 1, 512: 1
    }  # fmt: skip
    assert shares("file-server") == {0.5: 10, 1: 5, 2: 5, 4: 60, 8: 2, 16: 4, 32: 4, 64: 10}
    assert shares("exchange-server") == {32: 100}
    assert shares("database-server") == {8: 100}
    reads = {name: profile(name).jobs[0].read_pct for name in ("web-server", "file-server",
             "database-server")}  # fmt: skip
    assert reads == {"web-server": 100, "file-server": 80, "database-server": 67}


def test_the_messenger_has_one_writer_and_twenty_readers() -> None:
    load = profile_workload("messenger", CAPACITY, seconds=2, queue_depth=1)
    writer, *readers = load.jobs
    assert (writer.rate_iops, writer.block_sizes[0].bytes) == (32, 512 * KIB)
    assert len(readers) == 20
    assert {(job.read_pct, job.threads, job.queue_depth) for job in readers} == {(100, 1, 1)}
    assert {job.duration_ns for job in load.jobs} == {2_000_000_000}


def test_jesd219_is_the_composite_of_the_pts() -> None:
    from writecliff.procedures import ecw_load

    (job,) = profile("jesd219-enterprise").jobs
    assert tuple((size.bytes, size.weight) for size in job.block_sizes) == ecw_load.SIZES
    assert job.addresses.zones == ecw_load.ZONES
    assert (job.read_pct, job.align_bytes) == (ecw_load.READ_PCT, ecw_load.ALIGN_BYTES)


def test_small_blocks_become_whole_sectors() -> None:
    (job,) = profile_workload("file-server", CAPACITY, sector_bytes=4096).jobs
    assert [(size.bytes // KIB, size.weight) for size in job.block_sizes] == [
        (4, 80), (8, 2), (16, 4), (32, 4), (64, 10)
    ]  # fmt: skip


def test_a_volume_needs_one_job() -> None:
    (job,) = volume_workload("jesd219-enterprise", CAPACITY, 10**9).jobs
    assert (job.volume_bytes, job.duration_ns) == (10**9, None)
    with pytest.raises(ConfigError, match="21 jobs"):
        volume_workload("messenger", CAPACITY, 10**9)


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        profile("web-sever")
    assert "web-server" in (caught.value.hint or "")


def test_the_commands_show_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["profiles"]
    assert [item["name"] for item in listed] == profile_names()
    assert main(["profile", "show", "database-server"]) == 0
    assert capsys.readouterr().out == profile("database-server").path.read_text()
