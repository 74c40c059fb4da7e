"""Memory requirements of a suite, sweep or choice, checked before the first run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from writecliff.engines.target import is_simulated, open_target
from writecliff.errors import ConfigError
from writecliff.parallel import available_memory_bytes, drive_memory_bytes
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.procedures.scaling import quick_engine
from writecliff.suite.folder import Member

if TYPE_CHECKING:
    from writecliff.engines.base import Engine

PROCESS_BYTES = 300 << 20  # Memory of an interpreter that has loaded arrow, duckdb and matplotlib.


def member_memory_bytes(member: Member, engine: Engine | None = None) -> int:
    """Return the memory in bytes required by a run's process and its simulated drive.

    The drive is counted at the scale used for its simulation in the test. `engine` is the member's
    target, if the caller has already opened it.

    Raises:
        ConfigError: If the drive cannot be simulated.
    """
    if not is_simulated(member.target):
        return PROCESS_BYTES
    from writecliff.devices import show_device

    opened = engine or open_target(member.target)
    try:
        device = show_device(opened.identify().target.removeprefix("sim:"))
        procedure = procedure_from_mapping(member.test, member.options, simulated=True)
        scale = quick_engine(procedure, opened).identify().scale
    finally:
        if engine is None:
            opened.close()
    if device.raw_bytes is None:  # Drives that have no flash have no mapping table.
        return PROCESS_BYTES
    whole_bytes = drive_memory_bytes(device.capacity_bytes, device.mapped_bytes)
    return round(whole_bytes / scale) + PROCESS_BYTES


def check_memory(
    members: Mapping[str, Member], engine: Engine, budget_bytes: int | None = None
) -> None:
    """Check that each run on its own fits into memory.

    `engine` is the target shared by the members. Variants of this target, as in sweeps, are assumed
    to require the same memory. `budget_bytes` is the memory that may be used (default:
    `available_memory_bytes`).

    Raises:
        ConfigError: If runs exceed the budget; the message lists all of these runs.
    """
    if not engine.identify().simulated:
        return
    budget = budget_bytes or available_memory_bytes()
    needs = {name: member_memory_bytes(member, engine) for name, member in members.items()}
    large = {name: need for name, need in needs.items() if need > budget}
    if large:
        runs = ", ".join(f"{name} requires {need / 1e9:.1f} GB" for name, need in large.items())
        raise ConfigError(
            f"not enough memory: {runs}, the budget is {budget / 1e9:.1f} GB",
            hint="running fewer tests at a time does not help, because a single run exceeds the "
            "budget; free memory, choose a smaller drive, or scale it down with --quick",
        )
