"""When writes can be steered to placement handles, and the reason given where they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from tests.support.nvme_drives import answer_controller, page, replay
from writecliff.engines.blockdev.topology import BlockDevice, device_at
from writecliff.engines.fio.capability import DataPlacement, Fio
from writecliff.engines.fio.data_placement import find_data_placement

OLD = Fio("/usr/bin/fio", (3, 33), "fio-3.33", "io_uring")
NEW = Fio("/usr/bin/fio", (3, 38), "fio-3.38", "io_uring")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.disk("nvme0n1", (259, 0))
    (made.dev / "ng0n1").touch()
    replay(made, "2.16", "QFDP0001")
    return made


def disk(machine: Machine, name: str = "nvme0n1") -> BlockDevice:
    return device_at(machine.system, machine.dev / name)


def test_found(machine: Machine) -> None:
    found = find_data_placement(machine.system, NEW, disk(machine))
    assert found == DataPlacement("fdp", str(machine.dev / "ng0n1"), 8)


def test_the_streams_directive_where_it_is_enabled(machine: Machine) -> None:
    answer_controller(machine, oacs=1 << 5)
    answers = f"nvme admin-passthru {machine.dev}/nvme0 --opcode=0x1a --namespace-id=1"
    machine.answers = {w: a for w, a in machine.answers.items() if "--raw-binary" not in w}
    machine.answer(f"{answers} --cdw10=0x3ff", data=page(4096, {0: (1, 0b01)}))
    none = find_data_placement(machine.system, NEW, disk(machine))
    assert none == "the drive has neither flexible data placement nor streams"
    machine.answer(f"{answers} --cdw10=0x3ff", data=page(4096, {0: (1, 0b11)}))
    off = find_data_placement(machine.system, NEW, disk(machine))
    assert off == "the Streams directive is not enabled on this namespace"
    parameters = page(32, {0: (2, 16), 2: (2, 12), 16: (4, 32), 20: (2, 512)})
    machine.answer(f"{answers} --cdw10=7 --cdw11=0x101", data=parameters)
    found = find_data_placement(machine.system, NEW, disk(machine))
    assert found == DataPlacement("streams", str(machine.dev / "ng0n1"), 13)


def test_hints_where_the_kernel_has_write_streams(machine: Machine) -> None:
    machine.disk("sdb", (8, 16))
    machine.attributes("sdb", queue__max_write_streams="8")
    middle = Fio("/usr/bin/fio", (3, 37), "fio-3.37", "io_uring")
    found = find_data_placement(machine.system, middle, disk(machine, "sdb"))
    assert found == DataPlacement("hint", "", 6)
    old = find_data_placement(machine.system, OLD, disk(machine, "sdb"))
    assert old == "fio-3.33 cannot set hints; 3.37 or later can"


def test_reasons(machine: Machine) -> None:
    system = machine.system
    assert find_data_placement(system, NEW, None) == "a file has no streams"
    machine.disk("sda", (8, 0))
    assert find_data_placement(system, NEW, disk(machine, "sda")) == "sda is not an NVMe drive"
    old = find_data_placement(system, OLD, disk(machine))
    assert old == "fio-3.33 cannot place writes; 3.38 or later can"
    libaio = Fio("/usr/bin/fio", (3, 41), "fio-3.41", "libaio")
    assert "needs io_uring" in str(find_data_placement(system, libaio, disk(machine)))
    status = f"nvme fdp status {machine.dev}/nvme0n1 --raw-binary"
    machine.answer(status, "", returncode=1)
    assert "not enabled" in str(find_data_placement(system, NEW, disk(machine)))
    replay(machine, "2.16", "QPLAIN01")
    assert "Streams directive is not enabled" in str(
        find_data_placement(system, NEW, disk(machine))
    )
    (machine.dev / "ng0n1").unlink()
    assert "no generic device" in str(find_data_placement(system, NEW, disk(machine)))
