"""SSD-iq figures: conditions, drives from data sheets, and loads on drives of a few megabytes."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.engines.base import StepResult
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError
from writecliff.lab.published.ssd_iq import play, result
from writecliff.lab.published.ssd_iq.page import page_of, rows_tables
from writecliff.lab.published.ssd_iq.play import Measured, SmallDrive, Watcher, play_all
from writecliff.lab.published.ssd_iq.result import (
    FIGURES,
    Comparison,
    Row,
    compare,
    kind_of,
    mapping,
    read_rows,
)
from writecliff.published.ssd_iq.conditions import (
    GIB,
    KIB,
    Load,
    OpenLoop,
    RandomWrites,
    Spread,
    ZoneWrites,
    load_of,
)
from writecliff.published.ssd_iq.drives import SHEETS, Sheet, device_text, read_sheets, sheet_of
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
        ("x; 60 % static", RandomWrites(Spread(zones=((60, 0), (40, 100)), is_scattered=False))),
        ("x; 16 KB writes QD 8 x 2, uniform", RandomWrites(Spread(), 16 * KIB, 8, 2)),
        ("x; 4k random writes QD 8 x 2, uniform", RandomWrites(Spread(), 4 * KIB, 8, 2)),
        (
            "x; sequential fill of 2 capacities, then uniform; 5 to 7 capacities",
            RandomWrites(Spread(), capacities=6.0),
        ),
        (
            "x; aged: 1 capacity of sequential writes, 4 capacities uniform; open loop at 9 IOPS",
            OpenLoop(9.0, aged_capacities=4.0),
        ),
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
        ("SSD-iq GC simulator, uniform, greedy, fill factor 0.1", "a semicolon between"),
        ("x; something else", "unknown load"),
        (condition("zipf, pages shuffled"), "a zipf load requires a theta"),
        (condition("30 % of pages get 0 % of writes, 30 % of pages get 9 % of writes"), "add up"),
        ("x; open loop at full speed", "requires a rate"),
        ("x; 150 % static", "add up"),
        ("x; uniform, averaged from 60 to 150 %", "invalid window from 60 to 150 % of the run"),
        ("x; uniform, averaged from 99 to 60 %", "invalid window from 99 to 60 % of the run"),
        ("x; 0 KiB writes, uniform", "block size is 0"),
        ("x; uniform, 0 capacities", "the load writes 0 capacities"),
        ("x; uniform, QD " + "9" * 400, "inf exceeds the largest supported number, 1e.15"),
        ("x; uniform, 2000 capacities", "2000 capacities exceed the limit of 1,000"),
    ],
)
def test_an_unknown_condition_has_a_reason(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_of(text)


def test_rounded_shares_add_up_to_100_percent() -> None:
    load = load_of("x; 60 % of pages get 9.8 % of writes, 39.7 % of pages get 90 % of writes")
    assert isinstance(load, RandomWrites)
    (pages, writes), (hot_pages, hot_writes) = load.spread.zones
    assert pages + hot_pages == pytest.approx(100) and writes + hot_writes == pytest.approx(100)
    assert pages / hot_pages == pytest.approx(60 / 39.7)


def test_a_sheet_matches_by_name_and_capacity() -> None:
    sheets = read_sheets()
    assert sheet_of("Kioxia CM7-R 3.84 TB (PCIe 5) unit 4", sheets).name == "Kioxia CM7-R"
    assert sheet_of("Micron 7450 MAX 800 GB (PCIe 4)", sheets).sheet.tbw == 3 * 365 * 5 * 800e9
    assert sheet_of("WD DC SN640 960 GB (PCIe 3)", sheets).name == "WD DC (model not named)"
    assert sheet_of("Solidigm P5520 1.92TB", sheets).name == "Solidigm D7-P5520"
    assert sheet_of("Micron 7450 PRO 960 GB", sheets).name == "Micron 7450 PRO"
    assert sheet_of("Micron 7450 960 GB", sheets).name == "Micron 7450 PRO"
    assert sheet_of("Micron 7450 MAX U.3 800GB", sheets).name == "Micron 7450 MAX"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Micron 7450 PRO 7.68 TB", "has this capacity .known: Micron 7450 PRO 960 GB"),
        ("Micron 7450 MAX 960 GB", "has this capacity"),
        ("Micron 7450", "several data sheets match 'Micron 7450': Micron 7450 PRO 960 GB, Micron 74"),
        *(
            (name, "no data sheet for")
            for name in (
                "Micron 9999 960 GB", "Samsung 983 960 GB", "Micron 7500 PRO 960 GB",
                "Micron 7500 MAX", "Kioxia CD7-R 3.84 TB", "Kioxia CM7-V 3.84 TB",
                "Solidigm D7-P5510 1.92 TB", "Samsung PM1743 960 GB",
            )
        ),
    ],
)  # fmt: skip
def test_another_drive_has_no_sheet(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sheet_of(name, read_sheets())


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
    with pytest.raises(ConfigError, match="does not contain the column 'drive'") as caught:
        read_sheets(path)
    assert caught.value.hint is not None and "dwpd, read_latency_us" in caught.value.hint
    for cell, year, message in (("PLC", "2021", "unknown cell 'plc'"), ("tlc", "12000", "'12000'")):
        path.write_text(f"drive,capacity_gb,year,cell\nAcme,960,{year},{cell}\n")
        with pytest.raises(ConfigError, match=f"sheets.csv: line 2: .*{message}"):
            read_sheets(path)
    path.write_text("drive,capacity_gb,year,cell\nAcme,960,2019,3D TLC\n")
    (sheet,) = read_sheets(path)
    assert (sheet.sheet.year, sheet.sheet.cell) == (2019, "tlc")
    path.write_text('drive,capacity_gb\n"' + "A" * 140_000 + '",1\n')
    with pytest.raises(ConfigError, match="cannot read"):
        read_sheets(path)


@pytest.fixture(scope="module")
def small() -> SmallDrive:
    """Return a drive with several hundred megabytes."""
    sheet = next(sheet for sheet in read_sheets() if sheet.name == "Samsung PM9A3")
    return SmallDrive.of(sheet.sheet.name, device_text(sheet), 3e8)


def play_loads(drive: SmallDrive, loads: Sequence[Load]) -> list[Measured]:
    """Return the figures of loads that can be simulated."""
    figures = play_all({drive: loads})[drive]
    measured = [figures[load] for load in loads]
    assert all(isinstance(result, Measured) for result in measured), measured
    return [result for result in measured if isinstance(result, Measured)]


def test_static_pages_cost_more_scattered_than_contiguous(small: SmallDrive) -> None:
    scattered = Spread(zones=((60, 0), (40, 100)))
    contiguous = Spread(zones=((60, 0), (40, 100)), is_scattered=False)
    loads = [RandomWrites(Spread(), capacities=2.0)]
    loads += [RandomWrites(spread, capacities=2.0) for spread in (scattered, contiguous)]
    uniform, mixed, separate = play_loads(small, loads)
    assert uniform.waf is not None and mixed.waf is not None and separate.waf is not None
    assert 3.5 < uniform.waf < 5.0
    assert mixed.waf > 3.5 > 2.5 > separate.waf
    assert separate.write_iops > 1.3 * mixed.write_iops
    assert uniform.write_bytes_per_s == pytest.approx(uniform.write_iops * 4096)


def test_a_part_of_the_drive_amplifies_less(small: SmallDrive) -> None:
    half = RandomWrites(Spread(), capacities=3.0, range_bytes=small.capacity_bytes / 2)
    (measured,) = play_loads(small, [half])
    assert measured.waf is not None and 1.0 <= measured.waf < 1.3


def test_a_window_is_placed_by_time() -> None:
    steady, slowing = [0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 1.0, 2.0, 5.0, 8.0]
    assert [play.volume_at(share, steady) for share in (0, 0.6, 1)] == [0, 0.6, 1]
    # Half of the time is 4 of 8. The window ends in the third of four sections, which lasts from 2
    # to 5.
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
    # A drive writes without garbage collection until its spare flash is used up.
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
    monkeypatch.setattr(play, "SECONDS", 0.2)
    (measured,) = play_loads(small, [OpenLoop(20_000.0, aged_capacities=0.5)])
    assert measured.write_iops == pytest.approx(19_800, rel=0.05)
    median = measured.times["read"].quantile(0.5).value_ns
    assert median is not None and 40e3 < median < 120e3
    assert measured.times["write"].count == pytest.approx(1000, rel=0.15)


def test_zones_are_written_by_all_threads(small: SmallDrive) -> None:
    size = small.capacity_bytes / 40
    loads = [ZoneWrites(size, 4, 4 * KIB, 1, threads, capacities=1.0) for threads in (1, 4)]
    single, several = play_loads(small, loads)
    assert several.write_iops > 3 * single.write_iops


def test_an_invalid_load_leaves_the_others(small: SmallDrive) -> None:
    valid = RandomWrites(Spread(), capacities=0.1)
    invalid: dict[Load, str] = {
        RandomWrites(Spread(theta=12)): "theta 12",
        RandomWrites(Spread(), queue_depth=70_000): "queue_depth: 70000",
        OpenLoop(1000.0, write_pct=150, aged_capacities=0): "-50 % is outside 0 % to 100 %",
        ZoneWrites(3 * small.capacity_bytes, 1): "a zone is larger than the drive",
    }
    figures = play_all({small: [*invalid, valid]})[small]
    assert figures[valid] == play_all({small: [valid]})[small][valid]
    for load, reason in invalid.items():
        text = figures[load]
        assert isinstance(text, str) and reason in text


def test_progress_ends_with_a_line(small: SmallDrive) -> None:
    logged: list[str] = []
    watcher = Watcher(logged.append)
    loads = [ZoneWrites(GIB, 1), ZoneWrites(2 * GIB, 1)]
    watcher.expect(small, loads)
    for load in loads:
        watcher.done(small, load)
    assert logged == ["[2/2 loads, 0 s]  samsung-pm9a3-960: 1 active zones of 2 GiB"]


Cells = tuple[str, str, str, str]


def write_table(path: Path, rows: Sequence[Cells]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("condition", "metric", "value", "unit"), *rows])
    return path


def test_missing_figures_of_a_comparison_have_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "SMALL_BYTES", 3e8)
    ratio = "write rate relative to uniform on the same unit"
    zipf = condition("zipf theta 0.7, pages shuffled over the whole LBA space")
    rows = [
        (zipf, "write rate", "70,000", "IOPS"),
        (zipf, ratio, "0.95", "x"),
        (zipf, "write throughput", "273.4", "MiB/s"),
        (zipf, "read latency p99", "100", "us"),
        (zipf, "colour", "7", ""),
        (condition("uniform random", "Acme 1 TB"), "write rate", "1", "IOPS"),
        ("nothing", "WAF", "1", ""),
        (zipf, "write rate", "blue", "IOPS"),
        (zipf, "write rate", "-5", "IOPS"),
        (condition("zipf theta 12"), ratio, "1", "x"),
    ]
    comparison = compare(write_table(tmp_path / "own.csv", rows), workers=1)
    rate, relative, throughput, *missing = comparison.rows
    assert rate.value == 70_000 and rate.simulated is not None and rate.error_pct is not None
    assert rate.error_pct == pytest.approx(100 * (rate.simulated / 70_000 - 1))
    assert relative.simulated is not None and 0.85 < relative.simulated < 1.05
    assert throughput.simulated == pytest.approx(rate.simulated * 4096 / 2**20)
    assert [row.simulated for row in missing] == [None] * 7
    *reasons, invalid = (row.reason for row in missing)
    assert reasons == [
        "this load does not measure read latency",
        "unknown metric 'colour'",
        "no data sheet for 'Acme 1 TB'",
        "the condition does not contain a semicolon between the drive and the load",
        "value is 'blue', not a number",
        "value is -5, not from 1e-12 to 1e+15",
    ]
    assert invalid.startswith("cannot simulate the load: ")
    (point,) = comparison.points
    assert (point.published, point.simulated) == (0.95, relative.simulated)
    data = json.loads(json.dumps(mapping(comparison), allow_nan=False))
    assert {"condition", "metric", "value", "simulated", "error_pct"} <= set(data["rows"][0])
    assert [score["kind"] for score in data["scores"]][:2] == [
        "all curves, relative to uniform", "zipf curve, relative to uniform",
    ]  # fmt: skip
    assert any("7450 MAX in view" in text for text in data["disclosures"])
    simulated, other = rows_tables(comparison)
    assert simulated.title == "Samsung PM9A3 960 GB"
    assert simulated.rows[0][3] == f"{rate.simulated:,.0f} IOPS"
    assert (other.header[-1], other.align[-1]) == ("Reason", "left")
    assert other.rows[4][-1] == "value is 'blue', not a number"
    html = render_page(page_of(comparison))
    assert "zipf 0.7" in html and "colour" in html and "7450 MAX in view" in html


def test_capacities_of_a_model_are_drives_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "SMALL_BYTES", 3e8)
    derived: list[str] = []

    def record(sheet: Sheet) -> str:
        derived.append(sheet.label)
        return device_text(sheet)

    monkeypatch.setattr(result, "device_text", record)
    header, *lines = SHEETS.read_text().splitlines()
    (row,) = (line for line in lines if line.startswith("Samsung PM9A3,960,"))
    larger = row.replace(",960,", ",3840,").replace(",70000,", ",180000,")
    sheets = tmp_path / "sheets.csv"
    sheets.write_text("\n".join((header, row, larger)) + "\n")
    names = ("Samsung PM9A3 960 GB", "Samsung PM9A3 3.84 TB")
    load = "uniform random, 1 capacities"
    cells = [(f"{name}; {load}", metric, "70000", "IOPS") for name in names
             for metric in ("write rate", "write rate")]  # fmt: skip
    comparison = compare(write_table(tmp_path / "own.csv", cells), sheets, workers=1)
    assert derived == list(names)
    assert [(drive.drive, drive.loads) for drive in comparison.drives] == [(n, 1) for n in names]
    assert [row.drive for row in comparison.rows] == [names[0], names[0], names[1], names[1]]
    small, _, large, _ = (row.simulated for row in comparison.rows)
    assert small is not None and large is not None and large > 1.8 * small
    assert len(list(rows_tables(comparison))) == 2


def test_invalid_latencies_have_a_reason_and_an_unpublished_knee_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "SMALL_BYTES", 3e8)
    loop = "Samsung PM9A3 960 GB; aged: 0.5 capacities uniform; open loop at 20000 writes/s"
    rows = [
        (loop, metric, "100", "us")
        for metric in ("read latency p99.9.9", "read latency p100", "read latency p50")
    ]
    rows.append((loop, "write latency p50", "-3", "us"))
    comparison = compare(write_table(tmp_path / "own.csv", rows), workers=1, time_share=0.01)
    assert [row.reason.partition(" (")[0] for row in comparison.rows] == [
        "invalid percentile 'p99.9.9'",
        "invalid percentile 'p100'",
        "",
        "value is -3, not from 1e-12 to 1e+15",
    ]
    (knee,) = comparison.simulated_knees.values()
    # The data sheet rates the drive at 70,000 random writes per second.
    assert 50_000 < knee < 110_000
    (score,) = json.loads(result.json_text(comparison))["scores"]
    assert score["kind"] == "read latency p50, below 80 % of the largest rate"
    disclosures = " ".join(result.disclosures(comparison))
    assert "cover 0.22 s of an open loop" in disclosures
    assert f"the largest simulated rate, {knee:,.0f} a second" in disclosures


def test_the_command_compares_other_drives(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "SMALL_BYTES", 3e8)
    sheets = tmp_path / "sheets.csv"
    sheets.write_text(
        "drive,capacity_gb,pcie,seq_read_mb_s,seq_write_mb_s,random_read_iops,random_write_iops,"
        "dwpd,read_latency_us,write_latency_us,year,cell\n"
        "Acme X9-T,1600,4,7000,3000,1000000,250000,3,75,15,2022,TLC\n"
    )
    zipf = "Acme X9-T 1.6 TB; 2 capacities, zipf theta 0.95, shuffled"
    rows = [(zipf, "rate relative to uniform", "1.1", "x"), (zipf, "WAF", "", "")]
    figures = write_table(tmp_path / "own.csv", rows)
    words = [
        "lab",
        "reproduce",
        "ssd-iq",
        "--figures",
        str(figures),
        "--sheets",
        str(sheets),
        "--json",
    ]
    output = cli([*words, "--quiet", "--output", str(tmp_path / "out")])
    assert (output.code, output.err) == (0, "")
    data = json.loads(output.out)
    relative, waf = data["rows"]
    assert relative["condition"] == zipf and relative["metric"] == "rate relative to uniform"
    assert relative["error_pct"] == pytest.approx(100 * (relative["simulated"] / 1.1 - 1))
    assert 0.7 < relative["simulated"] < 1.3 and waf["simulated"] > 1
    assert (waf["value"], waf["error_pct"]) == (None, None)
    assert (relative["drive"], relative["load"]) == ("Acme X9-T 1.6 TB", "zipf 0.95")
    stored = json.loads((tmp_path / "out" / "results.json").read_text())
    assert stored == {key: value for key, value in data.items() if key != "report"}


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
    assert kind_of(rows[1], {}) == "read latency p99, largest rate unknown"
    scores = {score.kind: score for score in Comparison(rows, (), (), 0.0).scores}
    assert (scores[below].median, scores[below].within) == (2.0, 0.0)
    assert scores["largest rate in an open loop"].median == 50.0
