"""Format and sanitize of NVMe drives: commands sent, data preserved, and cases with no command.

Formats are replayed from recorded output. QEMU's drives have no sanitize, so its responses follow
Base Specification 2.1, 5.1.12.1.33, and replace the corresponding text of nvme-cli's source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.support.block_machine import MIB, Machine
from tests.support.nvme_drives import (
    VERSIONS,
    alone,
    answer_controller,
    list_page,
    namespace_page,
    replay,
    sanitize_page,
    shared,
)
from writecliff.engines.blockdev.nvme import erase
from writecliff.engines.blockdev.nvme.erase import nvme_erase
from writecliff.engines.blockdev.nvme.pages import Layout, Namespace
from writecliff.engines.blockdev.purge import purge_device
from writecliff.engines.blockdev.tools import ToolResult
from writecliff.errors import EngineError

GIB = 1 << 30


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Time advances only in sleeps."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    yield


def sent(machine: Machine, command: str) -> list[list[str]]:
    return [call for call in machine.calls if call[1] == command]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_format_names_the_whole_layout(machine: Machine, version: str) -> None:
    disk = alone(machine, size_bytes=GIB)
    replay(machine, version, "QPLAIN01")
    machine.attributes("nvme0n1", queue__logical_block_size="512")
    report = purge_device(machine.system, disk, "/dev/nvme0n1", -1)
    assert (report.method, report.conformant) == ("NVMe format (user data erase)", True)
    assert report.note == "kept LBA format 0 (512 bytes)"
    (words,) = sent(machine, "format")
    assert words[2:] == [
        str(machine.dev / "nvme0"), "--namespace-id=1", "--lbaf=0", "--ms=0", "--pi=0", "--pil=0",
        "--ses=1", "--timeout=21600000", "--force",
    ]  # fmt: skip


def test_metadata_and_protection_are_kept(machine: Machine) -> None:
    disk = alone(machine)
    # On this controller, nvme-cli uses LBA format 0 by default.
    answer_controller(machine, fna=0b001)
    blocks = MIB // 4096
    page = namespace_page(blocks=blocks, flbas=0b10011, dps=0b1010)
    machine.answer(f"nvme id-ns {machine.dev}/nvme0", data=page)
    machine.answer("nvme format")
    machine.answer("nvme ns-rescan")
    assert not isinstance(nvme_erase(machine.system, disk), str)
    (words,) = sent(machine, "format")
    assert words[4:8] == ["--lbaf=3", "--ms=1", "--pi=2", "--pil=1"]


def test_an_index_above_15_has_its_upper_bits_elsewhere() -> None:
    data = bytearray(namespace_page(flbas=0b0100010))
    data[25] = 20 - 1
    data[128 + 4 * 18 : 132 + 4 * 18] = (12 << 16 | 16).to_bytes(4, "little")
    assert Namespace.of(bytes(data)).layout == Layout(18, 4096, 16, False, 0, False)
    data[25] = 16 - 1  # The upper bits are reserved if there are at most 16 formats.
    assert Namespace.of(bytes(data)).layout.lba_format == 2


class Changing:
    """Return successive responses to one command; the last response repeats."""

    def __init__(self, machine: Machine, command: str, answers: Sequence[ToolResult]) -> None:
        self.command, self.answers, self.run = command, list(answers), machine.run

    def __call__(self, argv: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult:
        answer = self.run(argv, timeout_s=timeout_s)
        if self.command not in " ".join(argv):
            return answer
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def changing(machine: Machine, command: str, *answers: ToolResult) -> None:
    object.__setattr__(machine.system, "run", Changing(machine, command, answers))


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (namespace_page(blocks=256, flbas=2), r"LBA format 0 \(512 bytes\) to LBA format 2 \(4096"),
        (namespace_page(blocks=1024), "changed the capacity from 1048576 to 524288 bytes"),
    ],
)
def test_a_format_that_changes_the_drive_ends_the_test(
    machine: Machine, after: bytes, message: str
) -> None:
    disk = alone(machine)
    answer_controller(machine)
    machine.answer("nvme format")
    machine.answer("nvme ns-rescan")
    changing(
        machine, "id-ns", ToolResult(0, "", "", namespace_page()), ToolResult(0, "", "", after)
    )
    with pytest.raises(EngineError, match=message):
        nvme_erase(machine.system, disk)


def test_the_kernel_must_see_the_same_drive_too(machine: Machine) -> None:
    disk = alone(machine)
    answer_controller(machine)
    machine.answer("nvme format")
    machine.answer("nvme ns-rescan")
    machine.attributes("nvme0n1", size="0")
    with pytest.raises(EngineError, match="the kernel reports 0 bytes"):
        nvme_erase(machine.system, disk)


def test_crypto_erase_where_the_drive_refuses_user_data_erase(machine: Machine) -> None:
    disk = alone(machine)
    answer_controller(machine, fna=0b100)
    machine.answer("nvme ns-rescan")
    changing(machine, " format ", ToolResult(1, "", "NVMe status: refused"), ToolResult(0, ""))
    report = nvme_erase(machine.system, disk)
    assert not isinstance(report, str)
    assert report.method == "NVMe format (cryptographic erase)"
    assert [words[-3] for words in sent(machine, "format")] == ["--ses=1", "--ses=2"]


@pytest.mark.parametrize("fna", [0b01, 0b10])
@pytest.mark.parametrize("version", VERSIONS)
def test_other_namespaces_are_never_erased(machine: Machine, version: str, fna: int) -> None:
    disk = alone(machine, size_bytes=GIB)
    replay(machine, version, "QTWONS01")  # The replay lists the namespaces 1 and 5.
    from tests.support.nvme_drives import controller_page

    machine.answer(
        f"nvme id-ctrl {machine.dev}/nvme0 --raw-binary", data=controller_page(fna=fna, sanicap=7)
    )
    machine.answer("nvme format")
    machine.answer("nvme sanitize")
    with pytest.raises(EngineError, match="cannot be purged") as caught:
        purge_device(machine.system, disk, "/dev/nvme0n1", -1)
    assert "would erase namespace 5 of the same drive too" in str(caught.value)
    assert not sent(machine, "format") and not sent(machine, "sanitize")


def test_namespaces_of_other_controllers_of_the_drive_count(machine: Machine) -> None:
    disk = shared(machine)
    node = machine.dev / "nvme3"
    answer_controller(machine)
    machine.answers = {
        tuple(word.replace("nvme0", "nvme3") for word in words): answer
        for words, answer in machine.answers.items()
    }
    from tests.support.nvme_drives import controller_page

    managed = controller_page(oacs=0b1010, fna=1, sanicap=2)
    machine.answer(f"nvme id-ctrl {node}", data=managed)
    outcome = nvme_erase(machine.system, disk)
    # The drive has a single namespace, but `nvme format` is not installed.
    assert isinstance(outcome, str) and "format: " in outcome
    assert sent(machine, "format") and sent(machine, "format")[0][2] == str(node)
    machine.calls.clear()
    allocated = f"nvme admin-passthru {node} --opcode=0x06 --cdw10=0x10"
    # Namespace 9 is not attached to any controller of this machine.
    machine.answer(allocated, data=list_page(1, 9))
    outcome = nvme_erase(machine.system, disk)
    assert outcome == (
        "format: would erase namespace 9 of the same drive too; "
        "sanitize: would erase namespace 9 of the same drive too"
    )
    assert not sent(machine, "format")


def test_a_drive_that_does_not_list_its_namespaces_is_not_erased_whole(machine: Machine) -> None:
    disk = alone(machine)
    answer_controller(machine, fna=1, sanicap=2)
    for words in [words for words in machine.answers if "admin-passthru" in words]:
        del machine.answers[words]
    outcome = nvme_erase(machine.system, disk)
    assert isinstance(outcome, str) and "does not list them" in outcome


@pytest.mark.parametrize("lists", [True, False], ids=["lists", "does-not-list"])
def test_a_drive_of_several_controllers_is_asked_for_all_namespaces(
    machine: Machine, lists: bool
) -> None:
    """Without namespace management as well: CMIC indicates that there may be other controllers."""
    disk = alone(machine)
    answer_controller(machine, fna=1, sanicap=2, cmic=2)
    allocated = f"nvme admin-passthru {machine.dev}/nvme0 --opcode=0x06 --cdw10=0x10"
    if lists:
        machine.answer(allocated, data=list_page(1, 7))
    else:
        del machine.answers[tuple(allocated.split())]
    outcome = nvme_erase(machine.system, disk)
    assert isinstance(outcome, str)
    assert ("erase namespace 7 of the same" if lists else "does not list them") in outcome
    assert not sent(machine, "format") and not sent(machine, "sanitize")


# -- sanitize -----------------------------------------------------------------------------------


def sanitizing(machine: Machine, *logs: bytes, sanicap: int = 0b010) -> None:
    answer_controller(machine, oacs=0, sanicap=sanicap)
    machine.answer("nvme sanitize")
    results = [ToolResult(0 if log else 1, "", "" if log else "I/O error", log) for log in logs]
    changing(machine, "--log-id=0x81", *results)


def test_sanitize_waits_for_its_end_and_tells_how_far_it_is(machine: Machine) -> None:
    disk = alone(machine)
    seen: list[float] = []
    running = [sanitize_page(2, progress=share) for share in (0, 0x4000, 0x8000)]
    sanitizing(machine, *running, b"", sanitize_page(1))
    report = nvme_erase(machine.system, disk, seen.append)
    assert seen == [0, 0.25, 0.5]
    assert not isinstance(report, str)
    assert (report.method, report.conformant) == ("NVMe sanitize (block erase)", True)
    assert len([call for call in machine.calls if "--log-id=0x81" in call]) == 5
    assert sent(machine, "sanitize") == [
        ["nvme", "sanitize", str(machine.dev / "nvme0"), "--sanact=2", "--ause"]
    ]


@pytest.mark.parametrize(
    ("sanicap", "first"),
    [(0b111, "--sanact=2"), (0b101, "--sanact=4"), (0b100, "--sanact=3"), (0b000, None)],
)
def test_the_best_action_that_the_drive_has(
    machine: Machine, sanicap: int, first: str | None
) -> None:
    disk = alone(machine)
    action = int(first[-1]) if first else 2
    sanitizing(machine, sanitize_page(4, action=action), sanicap=sanicap)
    report = nvme_erase(machine.system, disk)
    if first is None:
        assert isinstance(report, str) and report.endswith("sanitize: not supported")
        return
    assert not isinstance(report, str)
    assert sent(machine, "sanitize")[0][3] == first
    assert ("--owpass=1" in sent(machine, "sanitize")[0]) == (first == "--sanact=3")


def test_a_sanitize_that_fails_is_not_asked_again_for_six_hours(machine: Machine) -> None:
    disk = alone(machine)
    sanitizing(machine, sanitize_page(2), sanitize_page(3))
    outcome = nvme_erase(machine.system, disk)
    assert isinstance(outcome, str) and "block erase: the drive reports that it failed" in outcome
    assert [words[3] for words in sent(machine, "sanitize")] == ["--sanact=2", "--sanact=1"]


def test_the_success_of_an_earlier_sanitize_is_not_ours(machine: Machine) -> None:
    disk = alone(machine)
    sanitizing(machine, sanitize_page(1, action=4))
    outcome = nvme_erase(machine.system, disk)
    assert isinstance(outcome, str) and "failed" in outcome


def test_a_drive_that_falls_silent_is_named(machine: Machine) -> None:
    disk = alone(machine)
    sanitizing(machine, sanitize_page(2), b"")
    with pytest.raises(EngineError, match="the drive stopped responding during a sanitize"):
        nvme_erase(machine.system, disk)


def test_a_sanitize_that_stands_still_is_named(machine: Machine) -> None:
    disk = alone(machine)
    sanitizing(machine, sanitize_page(2, progress=0x4000, estimate_s=3600))
    with pytest.raises(EngineError, match=r"stalled at 25 %, without progress for 180 minutes"):
        nvme_erase(machine.system, disk)
    assert len(machine.calls) > 3 * 3600 / erase._POLL_S
