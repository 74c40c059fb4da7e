"""Data sheet and first device file of a twin, derived from measurements like those of `device new`.

The user can state facts that measurements cannot reveal (year, bits per cell and DRAM). Facts that
the user does not state have defaults, which are marked in the device file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from writecliff.devices.derive import Value, derived
from writecliff.devices.generations import check_capacity
from writecliff.devices.sheet import CELLS, DataSheet, sheet_of
from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.twin_loads import deepest
from writecliff.twin.evidence import Evidence

_YEARS = {"sata": 2016, "sas": 2016, "pcie3": 2018, "pcie4": 2021, "pcie5": 2023}
_PCIE = {1: "pcie3", 2: "pcie3", 3: "pcie3", 4: "pcie4", 5: "pcie5"}
_GT_PER_S = {"2.5": 3, "5": 3, "8": 3, "16": 4, "32": 5}
UNKNOWN_LINK = "pcie4"
_STATED_KEYS = ("flash.cell", "link.interface", "rated_writes", "form_factor", "uber", "mtbf")


def check_drive(identity: DeviceIdentity) -> None:
    """Check before any measurement that a twin of the drive can be created.

    Raises:
        ConfigError: If the drive has no flash or an unsupported capacity.
    """
    if what := identity.without_flash:
        raise ConfigError(
            f"{identity.target} is {what}, but a twin is a model of a flash drive",
            hint="use --check DRIVE to compare it with a catalogue drive",
        )
    check_capacity(identity.capacity_bytes)


def measured_sheet(evidence: Evidence, name: str, facts: Mapping[str, object]) -> DataSheet:
    """Return a measured drive's data sheet.

    Args:
        evidence: Measurements of the drive.
        name: Name of the twin.
        facts: Facts stated by the user, by data sheet key, which override measurements.

    Raises:
        ConfigError: If a fact is invalid.
    """
    identity, deep = evidence.identity, deepest(evidence.identity)
    interface = str(facts.get("interface") or interface_of(identity))
    answers: dict[str, object] = {
        "name": name,
        "interface": interface,
        "capacity": f"{identity.capacity_bytes} B",
        "year": _YEARS.get(interface, 2021),
    }
    if identity.nand_type and identity.nand_type.lower() in CELLS:
        answers["cell"] = identity.nand_type.lower()
    sheet = sheet_of(answers | {key: value for key, value in facts.items() if value is not None})
    value = evidence.value
    reads = value("random", 4, 100.0, deep, "iops")
    in_order = value("sequential", 128, 100.0, 32, "throughput")
    latency = value("random", 4, 100.0, 1, "latency_avg")
    write_latency = value("random", 4, 0.0, 1, "latency_avg_burst")
    burst = value("random", 4, 0.0, 32, "iops_burst")
    fill = evidence.fill
    cache = evidence.cache_bytes
    figures: dict[str, Any] = {
        "random_read": reads,
        "sequential_read": in_order and in_order * 1e6,
        "read_latency": latency and latency * 1e6,
        "write_latency": write_latency and write_latency * 1e6,
        "random_write": burst,
        "sustained_write": evidence.steady_iops,
        "sequential_write": fill.first if fill else None,
        "slc_cache": None if evidence.gentle else cache or 0.0,
        "write_after_cache": fill.last if fill and cache else None,
    }
    # With power-loss protection, the burst would be mistaken for the steady rate.
    return replace(
        sheet, power_loss_protection=None,
        **{key: figure for key, figure in figures.items() if figure is not None},
    )  # fmt: skip


def interface_of(identity: DeviceIdentity) -> str:
    """Return a drive's link in data sheet notation, or the default if it is unknown."""
    text = (identity.interface or "").lower()
    for word in ("sata", "sas"):
        if word in text:
            return word
    for gt, generation in _GT_PER_S.items():
        if f"{gt} gt/s" in text or f"{gt}.0 gt/s" in text:
            return _PCIE[generation]
    words = text + " " + (identity.pcie or "").lower()
    for generation, name in _PCIE.items():
        if f"pcie {generation}.0" in words or f"gen {generation}" in words:
            return name
    return UNKNOWN_LINK


def first_values(sheet: DataSheet, *, protected: bool | None) -> list[Value]:
    """Return the values for the first device file, marked as measured or default.

    Raises:
        ConfigError: If no flash from this year can reach the measured figures.
    """
    values = []
    for value in derived(sheet):
        made = replace(value, reason=_reason(value))
        if value.key == "controller.power_loss_protection" and protected is not None:
            made = Value(value.key, str(protected).lower(), "as the user states")
        # The capacity must be exact, because data sheets round their values.
        if value.key == "user_capacity":
            made = Value(value.key, f'"{round(sheet.capacity)} B"', "as the drive reports")
        values.append(made)
    return values


def _reason(value: Value) -> str:
    reason = value.reason
    if value.key in ("name", "model", "description"):
        return reason
    if value.key in _STATED_KEYS and reason == "the sheet":
        return "as the drive reports or the user states"
    if "a data sheet" in reason or reason == "yours":
        return "default, because no measurement determines it"
    says = "the sheet" in reason or "rated" in reason
    if "the sheet gives no" in reason or not says:
        return reason if reason.startswith("default") else f"default: {reason}"
    plain = reason.replace("the sheet's", "the measured").replace("the sheet", "measured here")
    return plain.replace("rated", "measured")
