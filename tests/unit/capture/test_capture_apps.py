"""The built-in loads, small: RocksDB and PostgreSQL run; components of Cassandra are tested."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from writecliff.capture.apps import Size, cassandra, jars, run_app
from writecliff.capture.rules import load_rules
from writecliff.capture.run import Options
from writecliff.capture.trace import Trace, read_trace
from writecliff.errors import TargetError, WritecliffError


def _bytes_by_stream(trace: Trace, rules: str) -> dict[int, int]:
    streams = load_rules(rules).assign(trace.table)
    sums: dict[int, int] = {}
    for row, stream in zip(trace.table.to_pylist(), streams.tolist(), strict=True):
        if row["op"] == "write":
            sums[stream] = sums.get(stream, 0) + row["length_bytes"]
    return sums


def _run(name: str, output: Path, folder: Path, size: Size) -> Trace:
    lines: list[str] = []
    done = run_app(name, Options(output), size, folder=folder, log=lines.append)
    assert done.exit_code == 0, lines
    assert list(folder.iterdir()) == []
    trace = read_trace(done.output)
    assert trace.metadata["bytes_written"] == sum(_bytes_by_stream(trace, "postgres").values())
    return trace


def test_rocksdb(tmp_path: Path) -> None:
    if shutil.which("db_bench") is None:
        pytest.skip("db_bench is not installed (Debian: rocksdb-tools)")
    trace = _run("rocksdb", tmp_path / "t.parquet", tmp_path / "data", Size(30_000, 30_000))
    streams = _bytes_by_stream(trace, "rocksdb-native")
    user = 60_000 * 416
    assert user < streams[1] < 1.2 * user  # The log contains every record once, with its frame.
    assert streams[2] > user  # The data were flushed once and compacted.
    threads = set(trace.table.column("thread").to_pylist())
    assert {"db_bench", "rocksdb:high", "rocksdb:low"} <= threads
    hints = trace.metadata["hints"]
    assert hints["delivered"] + hints["refused"] > 10


def test_postgres(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as place:  # Other users have no access to pytest's folders.
        Path(place).chmod(0o755)
        folder = Path(place) / "data"
        try:
            trace = _run("postgres", tmp_path / "t.parquet", folder, Size(100_000, 400))
        except TargetError as error:
            pytest.skip(str(error))
    streams = _bytes_by_stream(trace, "postgres")
    assert streams[1] > 16e6  # The first log segment alone has this size.
    assert streams[2] > 13e6  # 100,000 accounts occupy this size.
    processes = set(trace.table.column("process").to_pylist())
    assert {"initdb", "postgres: checkpointer", "postgres: backend"} <= processes
    assert trace.metadata["program"].startswith("postgresql ")


def test_a_missing_program_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, package in (
        ("rocksdb", "rocksdb-tools"),
        ("postgres", "postgresql"),
        ("cassandra", "openjdk-17"),
    ):
        with pytest.raises(TargetError) as caught:
            run_app(name, Options(tmp_path / "t.parquet"), Size(), log=print)
        assert package in str(caught.value.hint)
    with pytest.raises(TargetError) as caught:
        jars.jars(print)
    assert "apt-get install maven" in str(caught.value.hint)
    assert not list(tmp_path.glob("t.parquet*"))


def test_jars_are_held_to_the_list(tmp_path: Path) -> None:
    wanted = jars.locked()
    assert len(wanted) > 90
    assert f"cassandra-all-{jars.VERSION}.jar" in wanted
    assert all(len(digest) == 64 for digest in wanted.values())
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (tmp_path / "a.jar").write_bytes(b"")
    assert jars.problem(tmp_path, {"a.jar": empty}) is None
    assert (
        jars.problem(tmp_path, {"a.jar": "0" * 64})
        == "the SHA-256 checksum of a.jar does not match"
    )
    assert jars.problem(tmp_path, {}) == "the file a.jar is not listed"
    assert jars.problem(tmp_path, {"a.jar": empty, "b.jar": empty}) == "the file b.jar is missing"


def test_errors_of_maven_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin/mvn"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho '[ERROR] no route to anywhere'; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(WritecliffError, match="no route to anywhere") as caught:
        jars.jars(lambda text: None)
    assert "settings.xml" in str(caught.value.hint)
    assert list((tmp_path / "cache/writecliff").iterdir()) == []


def test_the_commit_log_goes_through_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for direct, line in ((True, "disk_access_mode: direct"), (False, "LZ4Compressor")):
        monkeypatch.setattr(cassandra, "_has_direct_io", lambda folder, answer=direct: answer)
        node = cassandra.Node(tmp_path, tmp_path, tmp_path / "log", 48, tmp_path, "java", 1)
        node._configure(2)
        text = (tmp_path / "cassandra.yaml").read_text()
        assert line in text
        assert "native_transport_port: 1" in text
        assert f"commitlog_directory: {tmp_path / 'log'}" in text
        assert "commitlog_total_space: 48MiB" in text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as somebody else")
def test_a_folder_that_the_server_cannot_enter_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(TargetError) as caught:
        run_app("postgres", Options(tmp_path / "t.parquet"), Size(), folder=closed, log=print)
    if "not installed" in str(caught.value):
        pytest.skip(str(caught.value))
    assert "who runs PostgreSQL, cannot access" in str(caught.value)
    assert "--folder" in str(caught.value.hint)
