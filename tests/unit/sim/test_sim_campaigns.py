"""The published campaigns on a simulated drive, from the command line to their reports."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.small_drive import write_small_drive
from writecliff import SimEngine
from writecliff.cli.main import main
from writecliff.engines.preconditioned import bring_to
from writecliff.engines.state_cache import StateCache
from writecliff.procedures.campaigns.act import Act
from writecliff.procedures.campaigns.act_config import ActOptions
from writecliff.procedures.campaigns.consistency import Consistency, ConsistencyOptions
from writecliff.procedures.campaigns.endurance import Endurance, EnduranceOptions
from writecliff.procedures.estimate import estimate
from writecliff.procedures.framework import RunInterrupted, run_procedure
from writecliff.procedures.model import History, StepRow
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.report import build_report, report_of, summarise, write_report
from writecliff.report.campaigns.endurance import ownership, ownership_section
from writecliff.report.campaigns.seconds import Seconds
from writecliff.report.power import PowerSeries, power_figure
from writecliff.report.testdata import load
from writecliff.store.checksums import NO_DIGEST, PARQUET_KEY, seal_parquet
from writecliff.store.rundir import RunDirectory
from writecliff.workload.model import BlockSize, Job, Workload

QUICK = ["--quick", "--quiet"]
SHORT: dict[str, list[str]] = {
    "datacentre": [
        "--step-seconds",
        "0.05",
        "--consistency-seconds",
        "3",
        "--server-depths",
        "1",
        "--profiles",
        "web-server,exchange-server",
        "--read-pcts",
        "100,70",
    ],
    "consistency": ["--price", "200"],
    "act": ["--test-duration-sec", "4", "--report-interval-sec", "1", "--slice-sec", "2"],
    "blocksizes": ["--step-seconds", "0.05", "--block-sizes-kib", "128,4", "--max-rounds", "5"],
    "ssd-iq": [
        *("--thetas", "0.8", "--static-pcts", "60", "--cold-pcts", "90", "--zone-gib", "0.03125"),
        *("--rates-iops", "2000", "--open-seconds", "4", "--capacities", "1"),
    ],
    "endurance": ["--price", "100", "--kwh-price", "0.2", "--pue", "1.5", "--watts", "4"],
}


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_drive(tmp_path_factory.mktemp("drive"))


@pytest.fixture(autouse=True, scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("WRITECLIFF_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def runs(drive: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run every campaign briefly."""
    folder = tmp_path_factory.mktemp("runs")
    for name, more in SHORT.items():
        words = ["test", name, "--on", f"sim:{drive}", "--output", str(folder / name)]
        assert main([*words, *QUICK, *more]) == 0
    return {name: folder / name for name in SHORT}


@cache
def summary(run: Path) -> dict[str, Any]:
    return summarise(run)


def values(run: Path, **wanted: Any) -> dict[str, float]:
    """Return the matching results, by metric."""
    return {
        result["metric"]: result["value"]
        for result in summary(run)["results"]
        if all(result[key] == value for key, value in wanted.items())
    }


@pytest.mark.parametrize("name", SHORT)
def test_every_campaign_has_its_page(name: str, runs: dict[str, Path]) -> None:
    page = (runs[name] / "report.html").read_text()
    assert "NOT AS PUBLISHED" in page
    assert "PTS-CONFORMANT" not in page
    assert page.count("<svg") >= 2
    assert summary(runs[name])["schema"] == f"writecliff/{name}/1"
    assert summary(runs[name])["results"]
    assert json.loads((runs[name] / "manifest.json").read_text())["status"] == "complete"


def test_the_white_paper_has_figures_of_every_part(runs: dict[str, Path]) -> None:
    run = runs["datacentre"]
    campaign_figures = summary(run)["results"]
    assert {item["item"] for item in campaign_figures} == {
        "basic", "mixes", "consistency", "messenger", "servers"
    }  # fmt: skip
    read = values(run, item="basic", access="random", block_kib=4.0, read_pct=100.0, oio=32)
    write = values(run, item="basic", access="random", block_kib=4.0, read_pct=0.0, oio=32)
    assert read["iops"] > 2 * write["iops"]
    mixed = values(run, item="mixes", block_kib=4.0, read_pct=70.0, oio=32)
    assert mixed["read_iops"] + mixed["write_iops"] == pytest.approx(mixed["iops"])
    assert mixed["read_iops"] / mixed["iops"] == pytest.approx(0.7, abs=0.05)
    steady = values(run, item="consistency", read_pct=0.0)
    assert steady["iops_consistency"] == pytest.approx(100 * steady["iops_p99.9"] / steady["iops"])
    messenger = values(run, item="messenger")
    assert messenger["read_iops_per_thread"] * 20 > messenger["write_iops"]
    (servers, *_) = [item for item in campaign_figures if item["access"] == "web-server"]
    assert servers["oio"] == 1


