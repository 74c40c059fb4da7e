"""Probe of the hints and streams that a kernel and a drive support."""

from __future__ import annotations

import fcntl
import struct
from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from tests.support.nvme_drives import VERSIONS, answer_controller, page, replay
from writecliff.engines.blockdev import data_placement_probe
from writecliff.engines.blockdev.data_placement_probe import (
    HINTS,
    DataPlacementProbe,
    HintAnswer,
    probe,
    try_hints,
    verdict,
)
from writecliff.engines.blockdev.scsi_streams import PermanentStreams
from writecliff.errors import TargetError

TAKEN = tuple(HintAnswer("F_SET_RW_HINT", name, None) for name in HINTS)
REFUSED = (
    *(HintAnswer("F_SET_FILE_RW_HINT", name, "EINVAL") for name in HINTS),
    HintAnswer("F_SET_RW_HINT, 32 bits", "short", "EINVAL"),
)


def test_every_hint_is_tried_and_what_was_set_is_set_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"data")
    with path.open("rb") as file:
        try:
            fcntl.fcntl(file, 1036, struct.pack("=Q", 3))
        except OSError:
            pytest.skip("this kernel or file system takes no hints")
        answers = try_hints(path)
        assert struct.unpack("=Q", fcntl.fcntl(file, 1035, struct.pack("=Q", 0))) == (3,)
    assert [a.hint for a in answers if a.call == "F_SET_RW_HINT"] == list(HINTS)
    assert [a.call for a in answers].count("F_SET_FILE_RW_HINT") == len(HINTS)
    assert answers[-1].call == "F_SET_RW_HINT, 32 bits"
    assert path.read_bytes() == b"data"
    assert len(try_hints(tmp_path)) == len(answers)
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="neither an existing file nor a device"):
        probe(str(tmp_path / "none"))
    with pytest.raises(TargetError, match="No such file"):
        try_hints(tmp_path / "none")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_nvme_drive_is_asked_for_both_interfaces(tmp_path: Path, version: str) -> None:
    machine = Machine(tmp_path)
    path = str(machine.disk("nvme0n1", (259, 0)))
    machine.attributes(
        "nvme0n1", queue__max_write_streams="8", queue__write_stream_granularity="8388608"
    )
    absent = probe(path, machine.system)
    assert absent.fdp_handles is None and "nvme-cli is not installed" in absent.notes[0]

    replay(machine, version, "QFDP0001")
    probed = probe(path, machine.system)
    assert (probed.fdp_handles, probed.max_write_streams, probed.streams) == (8, 8, {})
    assert probed.notes == ("the Streams directive is not enabled on this namespace",)
    sentences = " ".join(verdict(probed))
    assert "8 write streams to the drive, each of 8388608 bytes at a time" in sentences
    assert "8 placement handles" in sentences
    assert probed.mapping()["verdict"]

    status = f"nvme fdp status {machine.dev}/nvme0n1 --raw-binary"
    machine.answer(status, returncode=1, stderr="NVMe status: unrecognized(0x4029)")
    off = probe(path, machine.system)
    assert off.fdp_handles == 0 and "not enabled" in off.notes[0]


def test_streams_of_the_directive(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    path = str(machine.disk("nvme0n1", (259, 0)))
    answer_controller(machine, oacs=1 << 5)
    directive = f"nvme admin-passthru {machine.dev}/nvme0 --opcode=0x1a --namespace-id=1"
    machine.answer(f"{directive} --cdw10=7", data=page(32, {0: (2, 9), 2: (2, 4), 24: (2, 1)}))
    probed = probe(path, machine.system)
    assert probed.streams is not None
    assert (probed.streams["msl"], probed.streams["nssa"], probed.streams["nso"]) == (9, 4, 1)
    assert "4 streams" in " ".join(verdict(probed)) and probed.notes == ()


def test_the_verdict_names_what_the_kernel_refuses() -> None:
    def probed(hints: tuple[HintAnswer, ...], streams: int | None) -> DataPlacementProbe:
        return DataPlacementProbe("x", "sda", "6.18", hints, streams, None, None, None, ())

    fine = verdict(probed(TAKEN + REFUSED, 0))
    assert fine[0].endswith("accepts all hints, as 64 bits.")
    assert "32 bits is rejected (EINVAL)" in fine[1]
    assert fine[2].startswith("F_SET_FILE_RW_HINT: rejected")
    assert "no write streams: hints do not reach the drive" in fine[3]
    none = tuple(HintAnswer(a.call, a.hint, "EINVAL") for a in TAKEN) + REFUSED
    assert "rejects not set (EINVAL), none (EINVAL)" in verdict(probed(none, None))[0]
    assert verdict(probed((), None)) == (
        "The kernel's queue of sda does not report write streams: hints do not reach the drive.",
    )


def test_a_device_that_cannot_be_opened_is_still_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> tuple[HintAnswer, ...]:
        raise TargetError(f"{path}: Operation not permitted")

    monkeypatch.setattr(data_placement_probe, "try_hints", refuse)
    machine = Machine(tmp_path)
    probed = probe(str(machine.disk("sdb", (8, 16))), machine.system)
    assert probed.hints == () and probed.notes[0].endswith("not permitted: hints were not tried")
    assert probed.permanent_streams == PermanentStreams(False, ())


def test_the_verdict_on_permanent_streams() -> None:
    def sentences(reduced_control: bool) -> tuple[str, ...]:
        probed = PermanentStreams(reduced_control, (1, 2, 63))
        return verdict(
            DataPlacementProbe("x", "sda", "6.18", (), None, None, None, None, (), probed)
        )

    first = "SCSI: 3 permanent streams, of relative lifetimes 1, 2, 63."
    last = "Hint n of a direct write is its group number n, from Linux 6.10 on."
    assert sentences(True) == (first, last)
    assert sentences(False)[1].endswith("hints do not reach it.")
