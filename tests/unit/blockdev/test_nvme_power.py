"""NVMe power states: read, set for a test with consent, restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.block_machine import Machine
from tests.support.nvme_drives import VERSIONS, alone, controller_page, replay
from writecliff.engines.base import PowerState, PowerStates
from writecliff.engines.blockdev.nvme.drive import NvmeDrive
from writecliff.engines.blockdev.nvme.power import (
    power_states,
    restore_power_state,
    set_power_state,
)
from writecliff.engines.blockdev.tools import ToolResult
from writecliff.errors import TargetError

# Number, power, flags (1: units of 0.1 mW, 2: no I/O), and entry and exit latencies in us.
DESCRIPTORS = ((825, 0, 0, 0), (460, 0, 0, 0), (0, 0, 5, 5), (500, 3, 210, 1200))


class Drive:
    """A controller with four power states, behind nvme-cli."""

    def __init__(self, machine: Machine, *, keeps: bool = False) -> None:
        self.state, self.keeps, self.set_to = 0, keeps, list[int]()
        page = bytearray(controller_page())
        page[263] = len(DESCRIPTORS) - 1
        for number, (power, flags, entry, exit_) in enumerate(DESCRIPTORS):
            at = 2048 + 32 * number
            page[at : at + 2], page[at + 3] = power.to_bytes(2, "little"), flags
            page[at + 4 : at + 8] = entry.to_bytes(4, "little")
            page[at + 8 : at + 12] = exit_.to_bytes(4, "little")
        self.node = str(machine.dev / "nvme0")
        machine.answer(f"nvme id-ctrl {self.node}", data=bytes(page))
        self.before = machine.system.run
        self.system = replace(machine.system, run=self.run)

    def run(self, command: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult:
        if command[1] == "get-feature":
            value = self.state if command[3] == "--feature-id=0x02" else 1
            return ToolResult(0, f"get-feature:0x02, Current value:{value:#010x}\n", "")
        if command[1] == "set-feature":
            self.set_to.append(int(command[4].removeprefix("--value=")))
            if not self.keeps:
                self.state = self.set_to[-1]
            return ToolResult(0, "", "")
        return self.before(command, timeout_s=timeout_s)


def opened(machine: Machine, **options: bool) -> tuple[Drive, NvmeDrive]:
    disk = alone(machine)
    drive = Drive(machine, **options)
    return drive, NvmeDrive(drive.system, disk)


def test_states_are_as_the_descriptors_say(machine: Machine) -> None:
    _, nvme = opened(machine)
    power_now = power_states(nvme)
    assert power_now is not None and (power_now.state, power_now.autonomous) == (0, True)
    assert power_now.states == (
        PowerState(0, 8.25, True, 0, 0),
        PowerState(1, 4.6, True, 0, 0),
        PowerState(2, None, True, 5, 5),
        PowerState(3, 0.05, False, 210, 1200),
    )
    assert power_now.text == "0 of 0 to 3, 8.25 W at most"


def test_a_state_is_set_and_set_back(machine: Machine) -> None:
    drive, nvme = opened(machine)
    power_now = set_power_state(nvme, "/dev/nvme0n1", 1)
    assert (power_now.state, power_now.before, power_now.watts_max) == (1, 0, 4.6)
    assert restore_power_state(nvme, 0) == ""
    assert (drive.state, drive.set_to) == (0, [1, 0])


def test_a_drive_in_the_wanted_state_is_left_alone(machine: Machine) -> None:
    drive, nvme = opened(machine)
    power_now = set_power_state(nvme, "/dev/nvme0n1", 0)
    assert (power_now.state, power_now.before, drive.set_to) == (0, 0, [])


@pytest.mark.parametrize(("watts", "text"), [(8.25, "8.25 W at most"),
                                             (None, "maximum power not reported")])  # fmt: skip
def test_power_that_is_not_reported_is_said(watts: float | None, text: str) -> None:
    states = PowerStates(0, (PowerState(0, watts, True, 0, 0),))
    assert states.text == f"0, the only state, {text}"


@pytest.mark.parametrize(("state", "why"), [(3, "without I/O"), (4, "no power state 4")])
def test_states_that_do_no_io_are_refused(machine: Machine, state: int, why: str) -> None:
    drive, nvme = opened(machine)
    with pytest.raises(TargetError, match=why) as refused:
        set_power_state(nvme, "/dev/nvme0n1", state)
    assert refused.value.hint == "operational states: 0, 1, 2"
    assert drive.set_to == []


def test_a_drive_that_keeps_its_state_is_refused(machine: Machine) -> None:
    _, nvme = opened(machine, keeps=True)
    with pytest.raises(
        TargetError, match="power state 1 was requested, but the drive is in state 0"
    ):
        set_power_state(nvme, "/dev/nvme0n1", 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_drive_that_was_not_asked_tells_nothing(machine: Machine, version: str) -> None:
    disk = alone(machine)
    replay(machine, version, "QPLAIN01")
    assert power_states(NvmeDrive(machine.system, disk)) is None
