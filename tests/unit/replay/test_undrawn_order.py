"""Traces that do not show in which order their data will be overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.support.cli import CommandLine
from writecliff.capture.trace import write_trace

BLOCK_BYTES = 4096
BLOCKS = 36_000
WRITES = 12_000
OPS = ("create", "write")


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(capsys)


def _words(codes: np.ndarray, names: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names)


def _trace(path: Path, blocks: np.ndarray, *, created: bool = False, files: int = 1) -> Path:
    """Write the blocks of a file, or of `files` files of equal size, 4 KiB each."""
    op = np.concatenate([np.zeros(int(created)), np.ones(len(blocks))])
    blocks = np.concatenate([np.zeros(int(created), np.int64), blocks])
    file, block = np.divmod(blocks, BLOCKS // files)
    rows, zeros = len(op), np.zeros(len(op))
    numbers, number = np.unique(file, return_inverse=True)
    table = pa.table(
        {
            "time_ns": np.arange(rows, dtype=np.int64) * 100_000,
            "op": _words(op, list(OPS)),
            "file": number.reshape(-1).astype(np.int32),
            "path": _words(number.reshape(-1), [f"{n}.dat" for n in numbers]),
            "offset_bytes": np.where(op > 0, block * BLOCK_BYTES, 0).astype(np.int64),
            "length_bytes": np.where(op > 0, BLOCK_BYTES, 0).astype(np.int64),
            "thread": _words(zeros, ["writer"]),
            "process": _words(zeros, ["writer"]),
            "hint": pa.nulls(rows, pa.int8()),
        }
    )
    write_trace(path, table, {"command": ["writer"], "program": "writer 1.0"})
    return path


def _uniform(writes: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, BLOCKS, writes)


def _replay(cli: CommandLine, trace: Path, *more: str) -> dict[str, object]:
    words = ["replay", str(trace), "--on", "sim:sata-tlc-120", "--writeback", "immediate"]
    done = cli([*words, "--fills", "8", "--no-timed", *more, "--json"])
    return dict(json.loads(done.out))


@pytest.mark.parametrize(("created", "files"), [(True, 1), (False, BLOCKS)])
def test_repeated_random_orders_are_not_quoted(
    cli: CommandLine, tmp_path: Path, created: bool, files: int
) -> None:
    trace = _trace(tmp_path / "t.parquet", _uniform(WRITES), created=created, files=files)
    answer = _replay(cli, trace, "--output", "r", "--expect", "waf <= 2")
    assert (answer["waf"], answer["endurance_bytes"], answer["years"]) == (None, None, None)
    rounds = answer["trace"]["rounds"]  # type: ignore[index]
    reason = str(answer["not_quoted"])
    unique_pct = 100 * len(np.unique(_uniform(WRITES))) / WRITES
    assert f"the trace is repeated {rounds} times, and {unique_pct:.0f} % of its writes" in reason
    assert reason in str(answer["verdict"])
    limit = answer["expectations"][0]  # type: ignore[index]
    assert (limit["result"], limit["note"]) == ("unknown", reason)
    page = Path("r/report.html").read_text()
    assert "capture a longer trace" in page and "WAF 1.0" not in page
    refused = cli(["advise-streams", str(trace), "--on", "sim:sata-tlc-120", "--no-timed"])
    assert refused.code == 2 and "capture a longer trace" in refused.err
    assert "Leave streams off" not in refused.out
    once = _replay(cli, trace, "--output", "once", "--repeat", "1")
    assert once["not_quoted"] is None and once["waf"] is not None


def test_orders_that_are_drawn_or_seen_are_quoted(cli: CommandLine, tmp_path: Path) -> None:
    uniform = _trace(tmp_path / "uniform.parquet", _uniform(WRITES))
    answer = _replay(cli, uniform, "--output", "u")
    assert answer["not_quoted"] is None
    assert float(str(answer["waf"])) > 1.3
    order = np.random.default_rng(3).permutation(BLOCKS)
    recurring = _trace(tmp_path / "recurring.parquet", np.tile(order, 3), created=True)
    sequential = _trace(tmp_path / "sequential.parquet", np.arange(BLOCKS), created=True)
    # Each block is overwritten 12 times on average, so the trace shows most overwrites.
    long = _trace(tmp_path / "long.parquet", _uniform(12 * BLOCKS), created=True)
    for name, trace in (("o", recurring), ("s", sequential), ("l", long)):
        answer = _replay(cli, trace, "--output", name)
        assert answer["not_quoted"] is None, name
