"""Damaged device and workload files: always a one-line error, never a traceback."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from writecliff.cli.main import main
from writecliff.devices import list_devices, read_device_file
from writecliff.errors import ConfigError
from writecliff.workload.load import load_workload

EDITS = 150
CAPACITY = 120_000_000_000
WORKLOAD = b"""name = "mix"
seed = 3
[[job]]
name = "a"
read = "70 %"
block_sizes = [{ size = "4 KiB", weight = 60 }, { size = "64 KiB", weight = 40 }]
threads = 2
queue_depth = 8
duration = "2 ms"
"""
NUMBERS = (b"0", b"-1", b"1e9", b"0.1", b"4294967296", b"99999999999999999999", b"nan", b"inf")
BITS = (b"0", b"9" * 20, b"-", b'"', b"[", b"\n", b"\x00", b"e99", b"= ", b"\xff")


def damaged(text: bytes, rng: random.Random) -> bytes:
    """Change, remove or insert a few bytes, or replace numbers."""
    data = bytearray(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        place = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                del data[place : place + rng.choice([1, 1, 3, 20])]
            case 2:
                data[place:place] = rng.choice(BITS)
            case _:
                numbers = list(re.finditer(rb"\d+(\.\d+)?", bytes(data)))
                if numbers:
                    start, end = rng.choice(numbers).span()
                    data[start:end] = rng.choice(NUMBERS)
    return bytes(data) or b"x"


@pytest.mark.parametrize("seed", range(3))
def test_damaged_device_files(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    presets = [read_device_file(device.name)[0].encode() for device in list_devices()]
    path, refused = tmp_path / "d.toml", 0
    for _ in range(EDITS):
        text = damaged(rng.choice(presets), rng)
        path.write_bytes(text)
        code = main(["device", "show", str(path)])
        out, err = capsys.readouterr()
        if code == 0:
            assert out and not err, text
            continue
        refused += 1
        assert (code, out) == (2, ""), text
        assert re.fullmatch(r"error: (?!internal error)[^\n]+\n(hint: [^\n]+\n)?", err), (text, err)
        assert str(path) in err, (text, err)
    assert refused > EDITS // 3


@pytest.mark.parametrize("seed", range(3))
def test_damaged_workload_files(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path = tmp_path / "w.toml"
    refused = refusals(lambda: load_workload(path, capacity_bytes=CAPACITY), path, rng)
    assert EDITS // 3 < refused < EDITS


def refusals(read: Callable[[], object], path: Path, rng: random.Random) -> int:
    """Count the damaged files that `read` rejects, each with a clear error."""
    refused = 0
    for _ in range(EDITS):
        text = damaged(WORKLOAD, rng)
        path.write_bytes(text)
        try:
            read()
        except ConfigError as error:
            refused += 1
            assert str(path) in str(error), text
            assert "\n" not in str(error), text
    return refused