def test_skewed_writes_are_compared_with_uniform_writes(runs: dict[str, Path]) -> None:
    run = runs["ssd-iq"]
    uniform = values(run, item="uniform writes")
    assert uniform["relative_to_uniform"] == 1.0
    for item, relative in (
        ("zipf writes, theta 0.8", 0.96),
        ("60 % of pages static", 0.93),
        ("90 % of pages get 10 % of writes", 0.78),
    ):
        skewed = values(run, item=item)
        assert skewed["relative_to_uniform"] == pytest.approx(skewed["iops"] / uniform["iops"])
        assert skewed["relative_to_uniform"] == pytest.approx(relative, abs=0.03)
        # Programs are the bottleneck, so rates are inversely proportional to write amplification.
        assert skewed["iops"] * skewed["waf"] == pytest.approx(
            uniform["iops"] * uniform["waf"], rel=0.02
        )
    assert uniform["waf"] == pytest.approx(4.05, rel=0.03)
    zones = values(run, item="zones of 0.03125 GiB")
    assert zones["waf"] == pytest.approx(1.0, abs=0.01)
    open_loop = values(run, item="2,000 arrivals a second")
    # The tolerance is 2 standard deviations over 4 s.
    assert open_loop["write_iops"] == pytest.approx(1980, rel=0.04)
    for operation in ("read", "write"):
        p50, p99, p999 = (
            open_loop[f"{operation}_latency_{name}"] for name in ("p50", "p99", "p99.9")
        )
        assert p50 < p99 < p999
    # An unloaded read takes 106 us. A write takes the firmware time and the link time.
    assert 0.106 <= open_loop["read_latency_p50"] < 0.160
    assert 0.018 <= open_loop["write_latency_p50"] < 0.035


def test_sustained_means_written_three_times(runs: dict[str, Path]) -> None:
    with RunDirectory.open(runs["datacentre"]) as run:
        rows = run.rounds().to_pylist()
    # The value belongs to the first step of each phase.
    fills = {row["phase"]: row["drive_fills"] for row in reversed(rows)}
    assert next(iter(reversed(fills))) == "sequential"
    assert fills["sequential"] == pytest.approx(1.0, rel=0.01)
    assert fills["basic"] == pytest.approx(3.0, rel=0.01)
    written = values(runs["datacentre"], item="basic", access="sequential", read_pct=0.0)
    # With nothing to collect, writes are as fast as the initial fill.
    assert written["throughput"] > 80


def test_the_limited_range_is_faster_and_a_price_gives_iops_per_dollar(
    runs: dict[str, Path],
) -> None:
    whole = values(runs["consistency"], item="consistency 100 %")
    limited = values(runs["consistency"], item="consistency 75 %")
    assert limited["iops_steady"] > 1.3 * whole["iops_steady"]
    assert whole["iops_worst_case"] <= whole["iops_lowest_second"] <= whole["iops_steady"]
    assert whole["iops_per_dollar"] == pytest.approx(whole["iops_steady"] / 200)
    price = values(runs["consistency"], item="price")["dollars_per_gb"]
    assert price == pytest.approx(200 / 0.96, rel=1e-3)


def test_act_passes_its_own_load_and_prints_it(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    campaign_figures = summary(runs["act"])["act"]
    assert (campaign_figures["load"], campaign_figures["passed"], campaign_figures["stopped"]) == (
        1,
        True,
        False,
    )
    assert [item["slice"] for item in campaign_figures["slices"]] == [1, 2]
    assert [item["reads"] for item in campaign_figures["slices"]] == [4000, 4000]
    assert main(["lab", "act", "log", str(runs["act"])]) == 0
    log = capsys.readouterr().out
    assert log.count("\nafter ") == 4
    assert "\nafter 4 sec:\nreads (8000 total)\n" in log
    # The job issues 23.53 writes per second for 4 s. With O_DSYNC, each write is flushed, and the
    # rate is still met.
    assert "large-block-writes (95 total)" in log or "large-block-writes (96 total)" in log
    assert main(["lab", "act", "latency", str(runs["act"])]) == 0
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table[4:]] == ["1", "2", "-----", "avg", "max"]


