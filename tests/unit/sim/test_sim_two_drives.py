"""Two simulated drives through the published campaigns, and their page."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.small_drive import write_small_drive
from writecliff.cli.main import main
from writecliff.report import build_report, summarise
from writecliff.report.campaigns.seconds import Seconds
from writecliff.report.model import ReportModel, Section
from writecliff.store.rundir import RunDirectory

pytestmark = pytest.mark.draws

TESTS: dict[str, list[str]] = {
    "datacentre": [
        *("--parts", "mixes,consistency,messenger,servers", "--step-seconds", "10"),
        *("--read-pcts", "100,70", "--queue-depths", "1,8", "--mix-block-kib", "4"),
        *("--profiles", "web-server", "--server-depths", "1,8", "--consistency-seconds", "3"),
    ],
    "consistency": ["--range-pcts", "100", "--seconds", "20", "--steady-from-seconds", "10"],
    "act": ["--test-duration-sec", "4", "--report-interval-sec", "1", "--slice-sec", "2"],
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Path]]]:
    """Run each test briefly on a drive and on a drive with slower flash."""
    folder = tmp_path_factory.mktemp("pairs")
    fast = write_small_drive(folder).rename(folder / "fast.toml")
    slow = folder / "slow.toml"
    text = fast.read_text()
    assert '"5.5 ms"' in text
    slow.write_text(text.replace('"5.5 ms"', '"11 ms"').replace('"60 us"', '"120 us"'))
    matches: dict[str, list[Path]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WRITECLIFF_CACHE", str(folder / "cache"))
        for name, more in TESTS.items():
            for drive in (fast, slow):
                run = folder / f"{name}-{drive.stem}"
                words = ["test", name, "--on", f"sim:{drive}", "--output", str(run), "--quiet"]
                assert main([*words, *more]) == 0
                matches.setdefault(name, []).append(run)
        yield matches


def compared(runs: list[Path], folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the page of `compare` and its JSON; its CSV files are in `folder`."""
    words = ["compare", *map(str, runs), "--output", str(folder / "c.html")]
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", printed)
        assert main([*words, "--csv", str(folder / "csv"), "--json"]) == 0
    return (folder / "c.html").read_text(), json.loads(printed.getvalue())


