"""Run directories of served drives: figures, streams, trace, report, and kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.dangers import require
from tests.support.nbd_client import NbdClient
from tests.support.nvme_tcp_host import NvmeTcpHost
from tests.support.processes import WAIT_LIMIT_S
from tests.support.small_drive import write_small_drive
from writecliff.api import advise_streams, compare, replay_trace
from writecliff.capture.trace import read_trace
from writecliff.cli.cmd_serve import streams_text
from writecliff.errors import StoreError
from writecliff.replay.model import Sizing
from writecliff.report import summarise, write_report
from writecliff.serve import DriveServer, ServeOptions
from writecliff.serve.record import TRACE_NAME, SessionRecorder, TraceWriter
from writecliff.store.checksums import check_parquet_file
from writecliff.store.rundir import RunDirectory

BLOCK = b"\1" * 4096


def _fdp_drive(folder: Path) -> str:
    """Create a small drive with placement handles."""
    path = write_small_drive(folder, streams="4")
    with_fdp = '[data_placement]\ninterface = "nvme-fdp"\n\n[controller]'
    path.write_text(path.read_text().replace("[controller]", with_fdp, 1))
    return f"sim:{path}"


def _session(drive: str, run: Path, *, slow_down: float | None = None, writes: int = 200) -> None:
    """Write with two placement identifiers, flush, read and trim, and store the session."""
    server = DriveServer(drive, ServeOptions(slow_down=slow_down))
    recorder = SessionRecorder(run, server)
    (uri,) = server.listen_nvme(["127.0.0.1:0"])
    nbd = server.listen_nbd(f"unix:{run.parent / 'nbd.sock'}")

    def all_are_counted() -> bool:
        """Return `True` once all replies have been counted, which happens after they were sent."""
        snapshot = server.snapshot()
        recorder.look(snapshot)
        return snapshot.lateness.count == writes + 3

    with NvmeTcpHost(uri) as host, NbdClient(nbd) as client:
        for number in range(writes):
            host.write(4096 * (number % 50), BLOCK, placement=number % 4 // 3)
        recorder.look(server.snapshot())
        client.flush()
        assert client.read(0, 8192) == BLOCK * 2
        client.trim(0, 8192)
        if slow_down is not None:
            require(all_are_counted)
    server.stop()
    last = server.snapshot()
    recorder.look(last)
    recorder.finish(last, "stopped by the user")
    server.end()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("served")
    drive = _fdp_drive(folder)
    _session(drive, folder / "run", slow_down=2.0)
    return drive, folder / "run"


def test_a_session_is_a_run_of_its_requests(run: tuple[str, Path]) -> None:
    stored = RunDirectory.open(run[1])
    assert stored.status == "complete"
    session = stored.manifest.options["session"]
    assert session["operations"]["write"]["requests"] == 200
    assert session["transports"] == ["nbd+unix", "nvme+tcp"]
    (row,) = stored.rounds().to_pylist()
    done = [
        row[f"{name}_{what}"] for name in ("read", "write", "trim") for what in ("ios", "bytes")
    ]
    assert done == [1, 8192, 200, 200 * 4096, 1, 8192]
    intervals = stored.intervals().to_pylist()
    assert sum(row["ios"] for row in intervals) == 202
    assert intervals[-1]["end_ns"] == row["elapsed_ns"] > 0
    assert all(row["free_units"] > 0 for row in intervals)
    writes = [row for row in intervals if row["operation"] == 1]
    assert all(0 < row["latency_p50_ns"] <= row["latency_max_ns"] for row in writes)
    histogram = stored.histogram(operation="write")
    assert histogram is not None and histogram.count == 200
    late = session["histograms"]["lateness"]
    assert sum(late["count"]) == 203  # The count includes the flush.
    assert session["histograms"]["flush"]["count"] == [1]


def test_streams_have_their_own_write_amplification(run: tuple[str, Path]) -> None:
    streams = summarise(run[1])["session"]["streams"]
    assert [(stream["numbers"], stream["written_bytes"]) for stream in streams] == [
        ([0], 150 * 4096),
        ([1], 50 * 4096),
    ]
    assert all(stream["moved_bytes"] == 0 and stream["waf"] == 1 for stream in streams), (
        "a new drive"
    )
    lifetime = summarise(run[1])["session"]["lifetime"]
    rate = lifetime["write_bytes_per_s"]
    assert lifetime["years"] == pytest.approx(lifetime["endurance_bytes"] / rate / 31_557_600)


def test_the_trace_has_every_request_and_its_stream(run: tuple[str, Path]) -> None:
    path = run[1] / TRACE_NAME
    check_parquet_file(path)
    trace = read_trace(path)
    assert trace.is_block and trace.metadata["lost_requests"] == 0
    assert trace.rows == 203
    rows = pq.read_table(path).to_pylist()
    writes = [row for row in rows if row["op"] == "write"]
    assert [row["stream"] for row in writes] == [number % 4 // 3 for number in range(200)]
    assert [row["offset_bytes"] for row in writes] == [4096 * (n % 50) for n in range(200)]
    assert [row["op"] for row in rows[200:]] == ["fsync", "read", "punch"]
    damaged = bytearray(path.read_bytes())
    damaged[100] ^= 1
    other = run[1].parent / "damaged.parquet"
    other.write_bytes(damaged)
    with pytest.raises(StoreError, match="checksum mismatch"):
        check_parquet_file(other)


def test_the_trace_is_replayed_and_advised_on(run: tuple[str, Path]) -> None:
    drive, folder = run
    sizing = Sizing(fill_pct=None, repeats=2)
    replayed = replay_trace(folder / TRACE_NAME, drive, sizing=sizing, timed=False)
    trace = replayed.mapping()["trace"]
    assert trace["writeback"] == "immediate", "it is behind the page cache"
    assert (trace["written_bytes"], trace["peak_bytes"]) == (200 * 4096, 50 * 4096)
    advice = advise_streams(folder / TRACE_NAME, drive, counts=(2,), sizing=sizing, timed=False)
    assert {cell.scheme for cell in advice.cells} >= {"none", "rules", "oracle"}
    assert advice.setup.io.rules == "the host's stream identifiers"
    assert dict(advice.setup.io.streams) == {0: "everything else", 1: "stream 1"}


def test_a_request_across_regions_is_replayed_once(tmp_path: Path) -> None:
    """Check that replays distinguish the regions of a drive."""
    region, size = 64 << 20, 1 << 20
    rows = [(region - size // 2, size, 1), (0, 3 * region, 2), (2 * region - 4096, 8192, 1)]
    offset, length, operation = np.array(rows, np.uint64).T
    zeros = np.zeros(len(rows), np.uint64)
    writer = TraceWriter(tmp_path / TRACE_NAME)
    columns = {"time_ns": zeros, "session": zeros, "stream": zeros, "lost": 0}
    writer.add({**columns, "offset_bytes": offset, "length_bytes": length, "operation": operation})
    writer.finish({})
    drive, sizing = f"sim:{write_small_drive(tmp_path)}", Sizing(fill_pct=None, repeats=2)
    replayed = replay_trace(tmp_path / TRACE_NAME, drive, sizing=sizing, timed=False)
    trace = replayed.mapping()["trace"]
    assert (trace["rows"], trace["written_bytes"]) == (3, size + 8192)
    assert replayed.done.mapped_bytes == 8192, "the rest is trimmed"


def test_the_live_view_names_the_streams_in_use(tmp_path: Path) -> None:
    server = DriveServer(_fdp_drive(tmp_path), ServeOptions(slow_down=None))
    try:
        (uri,) = server.listen_nvme(["127.0.0.1:0"])
        with NvmeTcpHost(uri) as host:
            assert streams_text(server.snapshot()) == ("handles", "0 used, drive has 4")
            for placement in (0, 2, 2, 2):
                host.write(0, BLOCK, placement=placement)
            text = streams_text(server.snapshot())
        assert text == ("handles", "2 used, drive has 4; 2: 75 %, 0: 25 %")
    finally:
        server.end()


def test_the_report_says_what_was_done(run: tuple[str, Path]) -> None:
    page = write_report(run[1]).read_text()
    for text in ("200 writes", "Writes by stream", "Lateness against latency", "advise-streams"):
        assert text in page
    again = write_report(run[1], run[1].parent / "again.html").read_text()
    assert page == again


def test_sessions_compare_and_have_no_time_when_fast(run: tuple[str, Path]) -> None:
    fast = run[1].parent / "fast"
    _session(run[0], fast)
    assert summarise(fast)["session"]["lifetime"]["years"] is None
    assert "latencies are missing" in write_report(fast).read_text()
    assert "Write amplification" in [
        figure.sample.label for figure in compare(run[1], fast).figures
    ]


def _start(drive: str, *words: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "writecliff", "serve", drive, "--nbd", "127.0.0.1:0", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("serving sim:"), line
    return process, line.split(" at ")[1].strip()


def test_a_signal_completes_the_run(tmp_path: Path) -> None:
    run, drive = tmp_path / "run", f"sim:{write_small_drive(tmp_path)}"
    process, uri = _start(drive, "--fast", "--output", str(run), "--json")
    with NbdClient(uri) as client:
        client.write(0, BLOCK)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=WAIT_LIMIT_S)
    assert process.returncode == 0, err
    answer: dict[str, Any] = json.loads(out)
    assert (answer["run"], answer["report"]) == (str(run), str(run / "report.html"))
    assert (run / "report.html").stat().st_size > 0
    assert read_trace(run / TRACE_NAME).rows == 1
    assert RunDirectory.open(run).status == "complete"


def test_a_killed_server_leaves_a_run_that_says_so(tmp_path: Path) -> None:
    run, drive = tmp_path / "run", f"sim:{write_small_drive(tmp_path)}"
    process, uri = _start(drive, "--fast", "--output", str(run))
    with NbdClient(uri) as client:
        client.write(0, BLOCK)
        process.kill()
        process.communicate(timeout=WAIT_LIMIT_S)
    stored = RunDirectory.open(run)
    assert (stored.status, stored.steps) == ("interrupted", 0)
    assert not (run / TRACE_NAME).exists()
    with pytest.raises(StoreError, match="no complete step to report"):
        write_report(run)
