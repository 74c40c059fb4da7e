"""Endurance test report on write amplification and lifetime."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from writecliff import units
from writecliff.procedures.campaigns.endurance import SPEED
from writecliff.procedures.model import StepRow
from writecliff.report import kinds, plots, steady_stages
from writecliff.report.axes import Axis, Line
from writecliff.report.campaigns.results import CampaignReport, Result, known_results
from writecliff.report.kinds import Kind
from writecliff.report.model import KeyFigure, Section, Verdict, section
from writecliff.report.power import power_of
from writecliff.report.steady import SteadyView, or_nan
from writecliff.report.table import Quantity, table
from writecliff.report.wsat_data import mean_waf


@dataclass(frozen=True)
class Lifetime:
    """Lifetime at the measured write amplification; unknown values are `None`.

    JESD218 defines TBW, the host data written until the flash reaches its rated cycles, and DWPD,
    the ratio of these data to the user capacity. Retention and failure rates are not considered.
    """

    waf: float
    cycles: int | None
    tbw_bytes: float | None
    dwpd: float | None
    days: float | None  # Lifetime in days at the given data volume per day.
    bytes_per_day: float
    write_bytes_per_s: float | None  # Write rate of the workload at full speed.
    days_at_full_speed: float | None
    rated_tbw_bytes: int | None
    dollars_per_tbw: float | None


class EnduranceReport(CampaignReport):
    """Report of an endurance test run."""

    sentence = "{1} can be written to it, which takes {3} at the assumed rate."

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        """Load rounds."""
        return (self.data.view("rounds"),)

    @cached_property
    def waf(self) -> float | None:
        """Write amplification over the window, or the assumed value if unknown."""
        rows = self._window_rows
        assumed: float | None = self.data.options.get("waf")
        measured = mean_waf(rows)
        return assumed if measured is None and rows else measured

    @property
    def _window_rows(self) -> Sequence[StepRow]:
        window = self.views[0].window
        return [row for row in self.data.stage_rows("rounds") if row.round in window]

    @cached_property
    def lifetime(self) -> Lifetime | None:
        """Lifetime, or None before the first complete round."""
        options, device, waf = self.data.options, self.data.manifest.device, self.waf
        if waf is None:
            return None
        capacity = self.data.capacity_bytes
        cycles = options.get("rated_cycles") or device.rated_cycles
        tbw = capacity * cycles / (waf * options["wear_levelling_factor"]) if cycles else None
        per_day = (options.get("gb_per_day") or 0) * 1e9 or float(capacity)
        speed = None
        for row in self.data.stage_rows(SPEED)[:1]:
            if row.elapsed_ns:
                speed = row.host_write_bytes / (row.elapsed_ns / 1e9)
        price = options.get("price")
        return Lifetime(
            waf=waf,
            cycles=cycles,
            tbw_bytes=tbw,
            dwpd=tbw and tbw / (capacity * DAYS_A_YEAR * options["years"]),
            days=tbw and tbw / per_day,
            bytes_per_day=per_day,
            write_bytes_per_s=speed,
            days_at_full_speed=tbw / speed / 86400 if tbw and speed else None,
            rated_tbw_bytes=device.rated_tbw_bytes,
            dollars_per_tbw=price / (tbw / TB) if tbw and price else None,
        )

    @cached_property
    def costs(self) -> Ownership | None:
        """Total cost of ownership, or None if no price was given."""
        options, life = self.data.options, self.lifetime
        if life is None or not options.get("price"):
            return None
        rows = self.data.stage_rows(SPEED)[:1]
        power = power_of(self.data, rows)
        given = options.get("watts")
        measured = None if power is None else power.mean_of(rows[0])
        return ownership(
            price=options["price"],
            years=options.get("service_years") or options["years"],
            days_of_life=life.days,
            watts=given or measured,
            watts_given=bool(given),
            pue=options["pue"],
            kwh_price=options.get("kwh_price"),
            capacity_bytes=self.data.capacity_bytes,
            bytes_per_day=life.bytes_per_day,
        )

    @cached_property
    def measurements(self) -> Sequence[Result]:
        """Write amplification, lifetime and costs."""
        life = self.lifetime
        if life is None:
            return ()
        tbw = None if life.tbw_bytes is None else life.tbw_bytes / TB
        years = None if life.days is None else life.days / DAYS_A_YEAR
        figures = (
            ("waf", life.waf, "", False),
            ("tbw", tbw, "TB", True),
            ("dwpd", life.dwpd, "drive writes per day", True),
            ("lifetime", years, "years", True),
            ("dollars_per_tbw", life.dollars_per_tbw, "$/TB", False),
        )
        name = self.data.options["profile"]
        costs = () if self.costs is None else self.costs.figures
        return [
            *known_results(figures, item="endurance", access=name),
            *known_results(costs, item="ownership", access=name),
        ]

    def samples_of(self, result: Result) -> Sequence[float | None]:
        """Return a result's samples; lifetime is inversely proportional to write amplification."""
        waf, by_round = self.waf, [row.waf for row in self._window_rows]
        if waf is None or result.item == "ownership" or result.metric == "dollars_per_tbw":
            return ()
        if result.metric == "waf":
            return by_round
        return [
            result.value * waf / waf_of_round if waf_of_round else None for waf_of_round in by_round
        ]

    def answer(self) -> str:
        """Return the lifetime and the write amplification."""
        life = self.lifetime
        if life is None:
            return self.verdict().headline
        waf = next(item.full_text for item in self.headlines())
        text = f"{self.verdict().headline.lower()}: WAF {waf}"
        if life.tbw_bytes is None:
            return f"TBW is unknown without the rated cycles of the flash; {text}"
        return (
            f"{units.size(life.tbw_bytes)} written in its life (TBW), {_years(life.days)} at "
            f"{units.size(life.bytes_per_day)} per day; {text}"
        )

    def more_results(self) -> dict[str, Any]:
        """Return the disclosures on steady state, lifetime and costs."""
        return {"steady_state": steady_stages.views_mapping(self.views)}

    def notes(self) -> tuple[str, ...]:
        """Return the TBW and DWPD definitions."""
        return (
            "TBW = user capacity x rated cycles / (write amplification x wear-levelling factor); "
            "DWPD = TBW / (user capacity x 365 x years). Retention and error rates, which JESD218 "
            "also requires at the end of life, are not considered.",
        )

    def verdict(self) -> Verdict:
        """Return the write amplification and the lifetime."""
        name, life, view = self.data.options["profile"], self.lifetime, self.views[0]
        if life is None:
            return Verdict("bad", "No round is complete", (f"{name} has no results yet.",))
        meaning = [
            f"{name}: every byte that the host writes is written {units.significant(life.waf)} "
            f"times to flash, in rounds {view.window[0]} to {view.window[-1]}."
        ]
        if life.tbw_bytes is None:
            meaning.append("The rated cycles of the flash are unknown: give --rated-cycles.")
        else:
            meaning.append(
                f"With {life.cycles:,} rated cycles the drive lasts for "
                f"{units.size(life.tbw_bytes)} written, {units.significant(life.dwpd)} drive "
                f"writes per day for {self.data.options['years']:g} years."
            )
        if view.steady:
            return Verdict("good", "Write amplification is steady", tuple(meaning))
        return Verdict("bad", "Write amplification is NOT steady", tuple(meaning))

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the write amplification, TBW, DWPD, lifetime and costs."""
        life = self.lifetime
        if life is None:
            return
        yield KeyFigure("Write amplification", units.number(life.waf, 2), "", "in the window")
        tbw, _, unit = units.size(life.tbw_bytes).partition(" ")
        used_up = "until the rated cycles are used up"
        yield KeyFigure("TBW", tbw, unit, used_up if unit else "rated cycles are unknown")
        years = f"for {self.data.options['years']:g} years"
        yield KeyFigure("DWPD", units.significant(life.dwpd), "", years)
        per_day = f"at {units.size(life.bytes_per_day)} per day"
        yield KeyFigure("Lifetime", _years(life.days), "", per_day)
        if life.dollars_per_tbw:
            per_tb = units.significant(life.dollars_per_tbw)
            yield KeyFigure("Price of endurance", per_tb, "$/TB", "of TBW")
        if self.costs is not None:
            years = f"in {self.costs.years:g} years"
            yield KeyFigure("Total cost of ownership", dollars(self.costs.total), "", years)

    def sections(self) -> Iterator[Section]:
        """Yield the write amplification, lifetime and costs."""
        if self.lifetime is not None:
            yield self._lifetime_section(self.lifetime)
        if self.costs is not None:
            yield ownership_section(self.costs)
        view, rows = self.views[0], self.data.stage_rows("rounds")
        waf = Line(
            "write amplification", [r.drive_fills for r in rows], [or_nan(r.waf) for r in rows]
        )
        figure = plots.lines(
            "waf",
            "Write amplification v drive fills",
            self.data.steps_file,
            [waf],
            Axis("Drive fills since the purge", from_zero=False),
            Axis("Write amplification"),
            alt="Write amplification of each round over drive fills",
        )
        parts = (figure, *view.window_figures(), *view.tables())
        yield section("Write amplification", view.intro, *parts)

    def _lifetime_section(self, life: Lifetime) -> Section:
        options = self.data.options
        rows = (
            ("Workload", options["profile"]),
            ("Write amplification", Quantity(life.waf, kinds.decimals(3))),
            ("Rated cycles", Quantity(life.cycles, kinds.NUMBER)),
            (
                "Wear-levelling factor (given)",
                Quantity(options["wear_levelling_factor"], kinds.plain()),
            ),
            ("Block erases so far, minimum / mean / maximum", self._wear()),
            ("TBW", Quantity(life.tbw_bytes, kinds.SIZE)),
            ("TBW rated by the vendor", Quantity(life.rated_tbw_bytes, kinds.SIZE)),
            (f"DWPD for {options['years']:g} years", Quantity(life.dwpd, kinds.digits())),
            (f"Lifetime at {units.size(life.bytes_per_day)} per day", _years(life.days)),
            ("Writes at full speed", Quantity(life.write_bytes_per_s, kinds.THROUGHPUT)),
            ("Lifetime at full speed, continuously", _years(life.days_at_full_speed)),
            ("Dollars per TB of TBW", Quantity(life.dollars_per_tbw, kinds.digits())),
        )
        return section("Lifetime", "", table("Lifetime", ("", ""), rows, data=self.results_file))

    def _wear(self) -> str:
        last = self.data.columns[max(self.data.columns)]
        if last["erases_mean"] is None:
            return units.UNKNOWN
        return f"{last['erases_min']} / {last['erases_mean']:.1f} / {last['erases_max']}"


def _years(days: float | None) -> str:
    if days is None:
        return units.UNKNOWN
    if days < 60:
        return f"{units.significant(days)} days"
    return f"{units.significant(days / DAYS_A_YEAR)} years"


# -- cost of ownership -------------------------------------------------------------------------
#
#     drives    years of service / lifetime at the data per day, rounded up, at least one
#     energy    mean power x time of service x power usage effectiveness (PUE)
#     total     drives x price + energy x price of a kWh
#
# The user supplies prices, years and PUE. Lifetime and power are measured.


DAYS_A_YEAR = 365.0
HOURS_A_YEAR = 24 * DAYS_A_YEAR
GB, TB = 1e9, 1e12


@dataclass(frozen=True)
class Ownership:
    """Costs of a drive in service; unknown or unrequested values are `None`."""

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
        """Energy consumed over the service time in kWh, or None if the power is unknown."""
        if self.watts is None:
            return None
        return self.watts * self.pue * self.years * HOURS_A_YEAR / 1e3

    @property
    def drives_dollars(self) -> float:
        """Price of all drives, or of a single drive if the lifetime is unknown."""
        return (self.drives or 1) * self.price

    @property
    def energy_dollars(self) -> float | None:
        """Energy cost in dollars, or None if the price or the power is unknown."""
        if self.energy_kwh is None or self.kwh_price is None:
            return None
        return self.energy_kwh * self.kwh_price

    @property
    def total(self) -> float:
        """Total cost of drives and energy in dollars."""
        return self.drives_dollars + (self.energy_dollars or 0.0)

    @property
    def per_gb(self) -> float:
        """Cost in dollars per GB of user capacity."""
        return self.total / (self.capacity_bytes / GB)

    @property
    def per_tb_written(self) -> float:
        """Cost in dollars per TB written by the host during the service time."""
        return self.total / (self.bytes_per_day * DAYS_A_YEAR * self.years / TB)

    @property
    def figures(self) -> tuple[tuple[str, float | None, str, bool], ...]:
        """Figures for `known_results`."""
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
    """Return the costs over `years` with `bytes_per_day` of host writes."""
    drives = None
    if days_of_life:
        drives = max(1, math.ceil(years * DAYS_A_YEAR / days_of_life - 1e-9))
    return Ownership(
        years, drives, price, watts, watts_given, pue, kwh_price, capacity_bytes, bytes_per_day
    )


def ownership_section(costs: Ownership) -> Section:
    """Return the cost table, which names the source of each value."""
    return section(
        "Total cost of ownership",
        " ".join(_intro(costs)),
        table("Total cost of ownership", ("", "", "from"), list(_rows(costs))),
    )


def _intro(costs: Ownership) -> Iterator[str]:
    yield (
        f"Costs of one drive slot in {costs.years:g} years of service at "
        f"{units.size(costs.bytes_per_day)} of writes per day. Worn-out drives are replaced."
    )
    if costs.drives is None:
        yield "The lifetime of a drive is unknown, so one drive is counted."
    if costs.kwh_price is None:
        yield "No price of a kWh was given (--kwh-price), so the total excludes energy."
    elif costs.watts is None:
        yield "The power of the drive is unknown (--watts), so the total excludes energy."
    if costs.watts is not None and not costs.watts_given:
        yield "The power is that of the workload at full speed, the maximum in service."


def _rows(costs: Ownership) -> Iterator[tuple[str, Quantity, str]]:
    lifetime = "lifetime, rounded up" if costs.drives else "lifetime is unknown"
    power = "given" if costs.watts_given else "measured at full speed"
    energy = f"power, PUE {costs.pue:g}"
    yield "Drives bought", Quantity(costs.drives or 1, kinds.NUMBER), lifetime
    yield "Price of a drive", Quantity(costs.price, _DOLLARS), "given"
    yield "Drives", Quantity(costs.drives_dollars, _DOLLARS), ""
    yield "Mean power", Quantity(costs.watts, kinds.decimals(2, "W")), power
    yield "Energy", Quantity(costs.energy_kwh, kinds.decimals(1, "kWh")), energy
    yield "Energy, price", Quantity(costs.energy_dollars, _DOLLARS), _kwh_text(costs.kwh_price)
    yield "Total cost of ownership", Quantity(costs.total, _DOLLARS), ""
    yield "Per GB of user capacity", Quantity(costs.per_gb, _CENTS), ""
    yield "Per TB that the host writes", Quantity(costs.per_tb_written, _CENTS), ""


def _kwh_text(price: float | None) -> str:
    return "not given" if price is None else f"{dollars(price, digits=4)} per kWh"


def dollars(value: float | None, *, digits: int = 2) -> str:
    """Return an amount of money as text, such as "$1,234.50"."""
    return "-" if value is None else f"${value:,.{digits}f}"


_DOLLARS = Kind(dollars, "$")
_CENTS = Kind(partial(dollars, digits=4), "$")
