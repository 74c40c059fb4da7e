"""Short end-to-end test of a live experiment: RocksDB on a served drive."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.lab.experiments.live import rocksdb
from writecliff.lab.experiments.live.model import MIB

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or shutil.which("nbdfuse") is None
    or not Path("/dev/fuse").exists()
    or find_spec("rocksdict") is None,
    reason="needs root, FUSE, nbdfuse and rocksdict",
)


def test_rocksdb_writes_each_part_with_its_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = (24, 64, 64, 104)
    whole = rocksdb.RocksDB()
    parts = tuple(
        replace(part, size_bytes=size * MIB) for part, size in zip(whole.parts, sizes, strict=True)
    )
    small = replace(
        whole, records=100_000, aging=20_000, operations=10_000, parts=parts, slow_down=1.0,
        unit_bytes=3 * MIB // 2,
    )  # fmt: skip
    monkeypatch.setattr(rocksdb, "RocksDB", lambda: small)
    output = tmp_path / "page.html"
    words = [
        "lab",
        "experiment",
        "streams-rocksdb",
        "--live",
        "--repeats",
        "1",
        "--trim",
        "off",
        "--json",
    ]
    printed = CommandLine(capsys)([*words, "--output", str(output)])
    assert printed.code == 0, printed.err
    answer = json.loads(printed.out)
    off, on = answer["trials"]
    assert (off["streams"], on["streams"]) == (False, True)
    numbers = [
        {n for row in trial["session"]["streams"] for n in row["numbers"]} for trial in (off, on)
    ]
    assert numbers == [{0}, {1, 2, 3, 4}]
    for trial in (off, on):
        assert trial["client"]["operations"] == 10_000
        assert trial["waf"] >= 1
        manifest = json.loads((Path(trial["run"]) / "manifest.json").read_text())
        assert manifest["status"] == "complete"
    assert "RocksDB with and without streams" in output.read_text()
    again = CommandLine(capsys)([*words, "--output", str(output)])
    assert (again.code, "not empty" in again.err) == (2, True)
