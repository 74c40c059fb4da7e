"""`writecliff twin` on small simulated drives: the device file, resuming, and comparisons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.choice.certainty import model_error
from writecliff.choice.load_kinds import kinds_of_jobs
from writecliff.devices import describe_device
from writecliff.published.fit.progress import FitProgress
from writecliff.twin import fitting, structure, validation
from writecliff.twin.hidden import hidden_drive
from writecliff.twin.result import TwinResult
from writecliff.twin.validation import OTHER_LOADS, twin_case

SHORT = ["--seconds", "0.2", "--rest", "1"]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def drive(tmp_path: Path) -> str:
    folder = tmp_path / "drives"
    folder.mkdir()
    path = write_small_drive(folder, user_capacity='"1100 MB"', blocks_per_plane="208")
    return f"sim:{path}"


def answered(output: Any, code: int = 0) -> dict[str, Any]:
    assert output.code == code, output.err
    answer = json.loads(output.out)
    assert isinstance(answer, dict)
    return answer


def test_a_gentle_twin_and_the_drive_against_it(
    drive: str, tmp_path: Path, cli: CommandLine
) -> None:
    run, file = tmp_path / "run", tmp_path / "mine.toml"
    words = ["twin", drive, "--gentle", *SHORT, "--name", "mine", "--quiet", "--json"]
    made = answered(cli([*words, "--output", str(run), "--device-file", str(file)]))
    assert made["device_file"] == str(file)
    assert made["errors"]["figures"] > 5
    assert made["errors"]["rates_pct"] < 10
    assert any("writes" in text for text in made["not_told_apart"])
    assert (run / "twin.html").is_file()
    text = file.read_text()
    assert describe_device(text, str(file)).name == "mine"
    assert "measured here by a fit" in text
    # `choose` uses the errors of the held-out figures as model errors.
    assert model_error(str(file), kinds_of_jobs([], 1)).by_kind["mixes"].pct == pytest.approx(
        made["errors"]["rates_pct"], abs=0.051
    )
    assert TwinResult.read(run).verdict == made["verdict"]
    same = ["twin", "--resume", str(run), "--quiet", "--json", "--check"]
    well = answered(cli([*same, str(file)]))
    assert not well["degraded"]
    # Reads on the measured drive are slower than reads on this drive.
    slow = tmp_path / "fast.toml"
    slow.write_text(Path(drive.removeprefix("sim:")).read_text().replace('"60 us"', '"20 us"'))
    degraded = answered(cli([*same, str(slow)]), code=3)
    assert degraded["degraded"]
    outcomes = {kind["name"]: kind["outcome"] for kind in degraded["kinds"]}
    assert outcomes["random reads"] == "degraded"
    sheet = tmp_path / "sheet.toml"
    sheet.write_text(
        'interface = "sata"\ncapacity = "1100MB"\nyear = 2016\nsequential_read = "550MB/s"\n'
    )
    by_sheet = answered(cli([*same, str(sheet)]))
    assert by_sheet["is_sheet"]
    assert [figure["metric"] for figure in by_sheet["figures"]] == ["throughput"]


def test_a_twin_reveals_hidden_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a short form of `validate twin`: one start, no refinement, eight other loads."""
    monkeypatch.setattr(fitting, "ROUNDS", 0)
    monkeypatch.setattr(fitting, "IOS_ENOUGH", 4000)
    monkeypatch.setattr(fitting, "FITS_MOST", 1)
    monkeypatch.setattr(validation, "MEASURED_S", 0.5)
    monkeypatch.setattr(validation, "SECONDS", 0.5)
    case = twin_case("sata", tmp_path, loads=OTHER_LOADS[::4])
    assert len(case.loads) == 8
    assert case.rates_pct < 8
    assert case.tails_pct < 16
    result = TwinResult.read(tmp_path / "sata")
    assert result.waf_twin == pytest.approx(result.waf_measured, rel=0.05)
    assert result.overwritten_pct == pytest.approx(200, abs=1)
    hidden = describe_device(hidden_drive("sata")[0], "hidden.toml")
    twin = describe_device((tmp_path / "sata" / "twin.toml").read_text(), "twin.toml")
    assert twin.capacity_bytes == hidden.capacity_bytes
    assert twin.overprovision_pct == pytest.approx(hidden.overprovision_pct, abs=2)


def test_a_search_for_over_provisioning_shows_progress(
    drive: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []

    def searching(self: FitProgress, what: str, tries_most: int, share: float) -> None:
        assert what == "over-provisioning" and 1 < tries_most <= 12
        shares.append(share)

    monkeypatch.setattr(FitProgress, "searching", searching)
    text = Path(drive.removeprefix("sim:")).read_text()
    wanted = structure.simulated_waf(text, drive, 73.0)
    spare = structure.with_spare_for(text, drive, 73.0, 1.05 * wanted, lambda line: None)
    assert abs(spare.waf / wanted / 1.05 - 1) < 0.1
    assert shares == sorted(shares) and len(set(shares)) > 2
    assert 0 < shares[0] < 0.3 and shares[-1] <= 1.0


def test_a_drive_too_small_for_a_model_is_rejected_before_it_is_measured(
    tmp_path: Path, cli: CommandLine
) -> None:
    small, run = write_small_drive(tmp_path), tmp_path / "run"
    output = cli(["twin", f"sim:{small}", "--gentle", "--output", str(run)])
    assert (output.code, run.exists()) == (2, False)
    assert output.err.startswith("error: a capacity of 0.96 GB is not supported")


def test_hidden_drives_are_drawn_by_their_number() -> None:
    texts = {name: hidden_drive(name)[0] for name in (f"drawn-{n}" for n in range(1, 41))}
    assert len(set(texts.values())) == len(texts)
    assert hidden_drive("drawn-3")[0] == texts["drawn-3"]
    for name, text in texts.items():
        made = describe_device(text, f"{name}.toml")
        assert 9.5 < (made.overprovision_pct or 0) < 28.5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["twin"], "no target"),
        (
            ["twin", "sim:sata-tlc-120", "--on", "sim:sata-tlc-120"],
            "both DRIVE and --on were given",
        ),
        (["twin", "sim:sata-tlc-120", "--check", "no-such-drive"], "no-such-drive"),
        (["twin", "sim:hdd-15k-80"], "sim:hdd-15k-80 is a hard disk"),
        (["twin", "sim:hdd-15k-80", "--dry-run"], "a twin is a model of a flash drive"),
        (["lab", "validate", "twin", "--drive", "drawn-x"], "hidden drive"),
        (["twin", "sim:sata-tlc-120", "--seconds", "0"], "seconds must be"),
        (["twin", "sim:sata-tlc-120", "--no-purge"], "--no-purge applies only to real drives"),
    ],
)
def test_errors_take_a_single_line(words: list[str], message: str, cli: CommandLine) -> None:
    output = cli(words)
    assert output.code == 2
    assert message in output.err
    assert "Traceback" not in output.err
