"""What is said of the hints and streams that a kernel and a drive take."""

from __future__ import annotations

import fcntl
import json
import struct
from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from writecliff.engines.blockdev import data_placement_probe
from writecliff.engines.blockdev.data_placement_probe import DataPlacementProbe, probe, verdict
from writecliff.engines.blockdev.hints import HINTS, HintAnswer, try_hints
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
    with pytest.raises(TargetError, match="no such file or device"):
        probe(str(tmp_path / "none"))
    with pytest.raises(TargetError, match="No such file"):
        try_hints(tmp_path / "none")


def test_an_nvme_drive_is_asked_for_both_interfaces(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    path = str(machine.disk("nvme0n1", (259, 0)))
    machine.attributes("nvme0n1", queue__max_write_streams="8", queue__write_stream_granularity="0")
    absent = probe(path, machine.system)
    assert absent.fdp_handles is None and "nvme-cli is not installed" in absent.notes[0]

    machine.answer("nvme id-ctrl", json.dumps({"ctratt": 1 << 19, "oacs": 1 << 5}))
    off = probe(path, machine.system)
    assert (off.fdp_handles, off.streams) == (0, {})
    assert len(off.notes) == 2

    machine.answer("nvme fdp status", "Placement Identifier 0; Reclaim Unit Handle Identifier 0\n")
    machine.answer("nvme dir-receive", "Max Streams Limit (MSL): 9\nStreams Available (NSSA): 4\n")
    found = probe(path, machine.system)
    assert (found.fdp_handles, found.max_write_streams) == (1, 8)
    assert found.streams == {"msl": 9, "nssa": 4} and found.notes == ()
    said = " ".join(verdict(found))
    assert "8 write streams" in said and "1 placement handles" in said and "4 streams" in said
    assert found.mapping()["verdict"]


def test_the_verdict_names_what_the_kernel_refuses() -> None:
    def found(hints: tuple[HintAnswer, ...], streams: int | None) -> DataPlacementProbe:
        return DataPlacementProbe("x", "sda", "6.18", hints, streams, None, None, None, ())

    fine = verdict(found(TAKEN + REFUSED, 0))
    assert fine[0].endswith("takes every hint, as 64 bits.")
    assert "32 bits is refused (EINVAL)" in fine[1]
    assert fine[2].startswith("F_SET_FILE_RW_HINT: refused")
    assert "no write streams: hints end in the kernel" in fine[3]
    none = tuple(HintAnswer(a.call, a.hint, "EINVAL") for a in TAKEN) + REFUSED
    assert "refuses not set (EINVAL), none (EINVAL)" in verdict(found(none, None))[0]
    assert verdict(found((), None)) == (
        "The kernel's queue of sda does not report write streams: hints end in the kernel.",
    )


def test_a_device_that_cannot_be_opened_is_still_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> tuple[HintAnswer, ...]:
        raise TargetError(f"{path}: Operation not permitted")

    monkeypatch.setattr(data_placement_probe, "try_hints", refuse)
    machine = Machine(tmp_path)
    found = probe(str(machine.disk("sdb", (8, 16))), machine.system)
    assert found.hints == () and found.notes[0].endswith("not permitted: hints were not tried")
    assert any("sg_stream_ctl" in note for note in found.notes)
