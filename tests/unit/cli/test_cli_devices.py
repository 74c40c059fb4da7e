"""`writecliff device` and `writecliff lab validate` on the shipped files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.devices import FOLDER
from writecliff.lab.validate import theory
from writecliff.lab.validate.theory import POLICIES, REDUCED_LOADS, TheoryCase


def test_device_list(cli: CommandLine) -> None:
    completed = cli("device list")
    assert (completed.code, completed.err) == (0, "")
    head, *names = (line.split()[0] for line in completed.out.splitlines())
    assert head == "name"
    assert names == sorted(set(names)), "each drive once, in the order of names"
    files = {path.stem for path in FOLDER.glob("*.toml")}
    assert files < set(names) and "pm863-960" in set(names) - files, "files, and family members"
    devices = json.loads(cli("device list --json").out)["devices"]
    assert [device["name"] for device in devices] == names
    by_name = {device["name"]: device for device in devices}
    assert by_name["sata-tlc-120"]["capacity_bytes"] == 120_000_000_000
    assert by_name["sata-tlc-120"]["overprovision_pct"] == pytest.approx(14.59)
    assert by_name["hdd-15k-80"]["overprovision_pct"] is None
    small = {
        device["name"]: device["least_scale"] for device in devices if device["least_scale"] > 1
    }
    assert small["micron-6500-ion-30720"] == 16 and small["d5-p5336-61440"] == 32
    marks = {line.split()[0]: line.rsplit("  ", 1)[1] for line in completed.out.splitlines()}
    assert marks.pop("name") == "simulated"
    assert {name for name, mark in marks.items() if mark != "whole"} == set(small)
    assert {name: marks[name] for name in small} == {n: f"at 1/{s:g}" for n, s in small.items()}


def test_device_show_gives_every_number_with_its_source(cli: CommandLine) -> None:
    completed = cli("device show sim:sata-tlc-120")
    assert completed.code == 0
    lines = completed.out.splitlines()
    assert "name                      sata-tlc-120" in lines
    erase = next(line for line in lines if line.startswith("flash.erase "))
    assert '"5 ms"' in erase and "SimpleSSD" in erase
    shown = json.loads(cli("device show sata-tlc-120 --json").out)
    assert len(shown["device_hash"]) == 64
    assert {"key", "value", "source", "line"} == set(shown["values"][0])


def test_an_exported_drive_is_the_same_drive(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = cli("device export pm863-800").out
    assert cli("device export sim:pm863-800 --output my.toml").out == "my.toml\n"
    assert Path("my.toml").read_text() == printed
    hashes = (
        json.loads(cli(f"device show {name} --json").out)["device_hash"]
        for name in ("pm863-800", "./my.toml")
    )
    assert len(set(hashes)) == 1
    assert json.loads(cli("device export pm863-800 --json").out)["text"] == printed
    completed = cli("device export sata-tlc-120 --output my.toml")
    assert completed.code == 2 and "my.toml already exists" in completed.err
    assert Path("my.toml").read_text() == printed


def test_device_hash_is_of_behaviour(cli: CommandLine, tmp_path: Path) -> None:
    def hash_of(**changes: str) -> str:
        path = write_small_drive(tmp_path, **changes)
        return json.loads(cli(["device", "show", str(path), "--json"]).out)["device_hash"]

    assert hash_of() == hash_of(description='"other words"')
    assert hash_of() != hash_of(erase='"6 ms"')


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("sata-tlc-12", "error: unknown simulated drive 'sata-tlc-12'", "'sata-tlc-120'"),
        ("./none.toml", "error: the device file none.toml does not exist", None),
    ],
)
def test_wrong_names(cli: CommandLine, name: str, message: str, hint: str | None) -> None:
    completed = cli(f"device show {name}")
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.splitlines()[0] == message
    assert hint is None or hint in completed.err


def test_a_malformed_device_file_gives_file_line_and_nearest_key(
    cli: CommandLine, tmp_path: Path
) -> None:
    path = write_small_drive(tmp_path)
    path.write_text(path.read_text().replace("latency =", "latncy ="))
    completed = cli(["device", "show", str(path)])
    assert completed.code == 2
    assert completed.err.startswith(f"error: {path}:")
    assert "'latency'" in completed.err
    assert len(completed.err.splitlines()) == 2


def test_validate_waf_holds_every_row_to_half_a_percent(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(theory, "BLOCKS", 2048)
    monkeypatch.setattr(theory, "OVERPROVISIONS", (0.28,))
    completed = cli("lab validate waf --json")
    assert completed.code == 0
    answer = json.loads(completed.out)
    assert answer["ok"] is True
    rows = answer["rows"]
    wanted = {(policy, op) for policy in (*POLICIES, "streams") for op in theory.OVERPROVISIONS}
    assert {(row["policy"], row["overprovision"]) for row in rows} == wanted
    for row in rows:
        assert (row["pages_per_block"], row["blocks"]) == (256, 2048)
        assert abs(row["error_pct"]) <= 0.5
        assert row["policy"] != "streams" or row["waf_measured"] == 1.0


@pytest.mark.parametrize("blocks", [1024, pytest.param(2048, marks=pytest.mark.long)])
def test_validate_reduction_holds_every_row_to_half_a_percent(
    blocks: int, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(theory, "REDUCTION_BLOCKS", blocks)
    monkeypatch.setattr(theory, "REDUCTION_OVERPROVISIONS", (0.28,))
    completed = cli("lab validate reduction --json")
    answer = json.loads(completed.out)
    assert (completed.code, answer["ok"]) == (0, True)
    rows = answer["rows"]
    assert [row["data"] for row in rows] == [load.name for load in REDUCED_LOADS]
    assert all(abs(row["error_pct"]) <= 0.5 for row in rows)
    waf = {row["data"]: row["waf_measured"] for row in rows}
    assert waf["uncompressed"] > waf["three quarters"] > 1 > waf["half"] > waf["a quarter"]


def test_validate_reduction_fails_when_a_row_is_off(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions = {"data": "half", "policy": "greedy", "overprovision": 0.28}
    bad = TheoryCase(conditions, 0.56, 0.55)
    monkeypatch.setattr(theory, "reduction_cases", lambda: [bad])
    completed = cli("lab validate reduction")
    assert completed.code == 1
    assert "OFF" in completed.out
    assert "an error exceeds 0.5 %" in completed.err


def test_validate_waf_fails_when_a_row_is_off(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions = {"policy": "greedy", "overprovision": 0.07}
    good, bad = TheoryCase(conditions, 7.6, 7.6), TheoryCase(conditions, 3.2, 3.15)
    monkeypatch.setattr(theory, "waf_cases", lambda: [good, bad])
    completed = cli("lab validate waf")
    assert completed.code == 1
    assert [line.rstrip().rpartition(" ")[2] for line in completed.out.splitlines()[1:]] == [
        "ok",
        "OFF",
    ]
    assert "an error exceeds 0.5 %" in completed.err
