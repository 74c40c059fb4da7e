"""Total cost of ownership of a drive: what it and its replacements cost, and their energy.

    drives    years of service / lifetime at the data per day, rounded up, one at least
    energy    mean power x time of service x power usage effectiveness (PUE)
    total     drives x price + energy x price of a kWh

Prices, years and PUE are given by the user; lifetime and power are measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from writecliff import units
from writecliff.report.model import Section, section
from writecliff.report.table import NUMBER, Kind, Quantity, decimals, table

DAYS_A_YEAR = 365.0
HOURS_A_YEAR = 24 * DAYS_A_YEAR
GB, TB = 1e9, 1e12


@dataclass(frozen=True)
class Ownership:
    """The costs of a drive in service. None: not known, or not asked for."""

    years: float
    drives: int | None
    price: float
    watts: float | None
    watts_given: bool
    pue: float
    kwh_price: float | None
    capacity_bytes: int
    bytes_per_day: float

    @property
    def energy_kwh(self) -> float | None:
        if self.watts is None:
            return None
        return self.watts * self.pue * self.years * HOURS_A_YEAR / 1e3

    @property
    def drives_dollars(self) -> float:
        """Of one drive where the lifetime is not known."""
        return (self.drives or 1) * self.price

    @property
    def energy_dollars(self) -> float | None:
        if self.energy_kwh is None or self.kwh_price is None:
            return None
        return self.energy_kwh * self.kwh_price

    @property
    def total(self) -> float:
        return self.drives_dollars + (self.energy_dollars or 0.0)

    @property
    def per_gb(self) -> float:
        """Dollars per GB of user capacity."""
        return self.total / (self.capacity_bytes / GB)

    @property
    def per_tb_written(self) -> float:
        """Dollars per TB that the host writes in the time of service."""
        return self.total / (self.bytes_per_day * DAYS_A_YEAR * self.years / TB)

    @property
    def figures(self) -> tuple[tuple[str, float | None, str, bool], ...]:
        """As `known_results` takes them."""
        return (
            ("drives_bought", self.drives, "", False),
            ("energy", self.energy_kwh, "kWh", False),
            ("tco", self.total, "$", False),
            ("tco_per_gb", self.per_gb, "$/GB", False),
            ("tco_per_tb_written", self.per_tb_written, "$/TB", False),
        )


def ownership(
    *,
    price: float,
    years: float,
    days_of_life: float | None,
    watts: float | None,
    watts_given: bool,
    pue: float,
    kwh_price: float | None,
    capacity_bytes: int,
    bytes_per_day: float,
) -> Ownership:
    """The costs for `years` at `bytes_per_day` of host writes."""
    drives = None
    if days_of_life:
        drives = max(1, math.ceil(years * DAYS_A_YEAR / days_of_life - 1e-9))
    return Ownership(
        years, drives, price, watts, watts_given, pue, kwh_price, capacity_bytes, bytes_per_day
    )


def ownership_section(costs: Ownership) -> Section:
    """The page's table, with what was given and what was measured told apart."""
    return section(
        "Total cost of ownership",
        " ".join(_intro(costs)),
        table("Total cost of ownership", ("", "", "from"), list(_rows(costs))),
    )


def _intro(costs: Ownership) -> Iterator[str]:
    yield (
        f"What one slot for a drive costs in {costs.years:g} years of service at "
        f"{units.size(costs.bytes_per_day)} of writes per day: worn-out drives are replaced."
    )
    if costs.drives is None:
        yield "How long a drive lasts is not known, so one drive is counted."
    if costs.kwh_price is None:
        yield "No price of a kWh was given (--kwh-price), so the total is without energy."
    elif costs.watts is None:
        yield "The power of the drive is not known (--watts), so the total is without energy."
    if costs.watts is not None and not costs.watts_given:
        yield "The power is that of the workload at full speed, the most that service takes."


def _rows(costs: Ownership) -> Iterator[tuple[str, Quantity, str]]:
    lifetime = "lifetime, rounded up" if costs.drives else "lifetime is not known"
    power = "given" if costs.watts_given else "measured at full speed"
    energy = f"power, PUE {costs.pue:g}"
    yield "Drives bought", Quantity(costs.drives or 1, NUMBER), lifetime
    yield "Price of a drive", Quantity(costs.price, _DOLLARS), "given"
    yield "Drives", Quantity(costs.drives_dollars, _DOLLARS), ""
    yield "Mean power", Quantity(costs.watts, decimals(2, "W")), power
    yield "Energy", Quantity(costs.energy_kwh, decimals(1, "kWh")), energy
    yield "Energy, price", Quantity(costs.energy_dollars, _DOLLARS), _kwh_text(costs.kwh_price)
    yield "Total cost of ownership", Quantity(costs.total, _DOLLARS), ""
    yield "Per GB of user capacity", Quantity(costs.per_gb, _CENTS), ""
    yield "Per TB that the host writes", Quantity(costs.per_tb_written, _CENTS), ""


def _kwh_text(price: float | None) -> str:
    return "not given" if price is None else f"{dollars(price, digits=4)} per kWh"


def dollars(value: float | None, *, digits: int = 2) -> str:
    return "-" if value is None else f"${value:,.{digits}f}"


_DOLLARS = Kind(dollars, "$")
_CENTS = Kind(partial(dollars, digits=4), "$")
