"""Drives with more flash than 32-bit page numbers address: full files, smaller simulations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.choice.plan import plan_choice
from writecliff.choice.question import Question
from writecliff.devices import describe, describe_device, open_device, show_device
from writecliff.devices.derive import uniform_amplification
from writecliff.devices.generations import GIB, raw_bytes_of
from writecliff.engines.preconditioned import precondition
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError
from writecliff.lab.published.reproduce import _drive
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.procedures.scaling import quick_engine
from writecliff.procedures.workload import WorkloadRun
from writecliff.report import report_of
from writecliff.report.disclosure import disclosures
from writecliff.store.rundir import RunDirectory
from writecliff.suite.memory import member_memory_bytes
from writecliff.workload.load import WorkloadFile, load_workload
from writecliff.workload.model import Job, Workload

LARGEST = "d5-p5336-122880"
LOAD = """
name = "mixed"
[[job]]
name = "mixed"
read = "70 %"
queue_depth = 8
duration = "160 s"
"""


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def load(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.toml"
    path.write_text(LOAD)
    return path


def _loaded(path: Path, engine: SimEngine) -> WorkloadFile:
    return load_workload(path, capacity_bytes=engine.identify().capacity_bytes)


def large_drive(folder: Path) -> Path:
    """Return a 26.4 TB drive whose blocks have enough word lines to be scaled down."""
    path = write_small_drive(
        folder,
        user_capacity='"21 TB"',
        dies_per_channel="2",
        blocks_per_plane="1024",
        pages_per_block="49152",
    )
    path.rename(folder / "large.toml")
    return folder / "large.toml"


def test_a_drive_of_123_tb_is_described_in_full() -> None:
    drive = show_device(LARGEST)
    assert drive.capacity_bytes == 122_880_000_000_000
    assert drive.raw_bytes == 131_072 * GIB == drive.mapped_bytes
    assert drive.overprovision_pct == pytest.approx(14.53)
    assert drive.rated_cycles == 1500 and drive.reclaim_units == 4096
    assert (
        len(drive.device_hash) == 64
        and drive.device_hash != show_device("d5-p5336-61440").device_hash
    )
    assert drive.least_scale == 64
    assert show_device("d5-p5430-15360").least_scale == 1


def test_it_is_not_simulated_whole_and_the_refusal_says_what_is() -> None:
    engine = SimEngine(LARGEST)
    with pytest.raises(ConfigError) as refused:
        engine.purge()
    message = f"{refused.value} {refused.value.hint}"
    assert (
        "128 TiB of flash cannot be simulated at full capacity" in message
        and "at most 16 TiB" in message
    )
    assert "1/64 of its capacity" in message and "engine.scaled(64," in message
    small = engine.scaled(64, largest_io_bytes=1 << 20)
    assert small.identify().capacity_bytes == show_device(LARGEST).capacity_bytes
    assert small.identify().scale_text == "simulated at 1/64 of its capacity"


def test_commands_that_simulate_whole_drives_refuse_it_in_a_line(
    tmp_path: Path, cli: CommandLine
) -> None:
    completed = cli(["serve", f"sim:{LARGEST}", "--listen", "127.0.0.1:0"])
    assert completed.code == 2 and "cannot be simulated at full capacity" in completed.err, (
        completed.err
    )
    assert "Traceback" not in completed.err


def test_what_is_simulated_has_the_write_amplification_of_a_small_drive(tmp_path: Path) -> None:
    path = large_drive(tmp_path)
    text = path.read_text()
    whole = open_device(text, path.name)
    sizes = {}
    for scale in (4096.0, 8192.0):
        engine = SimEngine.from_device(whole.scaled(scale, 4096))
        described = engine.description
        assert described.overprovision_pct == describe(whole).overprovision_pct
        sizes[scale] = _amplification(engine)
    # Device file for this drive in the usual notation: four word lines of 16,384.
    small = text.replace("= 49152", "= 12").replace('"21 TB"', f'"{21e12 / 4096:.0f} B"')
    assert _amplification(SimEngine.from_text(small, "small.toml")) == pytest.approx(
        sizes[4096.0], rel=0.005
    )
    assert sizes[4096.0] == pytest.approx(sizes[8192.0], rel=0.01)
    raw, user, units = describe(whole).raw_bytes, describe(whole).capacity_bytes, 1024
    assert raw is not None
    idle = 9 / units  # Fraction of units that garbage collection keeps free.
    assert sizes[4096.0] == pytest.approx(uniform_amplification(raw * (1 - idle) / user), rel=0.03)


def _amplification(engine: SimEngine) -> float:
    precondition(engine, "sustained")
    before = engine.counters()
    size = engine.identify().capacity_bytes
    engine.precondition(Workload("random", (Job(volume_bytes=size),), seed=77))
    after = engine.counters()
    nand = (after.nand_write_bytes or 0) - (before.nand_write_bytes or 0)
    return nand / ((after.host_write_bytes or 0) - (before.host_write_bytes or 0))


def test_tests_and_loads_take_it_at_its_least_scale(load: Path) -> None:
    for name, scale in ((LARGEST, 64.0), ("micron-6500-ion-30720", 16.0)):
        engine = SimEngine(name)
        for test in ("wsat", "iops"):
            procedure = procedure_from_mapping(test, {})
            assert quick_engine(procedure, engine).identify().scale == scale
        run = WorkloadRun.of(_loaded(load, engine), engine.identify())
        assert quick_engine(run, engine).identify().scale == scale
        assert quick_engine(replace(run, scale=256.0), engine).identify().scale == 256
        assert quick_engine(replace(run, scale=2.0), engine).identify().scale == scale
    whole = SimEngine("d5-p5430-15360")
    assert quick_engine(run, whole) is whole


def test_members_of_suites_need_the_memory_of_what_is_simulated(load: Path) -> None:
    from writecliff.suite.plan import plan_suite

    members = plan_suite("pts-e", f"sim:{LARGEST}", tests=["wsat"])
    assert 4e9 < member_memory_bytes(members["wsat"]) < 5e9


def test_a_run_says_how_small_the_drive_was(tmp_path: Path, cli: CommandLine, load: Path) -> None:
    """Check a drive that can be scaled down enough for a test."""
    path = large_drive(tmp_path)
    engine = SimEngine(str(path))
    procedure = WorkloadRun.of(_loaded(load, engine), engine.identify(), precondition="none")
    from writecliff.procedures.framework import run_procedure

    run_procedure(replace(procedure, scale=8192.0), engine, tmp_path / "run")
    report = report_of(RunDirectory.open(tmp_path / "run"))
    notes = disclosures(report.data)
    assert notes[0].startswith("The drive was simulated at 1/8192 of its capacity")
    assert report.data.manifest.device.scale == 8192
    assert report.data.manifest.device.capacity_bytes == 21_000_000_000_000


def test_run_simulates_it_smaller_and_says_so(
    tmp_path: Path, cli: CommandLine, load: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Use a larger scale than necessary, because the least scale would take some GB of memory."""
    monkeypatch.setattr(SimEngine, "least_scale", lambda self: 8192.0)
    words = ["run", str(load), "--on", f"sim:{large_drive(tmp_path)}", "--precondition", "none"]
    completed = cli([*words, "--output", str(tmp_path / "one")])
    assert completed.code == 0, completed.err
    assert "the drive is simulated at 1/8192 of its capacity" in completed.err
    assert "scale    simulated at 1/8192 of its capacity" in completed.out
    completed = cli([*words, "--output", str(tmp_path / "two"), "--json", "--quiet"])
    assert json.loads(completed.out)["scale"] == 8192


