"""Served drives with fio as the client, and the overhead of serving."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.cli.main import main
from writecliff.lab.bench.serve import has_fio
from writecliff.serve import DriveServer, ServeOptions

needs_fio = pytest.mark.skipif(not has_fio(), reason="fio without the engine nbd")


@pytest.fixture(params=[None, 1.0], ids=["fast", "timed"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DriveServer]:
    drive = f"sim:{write_small_drive(tmp_path)}"
    server = DriveServer(drive, ServeOptions(slow_down=request.param))
    yield server
    server.end()


def _fio(uri: str, folder: Path, *words: str) -> dict[str, dict[str, int]]:
    report = folder / "fio.json"
    command = ["fio", "--name=load", "--ioengine=nbd", f"--uri={uri}", "--thread", *words]
    subprocess.run(
        [*command, "--output-format=json", f"--output={report}"],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    text = report.read_text()  # The report may start with client messages.
    job = json.loads(text[text.index("{") :])["jobs"][0]
    assert job["error"] == 0
    return {name: {"ios": job[name]["total_ios"]} for name in ("read", "write", "trim")}


@needs_fio
@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_fio_reads_what_it_wrote(server: DriveServer, tmp_path: Path, transport: str) -> None:
    """Verify blocks of all sizes, with checksums, from several connections."""
    uri = server.listen_nbd(
        f"unix:{tmp_path / 'nbd.sock'}" if transport == "unix" else "127.0.0.1:0"
    )
    _fio(
        uri, tmp_path, "--rw=randwrite", "--bsrange=512-64k", "--blockalign=512", "--size=4m",
        "--offset_increment=8m", "--numjobs=3", "--iodepth=16", "--verify=crc32c", "--fsync=32",
    )  # fmt: skip
    now = server.snapshot()
    assert now.operations["write"].bytes >= 3 * (4 << 20)
    assert now.operations["read"].bytes >= 3 * (4 << 20)
    assert now.operations["flush"].requests > 0


@needs_fio
def test_fio_trims(server: DriveServer, tmp_path: Path) -> None:
    uri = server.listen_nbd(f"unix:{tmp_path / 'nbd.sock'}")
    _fio(uri, tmp_path, "--rw=write", "--bs=64k", "--size=4m", "--iodepth=4")
    held = server.snapshot().contents_bytes
    done = _fio(uri, tmp_path, "--rw=trim", "--bs=64k", "--size=4m", "--iodepth=4")
    now = server.snapshot()
    assert done["trim"]["ios"] == now.operations["trim"].requests == 64
    assert held - now.contents_bytes >= 4 << 20


def test_the_benchmark_has_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drive = write_small_drive(tmp_path)
    assert (
        main(["lab", "bench", "serve", "--device", f"sim:{drive}", "--seconds", "0.1", "--json"])
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "writecliff/bench-serve/1"
    rows = document["rows"]
    loads = [(row["case"], row["transport"]) for row in rows if row["client"] == "lean"]
    cases = ("randread-4k-qd32", "randread-4k-qd1")
    ways = ("nbd-unix", "nbd-tcp", "nvme-tcp")
    assert loads == [(case, way) for way in ways for case in cases]
    by_fio = [(row["case"], row["transport"]) for row in rows if row["client"] == "fio"]
    assert by_fio == [load for load in loads if has_fio() and load[1] != "nvme-tcp"]
    assert len(rows) == len(loads) + len(by_fio)
    for row in rows:
        assert row["iops"] > 0
        assert row["added_p50_us"] == row["latency_p50_us"] > 0
        assert row["server_cpu_us"] >= 0


def test_the_kernels_target_needs_modules(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert main(["lab", "bench", "serve", "--kernel-target"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "requires the module null_blk: modprobe is not installed" in output.err
