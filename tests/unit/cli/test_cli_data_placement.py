"""Output of commands about a drive's data placement interface."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.devices import show_device

MIB = 1 << 20


def test_device_show_says_what_the_interface_reports(cli: CommandLine) -> None:
    shown = json.loads(cli(["device", "show", "nvme-tlc-960", "--json"]).out)
    assert shown["data_placement_interface"] == "nvme-fdp"
    assert shown["data_placement_reports"]["max_placement_ids"] == 16
    text = cli(["device", "show", "sas-ms-480"]).out
    assert "maximum number of streams" in text and "scsi-streams" in text
    assert show_device("sata-tlc-120").data_placement_reports == {}


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # Runs are stored in the folder where the command was started.


def test_run_shows_statistics_events_and_overflow(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cli = CommandLine(capsys)  # The fixture is only for a fake drive.
    drive = write_small_drive(tmp_path)
    drive.write_text(drive.read_text() + '\n[data_placement]\ninterface = "nvme-fdp"\n')
    load = tmp_path / "load.toml"
    load.write_text(
        'name = "load"\n[[job]]\nname = "a"\nstream = 12\nvolume = "1 MiB"\nblock_size = "4 KiB"\n',
        "utf-8",
    )
    target = f"sim:{drive}"
    done = cli(["run", str(load), "--on", target, "--json"])
    data_placement = json.loads(done.out)["steps"][0]["data_placement"]
    assert data_placement["hbmw_bytes"] == MIB and data_placement["dlwa"] == 1.0
    assert data_placement["overflow_by_number_bytes"] == {"12": MIB}
    assert data_placement["events"]["invalid placement identifier"] == 256
    log = data_placement["log"]
    assert len(log) == 63, "the newest that fit into the log page"
    assert {(event["code"], event["placement_id"], event["handle"]) for event in log} == {
        (3, 12, 0)
    }
    assert [event["time_ns"] for event in log] == sorted(event["time_ns"] for event in log)
    assert "placement identifiers that the drive does not have (12)" in done.err
    text = cli(["run", str(load), "--on", target]).out
    assert "FDP: HBMW 1.05 MB, MBMW 1.05 MB, MBE 0 B; 8 placement handles" in text
    assert "invalid placement identifier 256; 63 of these are in the log" in text


def test_a_time_limit_of_units_is_an_event_of_the_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cli = CommandLine(capsys)
    drive = write_small_drive(tmp_path)
    section = '[data_placement]\ninterface = "nvme-fdp"\ntime_limit = "2 s"\n'
    drive.write_text(f"{drive.read_text()}\n{section}")
    load = tmp_path / "slow.toml"
    load.write_text(
        'name = "slow"\n[[job]]\nname = "a"\nvolume = "20 KiB"\nblock_size = "4 KiB"\nrate = "1 IOPS"\n'
    )
    step = json.loads(cli(["run", str(load), "--on", f"sim:{drive}", "--json"]).out)["steps"][0]
    events = step["data_placement"]["events"]
    # Writes are one second apart, so the third write and the fifth write find a unit that is two
    # seconds old.
    assert events["reclaim unit time limit exceeded"] == 2
    assert [event["code"] for event in step["data_placement"]["log"]] == [1, 1]
    assert step["data_placement"]["abandoned_bytes"] > 0
