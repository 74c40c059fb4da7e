"""The fms-fio experiment: its interpretations, its metastability, and a small run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import CommandLine
from writecliff import _native
from writecliff.devices import describe
from writecliff.lab.experiments import fms_fio
from writecliff.lab.experiments.fms_fio_page import METASTABLE, mapping, page, tables
from writecliff.lab.experiments.lifetimes import (
    READINGS,
    TOLERANCE_PCT,
    Writer,
    fifo_fixed_points,
    writers,
)
from writecliff.report.pages import render_page


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def test_both_readings_give_the_slides_lifetimes() -> None:
    for reading in READINGS:
        four = writers(reading)
        assert sum(w.data for w in four) == pytest.approx(1.0)
        assert sum(w.writes for w in four) == pytest.approx(1.0)
        lives = [w.data / w.writes for w in four]
        assert [life / lives[0] for life in lives] == pytest.approx([1, 10, 33, 55])


def test_fixed_points_solve_the_staircase() -> None:
    # If a single writer is the whole load, A = ceil(A / 1.1) has solutions only from 1 to 11.
    assert fifo_fixed_points([Writer(1.0, 1.0)], 0.1)[:3] == (1.0, 2.0, 3.0)
    for reading in READINGS:
        points = fifo_fixed_points(writers(reading), 0.145)
        assert len(points) > 3, "several values hold themselves"
        assert list(points) == sorted(points)


@pytest.mark.parametrize("reading", READINGS)
def test_fifo_stays_at_one_of_its_fixed_points(reading: str) -> None:
    measured, best = _native.validate_data_placement(
        reading, 0.28, streams=False, gc_destination="host-unit", policy="fifo", request=1,
        pages_per_block=32, blocks=2048, warm_up=12, measured=8,
    )  # fmt: skip
    points = fifo_fixed_points(writers(reading), 0.28)  # type: ignore[arg-type]
    assert best == 1.0
    assert min(abs(measured / point - 1) for point in points) < 0.01, (measured, points)


@pytest.fixture(scope="module")
def small() -> fms_fio.Result:
    patch = pytest.MonkeyPatch()
    with patch.context() as changed:
        changed.setattr(fms_fio, "OVERPROVISIONS", (0.145, 0.28))
        changed.setattr(fms_fio, "UNITS", 512)
        changed.setattr(fms_fio, "SLOTS_PER_RECLAIM_UNIT", 64)
        changed.setattr(fms_fio, "_WINDOW_NS", 100_000_000)
        changed.setattr(fms_fio, "_BISECTIONS", 6)
        return fms_fio.run(scale=192, passes=(4, 2))


def test_streams_remove_all_amplification_and_speed_up_reads(small: fms_fio.Result) -> None:
    assert len(small.amplification) == 2 * 2 * 7
    for row in small.amplification:
        if row.policy == "greedy":
            assert row.waf_on == 1.0 < row.waf_off
        else:
            assert row.waf_on > 1.5, "a cyclic log takes the oldest unit, whatever its stream"
    for reading in READINGS:
        for op in (0.145, 0.28):
            off, on = (
                next(
                    row
                    for row in small.speed
                    if (row.reading, row.overprovision, row.streams) == (reading, op, streams)
                )
                for streams in (False, True)
            )
            assert on.waf_preconditioned == on.waf == 1.0
            assert off.waf_preconditioned > 1.2
            assert on.read_bytes_per_s > off.read_bytes_per_s


@pytest.mark.parametrize("request_bytes", [128 * 1024, pytest.param(4096, marks=pytest.mark.long)])
def test_another_simulator_gives_the_same(request_bytes: int) -> None:
    row = fms_fio.amplification("by-rate", 0.28, request_bytes, gc_pacing="per-victim")
    error = row.reference_error_pct
    assert error is not None and abs(error) <= TOLERANCE_PCT, row
    assert row.waf_on == 1.0
    even = fms_fio.amplification("by-rate", 0.28, request_bytes, passes=(1, 1))
    assert even.reference is None, "another precondition"


@pytest.mark.parametrize("op", fms_fio.OVERPROVISIONS)
def test_every_timed_drive_can_be_as_small_as_the_quick_form_has_it(op: float) -> None:
    assert describe(fms_fio.drive(op, fms_fio.QUICK["scale"])).capacity_bytes > 0


def test_every_output_states_the_precondition(small: fms_fio.Result) -> None:
    assert "4 capacities" in small.precondition
    answer = json.loads(json.dumps(mapping(small)))
    assert answer["precondition"] == small.precondition
    assert {row["reading"] for row in answer["amplification"]} == set(READINGS)
    assert {row["gc_pacing"] for row in answer["amplification"]} == {"per-victim", "incremental"}
    fifo = [row for row in answer["amplification"] if row["policy"] == "fifo"]
    assert all(len(row["fifo_fixed_points"]) > 1 for row in fifo)
    assert len(answer["speed"]["gains"]) == 4
    html = render_page(page(small))
    assert small.precondition in html
    assert "Shortened: 4 + 2 capacities were written instead of 20 + 10" in html
    assert answer["shortened"] is not None
    whole = mapping(replace(small, passes=(fms_fio.WARM_UP, fms_fio.MEASURED)))
    assert whole["shortened"] is None
    assert METASTABLE.split(":")[0] in html
    assert html.count("<svg") == 4
    assert all(table.rows for table in tables(small))


def test_the_command_lists_refuses_and_writes(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: fms_fio.Result
) -> None:
    assert "fms-fio" in cli("lab experiment --list").out
    output = cli("lab experiment fms-foo")
    assert (output.code, output.out) == (2, "")
    assert "did you mean 'fms-fio'?" in output.err
    assert cli("lab experiment").code == 2
    assert cli("lab experiment fms-fio --scale 0").code == 2
    output = cli("lab experiment fms-fio --scale 128")
    assert output.code == 2 and "sas-ms-480 cannot be scaled by 128" in output.err
    assert cli("lab experiment fms-cassandra --quick").code == 2
    assert cli("lab experiment fms-cassandra --live --quick").code == 2
    asked: list[dict[str, Any]] = []

    def measured(**settings: Any) -> fms_fio.Result:
        asked.append({name: value for name, value in settings.items() if name != "log"})
        return small

    monkeypatch.setattr(fms_fio, "run", measured)
    for words in ("", "--quick", "--quick --scale 64"):
        page_of = tmp_path / "other.html"
        assert cli(f"lab experiment fms-fio {words} --output {page_of}").code == 0
    assert asked == [{"scale": 32.0}, {**fms_fio.QUICK}, {**fms_fio.QUICK, "scale": 64.0}]
    report = tmp_path / "page.html"
    output = cli(["lab", "experiment", "fms-fio", "--output", str(report), "--json"])
    assert output.code == 0
    assert json.loads(output.out)["report"] == str(report)
    assert report.read_text().startswith("<!DOCTYPE html>")
