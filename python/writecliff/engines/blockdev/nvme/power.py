"""Power states of NVMe drives.

NVMe Base Specification 2.1 defines the power state descriptors of Identify Controller (5.1.13.2.1),
feature 02h Power Management (5.1.25.1.2) and feature 0Ch Autonomous Power State Transition
(5.1.25.1.6). A power state setting lasts until the controller is reset, because it is not saved on
the drive.
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
    """Return a drive's supported and current power states, or None if it does not report them."""
    try:
        states = drive.controller().power_states
        state = drive.feature(_POWER_MANAGEMENT) & _STATE_BITS
    except Refused:
        return None
    if state >= len(states):
        return None
    return PowerStates(state, states, _autonomous(drive))


def _autonomous(drive: NvmeDrive) -> bool | None:
    """Return True if an idle drive enters non-operational states on its own, or None if unknown."""
    try:
        return bool(drive.feature(_AUTONOMOUS) & 1)
    except Refused as refused:
        return False if refused.is_final else None


def working_states(drive: NvmeDrive | None, name: str, wanted: int) -> PowerStates:
    """Return a drive's power states, if the `wanted` state is operational.

    Raises:
        TargetError: If the drive, which messages call `name`, does not have this operational state.
    """
    if drive is None:
        raise TargetError(f"{name} is not an NVMe drive; other drives have no power states",
                          hint=f"omit {OPTION}")  # fmt: skip
    states = power_states(drive)
    if states is None:
        raise TargetError(f"the drive {name} does not report its power states",
                          hint=f"omit {OPTION}")  # fmt: skip
    working = [state.number for state in states.states if state.operational]
    if wanted not in working:
        kind = "no power state" if wanted >= len(states.states) else "without I/O: power state"
        raise TargetError(
            f"{name}: {kind} {wanted}",
            hint=f"operational states: {', '.join(map(str, working))}",
        )
    return states


def set_power_state(drive: NvmeDrive | None, name: str, wanted: int) -> PowerStates:
    """Set an operational power state, unless the drive is already in this state.

    Raises:
        TargetError: If the drive does not have this state, or did not enter it.
    """
    states = working_states(drive, name, wanted)
    assert drive is not None
    if states.state == wanted:
        return replace(states, before=wanted)
    try:
        drive.set_feature(_POWER_MANAGEMENT, wanted)
    except Refused as reason:
        raise TargetError(f"{name}: `nvme set-feature` failed: {reason}") from None
    after = power_states(drive)
    if after is None or after.state != wanted:
        state = "unknown" if after is None else after.state
        raise TargetError(
            f"{name}: power state {wanted} was requested, but the drive is in state {state}",
            hint=f"omit {OPTION}",
        )
    return replace(after, before=states.state)


def restore_power_state(drive: NvmeDrive, state: int) -> str:
    """Restore the original power state, and return the reason for a failure, or ""."""
    try:
        drive.set_feature(_POWER_MANAGEMENT, state)
    except Refused as reason:
        return f"nvme set-feature: {reason}"
    return ""