@pytest.mark.parametrize("command", ["log", "latency"])
def test_act_of_a_damaged_run_says_so(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Check a table that lacks a required column but has a valid checksum."""
    run = tmp_path / "run"
    shutil.copytree(runs["act"], run)
    path = run / "rounds.parquet"
    table = pq.read_table(path)
    names = [name for name in table.column_names if "over_1ms" not in name]
    assert len(names) < len(table.column_names)
    metadata = {**table.schema.metadata, PARQUET_KEY: NO_DIGEST}
    sink = io.BytesIO()
    pq.write_table(table.select(names).replace_schema_metadata(metadata), sink)
    path.write_bytes(seal_parquet(sink.getvalue()))
    assert main(["lab", "act", command, str(run)]) == 2
    assert capsys.readouterr().err.startswith(f"error: damaged: {run}: ")


def test_act_of_the_old_model_counts_from_the_queue(drive: Path, tmp_path: Path) -> None:
    config = tmp_path / "act.conf"
    config.write_text(
        "device-names: /dev/none\nnum-queues: 2\nthreads-per-queue: 8\ntest-duration-sec: 2\n"
        "report-interval-sec: 1\nread-reqs-per-sec: 2000\nlarge-block-ops-per-sec: 24\n"
        "read-req-num-512-blocks: 3\nlarge-block-op-kbytes: 128\n"
    )
    words = [
        "lab",
        "act",
        "run",
        str(config),
        "--on",
        f"sim:{drive}",
        "--output",
        str(tmp_path / "r"),
    ]
    assert main([*words, "--quiet"]) == 0
    with RunDirectory.open(tmp_path / "r") as run:
        kinds = run.query("select distinct kind from histograms where job_name = 'reads'")
    assert set(kinds.column("kind").to_pylist()) == {"service", "response"}
    assert "stopped" in summary(tmp_path / "r")["act"]


def test_a_drive_that_cannot_keep_up_is_stopped(drive: Path, tmp_path: Path) -> None:
    options = ActOptions(
        load="96x", test_duration_sec=60.0, report_interval_sec=2.0, max_lag_sec=1.0, quick=True
    )
    outcome = run_procedure(Act(options), SimEngine(str(drive)), tmp_path / "r")
    assert len(outcome.history.rows) < 5
    assert any("cannot keep up" in text for text in outcome.warnings)
    assert summary(tmp_path / "r")["act"]["stopped"] is True


def test_block_sizes_have_latency_and_say_that_power_is_not_measured(
    runs: dict[str, Path],
) -> None:
    small = values(runs["blocksizes"], block_kib=4.0, read_pct=0.0, access="random")
    large = values(runs["blocksizes"], block_kib=128.0, read_pct=0.0, access="random")
    assert small["iops"] > 5 * large["iops"]
    assert large["latency_max"] >= large["latency_avg"] > small["latency_avg"]
    if not summary(runs["blocksizes"])["power_measured"]:
        assert "not measured" in (runs["blocksizes"] / "report.html").read_text()


def test_power_is_drawn_under_the_loop_that_the_iops_are_of(
    drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    power = '[power]\nidle = "1 W"\nactive = "500 mW"\nread = "20 mW"\nprogram = "40 mW"\n'
    (tmp_path / "powered.toml").write_text(drive.read_text() + power)
    words = ["test", "blocksizes", "--on", f"sim:{tmp_path / 'powered.toml'}", *QUICK]
    assert main([*words, *SHORT["blocksizes"], "--output", str(tmp_path / "run")]) == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Power under the IOPS loop" in page and "Power and block size v time" in page
    assert main(["report", str(tmp_path / "run"), "--csv", str(tmp_path / "csv")]) == 0
    (csv,) = (tmp_path / "csv").rglob("power-loop.csv")
    watts = [float(line.split(",")[2]) for line in csv.read_text().splitlines()[1:]]
    assert len(watts) >= 6 and all(1.0 < contender < 10 for contender in watts)
    capsys.readouterr()
    assert summary(tmp_path / "run")["power_measured"] is True


@pytest.mark.draws
def test_power_is_a_mean_over_time_and_drawn_over_block_sizes(runs: dict[str, Path]) -> None:
    """Use a series of a drive that reports power: one watt for a second, three for three."""
    data = load(RunDirectory.open(runs["blocksizes"]))
    rows = data.history.stages["power"].rows[:2]
    seq = np.array([data.seq(row) for row in rows]).repeat(2)
    ends = np.array([1.0, 4.0, 5.0, 8.0]) * 1e9
    begins = np.array([0.0, 1.0, 4.0, 5.0]) * 1e9
    power = PowerSeries(data, seq, begins, ends, np.array([1.0, 3.0, 3.0, 1.0]))
    assert [power.mean_of(row) for row in rows] == pytest.approx([2.5, 1.5])
    assert power.mean_of(data.rows[0]) is None
    figure = power_figure(power, rows)
    assert figure.svg.count("<path") > 10 and "Power (W)" in figure.svg
    assert power.file().text.splitlines()[1] == "0,1e+09,1"


def test_power_of_a_run_that_begins_untimed_is_known(drive: Path, tmp_path: Path) -> None:
    powered = tmp_path / "powered.toml"
    powered.write_text(f'{drive.read_text()}\n[power]\nidle = "1 W"\nactive = "500 mW"\n')
    run = tmp_path / "run"
    words = ["test", "endurance", "--on", f"sim:{powered}", "--output", str(run), *QUICK]
    assert main(words) == 0
    report = build_report(RunDirectory.open(run))
    (platform,) = (part for part in report.sections if part.title == "Reference test platform")
    assert ("Power", "Modelled") in [row[:2] for row in platform.tables[0].rows]


def test_endurance_is_the_formula_of_what_was_measured(runs: dict[str, Path]) -> None:
    campaign_figures = values(runs["endurance"], item="endurance")
    capacity = 960e6
    assert campaign_figures["waf"] > 1.5
    assert campaign_figures["tbw"] == pytest.approx(
        capacity * 3000 / campaign_figures["waf"] / 1e12, rel=1e-3
    )
    assert campaign_figures["dwpd"] == pytest.approx(
        campaign_figures["tbw"] * 1e12 / (capacity * 365 * 5), rel=1e-3
    )
    assert campaign_figures["lifetime"] == pytest.approx(5 * campaign_figures["dwpd"], rel=1e-3)
    assert campaign_figures["dollars_per_tbw"] == pytest.approx(100 / campaign_figures["tbw"])
    with RunDirectory.open(runs["endurance"]) as run:
        rounds = run.query("select * from rounds where phase = 'rounds' order by seq").to_pylist()
    assert all(row["elapsed_ns"] == 0 and row["host_write_bytes"] > 0 for row in rounds)


def test_the_cost_of_ownership_is_drives_and_energy(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    life = values(runs["endurance"], item="endurance")["lifetime"]
    costs = values(runs["endurance"], item="ownership")
    assert costs["drives_bought"] == max(1, math.ceil(5 / life))
    assert costs["energy"] == pytest.approx(4 * 1.5 * 5 * 8.76)
    assert costs["tco"] == pytest.approx(costs["drives_bought"] * 100 + costs["energy"] * 0.2)
    assert costs["tco_per_gb"] == pytest.approx(costs["tco"] / 0.96, rel=1e-3)
    words = ["report", str(runs["endurance"]), "--csv", str(tmp_path / "csv"), "--json"]
    assert main([*words, "--output", str(tmp_path / "page.html")]) == 0
    capsys.readouterr()
    page = (tmp_path / "page.html").read_text()
    assert "Total cost of ownership" in page and f"${costs['tco']:,.2f}" in page
    (csv,) = (tmp_path / "csv").rglob("results.csv")
    assert f"ownership,jesd219-enterprise,tco,{costs['tco']:.6g}"[:50] in csv.read_text()


@pytest.mark.parametrize(
    ("days", "drives"), [(None, 1), (5 * 365.0, 1), (5 * 365.0 - 1, 2), (365.0, 5), (1e9, 1)]
)
def test_worn_drives_are_replaced(days: float | None, drives: int) -> None:
    costs = ownership(
        price=200, years=5, days_of_life=days, watts=None, watts_given=False, pue=1,
        kwh_price=0.1, capacity_bytes=10**12, bytes_per_day=1e12,
    )  # fmt: skip
    assert costs.total == costs.drives_dollars == drives * 200
    assert costs.per_tb_written == pytest.approx(drives * 200 / (5 * 365))
    shown = ownership_section(costs)
    assert "power of the drive is unknown" in shown.intro
    assert ("Drives bought", str(drives)) in [row[:2] for row in shown.tables[0].rows]


class _StopAfter(RunProgress):
    """Simulate Ctrl-C after this many steps."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("test", "options", "steps"),
    [
        ("datacentre", {"step_seconds": 0.05}, 1),
        ("datacentre", {"step_seconds": 0.05}, 10),
        ("consistency", {}, 1),
        ("act", {"search": True}, 1),
        ("act", {"test_duration_sec": 60.0}, 1),
        ("blocksizes", {"step_seconds": 0.05}, 1),
        ("blocksizes", {"step_seconds": 0.05}, 3),
        ("endurance", {}, 1),
    ],
)
def test_a_run_cut_short_is_reported_as_far_as_it_went(
    test: str, options: dict[str, Any], steps: int, drive: Path, tmp_path: Path
) -> None:
    procedure = procedure_from_mapping(test, {"quick": True, **options})
    with pytest.raises(RunInterrupted):
        run_procedure(procedure, SimEngine(str(drive)), tmp_path / "r", _StopAfter(steps))
    page = write_report(tmp_path / "r").read_text()
    assert "interrupted" in page
    assert summarise(tmp_path / "r")["run"]["status"] == "interrupted"