def test_a_trace_is_not_run_on_it(tmp_path: Path) -> None:
    trace = tmp_path / "trace.log"
    trace.write_text("fio version 2 iolog\nd add\nd open\nd write 0 4096\nd close\n")
    (tmp_path / "job.fio").write_text(f"[replayed]\nread_iolog={trace}\n")
    engine = SimEngine(LARGEST)
    file = _loaded(tmp_path / "job.fio", engine)
    with pytest.raises(ConfigError, match="addresses in a trace cannot be scaled down"):
        quick_engine(WorkloadRun.of(file, engine.identify()), engine)


def test_choices_take_it_as_a_candidate_and_say_how_small(load: Path, tmp_path: Path) -> None:
    names = ("d5-p5430-15360", "d5-p5336-61440", LARGEST)
    question = Question(workload=str(load), candidates=names, scale=16.0)
    members = plan_choice(question, tmp_path / "choice").steps[-1]
    assert [members[name, 1].options["scale"] for name in names] == [16.0, 32.0, 64.0]
    whole = plan_choice(replace(question, scale=1.0), tmp_path / "choice").steps[-1]
    assert "scale" not in whole[names[0], 1].options
    assert whole[LARGEST, 1].options["scale"] == 64


def test_reproductions_take_it_scaled_down_always() -> None:
    assert _drive("d5-p5336-61440", 0.0).scale == 32
    assert _drive("d5-p5336-61440", 8e9).scale == 512
    assert _drive("d5-p5430-15360", 0.0).scale == 1


def test_the_flash_of_a_model_is_a_usual_amount() -> None:
    """Check that drives of up to 16 TiB are still mapped whole."""
    sizes = {tb: raw_bytes_of(tb * 1e12) / GIB for tb in (3.84, 12.8, 15.36, 30.72, 122.88)}
    assert sizes == {3.84: 4096, 12.8: 15_872, 15.36: 15_872, 30.72: 32_768, 122.88: 131_072}
    with pytest.raises(ConfigError, match="is not supported"):
        raw_bytes_of(1.1e15)


def test_device_show_says_how_small_it_is_simulated(cli: CommandLine) -> None:
    shown = json.loads(cli(["device", "show", LARGEST, "--json"]).out)
    assert shown["least_scale"] == 64
    screen = cli(["device", "show", LARGEST]).out
    assert "64 (32-bit page numbers can address at most 16 TiB of flash)" in screen


def test_large_files_are_refused_at_their_key(tmp_path: Path) -> None:
    path = large_drive(tmp_path)
    text = path.read_text().replace('"21 TB"', '"2000 TB"')
    with pytest.raises(ConfigError, match="it must be 4 KiB to 1024 TiB"):
        describe_device(text, path.name)
