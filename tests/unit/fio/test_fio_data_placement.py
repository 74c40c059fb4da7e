"""When writes can be steered to placement handles, and the reason given where they cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from writecliff.engines.blockdev.topology import BlockDevice, device_at
from writecliff.engines.fio.capability import DataPlacement, Fio
from writecliff.engines.fio.data_placement import find_data_placement

OLD = Fio("/usr/bin/fio", (3, 33), "fio-3.33", "io_uring")
NEW = Fio("/usr/bin/fio", (3, 38), "fio-3.38", "io_uring")
STATUS = """Placement Identifier 0; Reclaim Unit Handle Identifier 0
  Estimated Active Reclaim Unit Time Remaining (EARUTR): 0
Placement Identifier 1; Reclaim Unit Handle Identifier 1
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.disk("nvme0n1", (259, 0))
    (made.dev / "ng0n1").touch()
    made.answer("nvme id-ctrl", json.dumps({"ctratt": 1 << 19}))
    made.answer("nvme fdp status", STATUS)
    return made


def disk(machine: Machine, name: str = "nvme0n1") -> BlockDevice:
    return device_at(machine.system, machine.dev / name)


def test_found(machine: Machine) -> None:
    found = find_data_placement(machine.system, NEW, disk(machine))
    assert found == DataPlacement("fdp", str(machine.dev / "ng0n1"), 2)


RETURN_PARAMETERS = """dir-receive: type 0x1, operation 0x1, spec 0x0, nsid 0x1, result 0
\tMax Streams Limit                          (MSL): 16
\tNVM Subsystem Streams Available           (NSSA): 12
\tStream Write Size (in unit of LB size)     (SWS): 32
\tStream Granularity Size (in unit of SWS)   (SGS): 512
\tNamespace Streams Allocated                (NSA): 0
"""


def test_the_streams_directive_where_it_is_enabled(machine: Machine) -> None:
    machine.answer("nvme id-ctrl", json.dumps({"ctratt": 0, "oacs": 1 << 5}))
    off = find_data_placement(machine.system, NEW, disk(machine))
    assert off == "the Streams directive is not enabled on this namespace"
    machine.answer("nvme dir-receive", RETURN_PARAMETERS)
    found = find_data_placement(machine.system, NEW, disk(machine))
    assert found == DataPlacement("streams", str(machine.dev / "ng0n1"), 13)
    assert machine.calls[-1][3:5] == ["-n", "1"]


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
    machine.answer("nvme fdp status", "", returncode=1)
    assert "not enabled" in str(find_data_placement(system, NEW, disk(machine)))
    machine.answer("nvme id-ctrl", "{}")
    assert "has neither flexible" in str(find_data_placement(system, NEW, disk(machine)))
    (machine.dev / "ng0n1").unlink()
    assert "no generic device" in str(find_data_placement(system, NEW, disk(machine)))
