"""Ready-made workloads: each is complete, states its source, and fits on drives."""

from __future__ import annotations

import json

import pytest

from writecliff.cli.main import main
from writecliff.errors import ConfigError
from writecliff.profiles import profile, profile_names, profile_workload, volume_workload
from writecliff.workload.model import KIB

CAPACITY = 960_000_000_000


def shares(name: str) -> dict[float, float]:
    (job,) = profile(name).jobs
    total = sum(size.weight for size in job.block_sizes)
    return {size.bytes / KIB: 100 * size.weight / total for size in job.block_sizes}


# Table 18 in the white paper: sequential read, random read, sequential write, random write.
TABLE_18 = {
    "web-server-script-a": (24, 71, 1, 4),
    "web-server-script-b": (0, 100, 0, 0),
    "web-server-script-c": (24, 71, 1, 4),
    "web-server-script-d": (0, 50, 0, 50),
    "web-server-a": (0, 29, 20, 51),
    "web-server-b": (0, 61, 1, 38),
    "web-server-c": (22, 50, 24, 4),
    "web-server-d": (0, 2, 14, 84),
    "exchange-server-ab": (0, 67, 0, 33),
    "search-engine-a": (0, 100, 0, 0),
    "video-on-demand-a": (100, 0, 0, 0),
    "video-on-demand-b": (0, 100, 0, 0),
    "video-on-demand-c": (0, 100, 0, 0),
    "mail-server-a": (0, 58, 5, 37),
    "mail-server-b": (0, 0, 56, 44),
    "oltp-a": (0, 70, 0, 30),
    "oltp-b": (0, 67, 0, 33),
    "dbms-ab": (0, 67, 0, 33),
    "decision-support-a": (5, 94, 1, 0),
    "cookies-a": (0, 25, 0, 75),
    "cache-b": (0, 65, 0, 35),
    "file-server-a": (23, 67, 3, 7),
    "file-server-b": (0, 80, 0, 20),
}


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_says_what_it_is(name: str) -> None:
    loaded = profile(name)
    assert loaded.name == name
    assert loaded.title and len(loaded.source) > 10
    assert all(0 <= job.read_pct <= 100 for job in loaded.jobs)


@pytest.mark.parametrize("name", TABLE_18)
def test_applications_have_the_shares_of_the_table(name: str) -> None:
    (job,) = profile(name).jobs
    reads = job.read_pct
    in_order = 100.0 if job.pattern == "sequential" else job.sequential_read_pct
    read = reads * in_order / 100
    written = (100 - reads) * job.sequential_write_pct / 100
    assert (read, reads - read, written, 100 - reads - written) == pytest.approx(TABLE_18[name])
    if len(job.block_sizes) > 1:
        assert "not published" in profile(name).source


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


MODERN = (
    "llm-checkpoint", "kv-cache-offload", "vector-search", "kafka", "ceph-osd", "zfs",
    "vm-boot-storm",
)  # fmt: skip


@pytest.mark.parametrize("name", MODERN)
def test_loads_of_today_say_what_was_published_and_what_was_chosen(name: str) -> None:
    published, _, chosen = profile(name).source.partition(" Chosen here: ")
    assert len(published) > 60 and len(chosen) > 40


@pytest.mark.parametrize("name", MODERN)
def test_loads_of_today_run(name: str) -> None:
    from writecliff.engines.sim import SimEngine

    engine = SimEngine("nvme-tlc-960")
    load = profile_workload(name, engine.identify().capacity_bytes, seconds=0.02)
    result = engine.run(load)
    assert [job.name for job in result.jobs] == [job.name for job in load.jobs]
    assert all(job.operations for job in result.jobs)


def test_published_figures_of_loads_of_today_are_in_them() -> None:
    reads, writes = profile("kv-cache-offload").jobs
    assert {size.bytes for size in (*reads.block_sizes, *writes.block_sizes)} == {128 * KIB}
    assert (reads.rate_iops or 0) * 128 * KIB == 2.0 * KIB**3
    assert (writes.rate_iops or 0) * 128 * KIB == 11.0 * KIB**2
    (boot,) = profile("vm-boot-storm").jobs
    total = sum(size.weight for size in boot.block_sizes)
    mean = sum(size.bytes * size.weight for size in boot.block_sizes) / total
    # 70,000 I/Os in a boot read about 560 MB within 2 to 3 minutes.
    assert 70_000 * boot.read_pct / 100 * mean == pytest.approx(560e6, rel=0.1)
    assert boot.rate_iops == pytest.approx(32 * 70_000 / 150, rel=0.01)


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
