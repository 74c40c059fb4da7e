"""The report of the endurance test: write amplification, and the lifetime that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from writecliff import units
from writecliff.procedures.campaigns.endurance import SPEED
from writecliff.report import loops, plots
from writecliff.report.axes import Axis, Line
from writecliff.report.campaigns.common import (
    RESULTS_CSV,
    Result,
    page,
    results_file,
    summary,
)
from writecliff.report.loops import STEPS_CSV, Loop
from writecliff.report.model import KeyFigure, ReportModel, Section, Table, Verdict, drawn
from writecliff.report.style import house_style
from writecliff.report.testdata import TestData, load
from writecliff.store.rundir import RunDirectory

DAYS_A_YEAR = 365.0
TB = 1e12


@dataclass(frozen=True)
class Lifetime:
    """What follows from the measured write amplification. None: not known.

    TBW and DWPD are in the terms of JESD218: host data until the rated cycles of the flash are
    used up, of the user capacity; retention and failure rates are not looked at.
    """

    waf: float
    steady: bool
    cycles: int | None
    tbw_bytes: float | None
    dwpd: float | None
    days: float | None  # at the given data a day
    bytes_per_day: float
    write_bytes_per_s: float | None  # of the workload at full speed
    days_at_full_speed: float | None
    rated_tbw_bytes: int | None
    dollars_per_tbw: float | None


def lifetime(data: TestData) -> Lifetime | None:
    """None before the first round is complete."""
    loop = Loop(data.stage("rounds"))
    options, device = data.manifest.options, data.manifest.device
    waf = _waf(loop, options.get("waf"))
    if waf is None:
        return None
    cycles = options.get("rated_cycles") or device.rated_cycles
    tbw = None
    if cycles:
        tbw = data.capacity_bytes * cycles / (waf * options["wear_levelling_factor"])
    per_day = (options.get("gb_per_day") or 0) * 1e9 or float(data.capacity_bytes)
    stage = data.stage(SPEED)
    speed = None
    if stage is not None and stage.rows and stage.rows[0].elapsed_ns:
        row = stage.rows[0]
        speed = row.host_write_bytes / (row.elapsed_ns / 1e9)
    price = options.get("price")
    return Lifetime(
        waf=waf,
        steady=loop.steady,
        cycles=cycles,
        tbw_bytes=tbw,
        dwpd=tbw and tbw / (data.capacity_bytes * DAYS_A_YEAR * options["years"]),
        days=tbw and tbw / per_day,
        bytes_per_day=per_day,
        write_bytes_per_s=speed,
        days_at_full_speed=tbw / speed / 86400 if tbw and speed else None,
        rated_tbw_bytes=device.rated_tbw_bytes,
        dollars_per_tbw=price / (tbw / TB) if tbw and price else None,
    )


def _waf(loop: Loop, assumed: float | None) -> float | None:
    """Of the window: all that was written to flash over all that the host wrote."""
    rows = [row for row in loop.stage.rows if row.round in loop.window] if loop.stage else []
    if not rows:
        return None
    host = sum(row.host_write_bytes for row in rows)
    known = [row for row in rows if row.waf is not None]
    if len(known) < len(rows):
        return assumed
    return sum((row.waf or 0.0) * row.host_write_bytes for row in rows) / host if host else None


def _results(data: TestData, found: Lifetime | None) -> list[Result]:
    if found is None:
        return []
    place: dict[str, Any] = {"item": "endurance", "access": data.manifest.options["profile"]}
    figures = (
        ("waf", found.waf, "", False),
        ("tbw", None if found.tbw_bytes is None else found.tbw_bytes / TB, "TB", True),
        ("dwpd", found.dwpd, "drive writes a day", True),
        ("lifetime", None if found.days is None else found.days / DAYS_A_YEAR, "years", True),
        ("dollars_per_tbw", found.dollars_per_tbw, "$/TB", False),
    )
    return [
        Result(metric=name, value=value, unit=unit, higher_is_better=better, **place)
        for name, value, unit, better in figures
        if value is not None
    ]


def report(run: RunDirectory) -> ReportModel:
    """The report of a run. Raises StoreError: damaged, or nothing measured yet."""
    data = load(run)
    found = lifetime(data)
    loop = Loop(data.stage("rounds"))
    results = _results(data, found)
    with house_style():
        sections = [_lifetime_section(data, found), *_amplification(data, loop)]
    return page(
        data,
        verdict=_verdict(data, found, loop),
        key_figures=_key_figures(data, found),
        sections=sections,
        summary=_summary(data, results),
        files=(results_file(results), *loops.data_files(data, (loop,))[1:]),
        more_notes=(
            "TBW = user capacity x rated cycles / (write amplification x wear-levelling factor); "
            "DWPD = TBW / (user capacity x 365 x years). Retention and error rates, which JESD218 "
            "also wants at the end of life, are not looked at.",
        ),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    data = load(run)
    return _summary(data, _results(data, lifetime(data)))


def _summary(data: TestData, results: Sequence[Result]) -> dict[str, Any]:
    return summary(data, results, steady_state=loops.steady_mapping([Loop(data.stage("rounds"))]))


def _years(days: float | None) -> str:
    if days is None:
        return units.UNKNOWN
    return f"{units.significant(days)} days" if days < 60 else (
        f"{units.significant(days / DAYS_A_YEAR)} years"
    )  # fmt: skip


def _verdict(data: TestData, found: Lifetime | None, loop: Loop) -> Verdict:
    name = data.manifest.options["profile"]
    if found is None:
        return Verdict("bad", "No round is complete", (f"Nothing is known of {name} yet.",))
    meaning = [
        f"{name}: every byte that the host writes is written {units.significant(found.waf)} times "
        f"to flash, {loop.source[:1].lower()}{loop.source[1:]}"
    ]
    if found.tbw_bytes is None:
        meaning.append("The rated cycles of the flash are not known: give --rated-cycles.")
    else:
        meaning.append(
            f"With {found.cycles:,} rated cycles that is a life of "
            f"{units.size(found.tbw_bytes)} written, {units.significant(found.dwpd)} drive writes "
            f"a day for {data.manifest.options['years']:g} years."
        )
    if found.steady:
        return Verdict("good", "Write amplification is steady", tuple(meaning))
    return Verdict("bad", "Write amplification is NOT steady", tuple(meaning))


def _key_figures(data: TestData, found: Lifetime | None) -> tuple[KeyFigure, ...]:
    if found is None:
        return ()
    tbw = units.size(found.tbw_bytes).rpartition(" ")
    dollars = units.significant(found.dollars_per_tbw)
    return (
        KeyFigure("Write amplification", units.number(found.waf, 2), "", "in the window"),
        KeyFigure("TBW", tbw[0], tbw[2], "until the rated cycles are used up")
        if found.tbw_bytes
        else KeyFigure("TBW", units.UNKNOWN, "", "rated cycles are not known"),
        KeyFigure("DWPD", units.significant(found.dwpd), "",
                  f"for {data.manifest.options['years']:g} years"),
        KeyFigure("Lifetime", _years(found.days), "",
                  f"at {units.size(found.bytes_per_day)} a day"),
        *((KeyFigure("Price of endurance", dollars, "$/TB", "of TBW"),)
          if found.dollars_per_tbw else ()),
    )  # fmt: skip


def _lifetime_section(data: TestData, found: Lifetime | None) -> Section:
    if found is None:
        return Section("Lifetime", "")
    options = data.manifest.options
    spread = _wear(data)
    speed = found.write_bytes_per_s
    rows = (
        ("Workload", options["profile"]),
        ("Write amplification", units.number(found.waf, 3)),
        ("Rated cycles", f"{found.cycles:,}" if found.cycles else units.UNKNOWN),
        ("Wear-levelling factor (given)", f"{options['wear_levelling_factor']:g}"),
        ("Erases of the blocks so far, least / mean / most", spread),
        ("TBW", units.size(found.tbw_bytes)),
        ("TBW as the maker rates it", units.size(found.rated_tbw_bytes)),
        (f"DWPD for {options['years']:g} years", units.significant(found.dwpd)),
        (f"Lifetime at {units.size(found.bytes_per_day)} a day", _years(found.days)),
        ("Writes at full speed", units.UNKNOWN if speed is None else f"{speed / 1e6:,.1f} MB/s"),
        ("Lifetime at full speed, day and night", _years(found.days_at_full_speed)),
        ("Dollars per TB of TBW", units.significant(found.dollars_per_tbw)),
    )
    table = Table("Lifetime", ("", ""), rows, ("left", "right"), data=RESULTS_CSV)
    return Section("Lifetime", "", tables=(table,))


def _wear(data: TestData) -> str:
    rows = data.run.query(
        "select erases_min, erases_mean, erases_max from rounds order by seq desc limit 1"
    ).to_pylist()
    if not rows or rows[0]["erases_mean"] is None:
        return units.UNKNOWN
    row = rows[0]
    return f"{row['erases_min']} / {row['erases_mean']:.1f} / {row['erases_max']}"


def _amplification(data: TestData, loop: Loop) -> list[Section]:
    rows = list(loop.stage.rows) if loop.stage is not None else []
    fills = [row.drive_fills for row in rows]
    values = [float("nan") if row.waf is None else row.waf for row in rows]
    svg = plots.lines(
        "waf",
        [Line("write amplification", fills, values)],
        Axis("Drive fills since the purge", from_zero=False),
        Axis("Write amplification"),
        description="Write amplification of each round over drive fills",
    )
    figure = drawn("waf", "Write amplification v drive fills", svg, STEPS_CSV,
                   "Write amplification of each round")  # fmt: skip
    return [
        Section(
            "Write amplification",
            loops.window_intro(loop),
            (*figure, *loops.window_figures(loop)),
            loops.determinations(loop),
        )
    ]
