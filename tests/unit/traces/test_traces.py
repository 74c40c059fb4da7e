"""Block traces from the command line and from Python: conversion, metrics, replay."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from writecliff import _native
from writecliff.api import characterise_trace, convert_trace
from writecliff.capture.trace import read_trace
from writecliff.cli.main import main
from writecliff.errors import ConfigError, WritecliffError
from writecliff.report.pages import render_page
from writecliff.report.trace_workload import workload_page
from writecliff.traces.formats import all_formats, reference
from writecliff.traces.source import open_trace

IOS = 4000
BEGIN = 128_166_372_003_061_629


def rows(seed: int = 1) -> list[tuple[int, str, int, int, int]]:
    """Return rows of time in ticks, operation, offset, length and response time in ticks."""
    draw = random.Random(seed)
    time, rows_ = 0, []
    for n in range(IOS):
        time += draw.randrange(20_000)
        operation = "Write" if draw.random() < 0.4 else "Read"
        offset = n * 65_536 if draw.random() < 0.3 else draw.randrange(4000) * 4096
        length = draw.choice([4096, 4096, 8192, 65_536])
        rows_.append((time, operation, offset, length, draw.randrange(1, 30_000)))
    return rows_


def msr(path: Path, seed: int = 1, volume: int = 0) -> Path:
    lines = (f"{BEGIN + t},srv,{volume},{op},{o},{n},{r}\n" for t, op, o, n, r in rows(seed))
    path.write_text("".join(lines))
    return path


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, object]:
    assert main([*map(str, words), "--json"]) == 0
    parsed: dict[str, object] = json.loads(capsys.readouterr().out)
    return parsed


def test_a_trace_is_characterised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "w.html"
    result = answer(capsys, "characterise", msr(tmp_path / "a.csv"), "--output", page)
    all_rows = rows()
    reads = [row for row in all_rows if row[1] == "Read"]
    assert (result["format"], result["ios"], result["skipped_lines"]) == ("msr", IOS, 0)
    assert result["read_pct"] == pytest.approx(100 * len(reads) / IOS)
    assert result["read_bytes"] == sum(row[3] for row in reads)
    assert result["duration_s"] == pytest.approx((all_rows[-1][0] - all_rows[0][0]) / 1e7)
    sizes = Counter(row[3] for row in all_rows)
    assert {row["size_bytes"]: row["ios"] for row in result["sizes"]} == sizes  # type: ignore[attr-defined]
    blocks = {b for _, _, o, n, _ in all_rows for b in range(o // 4096, (o + n - 1) // 4096 + 1)}
    assert result["unique_bytes"] == 4096 * len(blocks)
    mean_ms = sum(row[4] for row in reads) / len(reads) / 1e4
    assert result["response_ms"]["read"]["mean"] == pytest.approx(mean_ms)  # type: ignore[index]
    assert result["queue_depth"]["max"] >= 1  # type: ignore[index]
    assert result["report"] == str(page)
    text = page.read_text()
    assert "Workload of a.csv" in text
    assert "://" not in text.split("<svg")[0].replace("http://www.w3.org", "")


def test_two_traces_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = msr(tmp_path / "a.csv"), msr(tmp_path / "b.csv", seed=2)
    page, csv = tmp_path / "w.html", tmp_path / "csv"
    words = ("characterise", first, "--against", second, "--output", page, "--csv", csv)
    result = answer(capsys, *words)
    assert result["against"]["trace"] == str(second)  # type: ignore[index]
    assert "a.csv and b.csv" in page.read_text()
    streams = (csv / "io-streams.csv").read_text().splitlines()
    assert {line.split(",")[0] for line in streams[1:]} == {"a.csv", "b.csv"}


def test_the_same_trace_makes_the_same_page(tmp_path: Path) -> None:
    trace = msr(tmp_path / "a.csv")
    pages = {render_page(workload_page([characterise_trace(trace)])) for _ in range(2)}
    assert len(pages) == 1


@pytest.mark.parametrize(
    ("name", "lossless"), [("t.parquet", True), ("t.log", False), ("t.csv", True), ("t.txt", False)]
)
def test_converted_traces_have_the_same_measures(tmp_path: Path, name: str, lossless: bool) -> None:
    trace = msr(tmp_path / "a.csv")
    done = convert_trace(trace, tmp_path / name)
    assert (done.ios, done.left_out, done.moved) == (IOS, 0, 0)
    first, second = (characterise_trace(path).measures for path in (trace, tmp_path / name))
    same = ["ios", "read_bytes", "write_bytes", "sizes", "streams", "sequential", "unique"]
    # blkparse's text output cannot distinguish concurrent requests for the same address.
    same += ["queue_depth", "response_ms"] if lossless else []
    assert {key: first[key] for key in same} == {key: second[key] for key in same}


def test_replay_reads_a_converted_trace(tmp_path: Path) -> None:
    trace = tmp_path / "t.parquet"
    convert_trace(msr(tmp_path / "a.csv"), trace)
    trace_read = read_trace(trace)
    assert trace_read.is_block
    assert trace_read.rows == IOS
    assert trace_read.requests is not None
    done = (
        trace_read.requests.column("complete_ns").to_numpy()
        - trace_read.table.column("time_ns").to_numpy()
    )
    assert done.tolist() == [100 * row[4] for row in rows()]


def test_writes_are_replayed_on_a_drive(tmp_path: Path) -> None:
    characterised = characterise_trace(msr(tmp_path / "a.csv"), on="sim:sata-tlc-120")
    replay = characterised.mapping()["drive"]["replay"]
    assert replay["waf"] >= 1
    assert replay["endurance_bytes"] > 0
    with pytest.raises(ConfigError):
        characterise_trace(tmp_path / "a.csv", on="sim:no-such-drive")


def test_packed_traces_and_custom_columns(tmp_path: Path) -> None:
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(msr(tmp_path / "a.csv").read_bytes()))
    wanted = characterise_trace(tmp_path / "a.csv").measures
    assert characterise_trace(packed).measures == wanted
    custom = tmp_path / "own.csv"
    lines = (f"{t / 10},{op[0]},{o // 512},{n // 512},{r / 10}\n" for t, op, o, n, r in rows())
    custom.write_text("ts,op,lba,n,rt\n" + "".join(lines))
    columns = "time=ts:us,operation=op,offset=lba:sectors,length=n:sectors,response=rt:us"
    measures = characterise_trace(custom, columns=columns).measures
    same = ("ios", "sizes", "streams", "unique", "queue_depth", "response_ms")
    assert {key: measures[key] for key in same} == {key: wanted[key] for key in same}
    table = pa.table(
        {
            "ts": pa.array([t * 100 for t, *_ in rows()], pa.timestamp("ns")),
            "op": [op.lower() for _, op, *_ in rows()],
            "lba": np.array([o // 512 for _, _, o, _, _ in rows()], np.uint64),
            "n": [n / 512 for *_, n, _ in rows()],
            "rt": [r / 10 for *_, r in rows()],
        }
    )
    pq.write_table(table, tmp_path / "own.parquet")
    measures = characterise_trace(tmp_path / "own.parquet", columns=columns).measures
    assert {key: measures[key] for key in same} == {key: wanted[key] for key in same}


def test_rows_of_a_table_that_are_not_ios_are_counted(tmp_path: Path) -> None:
    table = pa.table(
        {
            "time": [0.0, 1.0, float("nan"), 3.0, -1.0, 5.0],
            "op": ["r", "w", "w", "open", "r", None],
            "offset": pa.array([0, 4096, 0, 0, 0, 0], pa.int64()),
            "length": [4096, 0, 4096, 4096, 4096, 4096],
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    source = open_trace(path, columns="time=time,operation=op,offset=offset,length=length")
    (batch,) = source.batches()
    assert batch["time_ns"].tolist() == [0]
    skipped = {reason.reason: (reason.lines, reason.first_line) for reason in source.skipped()}
    assert skipped == {
        "operation that moves no data": (2, 4),
        "missing number, or number out of range": (2, 3),
        "length of 0": (1, 2),
    }


def test_missing_names_are_distinguished_from_others(tmp_path: Path) -> None:
    """Check that a null does not inherit the name of another row."""
    common = {"t": [0.0, 1.0, 2.0], "op": ["w"] * 3, "at": [0, 4096, 0], "n": [4096] * 3}
    for disks, named in (([None, "a", None], ["", "a"]), ([None] * 3, [""])):
        table = pa.table({**common, "disk": pa.array(disks, pa.string())})
        pq.write_table(table, tmp_path / "t.parquet")
        columns = "time=t,operation=op,offset=at,length=n,volume=disk"
        source = open_trace(tmp_path / "t.parquet", columns=columns)
        (batch,) = source.batches()
        assert [source.volumes[n] or None for n in batch["volume"].tolist()] == disks
        assert sorted(source.volumes) == named
        convert_trace(tmp_path / "t.parquet", tmp_path / "o.parquet", columns=columns)
        paths = read_trace(tmp_path / "o.parquet").table["path"].to_pylist()
        assert [path or None for path in paths] == disks
        (tmp_path / "o.parquet").unlink()


def test_names_need_not_be_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    disks = pa.array([b"a\xff", b"b", b"a\xff"], pa.binary()).view(pa.string())
    columns = {"t": [0.0, 1.0, 2.0], "op": ["w"] * 3, "at": [0, 4096, 0], "n": [4096] * 3}
    pq.write_table(pa.table({**columns, "disk": disks}), path)
    source = open_trace(path, columns="time=t,operation=op,offset=at,length=n,volume=disk")
    (batch,) = source.batches()
    assert [source.volumes[n] for n in batch["volume"].tolist()] == ["a\\xff", "b", "a\\xff"]


@pytest.mark.parametrize("command", ["characterise", "convert"])
def test_the_error_of_a_file_that_is_not_a_trace_takes_a_single_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    good = msr(tmp_path / "good.csv")
    cut = tmp_path / "cut.csv.gz"
    packed = gzip.compress(good.read_bytes())
    cut.write_bytes(packed[: len(packed) // 2])
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("Dear diary,\nno trace\n")
    (tmp_path / "noise").write_bytes(random.Random(5).randbytes(100_000))
    os.mkfifo(tmp_path / "fifo")
    parquet = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": [1]}), parquet)
    out = tmp_path / "out.parquet"
    for name, why in [
        ("gone", "no such file"), ("", "is a folder"), ("empty", "is empty"), ("text", "not a trace"),
        ("noise", "not a trace"), ("fifo", "not a regular file"), ("cut.csv.gz", "truncated"),
        ("table.parquet", "does not contain the column"),
    ]:  # fmt: skip
        words = [str(tmp_path / name), *([str(out)] if command == "convert" else [])]
        words = ["trace", command, *words] if command == "convert" else [command, *words]
        assert main(words) == 2, name
        captured = capsys.readouterr()
        assert why in captured.err, (name, captured.err)
        assert "Traceback" not in captured.err
        assert not out.exists()
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == []


def test_options_are_checked_before_a_file_is_read(tmp_path: Path) -> None:
    trace = msr(tmp_path / "a.csv")
    for call in (
        lambda: convert_trace(trace, tmp_path / "x.unknown"),
        lambda: convert_trace(trace, tmp_path / "x.csv", to="msrr"),
        lambda: characterise_trace(trace, format="msrr"),
        lambda: characterise_trace(trace, columns="time=a"),
        lambda: characterise_trace(trace, member="b"),
        lambda: characterise_trace(trace, format="spc"),
    ):
        with pytest.raises(WritecliffError):
            call()


def test_volumes_of_a_trace_have_different_addresses_on_a_drive(tmp_path: Path) -> None:
    """Check that equal addresses on two volumes are different data."""
    both = tmp_path / "both.csv"
    first, second = msr(tmp_path / "a.csv"), msr(tmp_path / "b.csv", volume=1)
    lines = sorted([*first.read_text().splitlines(), *second.read_text().splitlines()])
    both.write_text("\n".join(lines) + "\n")
    single = characterise_trace(first).measures
    double = characterise_trace(both).measures
    assert double["unique_bytes"] == 2 * single["unique_bytes"]
    assert [row["volume"] for row in double["volumes"]] == ["srv.0", "srv.1"]
    from writecliff.replay.columns import file_io

    peaks = []
    for trace in (first, both):
        convert_trace(trace, tmp_path / "t.parquet")
        file_ops = file_io(read_trace(tmp_path / "t.parquet").table, is_block=True)
        peaks.append(file_ops.native.footprint("immediate")["peak_bytes"])
    assert peaks[1] == 2 * peaks[0]


def test_the_reference_has_every_format() -> None:
    text = reference()
    assert [format.name for format in all_formats() if f"| `{format.name}` |" not in text] == []
    docs = Path(__file__).parents[3] / "docs" / "reference" / "trace-formats.md"
    assert docs.read_text() == text + "\n"


@pytest.mark.parametrize(
    ("operation", "offset_bytes", "length_bytes", "reason"),
    [
        (0, 4096, 0, "row 1: length of 0"),
        (1, 0, 2**30 + 1, "row 1: length over 1 GiB"),
        (3, 2**63 - 1, 1, "row 1: address too large"),
    ],
)
def test_impossible_columns_are_rejected(
    operation: int, offset_bytes: int, length_bytes: int, reason: str
) -> None:
    columns = {
        "time_ns": np.array([0, 1]), "volume": np.zeros(2, np.int32),
        "operation": np.array([0, operation], np.uint8),
        "offset_bytes": np.array([0, offset_bytes]), "length_bytes": np.array([512, length_bytes]),
        "response_ns": np.full(2, -1), "process": np.zeros(2, np.int32),
        "content": np.zeros(2, np.uint64),
    }  # fmt: skip
    with pytest.raises(_native.NativeConfigError, match=reason):
        _native.TraceMeasures().add(columns, ["a"], [""])
