"""Power states of NVMe drives: which there are, which is in force, and setting another one.

NVMe Base Specification 2.1: power state descriptors of Identify Controller (5.1.13.2.1), feature
02h Power Management (5.1.25.1.2), feature 0Ch Autonomous Power State Transition (5.1.25.1.6). A
state that is set holds until the controller is reset; nothing is saved on the drive.
"""

from __future__ import annotations

from dataclasses import replace

from writecliff.engines.base import PowerStates
from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.errors import TargetError

_POWER_MANAGEMENT, _AUTONOMOUS = 0x02, 0x0C
_STATE_BITS = 0x1F
OPTION = "--power-state"


def power_states(drive: NvmeDrive) -> PowerStates | None:
    """The states of a drive and the one in force; None if it does not tell."""
    try:
        states = drive.controller().power_states
        state = drive.feature(_POWER_MANAGEMENT) & _STATE_BITS
    except Refused:
        return None
    if state >= len(states):
        return None
    return PowerStates(state, states, _autonomous(drive))


def _autonomous(drive: NvmeDrive) -> bool | None:
    """Whether the drive goes to states without I/O by itself when it is idle."""
    try:
        return bool(drive.feature(_AUTONOMOUS) & 1)
    except Refused as refused:
        return False if refused.is_final else None


def working_states(drive: NvmeDrive | None, name: str, wanted: int) -> PowerStates:
    """The states of a drive that does I/O in the one that is `wanted`; `name` is the drive's, for
    messages. Raises TargetError if it has no such state.
    """
    if drive is None:
        raise TargetError(f"{name}: not an NVMe drive, which alone have power states",
                          hint=f"drop {OPTION}")  # fmt: skip
    found = power_states(drive)
    if found is None:
        raise TargetError(f"{name}: the drive does not tell its power states",
                          hint=f"drop {OPTION}")  # fmt: skip
    working = [state.number for state in found.states if state.operational]
    if wanted not in working:
        kind = "no power state" if wanted >= len(found.states) else "without I/O: power state"
        raise TargetError(
            f"{name}: {kind} {wanted}",
            hint=f"those with I/O: {', '.join(map(str, working))}",
        )
    return found


def set_power_state(drive: NvmeDrive | None, name: str, wanted: int) -> PowerStates:
    """Set a state in which the drive does I/O. A drive that is in it is left alone: one with a
    single state may refuse the command. Raises TargetError as `working_states`, and if the drive is
    in another one afterwards.
    """
    found = working_states(drive, name, wanted)
    assert drive is not None
    if found.state == wanted:
        return replace(found, before=wanted)
    try:
        drive.set_feature(_POWER_MANAGEMENT, wanted)
    except Refused as reason:
        raise TargetError(f"{name}: nvme set-feature: {reason}") from None
    after = power_states(drive)
    if after is None or after.state != wanted:
        state = "unknown" if after is None else after.state
        raise TargetError(
            f"{name}: power state {wanted} was set, and the drive is in {state}",
            hint=f"drop {OPTION}",
        )
    return replace(after, before=found.state)


def restore_power_state(drive: NvmeDrive, state: int) -> str:
    """Set the state that the drive was found in; returns why it failed, "" if it did not."""
    try:
        drive.set_feature(_POWER_MANAGEMENT, state)
    except Refused as reason:
        return f"nvme set-feature: {reason}"
    return ""