# -- framework: shared states, separate clocks, resuming -------------------------------------


def consistency() -> Consistency:
    return Consistency(ConsistencyOptions(seconds=2.0, steady_from_seconds=1.0, step_seconds=0.5))


def rows_of(path: Path) -> list[dict[str, Any]]:
    with RunDirectory.open(path) as run:
        return run.rounds().to_pylist()


def test_a_cached_state_gives_the_same_run(
    drive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRITECLIFF_CACHE", str(tmp_path / "cache"))
    for name in ("made", "taken"):
        run_procedure(consistency(), SimEngine(str(drive)), tmp_path / name)
    assert len(list((tmp_path / "cache").glob("*.wcs"))) == 2
    assert rows_of(tmp_path / "made") == rows_of(tmp_path / "taken")


def test_time_continues_from_stage_to_stage(drive: Path, tmp_path: Path) -> None:
    outcome = run_procedure(consistency(), SimEngine(str(drive)), tmp_path / "r")
    rows = outcome.history.rows
    assert [row.phase for row in rows] == ["range-100"] * 4 + ["range-75"] * 4
    for before, after in pairwise(rows):
        assert after.started_ns == before.ended_ns
    assert rows[4].drive_fills < 1 < rows[3].drive_fills


@pytest.mark.parametrize("stop_at", [2, 4, 6])
def test_a_run_resumes_where_it_was_stopped(stop_at: int, drive: Path, tmp_path: Path) -> None:
    run_procedure(consistency(), SimEngine(str(drive)), tmp_path / "whole")
    with pytest.raises(RunInterrupted):
        run_procedure(consistency(), SimEngine(str(drive)), tmp_path / "r", _StopAfter(stop_at))
    run_procedure(consistency(), SimEngine(str(drive)), tmp_path / "r", resume=True)
    assert rows_of(tmp_path / "r") == rows_of(tmp_path / "whole")


@pytest.mark.parametrize("stop_at", [5, 13])
def test_a_search_resumes_where_it_was_stopped(stop_at: int, drive: Path, tmp_path: Path) -> None:
    """Check both the search and the test at the load that it found."""
    act = Act(
        ActOptions(load="4x", search=True, search_max=8, test_duration_sec=4.0, slice_sec=1.0,
                   report_interval_sec=0.25)
    )  # fmt: skip
    whole = run_procedure(act, SimEngine(str(drive)), tmp_path / "whole")
    assert len(whole.history.rows) > 16
    with pytest.raises(RunInterrupted):
        run_procedure(act, SimEngine(str(drive)), tmp_path / "r", _StopAfter(stop_at))
    run_procedure(act, SimEngine(str(drive)), tmp_path / "r", resume=True)
    assert rows_of(tmp_path / "r") == rows_of(tmp_path / "whole")
    assert summary(tmp_path / "r")["act"] == summary(tmp_path / "whole")["act"]


def test_a_state_is_that_of_a_new_drive(drive: Path, tmp_path: Path) -> None:
    """Check that a cached state does not depend on the drive's history."""
    shared = StateCache(tmp_path / "cache")
    fill = [Workload("fill", (Job(pattern="sequential", volume_bytes=100_000_000),))]
    used = SimEngine(str(drive))
    used.precondition(Workload("use", (Job(volume_bytes=500_000_000),)))
    assert bring_to(used, fill, cache=shared) is False
    new = SimEngine(str(drive))
    assert bring_to(new, fill, cache=shared) is True
    assert used.counters() == new.counters()
    assert new.counters().host_write_bytes == pytest.approx(100_000_000, rel=1e-3)


def test_campaigns_can_be_estimated(drive: Path) -> None:
    engine = SimEngine(str(drive))
    campaign_figures = estimate(Endurance(EnduranceOptions(quick=True)), engine, budget_s=1.0)
    assert campaign_figures is not None and campaign_figures.rounds["rounds"] >= 5
    campaign_figures = estimate(consistency(), engine, budget_s=1.0)
    assert campaign_figures is not None and campaign_figures.device_time_ns == pytest.approx(
        4e9, rel=0.05
    )
    assert Act(ActOptions(quick=True)).plan(engine.identify()).steps_max == 12


def test_flushes_do_not_take_the_place_of_writes(drive: Path) -> None:
    """Check that a rate counts I/Os: with a flush after each, equally many are written."""
    written = []
    for dsync in (False, True):
        job = Job(block_sizes=(BlockSize(1 << 17),), rate_iops=20.0, dsync=dsync,
                  duration_ns=2_000_000_000)  # fmt: skip
        written.append(SimEngine(str(drive)).run(Workload("w", (job,))).total("write")[0])
    assert written == [40, 40]


def test_consistency_is_of_the_slowest_second_in_a_thousand() -> None:
    iops = np.append(np.full(1990, 1000.0), np.arange(10) * 10.0)
    seconds = Seconds(np.arange(2000.0), iops, iops, np.zeros(2000))
    assert seconds.slow == 10.0
    assert seconds.consistency_pct == pytest.approx(100 * 10 / iops.mean())


def test_one_drive_over_another(
    runs: dict[str, Path], drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = tmp_path / "slow.toml"
    text = drive.read_text().replace('"5.5 ms"', '"11 ms"').replace('"60 us"', '"120 us"')
    slow.write_text(text)
    words = ["test", "datacentre", "--on", f"sim:{slow}", "--output", str(tmp_path / "r")]
    parts = ["--parts", "basic", *SHORT["datacentre"]]
    assert main([*words, *QUICK, *parts]) == 0
    page = tmp_path / "c.html"
    capsys.readouterr()
    pair = [str(runs["datacentre"]), str(tmp_path / "r")]
    assert main(["compare", *pair, "--output", str(page), "--json"]) == 0
    campaign_figures = json.loads(capsys.readouterr().out)
    assert {figure["test"] for figure in campaign_figures["figures"]} == {"datacentre"}
    labels = [contender["label"] for contender in campaign_figures["contenders"]]
    by_key = {figure["key"]: figure for figure in campaign_figures["figures"]}
    of = "basic: random, 4 KiB, 100 % read, OIO 1"
    speed, latency = by_key[f"{of}: iops"], by_key[f"{of}: latency_avg"]
    fast, slow = (value["value"] for value in speed["values"])
    assert speed["margin_pct"] == pytest.approx(100 * (fast / slow - 1))
    fast, slow = (value["value"] for value in latency["values"])
    assert latency["margin_pct"] == pytest.approx(100 * (1 - fast / slow))
    assert speed["margin_pct"] > 10 and latency["margin_pct"] > 10
    assert speed["best"] == latency["best"] == labels[0]
    assert speed["noise"] == "unknown" and "single values" in campaign_figures["verdict"]
    assert "times as good as" in page.read_text()
    assert "NOT AS PUBLISHED" in page.read_text()


@pytest.mark.parametrize(
    ("name", "answer_pattern"),
    [
        ("endurance", r"written in its life \(TBW\), .* (years|days) at .* per day; .*WAF "),
        ("act", r"(PASS|FAIL) at load factor \d+x.*% over 8 ms \(limit 1 %\)"),
    ],
)
def test_a_campaign_ends_with_its_answer(
    runs: dict[str, Path], name: str, answer_pattern: str
) -> None:
    answer = report_of(RunDirectory.open(runs[name])).answer()
    assert re.search(answer_pattern, answer), answer
