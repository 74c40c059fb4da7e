"""`writecliff lab bench fio`: compare fio alone with fio run by writecliff, on one device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.lab.bench.fio import Pair, summary

pytest.importorskip("writecliff._native", reason="the native module is not built")

pytestmark = pytest.mark.measures


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def test_pairs_on_a_loop_device(loop: str, cli: CommandLine) -> None:
    output = cli(f"lab bench fio --on {loop} --destroy {loop} --seconds 1 --pairs 1 --json")
    assert output.code == 0, output.err
    document = json.loads(output.out)
    assert (document["schema"], document["target"]) == ("writecliff/bench-fio/1", loop)
    (row,) = document["rows"]
    # On a busy machine, one-second figures vary, so the test checks only that both come from this
    # load.
    assert 0.2 < row["iops_ratio"] < 5
    assert row["iops_ratio"] == pytest.approx(row["writecliff_iops"] / row["bare_iops"])
    assert 1.0 <= row["bare_wall_s"] < 5
    assert 1.0 <= row["writecliff_wall_s"] < 5
    assert document["summary"]["iops_ratio"] == row["iops_ratio"]
    assert row["cpu_ratio"] == pytest.approx(row["writecliff_cpu_us"] / row["bare_cpu_us"])
    assert 0.3 < row["cpu_ratio"] < 3
    assert 0 < row["own_cpu_s"] < row["writecliff_wall_s"] / 2
    assert document["summary"]["bare_spread"] == 0


def test_the_summary_is_of_pairs() -> None:
    pairs = [
        Pair(100, 10, 5.0, 99, 10.5, 5.05, 0.2),
        Pair(200, 10, 5.0, 190, 10.1, 5.1, 0.1),
        Pair(50, 10, 4.0, 51, 11, 4.0, 0.3),
    ]
    figures = summary(pairs)
    assert figures["iops_ratio"] == pytest.approx(0.99)
    assert figures["extra_wall_s"] == pytest.approx(0.5)
    assert figures["own_cpu_s"] == pytest.approx(0.2)
    assert figures["cpu_ratio"] == pytest.approx(1.01)
    assert figures["bare_spread"] == pytest.approx(150 / (350 / 3))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--on", "sim:sata-tlc-120"], "fio cannot drive sim:sata-tlc-120"),
        (["--seconds", "0"], "--seconds is 0"),
        (["--pairs", "0"], "--pairs is 0"),
    ],
)
def test_mistakes_are_reported_in_one_line(
    cli: CommandLine, tmp_path: Path, words: list[str], message: str
) -> None:
    target = [] if "--on" in words else ["--on", f"file:{tmp_path / 'x.img'}", "--size", "1MB"]
    output = cli(["lab", "bench", "fio", *words, *target])
    assert output.code == 2
    assert message in output.err
    assert not (tmp_path / "x.img").exists()
