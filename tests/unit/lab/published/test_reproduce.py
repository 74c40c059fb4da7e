"""`writecliff lab reproduce` with small drives and short loads."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.devices import describe_device
from writecliff.devices.edit import with_values
from writecliff.engines.state_cache import StateCache
from writecliff.errors import ConfigError
from writecliff.lab.experiments import fms_fio
from writecliff.lab.published.reproduce import (
    READINGS,
    choose,
    conditions_of,
    derive,
    reproduce,
    warranty_years,
)
from writecliff.parallel import Stopped
from writecliff.published import conditions
from writecliff.published.conditions import STATISTICS, Condition, Load
from writecliff.published.figures import COLUMNS
from writecliff.published.measure import (
    ComparedDrive,
    MeasurementObserver,
    drive_memory,
    measure,
    measure_all,
)
from writecliff.published.states import PreparedDrives

READS = Load("sustained", "random", 4096, 100.0, 32, 0.05)
WRITES = Load("sustained", "random", 4096, 0.0, 32, 0.1)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, seconds in zip(
        ("READ", "WRITE", "TAIL", "SPREAD"), (0.05, 0.1, 0.2, 4.0), strict=True
    ):
        monkeypatch.setattr(conditions, f"_{name}_SECONDS", seconds)
    monkeypatch.setenv("WRITECLIFF_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_small_drive(tmp_path)


@pytest.fixture
def table(tmp_path: Path, small: Path) -> Path:
    """Write a table of two sources with two drives of different names and an unknown drive."""
    second = tmp_path / "second.toml"
    second.write_text(small.read_text())
    lines = [
        f"a,t,{small},,random,4,100,32,iops,90000,IOPS,",
        f"a,t,{second},,random,4,100,32,iops,80000,IOPS,",
        f"a,t,{small},,random,4,0,32,iops,9000,IOPS,",
        f"a,t,{small},{second},random,4,0,32,iops_improvement,0,%,",
        f"a,t,{small},,,,,,tbw,300,TB,",
        f"a,t,{small},,,,,,dwpd,0.5,1/day,",
        f"a,t,{small},,sequential,128,0,32,throughput,400,MB/s,",
        f"a,t,{small},,random,4,0,,iops_fob,40000,IOPS,",
        "b,u,pm836-960,,random,4,0,32,iops,1,IOPS,",
    ]
    path = tmp_path / "own.csv"
    path.write_text("\n".join((",".join(COLUMNS), *lines)) + "\n")
    return path


def test_the_command_writes_a_folder_and_prints_the_results(
    cli: CommandLine, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    output = cli(["lab", "reproduce", "--figures", str(table), "--output", str(out), "--json"])
    assert output.code == 0, output.err
    answer = json.loads(output.out)
    assert answer["report"] == str(out / "report.html")
    assert (answer["campaign"], len(answer["figures"])) == ("all", 9)
    simulated = [row["simulated"] for row in answer["figures"]]
    assert simulated[0] == simulated[1] > 1000  # Both entries are the same drive.
    assert simulated[3] == pytest.approx(0.0)  # A drive is not better than itself.
    assert simulated[8] is None
    assert all(value is not None for value in simulated[:8])
    # With 0.96 GB and five years, terabytes written and drive writes per day have equal values.
    days = simulated[4] * 1e12 / (0.96e9 * 365 * 5)
    assert simulated[5] == pytest.approx(days)
    assert [row["simulated_state"] for row in answer["figures"][6:8]] == ["fill", "fresh"]
    assert [drive["loads"] for drive in answer["drives"]] == [2, 4]
    assert len({drive["device_hash"] for drive in answer["drives"]}) == 1
    stored = json.loads((out / "results.json").read_text())
    assert stored == {key: value for key, value in answer.items() if key != "report"}
    assert "left out: unknown preset 'pm836-960': did you mean 'pm863-960'?" in output.err
    assert "[0/2 drives" in output.err and "done in" in output.err


def test_it_repeats_itself_and_takes_prepared_drives_from_the_cache(
    cli: CommandLine, table: Path, tmp_path: Path
) -> None:
    words = ["lab", "reproduce", "a", "--figures", str(table), "--quiet", "--jobs", "1", "--output"]
    first, second = cli([*words, str(tmp_path / "1")]), cli([*words, str(tmp_path / "2")])
    assert first.err == second.err == ""
    assert first.out.splitlines()[:-1] == second.out.splitlines()[:-1]
    assert "Errors by kind" in first.out
    assert "not simulated" not in first.out.splitlines()[-2]
    # The sustained state and the fill state belong to one drive.
    assert len(list((tmp_path / "cache").glob("*.wcs"))) == 2
    assert (tmp_path / "1" / "figures.csv").read_text() == (
        tmp_path / "2" / "figures.csv"
    ).read_text()


def test_mistakes_are_reported_before_anything_runs(
    cli: CommandLine, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, message, hint in (
        ("reproduce", "no campaign was specified", "--list"),
        ("lab reproduce pm836", "unknown campaign 'pm836'", "'pm863'"),
        ("lab reproduce ssdiq", "unknown campaign 'ssdiq'", "did you mean 'ssd-iq'?"),
        ("lab reproduce zzz", "unknown campaign 'zzz'", "others, modern, measured, ssd-iq"),
        (f"lab reproduce c --figures {table}", "unknown source 'c'", "known: a, b"),
        ("lab reproduce --figures none.csv", "cannot read none.csv", ""),
        ("lab reproduce pm863 --jobs 0", "--jobs must be at least 1", ""),
        (f"lab reproduce pm863 --output {tmp_path}", "exists and is not empty", "new directory"),
    ):
        output = cli(words)
        assert (output.code, output.out) == (2, ""), words
        assert message in output.err and hint in output.err, output.err
    assert not (tmp_path / "reproductions").exists()


def test_a_malformed_device_file_is_reported_with_its_line(
    cli: CommandLine, table: Path, small: Path, tmp_path: Path
) -> None:
    small.write_text(small.read_text().replace("channels =", "chanels ="))
    output = cli(["lab", "reproduce", "--figures", str(table), "--output", str(tmp_path / "out")])
    assert output.code == 2
    assert output.err.startswith(f"error: {small}:")
    assert not (tmp_path / "out").exists()


def test_campaigns_are_listed(cli: CommandLine) -> None:
    output = cli("lab reproduce --list")
    names = [line.split()[0] for line in output.out.splitlines()[1:]]
    assert names == [
        "pm863", "primer", "840-850", "845dc", "fms2016", "intel-530", "all", "others", "modern",
        "measured", "ssd-iq",
    ]  # fmt: skip
    listed = json.loads(cli("lab reproduce --list --json").out)["campaigns"]
    *campaigns, whole, others, modern, measured, ssd_iq = listed
    assert sum(campaign["figures"] for campaign in campaigns) == whole["figures"]
    assert len(choose("others").figures) == others["figures"] > 0
    assert len(choose("modern").figures) == modern["figures"] > 0
    assert len(choose("measured").figures) == measured["figures"] > 100
    assert ssd_iq["figures"] > 0


def test_a_campaign_takes_the_figures_of_its_source() -> None:
    chosen = choose("840-850")
    assert {figure.source for figure in chosen.figures} == {"ssdguy"}
    assert {figure.device for figure in conditions_of(chosen.figures)} == {"840-256", "850-256"}
    assert len(choose("all").figures) > len(chosen.figures)


def test_nothing_but_unknown_drives_is_reproduced_too(tmp_path: Path, table: Path) -> None:
    reproduction = reproduce(choose("b", table))
    assert (reproduction.drives, reproduction.comparisons, reproduction.scores) == ((), [], [])


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text(",".join(COLUMNS) + "\n")
    with pytest.raises(ConfigError, match="contains no figures"):
        choose("all", path)


def test_loads_do_not_depend_on_their_order_of_naming(small: Path) -> None:
    drive = ComparedDrive.preset(str(small))
    forth, back = measure(drive, [READS, WRITES]), measure(drive, [WRITES, READS])
    assert forth == back
    assert forth[READS]["iops"] > forth[WRITES]["iops"]
    assert "waf" not in forth[READS] and forth[WRITES]["waf"] > 1.0
    assert forth[WRITES]["throughput"] == pytest.approx(forth[WRITES]["iops"] * 4096 / 1e6)
    assert forth[READS]["latency_avg"] <= forth[READS]["latency_p99"] <= forth[READS]["latency_max"]


def test_what_a_load_measures_does_not_depend_on_the_others(small: Path) -> None:
    """Longer runs for other figures include the shorter run and do not change its figure."""
    drive = ComparedDrive.preset(str(small))
    mixed, longer = replace(WRITES, read_pct=50.0), replace(WRITES, read_pct=50.0, seconds=0.2)
    together = measure(drive, [READS, WRITES, mixed, longer])
    for load in (READS, WRITES, mixed, longer):
        assert measure(drive, [load])[load] == together[load]
    assert measure(drive, together, copies=False) == together
    assert together[longer]["latency_max_read"] >= together[mixed]["latency_max_read"]


def test_candidates_share_states_where_they_can(small: Path) -> None:
    base = ComparedDrive.preset(str(small))
    slower = replace(
        base, text=with_values(base.text, {"controller.command_time": ('"20 us"', None)})
    )
    spare = replace(base, text=with_values(base.text, {"user_capacity": ('"0.9 GB"', None)}))
    prepared = PreparedDrives()
    for drive in (base, slower, spare):
        measured = measure(drive, [READS, WRITES])
        assert measure(drive, [READS, WRITES], prepared=prepared) == measured
    assert len(prepared._drives) == 2  # The smaller drive has different steps.


def test_reads_and_writes_of_a_mix_are_measured_apart(small: Path) -> None:
    mixed = replace(WRITES, read_pct=75.0, seconds=4.0)
    (metrics,) = measure(ComparedDrive.preset(str(small)), [mixed]).values()
    assert metrics["iops"] == pytest.approx(metrics["read_iops"] + metrics["write_iops"])
    assert metrics["read_iops"] == pytest.approx(3 * metrics["write_iops"], rel=0.05)
    for name in STATISTICS:
        pair = metrics[f"latency_{name}_read"], metrics[f"latency_{name}_write"]
        assert pair[0] != pair[1]
        assert min(pair) <= metrics[f"latency_{name}"] <= max(pair)
    assert metrics["read_iops_stddev"] > 0 and metrics["write_iops_stddev"] > 0
    assert 0 < metrics["iops_consistency_read"] < 100


def test_the_messenger_is_its_readers(tmp_path: Path) -> None:
    load = Load("sustained", "random", None, None, None, 2.0, profile="messenger")
    drive = ComparedDrive.preset("sata-tlc-120").scaled(48)
    (metrics,) = measure(drive, [load]).values()
    # The load has a rate limit of 32 IOPS.
    assert metrics["write_iops"] == pytest.approx(32, rel=0.05)
    # The load has 20 readers with one outstanding I/O each, and the metrics are their total rate
    # and mean latency.
    assert metrics["read_iops"] * metrics["latency_avg_read"] / 1e3 == pytest.approx(20, rel=0.02)


def test_a_scaled_drive_has_its_share_of_the_active_range() -> None:
    """Check that with a fixed range, the whole small drive is active and collects garbage."""
    load = Load("client", "random", 4096, 0.0, 64, 0.1)
    drive = ComparedDrive.preset("abc-mlc-a-250")
    wafs = [measure(drive.scaled(scale), [load])[load]["waf"] for scale in (32, 64)]
    assert wafs == pytest.approx([1.0, 1.0], abs=0.1)


def test_short_loads_run_for_a_part_of_their_time(small: Path) -> None:
    drive, long = ComparedDrive.preset(str(small)), replace(READS, seconds=4.0)
    whole, short = (measure(drive, [long], time_share=share)[long] for share in (1.0, 0.1))
    assert short["iops"] == pytest.approx(whole["iops"], rel=0.02)
    # The run lasts less than two whole seconds.
    assert "iops_stddev" in whole and "iops_stddev" not in short


def test_figures_of_a_drive_and_of_a_kind() -> None:
    of_drive = choose("mlc-b-800").figures
    assert {"mlc-b-800"} <= {figure.device for figure in of_drive} | {
        figure.baseline for figure in of_drive
    }
    assert all("mlc-b-800" in (figure.device, figure.baseline) for figure in of_drive)
    mixed = choose("mlc-b-800", kind="mixed").figures
    assert mixed and {figure.read_pct for figure in mixed} == {70.0}
    tails = choose("all", kind="tails").figures
    assert {figure.metric.partition("_p")[0] for figure in tails} == {"latency", "latency_max"}
    with pytest.raises(ConfigError, match="unknown kind 'mixd'") as caught:
        choose("all", kind="mixd")
    assert caught.value.hint == "did you mean 'mixed'?"
    with pytest.raises(ConfigError, match="no figures of the kind 'power'"):
        choose("primer", kind="power")


def test_rows_that_are_unknown_are_skipped_one_by_one(
    cli: CommandLine, table: Path, small: Path, tmp_path: Path
) -> None:
    bad = [
        f"c,t,{small},,random,4,100,32,iops,much,IOPS,",
        f"c,t,{small},,random,4,100,32,latency_p42,1,ms,",
        f"c,t,{small},,dance,4,100,32,iops,1,IOPS,",
        f"c,t,{small},{small},composite,,,QD1-QD2,iops_improvement_max,0,%,",
        f"c,Figure 7 web server,{small},{small},composite,,,QD1-QD2,iops_improvement_max,0,%,",
    ]
    table.write_text(table.read_text() + "\n".join(bad) + "\n")
    words = [
        "lab",
        "reproduce",
        "c",
        "--figures",
        str(table),
        "--output",
        str(tmp_path / "out"),
        "--json",
    ]
    output = cli(words)
    assert output.code == 0, output.err
    answer = json.loads(output.out)
    assert answer["skipped"] == [
        {"path": str(table), "line": 11, "why": "value is 'much', not a number"}
    ]
    assert f"{table}:11: value is 'much'" in output.err
    assert [row["simulated"] for row in answer["figures"]] == [None, None, None, 0.0]
    assert [row["why"].partition(":")[0].partition(" (")[0] for row in answer["not_simulated"]] == [
        "unknown metric 'latency_p42'", "unknown load 'dance'", "unknown load 'composite'",
    ]  # fmt: skip
    assert answer["figures"][3]["oio"] == answer["figures"][3]["simulated_outstanding"] == "QD1-QD2"
    assert {load["outstanding"] for load in answer["loads"]} == {1, 2}


def test_compressible_data_are_on_the_drive_before_and_take_what_they_take(tmp_path: Path) -> None:
    """Check that compressible data fill a drive so little that almost nothing is relocated.

    Check loads of pages compressed to a half and to an eighth on a drive full of such pages.
    """
    small = write_small_drive(tmp_path, streams="1")
    text = small.read_text() + (
        '\n[reduction]\ncompression = true\nmin_stored_size = "512 B"\nduplicates = false\n'
    )
    drive = ComparedDrive("reducing", text, "reducing.toml")
    half, whole = (replace(WRITES, compressible_pct=part) for part in (50.0, 100.0))
    results = measure(drive, [whole, WRITES, half], log=lambda text: None)
    assert results[WRITES]["waf"] > 1.0
    assert 0.5 <= results[half]["waf"] < 0.65
    assert 0.125 <= results[whole]["waf"] < 0.15
    assert results[WRITES]["iops"] < results[half]["iops"] <= results[whole]["iops"] * 1.02
    plain = measure(ComparedDrive.preset(str(small)), [WRITES, whole], log=lambda text: None)
    assert plain[WRITES]["waf"] == pytest.approx(plain[whole]["waf"], rel=0.05)


def test_a_drive_that_packs_data_takes_memory_for_every_piece() -> None:
    drive = ComparedDrive.preset("intel-530-240")
    described = describe_device(drive.text, drive.file_name)
    assert described.mapped_bytes == 8 * (described.raw_bytes or 0)
    assert drive_memory(drive) > described.mapped_bytes // 4096 * 4
    plain = ComparedDrive.preset("840-256")
    assert describe_device(plain.text, plain.file_name).mapped_bytes < 300e9


def test_what_is_measured_can_be_stopped(small: Path, tmp_path: Path) -> None:
    class Impatient(MeasurementObserver):
        def load(self, drive: str, load: Load) -> None:
            seen.append(load)
            self.stop.set()

    seen: list[Load] = []
    long = [replace(WRITES, seconds=5.0, outstanding=n) for n in range(1, 5)]
    wanted = [Condition(str(small), "iops", load) for load in long]
    drives = {str(small): ComparedDrive.preset(str(small))}
    before = threading.active_count()
    with pytest.raises(Stopped):
        measure_all(drives, wanted, cache=StateCache(tmp_path / "cache"), observer=Impatient())
    assert len(seen) == 1
    assert threading.active_count() == before


def test_the_observer_follows_the_preparation(tmp_path: Path) -> None:
    class Listening(MeasurementObserver):
        def preparing(self, drive: str, state: conditions.State, share: float) -> None:
            shares.append((drive, state, share))
            if len(shares) == 3:
                self.stop.set()

    shares: list[tuple[str, str, float]] = []
    drive = ComparedDrive.preset("845dc-evo-240")
    cache = StateCache(tmp_path / "none")
    with pytest.raises(Stopped):
        measure(drive, [WRITES], cache, log=lambda text: None, observer=Listening())
    assert {share[:2] for share in shares} == {("845dc-evo-240", "sustained")}
    seen_shares = [share for *_, share in shares]
    assert seen_shares == sorted(seen_shares) and 0 < seen_shares[-1] < 1


def test_rated_writes_follow_from_cycles_and_amplification() -> None:
    case = Condition("pm863-960", "tbw", WRITES)
    drives = {"pm863-960": ComparedDrive.preset("pm863-960")}
    derived = derive(drives, [case], {"pm863-960": {WRITES: {"waf": 4.0}}})
    twice = derive(drives, [case], {"pm863-960": {WRITES: {"waf": 2.0}}})
    assert twice.values["pm863-960 tbw"] == pytest.approx(2 * derived.values["pm863-960 tbw"])
    why = derive(drives, [case], {"pm863-960": {WRITES: {}}}).why["pm863-960 tbw"]
    assert why.startswith("nothing was written")
    assert (warranty_years("pm853t-960"), warranty_years("pm863-960")) == (3.0, 5.0)


def test_power_is_that_of_the_load_or_of_none(small: Path) -> None:
    plain, name = ComparedDrive.preset(str(small)), str(small)
    idle = Condition(name, "power_idle", None)
    reads = Condition(name, "power_read", READS)
    assert derive({name: plain}, [idle, reads], {}).why == {
        f"{name} power_idle": "the device file has no power model",
        f"{name} power_read": "the device file has no power model",
    }
    power = '\n[power]\nidle = "1.5 W"\nactive = "0.5 W"\nlink = "1 W"\nread = "50 mW"\n'
    drive = replace(plain, text=plain.text + power)
    results = {name: measure(drive, [READS])}
    derived = derive({name: drive}, [idle, reads], results).values
    assert derived[f"{name} power_idle"] == pytest.approx(1.5, rel=1e-3)
    # The controller is always busy, the link is busy some of the time, and at most all dies sense.
    assert 2.0 < derived[f"{name} power_read"] < 1.5 + 0.5 + 1.0 + 8 * 0.05
    assert derive({name: drive}, [reads], {}).why[f"{name} power_read"].endswith("this load")


def test_the_life_with_streams_is_the_smaller_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fms_fio, "UNITS", 512)
    monkeypatch.setattr(fms_fio, "SLOTS_PER_RECLAIM_UNIT", 64)
    case = Condition("sas-ms-480", "lifetime_ratio_streams_vs_none", None)
    lines: list[str] = []
    drives = {"sas-ms-480": ComparedDrive.preset("sas-ms-480")}
    ratio = derive(drives, [case], {}, log=lines.append).values[
        "sas-ms-480 lifetime_ratio_streams_vs_none"
    ]
    readings = [fms_fio.amplification(reading, 0.1457).lifetime_ratio for reading in READINGS]
    assert ratio == pytest.approx(min(readings)) and ratio > 1.0
    assert len(lines) == 1
