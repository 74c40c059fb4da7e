"""ATA sanitize, security erase and write cache, using hdparm 9.65's output per its source."""

from __future__ import annotations

import pytest

from tests.support.block_machine import Machine
from tests.support.hdparm_drive import BAD_SENSE, IDENTITY, SECURITY, HdparmDrive
from writecliff.engines.base import PurgeReport
from writecliff.engines.blockdev import ata_erase
from writecliff.engines.blockdev.cache import set_write_cache
from writecliff.engines.blockdev.hdparm import AtaDrive
from writecliff.engines.blockdev.purge import (
    CRYPTO_SCRAMBLE,
    SanitizeStatus,
    ata_sanitize,
    parse_status,
)
from writecliff.engines.blockdev.scsi_commands import ScsiAnswer
from writecliff.engines.blockdev.tools import ToolResult
from writecliff.engines.blockdev.topology import BlockDevice, device_at
from writecliff.errors import EngineError

SATA = "/dev/sda"
BLOCK, CRYPTO = "BLOCK_ERASE_EXT command", "CRYPTO_SCRAMBLE_EXT command"


@pytest.fixture
def sata(machine: Machine) -> BlockDevice:
    path = machine.disk("sda", (8, 0), bus="ata1")
    machine.attributes("sda", device__vendor="ATA")
    return device_at(machine.system, path)


def no_wait(seconds: float) -> None:
    pass


def sanitized(drive: HdparmDrive, kind: tuple[str, str] | None = None) -> PurgeReport | str:
    more = {} if kind is None else {"kind": kind}
    return ata_sanitize(drive, SATA, sleep=no_wait, **more)


def test_features_are_read_with_their_star() -> None:
    drive = AtaDrive(IDENTITY)
    assert drive.enabled("SMART feature set")
    assert not drive.enabled("Security Mode feature set")
    assert not drive.enabled(BLOCK)


def test_block_erase_works_where_security_is_frozen_and_waits_for_its_end() -> None:
    drive = HdparmDrive(features=(BLOCK,), frozen=True)
    seen: list[float] = []
    report = ata_sanitize(drive, SATA, sleep=no_wait, on_progress=seen.append)
    assert report == PurgeReport("ATA sanitize (block erase)", True)
    assert (drive.used, seen) == (["--sanitize-block-erase"], [0.25] * 3)
    assert [call[1] for call in drive.calls].count("--sanitize-status") == 1 + 3 + 1


def test_an_operation_that_was_left_behind_is_waited_for() -> None:
    drive = HdparmDrive(features=(BLOCK,), state="SD2 Sanitize operation In Process")
    assert isinstance(sanitized(drive), PurgeReport)
    words = [call[1] for call in drive.calls]
    assert words.index("--yes-i-know-what-i-am-doing") > 3


@pytest.mark.parametrize(
    ("drive", "reason"),
    [
        (HdparmDrive(), "not supported"),
        (HdparmDrive(features=(CRYPTO,)), "not supported"),
        (HdparmDrive(features=(BLOCK,), state="SD1 Sanitize Frozen"), "sanitize is frozen"),
        (HdparmDrive(features=(BLOCK,), fails=True), "reports that it failed"),
        (HdparmDrive(features=(BLOCK,), silent=True), "does not report success"),
        (HdparmDrive(features=(BLOCK,), bridged=True), "does not receive the drive's registers"),
        (
            HdparmDrive(features=(BLOCK,), refuses=("--sanitize-block-erase",)),
            "starting: unsupported command",
        ),
    ],
)
def test_what_a_sanitize_that_does_not_succeed_says(drive: HdparmDrive, reason: str) -> None:
    outcome = sanitized(drive)
    assert isinstance(outcome, str)
    assert reason in outcome


def test_a_failed_sanitize_may_be_tried_again() -> None:
    drive = HdparmDrive(features=(BLOCK,), state="SD3 Sanitize Operation Failed")
    assert isinstance(sanitized(drive), PurgeReport)


def test_new_keys_are_not_sold_as_an_erase() -> None:
    report = sanitized(HdparmDrive(features=(CRYPTO,)), CRYPTO_SCRAMBLE)
    assert isinstance(report, PurgeReport)
    assert (report.conformant, "may still be mapped" in report.note) == (False, True)


def test_status_texts() -> None:
    running = "    State:    SD2 Sanitize operation In Process\n    Progress: 0x7fff (50%)\n"
    assert parse_status(ToolResult(0, running)) == SanitizeStatus("in process", percent=50)
    assert parse_status(ToolResult(0, "usage: hdparm")) == "hdparm prints no sanitize state"
    absent = ToolResult(22, "", "SANITIZE feature set is not supported\n")
    assert parse_status(absent) == "SANITIZE feature set is not supported"


def test_security_section() -> None:
    state = ata_erase.parse_security(SECURITY)
    assert state == ata_erase.SecurityState(True, False, False, False, 2, True, 8)
    frozen = ata_erase.parse_security(SECURITY.replace("not\tfrozen", "\tfrozen"))
    assert frozen.frozen
    long = ata_erase.parse_security(SECURITY.replace("2min for SEC", "more than 508min for SEC"))
    assert long.minutes == 508
    assert not ata_erase.parse_security("no such section").supported


def test_ata_security_erase() -> None:
    drive = HdparmDrive()
    report = ata_erase.ata_secure_erase(drive, SATA)
    assert report == PurgeReport("ATA security erase", True)
    assert drive.used == ["--security-set-pass", "--security-erase"]


