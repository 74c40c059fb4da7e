"""NVMe power states: listed, selected, and recorded; an unsupported state is rejected.

The emulated drive has one power state, with its power in the descriptor, and rejects Set Features.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.guest_drives import Drive
from writecliff.cli.cmd_device import show_real_drive
from writecliff.cli.main import main
from writecliff.report import build_report
from writecliff.report.comparison.runs import setup_of
from writecliff.store.rundir import RunDirectory

SHORT = ["--end", "time", "--time-hours", "0.0004", "--sample-seconds", "0.5",
         "--round-minutes", "0.025"]  # fmt: skip


def descriptor_watts(drive: Drive) -> float:
    """Return the power of state 0 from the raw page, in 0.01 W, or in 0.1 mW if bit 0 is set."""
    words = ["nvme", "id-ctrl", drive.controller, "--raw-binary"]
    page = subprocess.run(words, capture_output=True, check=True).stdout
    assert page[263] == 0  # Zero-based number of power states.
    return int.from_bytes(page[2048:2050], "little") * (1e-4 if page[2051] & 1 else 1e-2)


def text_of(drive: Drive) -> str:
    watts = descriptor_watts(drive)
    return f"0, the only state, {f'{watts:g} W at most' if watts else 'maximum power not reported'}"


def test_the_state_is_listed_with_the_watts_of_its_descriptor(
    nvme: Drive, generation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show_real_drive(nvme.path, json=False) == 0
    assert text_of(nvme) in capsys.readouterr().out
    assert show_real_drive(nvme.path, json=True) == 0
    power = json.loads(capsys.readouterr().out)["power"]
    assert (power["state"], len(power["states"])) == (0, 1)
    assert power["states"][0]["watts_max"] == pytest.approx(descriptor_watts(nvme) or None)


@pytest.mark.long
def test_a_state_that_is_asked_for_is_named_in_the_run(
    nvme: Drive, generation: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = ["test", "wsat", "--on", nvme.path, "--destroy", nvme.serial, "--power-state", "0"]
    assert main([*words, *SHORT, "--output", str(run)]) == 0
    opened = RunDirectory.open(run)
    power = opened.manifest.power
    assert power is not None and (power.state, power.before) == (0, 0)
    assert power.text == text_of(nvme)
    (platform,) = (p for p in build_report(opened).sections if p.title == "Reference test platform")
    rows = {row[0]: row[1:] for row in platform.tables[0].rows}
    assert rows["NVMe power state"][0] == text_of(nvme)
    assert rows["NVMe power state"][1].startswith("Requested; the drive was in it.")
    assert setup_of(opened.manifest)["power state"] == text_of(nvme)


@pytest.mark.parametrize("which", ["nvme", "sata"])
def test_a_state_that_it_does_not_have_is_refused_in_one_line(
    which: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    drive: Drive = request.getfixturevalue(which)
    run = tmp_path / "run"
    words = ["test", "wsat", "--on", drive.path, "--destroy", drive.serial, "--power-state", "3"]
    assert main([*words, *SHORT, "--output", str(run)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    why = "no power state 3" if which == "nvme" else "not an NVMe drive"
    hint = "operational states: 0" if which == "nvme" else "omit --power-state"
    assert len([line for line in lines if line.startswith("error: ")]) == 1
    assert why in lines[0] and any(hint in line for line in lines)
    assert not run.exists()