@pytest.fixture(scope="module")
def datacentre(
    pairs: dict[str, list[Path]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("page")
    return (*compared(pairs["datacentre"], folder), folder / "csv")


def test_mixes_by_queue_depth_stand_apart_by_operation(
    datacentre: tuple[str, dict[str, Any], Path], pairs: dict[str, list[Path]]
) -> None:
    html, matches, folder = datacentre
    grids = {grid["name"]: grid for grid in matches["grids"]}
    for operation, mixes in (("read", ["100/0", "70/30"]), ("write", ["70/30"])):
        for kind in ("iops", "p999", "max", "consistency"):
            cells = grids[f"mixes-{operation}-{kind}"]["cells"]
            assert [c["column"] for c in cells if c["row"] == "8"] == mixes
    results = [summarise(run)["results"] for run in pairs["datacentre"]]
    wanted = [
        next(r["value"] for r in single if (r["item"], r["metric"], r["read_pct"], r["oio"])
             == ("mixes", "write_iops", 70.0, 8))
        for single in results
    ]  # fmt: skip
    cell = next(c for c in grids["mixes-write-iops"]["cells"] if c["row"] == "8")
    assert cell["values"] == pytest.approx(wanted)
    assert cell["differences"][1] == pytest.approx(100 * (wanted[1] / wanted[0] - 1))
    with (folder / "datacentre-mixes-write-iops-grid.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["row"] == "8"]
    assert [float(row["value"]) for row in rows] == pytest.approx(wanted)
    assert "<h2>Write IOPS by mix and queue depth</h2>" in html
    assert html.index("Write IOPS by mix") < html.index("<h2>Figures</h2>")


def test_the_messenger_is_bars_and_servers_have_their_difference(
    datacentre: tuple[str, dict[str, Any], Path],
) -> None:
    html = datacentre[0]
    bars = figure(html, "datacentre-messenger-latency-grid-bars-1")
    assert "99 %" in bars and "Response time (ms)" in bars
    servers = figure(html, "datacentre-servers-iops-grid-1")
    for text in ("Queue depth", "Difference (%)", "(right)", "web-server"):
        assert text in servers


def figure(html: str, name: str) -> str:
    begin = html.index(f'<figure id="{name}"')
    return html[begin : html.index("</figure>", begin)]


def section(model: ReportModel, title: str) -> Section:
    (matches,) = (part for part in model.sections if part.title == title)
    return matches


def test_one_drive_has_consistency_of_every_mix_and_the_mixed_load_over_time(
    pairs: dict[str, list[Path]],
) -> None:
    run = pairs["datacentre"][0]
    model = build_report(RunDirectory.open(run))
    tables = section(model, "Consistency of mixed reads and writes").tables
    assert [table.header for table in tables] == [("QD, R/W", "100/0", "70/30"),
                                                  ("QD, R/W", "70/30")]  # fmt: skip
    assert all(50 < float(cell) <= 100 for t in tables for row in t.rows for cell in row[1:])
    part = section(model, "Consistency")
    assert [f.name for f in part.figures] == ["consistency-100", "consistency-0", "consistency-70"]
    for text in ("IOPS of reads", "IOPS of writes", "mean of writes", "mean ± σ of reads"):
        assert text in part.figures[2].svg
    loads = [row[0] for row in part.tables[0].rows]
    assert loads[2:] == ["RND 4KiB 70/30 QD32, reads", "RND 4KiB 70/30 QD32, writes"]
    matches = {r["metric"]: r["value"] for r in summarise(run)["results"]
             if r["item"] == "consistency" and r["read_pct"] == 70.0}  # fmt: skip
    share = matches["read_iops"] / (matches["read_iops"] + matches["write_iops"])
    assert share == pytest.approx(0.7, abs=0.02)


def test_act_has_two_drives_beside_each_other(pairs: dict[str, list[Path]], tmp_path: Path) -> None:
    html, matches = compared(pairs["act"], tmp_path)
    (grid,) = matches["grids"]
    assert {cell["row"] for cell in grid["cells"]} == {"1", "2", "average", "maximum"}
    assert {cell["column"] for cell in grid["cells"]} == {"> 1 ms", "> 2 ms", "> 8 ms", "> 64 ms"}
    for number, run in enumerate(pairs["act"]):
        slices = summarise(run)["act"]["slices"]
        cells = {(c["row"], c["column"]): c["values"][number] for c in grid["cells"]}
        for item in slices:
            assert cells[str(item["slice"]), "> 1 ms"] == pytest.approx(item["over_1ms_pct"])
    assert "Reads over each threshold by slice" in html


def test_consistency_has_deviation_array_and_other_units(
    pairs: dict[str, list[Path]], tmp_path: Path
) -> None:
    run = pairs["consistency"][0]
    model = build_report(RunDirectory.open(run))
    single, array = section(model, "Consistency").tables
    steady = dict(zip(single.header, single.rows[1], strict=True))
    iops = float(steady["Average IOPS"].replace(",", ""))
    assert float(steady["MB/s"].replace(",", "")) == pytest.approx(iops * 4096 / 1e6, rel=0.01)
    time, unit = steady["Response time"].split()
    scale = {"µs": 1e-6, "ms": 1e-3}[unit]
    assert float(time) * scale == pytest.approx(32 / iops, rel=0.01)
    assert array.title.startswith("Array of 12 such drives")
    matches = {r["metric"]: r["value"] for r in summarise(run)["results"]}
    assert matches["array_iops_lowest_second"] == pytest.approx(12 * matches["iops_lowest_second"])
    assert (
        matches["array_iops_lowest_second"] <= matches["array_iops"] <= 12 * matches["iops_steady"]
    )
    drawing = next(f for s in model.sections for f in s.figures if f.name == "range-100-deviation")
    assert "σ of response time (right)" in drawing.svg
    (file,) = (file for file in model.data if file.name == "seconds-100.csv")
    spread = [float(row["latency_sd_ns"]) for row in csv.DictReader(file.text.splitlines())]
    histogram = RunDirectory.open(run).histogram()
    assert histogram is not None and histogram.sd_ns is not None
    assert 0 < np.median(spread) < 3 * histogram.sd_ns
    html, _ = compared(pairs["consistency"], tmp_path)
    for name in ("average", "worst", "deviation"):
        assert re.search(rf'<figure id="range-100-{name}"', html)
    assert 'data-choices="[&#34;' in html


def test_an_array_waits_for_the_slowest_of_its_drives() -> None:
    iops = np.array([100.0, 200.0, 300.0, 400.0])
    nothing = np.zeros(4)
    seconds = Seconds(np.arange(4.0), iops, iops, nothing)
    pairs = [min(a, b) for a in iops for b in iops]
    assert seconds.array_iops(2) == pytest.approx(2 * np.mean(pairs))
    assert seconds.array_iops(1) == pytest.approx(250.0)
    assert Seconds(nothing[:0], nothing[:0], nothing[:0], nothing[:0]).array_iops(2) is None
