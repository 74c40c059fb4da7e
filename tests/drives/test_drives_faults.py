"""Drive faults: measurements survive, and the error names the cause.

Resumed runs are slow in the guest, so only a pulled and a replaced drive are tested with a resumed
run. Faults that loop devices can emulate (fio killed, disk full, ...) are tested in tests/device.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.guest.qmp import Qmp
from tests.support.dangers import MIB, require, run
from tests.support.faults import FailingRun
from tests.support.guest_drives import Drive, drives_by_serial, pull
from tests.support.shelf import Shelf
from writecliff.engines.base import Progress, StepResult
from writecliff.engines.fio import FioEngine, faults
from writecliff.errors import EngineError
from writecliff.workload.model import Job, Pattern, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")
pytestmark = pytest.mark.long

SECOND = 1_000_000_000
SECTORS = 16 * MIB // 512
Fault = Callable[[], object]


def fault(name: str) -> pytest.MarkDecorator:
    return pytest.mark.figure(faults=name)


@pytest.fixture
def shelf(tmp_path: Path, _in_the_guest: None) -> Iterator[Shelf]:
    with Shelf(tmp_path) as shelf:
        shelf.module("loop")
        yield shelf


class Mapped:
    """A drive whose device mapper table can be replaced under load."""

    def __init__(self, shelf: Shelf, name: str) -> None:
        self.lower = shelf.loop(shelf.zeros())
        self.path = shelf.mapped(name, self.linear())
        self._name = name
        shelf.callback(self.resume)

    def linear(self, sectors: int = SECTORS) -> str:
        return f"0 {sectors} linear {self.lower} 0"

    def exchange(self, table: str) -> None:
        run("dmsetup", "suspend", "--noflush", self._name)
        run("dmsetup", "load", self._name, "--table", table)
        run("dmsetup", "resume", self._name)

    def suspend(self) -> None:
        run("dmsetup", "suspend", "--noflush", "--nolockfs", self._name)

    def resume(self) -> None:
        run("dmsetup", "resume", self._name)


@pytest.fixture
def mapped(shelf: Shelf) -> Mapped:
    return Mapped(shelf, "faulty")


def measured(
    path: str,
    consent: str,
    happens: Fault,
    *,
    seconds: float = 6,
    pattern: Pattern = "random",
    read_pct: int = 0,
) -> StepResult:
    """Run a step of 4 KiB I/Os and inject the fault in the middle."""
    job = Job(
        pattern=pattern, read_pct=read_pct, duration_ns=round(seconds * SECOND), queue_depth=4
    )
    happened: list[bool] = []

    def on_progress(progress: Progress) -> None:
        if not happened:
            happened.append(True)
            happens()

    with FioEngine.open_device(path, destroy_serial=consent, allow_signatures=True) as engine:
        result = engine.run(Workload("w", (job,), interval_ns=SECOND // 2), on_progress)
        assert happened
        return result


def failed(path: str, consent: str, happens: Fault, cause: str, **options: object) -> EngineError:
    """Check that `measured` fails with a cause matching the pattern and retains its steps."""
    with pytest.raises(EngineError, match=cause) as caught:
        measured(path, consent, happens, **options)  # type: ignore[arg-type]
    assert caught.value.exit_code == 1
    assert caught.value.partial is not None
    assert caught.value.partial.total()[0] > 0
    assert "\n" not in str(caught.value)
    return caught.value


# -- the drive is lost ----------------------------------------------------------------------------


@fault("an NVMe drive is pulled")
def test_an_nvme_drive_is_pulled_and_the_run_resumed(
    plug: Callable[..., Drive], qmp: Qmp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drive = plug("QPULLED1")
    failing = FailingRun(drive.path, drive.serial, tmp_path / "run", capsys)
    ended = failing.fails_by(lambda: pull(qmp, drive.identifier))
    rows = failing.assert_kept(ended, f"^{drive.path}: the drive vanished: the kernel has removed")
    wanted = {"id": drive.identifier, "bus": "slot_free0", "serial": drive.serial}
    qmp.execute("device_add", driver="nvme", drive=f"node_{drive.serial}", **wanted)
    require(lambda: drive.serial in drives_by_serial())
    back = drives_by_serial()[drive.serial].path
    failing.assert_resumes(rows, "--on", back, "--destroy", drive.serial)


@fault("another drive is in its place")
def test_another_nvme_drive_in_its_place_is_not_resumed(
    plug: Callable[..., Drive], qmp: Qmp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drive = plug("QFIRST01")
    failing = FailingRun(drive.path, drive.serial, tmp_path / "run", capsys)
    failing.assert_kept(failing.fails_by(lambda: pull(qmp, drive.identifier)), "the drive vanished")
    other = plug("QSECOND1")
    before = Path(other.path).read_bytes()
    refused = failing.resume("--on", other.path, "--destroy", drive.serial)
    assert refused.code == 2
    assert "is not this device's serial" in refused.error
    refused = failing.resume("--on", other.path, "--destroy", other.serial)
    assert refused.code == 2
    assert (
        "is not the drive that the run was started on: its serial is QSECOND1, not QFIRST01"
        in refused.error
    )
    assert Path(other.path).read_bytes() == before


@pytest.fixture
def spare(shelf: Shelf, scsi: Drive) -> str:
    """Add a second SCSI drive, which a test may remove, and return its name."""
    control = Path("/sys/bus/pseudo/drivers/scsi_debug/add_host")
    before = set(Path("/sys/block").glob("sd*"))
    control.write_text("1")
    shelf.callback(control.write_text, "-1")
    require(lambda: set(Path("/sys/block").glob("sd*")) - before)
    (disk,) = set(Path("/sys/block").glob("sd*")) - before
    require(lambda: os.path.exists(f"/dev/{disk.name}"))
    return disk.name


def serial_of(disk: str) -> str:
    return Path("/sys/block", disk, "device/vpd_pg80").read_bytes()[4:].decode().strip()


@fault("a SCSI drive is removed")
def test_a_scsi_drive_is_removed(spare: str) -> None:
    device = Path("/sys/block", spare, "device/delete").resolve()
    cause = f"/dev/{spare}: the drive vanished: the kernel has removed the device"
    failed(f"/dev/{spare}", serial_of(spare), lambda: device.write_text("1"), cause)


@fault("the kernel takes a drive offline")
def test_the_kernel_takes_a_scsi_drive_offline(spare: str, shelf: Shelf) -> None:
    state = Path("/sys/block", spare, "device/state")
    shelf.callback(state.write_text, "running\n")
    cause = f"/dev/{spare}: the kernel cannot reach the drive: its state is offline; write error at"
    failed(f"/dev/{spare}", serial_of(spare), lambda: state.write_text("offline\n"), cause)


# -- I/O errors -----------------------------------------------------------------------------------


@fault("I/O errors")
def test_writes_fail(mapped: Mapped) -> None:
    def break_it() -> None:
        mapped.exchange(f"0 {SECTORS} error")

    cause = rf"^{mapped.path}: write error at byte \d+ \(of 4\.1 kB\): Input/output error"
    failed(mapped.path, mapped.path, break_it, cause)


@fault("unreadable sectors")
def test_some_sectors_cannot_be_read(spare: str, shelf: Shelf) -> None:
    options = Path("/sys/module/scsi_debug/parameters/opts")
    count = Path("/sys/module/scsi_debug/parameters/medium_error_count")
    shelf.callback(options.write_text, options.read_text())
    shelf.callback(count.write_text, count.read_text())
    medium_error = 2

    def spoil() -> None:
        count.write_text(str(128 * MIB // 512))
        options.write_text(str(medium_error))

    cause = rf"^/dev/{spare}: read error at byte \d+ \(of 4\.1 kB\): "
    error = failed(f"/dev/{spare}", serial_of(spare), spoil, cause, read_pct=100)
    assert f"dev {spare}, sector" in str(error) or "Medium Error" in str(error)


@fault("a drive becomes write protected")
def test_a_drive_becomes_write_protected(spare: str, shelf: Shelf) -> None:
    protect = Path("/sys/module/scsi_debug/parameters/wp")
    shelf.callback(protect.write_text, "0")
    cause = rf"^/dev/{spare}: .*write error at byte \d+ \(of 4\.1 kB\): "
    error = failed(f"/dev/{spare}", serial_of(spare), lambda: protect.write_text("1"), cause)
    assert f"dev {spare}, sector" in str(error) or "Write protected" in str(error)


@fault("a drive changes its size")
def test_a_drive_changes_its_size(mapped: Mapped) -> None:
    """Enlarge the drive, which does not make any I/O fail."""
    larger = SECTORS + 2048
    cause = rf"^{mapped.path}: the drive changed its size: it has {larger * 512} bytes now"
    error = failed_between_steps(mapped.path, lambda: mapped.exchange(mapped.linear(larger)))
    assert cause.removeprefix("^") in str(error)


def failed_between_steps(path: str, happens: Fault) -> EngineError:
    step = Workload("w", (Job(duration_ns=SECOND),), interval_ns=SECOND // 2)
    with FioEngine.open_device(path, destroy_serial=path) as engine:
        engine.run(step)
        happens()
        with pytest.raises(EngineError) as caught:
            engine.run(step)
    assert caught.value.exit_code == 1
    return caught.value


# -- slow, hanging, reset -------------------------------------------------------------------------


@fault("a drive slows to a crawl")
def test_a_slow_drive_is_measured_as_it_is(mapped: Mapped, shelf: Shelf) -> None:
    shelf.module("dm_delay")

    def slow_down() -> None:
        mapped.exchange(f"0 {SECTORS} delay {mapped.lower} 0 500")

    result = measured(mapped.path, mapped.path, slow_down, seconds=8)
    assert not [text for text in result.warnings if "stall" in text]
    service = result.service()
    assert service is not None
    assert service.max_ns > SECOND // 2


@fault("a drive hangs for a time")
def test_a_drive_hangs_for_a_time(
    mapped: Mapped, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "STALL_S", 2.0)

    def hang() -> None:
        mapped.suspend()
        shelf.script("(sleep 5; dmsetup resume faulty) >/dev/null 2>&1 & true")

    result = measured(mapped.path, mapped.path, hang, seconds=10)
    assert [text for text in result.warnings if text.startswith("disturbance: stall: ")]


@fault("a drive hangs for ever")
def test_a_drive_hangs_for_ever(mapped: Mapped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "GIVE_UP_S", 4.0)
    begin = time.monotonic()
    cause = rf"^{mapped.path}: the drive does not respond: no I/O was completed for "
    failed(mapped.path, mapped.path, mapped.suspend, cause, seconds=30)
    assert time.monotonic() - begin < 100


@fault("a controller is reset")
def test_a_reset_of_the_controller_is_survived(nvme: Drive) -> None:
    controller = Path("/sys/class/nvme", Path(nvme.controller).name, "reset_controller")
    result = measured(nvme.path, nvme.serial, lambda: controller.write_text("1"), seconds=8)
    assert result.total("write")[0] > 0