def test_the_enhanced_erase_comes_only_where_the_normal_one_is_refused() -> None:
    drive = HdparmDrive(refuses=("--security-erase",))
    report = ata_erase.ata_secure_erase(drive, SATA)
    assert isinstance(report, PurgeReport)
    assert report.method == "ATA security erase (enhanced)"
    assert "SECURITY_ERASE: Input/output error" in report.note
    assert drive.password is None
    neither = HdparmDrive(refuses=("--security-erase",), enhanced=False)
    outcome = ata_erase.ata_secure_erase(neither, SATA)
    assert outcome == "erasing: SECURITY_ERASE: Input/output error (password removed again)"


@pytest.mark.parametrize(
    ("drive", "reason"),
    [
        (HdparmDrive(frozen=True), "the drive is frozen"),
        (HdparmDrive(password="someone's"), "has a security password"),
        (HdparmDrive(security=False), "not supported"),
    ],
)
def test_ata_erase_refuses_drives_that_it_cannot_erase(drive: HdparmDrive, reason: str) -> None:
    outcome = ata_erase.ata_secure_erase(drive, SATA)
    assert isinstance(outcome, str)
    assert reason in outcome
    # The only password, if any, is writecliff's own.
    assert set(drive.used) <= {"--security-disable"}


class _Interrupted(HdparmDrive):
    failure: BaseException

    def _security(self, option: str, password: str) -> ToolResult:
        if option == "--security-erase":
            raise self.failure
        return super()._security(option, password)


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), EngineError("stopped")])
@pytest.mark.parametrize("removable", [True, False])
def test_an_interrupted_ata_erase_removes_its_password_or_tells_how(
    failure: BaseException, removable: bool
) -> None:
    drive = _Interrupted(refuses=() if removable else ("--security-disable",))
    drive.failure = failure
    expected = type(failure) if removable else EngineError
    with pytest.raises(expected) as caught:
        ata_erase.ata_secure_erase(drive, SATA)
    assert (drive.password is None) == removable
    if not removable:
        assert isinstance(caught.value, EngineError)
        assert "the password 'writecliff' may still be set" in str(caught.value)
        command = f"hdparm --user-master u --security-disable writecliff {SATA}"
        assert command in str(caught.value.hint)


def test_ata_write_cache(machine: Machine, sata: BlockDevice) -> None:
    machine.answer("hdparm -W 0", "/dev/sda:\n setting drive write-caching to 0 (off)\n")
    machine.answer("hdparm -W", "/dev/sda:\n write-caching =  0 (off)\n")
    report = set_write_cache(machine.system, sata, SATA, False)
    assert (report.enabled, report.note) == (False, "")
    cache_report = set_write_cache(machine.system, sata, SATA, True)
    assert cache_report.enabled is False
    assert "kept its setting" in cache_report.note


def test_a_sata_drive_without_a_write_cache_has_none_on(
    machine: Machine, sata: BlockDevice
) -> None:
    machine.answer("hdparm -W", "/dev/sda:\n write-caching = not supported\n")
    assert set_write_cache(machine.system, sata, SATA, False).enabled is False


def test_a_sata_drive_that_hdparm_does_not_reach_is_asked_by_mode_page(
    machine: Machine, sata: BlockDevice
) -> None:
    machine.answers[("hdparm", "-W")] = ToolResult(0, "/dev/sda:\n", f"{BAD_SENSE}\n")
    unknown = set_write_cache(machine.system, sata, SATA, False)
    assert (unknown.enabled, "does not receive the drive's registers" in unknown.note) == (
        None,
        True,
    )
    machine.attributes("sda", **{"device__scsi_disk__0:0:0:0__cache_type": "write back"})
    machine.scsi_answers[bytes([0x5A, 0x08, 0x08])] = caching_page(enabled=False)
    report = set_write_cache(machine.system, sata, SATA, False)
    assert (report.enabled, report.note) == (False, "")


def caching_page(*, enabled: bool) -> ScsiAnswer:
    """Return the response of scsi_debug (Linux 6.12) to MODE SENSE(10)."""
    page = bytearray.fromhex("08121000ffff0000ffffffff8014000000000000")
    page[2] |= 0x04 if enabled else 0
    return ScsiAnswer((6 + len(page)).to_bytes(2, "big") + bytes(6) + bytes(page))


def test_a_virtio_disk_keeps_its_cache_in_its_configuration(machine: Machine) -> None:
    disk = device_at(machine.system, machine.disk("vdb", (254, 16)))
    machine.attributes("vdb", cache_type="write back", queue__write_cache="write back")
    report = set_write_cache(machine.system, disk, "/dev/vdb", False)
    assert (report.enabled, report.note) == (False, "")


def test_the_caching_mode_page_says_what_the_drive_keeps(machine: Machine) -> None:
    disk = device_at(machine.system, machine.disk("sdb", (8, 16)))
    machine.attributes("sdb", **{"device__scsi_disk__0:0:0:0__cache_type": "write back"})
    assert set_write_cache(machine.system, disk, "/dev/sdb", False).enabled is False
    machine.scsi_answers[bytes([0x5A, 0x08, 0x08])] = caching_page(enabled=True)
    report = set_write_cache(machine.system, disk, "/dev/sdb", False)
    assert report.enabled is True
    assert "the drive kept its setting" in report.note
