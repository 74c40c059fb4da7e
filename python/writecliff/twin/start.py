"""A data sheet and a first device file from measurements, as `writecliff device new` derives them.

What measurements cannot tell (year, bits per cell, DRAM) the user may say; else it is a default,
and the device file marks it so.
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
_TOLD = ("flash.cell", "link.interface", "rated_writes", "form_factor", "uber", "mtbf")


def check_drive(identity: DeviceIdentity) -> None:
    """Raises ConfigError for a drive that no twin can be made of, before anything is measured."""
    if what := identity.without_flash:
        raise ConfigError(
            f"{identity.target} is {what}; a twin is a model of flash",
            hint="--check DRIVE compares it with a drive of the catalogue",
        )
    check_capacity(identity.capacity_bytes)


def measured_sheet(evidence: Evidence, name: str, said: Mapping[str, object]) -> DataSheet:
    """The data sheet of what was measured. `said` is what the user says, by the names of the sheet;
    it goes before measurements. Raises ConfigError.
    """
    identity, deep = evidence.identity, deepest(evidence.identity)
    interface = str(said.get("interface") or interface_of(identity))
    answers: dict[str, object] = {
        "name": name,
        "interface": interface,
        "capacity": f"{identity.capacity_bytes} B",
        "year": _YEARS.get(interface, 2021),
    }
    if identity.nand_type and identity.nand_type.lower() in CELLS:
        answers["cell"] = identity.nand_type.lower()
    sheet = sheet_of(answers | {key: value for key, value in said.items() if value is not None})
    value = evidence.value
    reads = value("random", 4, 100.0, deep, "iops")
    in_order = value("sequential", 128, 100.0, 32, "throughput")
    latency = value("random", 4, 100.0, 1, "latency_avg")
    write_latency = value("random", 4, 0.0, 1, "latency_avg_burst")
    burst = value("random", 4, 0.0, 32, "iops_burst")
    fill = evidence.fill
    cache = evidence.cache_bytes
    found: dict[str, Any] = {
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
    # Power-loss protection would have the burst taken for a steady rate, which is measured apart.
    return replace(
        sheet, power_loss_protection=None,
        **{key: one for key, one in found.items() if one is not None},
    )  # fmt: skip


def interface_of(identity: DeviceIdentity) -> str:
    """The link of a drive as data sheets call it; the default where the drive does not say."""
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
    """The values of the first device file, with reasons that say what was measured and what is a
    default. Raises ConfigError: no flash of the time can do what was measured.
    """
    values = []
    for one in derived(sheet):
        made = replace(one, reason=_reason(one))
        if one.key == "controller.power_loss_protection" and protected is not None:
            made = Value(one.key, str(protected).lower(), "as said")
        if one.key == "user_capacity":  # to the byte: a data sheet rounds
            made = Value(one.key, f'"{round(sheet.capacity)} B"', "as the drive says")
        values.append(made)
    return values


def _reason(one: Value) -> str:
    reason = one.reason
    if one.key in ("name", "model", "description"):
        return reason
    if one.key in _TOLD and reason == "the sheet":
        return "as the drive, or the user, says"
    if "a data sheet" in reason or reason == "yours":
        return "default: nothing that was measured tells"
    says = "the sheet" in reason or "rated" in reason
    if "the sheet gives no" in reason or not says:
        return reason if reason.startswith("default") else f"default: {reason}"
    plain = reason.replace("the sheet's", "the measured").replace("the sheet", "measured here")
    return plain.replace("rated", "measured")
