"""Figures of SSD-iq: conditions, drives from sheets, and loads on drives of megabytes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from writecliff.engines.base import StepResult
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError
from writecliff.published.ssd_iq import play
from writecliff.published.ssd_iq.conditions import (
    GIB,
    KIB,
    OpenLoop,
    RandomWrites,
    Spread,
    ZoneWrites,
    load_of,
)
from writecliff.published.ssd_iq.drives import device_text, read_sheets, sheet_of
from writecliff.published.ssd_iq.page import page_of
from writecliff.published.ssd_iq.play import SmallDrive, Watcher, play_all
from writecliff.published.ssd_iq.result import (
    FIGURES,
    Comparison,
    Row,
    compare,
    kind_of,
    mapping,
    read_rows,
)
from writecliff.report.pages import render_page
from writecliff.workload.model import Workload

_FILLED = (
    "sanitize, sequential fill of 100 %, then 4 KiB random writes, QD 128 x 4 threads, io_uring"
)
_WINDOW = "mean of minutes between 60 and 99 % of the run (5 to 7 capacities)"
_OPEN = (
    "aged: sequential fill, 3 capacities uniform 4 KiB; open loop: 6 threads with exponential "
    "arrivals of 99 % 4 KiB writes at 70000 writes/s in all, QD 64; latency from a 7th thread at "
    "fixed 10,000 IOPS 50/50; 16 minutes a run, 3 runs (median of minutes, mean of runs)"
)


def condition(spread: str, drive: str = "Samsung PM9A3 960 GB (PCIe 4)") -> str:
    return f"{drive}; {_FILLED}, {spread}; {_WINDOW}"


@pytest.mark.parametrize(
    ("text", "load"),
    [
        (condition("uniform random"), RandomWrites(Spread())),
        (
            condition("zipf theta 0.9, pages shuffled over the whole LBA space"),
            RandomWrites(Spread(theta=0.9)),
        ),
        (
            condition(
                "zones shuffled page-wise over the LBA space: 70 % of pages get 0 % of writes, "
                "30 % of pages get 100 % of writes"
            ),
            RandomWrites(Spread(zones=((70, 0), (30, 100)))),
        ),
        (
            "x; 372.5 GiB of the drive used; 4 KiB writes QD 32 x 2; uniform ; 5.0 x the used "
            "range written",
            RandomWrites(
                Spread(), queue_depth=32, threads=2, capacities=5.0, range_bytes=372.5 * GIB
            ),
        ),
        (
            "x; ZNS-like on the conventional drive: 16 active zones of 8 GiB written in order, "
            "whole zone trimmed before reuse, 512 KiB writes, QD 1, 1 thread; 4 capacities, mean "
            "of 60 to 99 % of the run",
            ZoneWrites(8 * GIB, 16),
        ),
        (f"x; {_OPEN}", OpenLoop(70_000.0)),
    ],
)
def test_a_condition_is_read_as_its_load(text: str, load: object) -> None:
    assert load_of(text) == load


def test_every_shipped_figure_has_a_drive_and_a_load() -> None:
    sheets = read_sheets()
    for row in read_rows(FIGURES):
        text = row["condition"] or ""
        assert load_of(text)
        assert sheet_of(text.partition(";")[0], sheets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SSD-iq GC simulator, uniform, greedy, fill factor 0.1", "no semicolon between"),
        ("x; something else", "unknown load"),
        (condition("zipf, pages shuffled"), "zipf needs a theta"),
        (condition("30 % of pages get 0 % of writes, 30 % of pages get 9 % of writes"), "add up"),
        ("x; open loop at full speed", "needs a rate"),
    ],
)
def test_an_unknown_condition_has_a_reason(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_of(text)


def test_a_sheet_matches_by_name_and_capacity() -> None:
    sheets = read_sheets()
    assert sheet_of("Kioxia CM7-R 3.84 TB (PCIe 5) unit 4", sheets).name == "Kioxia CM7-R"
    assert sheet_of("Micron 7450 MAX 800 GB (PCIe 4)", sheets).sheet.tbw == 3 * 365 * 5 * 800e9
    assert sheet_of("WD DC SN640 960 GB (PCIe 3)", sheets).name == "WD DC (model not named)"
    assert sheet_of("Solidigm P5520 1.92TB", sheets).name == "Solidigm D7-P5520"
    assert sheet_of("Micron 7450 PRO 960 GB", sheets).name == "Micron 7450 PRO"
    for name in ("Micron 7450 PRO 7.68 TB", "Micron 9999 960 GB", "Samsung 983 960 GB"):
        with pytest.raises(ConfigError, match="no data sheet"):
            sheet_of(name, sheets)


def test_every_sheet_makes_a_drive() -> None:
    for sheet in read_sheets():
        drive = SmallDrive.of(sheet.sheet.name, device_text(sheet), 4e9)
        assert drive.capacity_bytes == sheet.sheet.capacity


def test_a_wrong_sheet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sheets.csv"
    path.write_text("drive,capacity_gb,pcie\nAcme,960,9\n")
    with pytest.raises(ConfigError, match="pcie is 9"):
        read_sheets(path)
    path.write_text("name,capacity_gb\nAcme,960\n")
    with pytest.raises(ConfigError, match="no column 'drive'"):
        read_sheets(path)


@pytest.fixture(scope="module")
def small() -> SmallDrive:
    """A drive of some hundred megabytes."""
    sheet = next(sheet for sheet in read_sheets() if sheet.name == "Samsung PM9A3")
    return SmallDrive.of(sheet.sheet.name, device_text(sheet), 3e8)


def test_static_pages_cost_more_scattered_than_contiguous(small: SmallDrive) -> None:
    scattered = Spread(zones=((60, 0), (40, 100)))
    contiguous = Spread(zones=((60, 0), (40, 100)), is_scattered=False)
    loads = [RandomWrites(Spread(), capacities=2.0)]
    loads += [RandomWrites(spread, capacities=2.0) for spread in (scattered, contiguous)]
    measured = play_all({small: loads})[small]
    uniform, mixed, separate = (measured[load] for load in loads)
    assert uniform.waf is not None and mixed.waf is not None and separate.waf is not None
    assert 3.5 < uniform.waf < 5.0
    assert mixed.waf > 3.5 > 2.5 > separate.waf
    assert separate.write_iops > 1.3 * mixed.write_iops
    assert uniform.write_bytes_per_s == pytest.approx(uniform.write_iops * 4096)


def test_a_part_of_the_drive_amplifies_less(small: SmallDrive) -> None:
    half = RandomWrites(Spread(), capacities=3.0, range_bytes=small.capacity_bytes / 2)
    measured = play_all({small: [half]})[small][half]
    assert measured.waf is not None and 1.0 <= measured.waf < 1.3


def test_a_window_is_placed_by_time() -> None:
    steady, slowing = [0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 1.0, 2.0, 5.0, 8.0]
    assert [play.volume_at(share, steady) for share in (0, 0.6, 1)] == [0, 0.6, 1]
    # Half of the time is 4 of 8. It ends in the third of four parts, which lasts from 2 to 5.
    assert play.volume_at(0.5, slowing) == pytest.approx((2 + 2 / 3) / 4)


def test_a_load_that_slows_down_is_measured_late(
    small: SmallDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, int] = {}
    precondition = SimEngine.precondition

    def record(engine: SimEngine, workload: Workload) -> StepResult:
        written[workload.name] = workload.jobs[0].volume_bytes or 0
        return precondition(engine, workload)

    monkeypatch.setattr(SimEngine, "precondition", record)
    play_all({small: [RandomWrites(Spread(), capacities=0.3, window=(0.5, 1))]})
    # Until its spare flash is used up, a drive writes without garbage collection.
    assert 0.55 < written["to the window"] / (0.3 * written["fill"]) < 0.75


def test_zones_are_trimmed_and_written_in_order() -> None:
    letters, offsets, lengths = play._zone_log(4, 3, 512 * KIB, 2, 60)
    assert letters.count("w") == 60 and letters.count("t") == 20
    assert lengths[0] == 3 * 512 * KIB
    next_in: dict[int, int] = {}
    for letter, offset in zip(letters, offsets, strict=True):
        zone, at = divmod(offset // (512 * KIB), 3)
        assert at == (0 if letter == "t" else next_in[zone])
        next_in[zone] = 0 if letter == "t" else at + 1


def test_an_open_loop_reaches_its_rate_and_has_latencies(
    small: SmallDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "_SECONDS", 0.2)
    load = OpenLoop(20_000.0, aged_capacities=0.5)
    measured = play_all({small: [load]})[small][load]
    assert measured.write_iops == pytest.approx(19_800, rel=0.05)
    median = measured.times["read"].quantile(0.5).value_ns
    assert median is not None and 40e3 < median < 120e3
    assert measured.times["write"].count == pytest.approx(1000, rel=0.15)


def test_progress_ends_with_a_line(small: SmallDrive) -> None:
    logged: list[str] = []
    watcher = Watcher(logged.append)
    loads = [ZoneWrites(GIB, 1), ZoneWrites(2 * GIB, 1)]
    watcher.expect(small, loads)
    for load in loads:
        watcher.done(small, load)
    assert logged == ["[2/2 loads, 0 s]  samsung-pm9a3-960: 1 active zones of 2 GiB"]


def test_missing_figures_of_a_comparison_have_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "SMALL_BYTES", 3e8)
    path = tmp_path / "own.csv"
    ratio = "write rate relative to uniform on the same unit"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["condition", "metric", "value", "unit"])
        zipf = condition("zipf theta 0.7, pages shuffled over the whole LBA space")
        writer.writerow([zipf, "write rate", "70,000", "IOPS"])
        writer.writerow([zipf, ratio, "0.95", "x"])
        writer.writerow([zipf, "write throughput", "273.4", "MiB/s"])
        writer.writerow([zipf, "read latency p99", "100", "us"])
        writer.writerow([zipf, "colour", "blue", ""])
        writer.writerow([condition("uniform random", "Acme 1 TB"), "write rate", "1", "IOPS"])
        writer.writerow(["nothing", "WAF", "1", ""])
    comparison = compare(path, workers=1)
    rate, relative, throughput, *missing = comparison.rows
    assert rate.value == 70_000 and rate.simulated is not None and rate.error_pct is not None
    assert rate.error_pct == pytest.approx(100 * (rate.simulated / 70_000 - 1))
    assert relative.simulated is not None and 0.85 < relative.simulated < 1.05
    assert throughput.simulated == pytest.approx(rate.simulated * 4096 / 2**20)
    assert [row.simulated for row in missing] == [None] * 4
    assert [row.reason for row in missing] == [
        "this load does not measure read latency",
        "unknown metric 'colour'",
        "no data sheet for 'Acme 1 TB'",
        "no semicolon between the drive and the load of the condition",
    ]
    (point,) = comparison.points
    assert (point.published, point.simulated) == (0.95, relative.simulated)
    data = json.loads(json.dumps(mapping(comparison), allow_nan=False))
    assert {"condition", "metric", "value", "simulated", "error_pct"} <= set(data["rows"][0])
    assert [score["kind"] for score in data["scores"]][:2] == [
        "all curves, relative to uniform", "zipf curve, relative to uniform",
    ]  # fmt: skip
    html = render_page(page_of(comparison))
    assert "zipf 0.7" in html and "colour" in html


def test_tails_are_scored_as_factors_below_the_knee() -> None:
    def row(rate: float, metric: str, value: float, simulated: float) -> Row:
        return Row("c", metric, value, "us", simulated, "", "", "d", OpenLoop(rate))

    rows = (
        row(100.0, "write rate reached", 90.0, 45.0),
        row(70.0, "read latency p99", 100.0, 50.0),
        row(80.0, "read latency p99", 100.0, 120.0),
    )
    below = "read latency p99, below 80 % of the largest rate"
    assert kind_of(rows[1], {"d": 72.0}) == below
    assert kind_of(rows[2], {"d": 72.0}) == "read latency p99, near and above the largest rate"
    scores = {score.kind: score for score in Comparison(rows, (), (), 0.0).scores}
    assert (scores[below].median, scores[below].within) == (2.0, 0.0)
    assert scores["largest rate in an open loop"].median == 50.0
