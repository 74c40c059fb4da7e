"""The words of the WSAT report: the verdict in plain terms, determination and latency tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from writecliff.procedures.steady import WINDOW_ROUNDS
from writecliff.report import units
from writecliff.report.data import FOB_DRIVE_FILLS
from writecliff.report.figures import NINES
from writecliff.report.model import KeyFigure, Table, Verdict

if TYPE_CHECKING:
    from writecliff._native import Histogram, Quantile
    from writecliff.engines.base import PurgeReport
    from writecliff.procedures.steady import SteadyState
    from writecliff.report.data import RunData

DRIFT_R, DRIFT_PCT = 0.9, 2.0
_TRANSITION = (
    "The figures below are of a drive in transition and must not be quoted as sustained "
    "performance."
)


def verdict(data: RunData) -> Verdict:
    """The first box of the page."""
    began = _began(data)
    state = data.steady
    rounds = "" if state is None else f"rounds {state.rounds[0]} to {state.rounds[-1]}"
    match data.state:
        case "steady" if data.fresh:
            assert state is not None
            return Verdict(
                "warning",
                f"Rule met in {rounds}, but the drive may still be fresh",
                (
                    began,
                    f"The window begins after {units.significant(data.window_drive_fills)} drive "
                    f"fills; fresh-out-of-box behaviour lasts until about {FOB_DRIVE_FILLS:g}. "
                    f"{units.number(state.average)} IOPS meet the steady-state rule, but they must "
                    "not be quoted as sustained performance before the drive is filled further.",
                    *_first_note(data),
                ),
            )
        case "steady":
            assert state is not None
            drift = drifting(state)
            return Verdict(
                "good",
                f"Steady state reached in {rounds}" + (f", still {drift}" if drift else ""),
                (began, _steady_meaning(data, state), *_first_note(data)),
            )
        case "left":
            return Verdict(
                "warning",
                f"NOT STEADY STATE at the end: reached in {rounds}, then left again",
                (
                    began,
                    f"The samples of {rounds} met the steady-state rule, the last ones do not: the "
                    "figures below are those of that window and not of the drive's final state.",
                ),
            )
        case "undecided":
            done = len(data.tracker.rounds)
            return Verdict(
                "bad",
                "NOT STEADY STATE: too early to tell",
                (
                    began,
                    f"The rule needs {WINDOW_ROUNDS} rounds, this run has {done}. {_TRANSITION}",
                ),
            )
        case _:
            assert state is not None
            return Verdict(
                "bad",
                f"NOT STEADY STATE: NOT ACHIEVED in {len(data.tracker.rounds)} rounds",
                (began, _unsteady_meaning(state)),
            )


def _began(data: RunData) -> str:
    purge = data.manifest.purge
    how = "in an unknown state" if purge is None else f"purge: {_purge_method(purge)}"
    reason = data.manifest.reason
    ended = f" The run ended with: {reason}." if data.status == "complete" and reason else ""
    kind = "The simulated drive" if data.manifest.device.simulated else "The drive"
    return (
        f"{kind} ({how}) was written at random for {units.duration(data.elapsed_ns)}: "
        f"{units.size(data.written_bytes)}, {units.significant(data.drive_fills)} times its "
        f"capacity.{ended}"
    )


def _steady_meaning(data: RunData, state: SteadyState) -> str:
    share = data.saturated_iops / data.fob_iops if data.fob_iops else None
    return (
        f"Over these {len(state.rounds)} samples the rate spread by "
        f"{_pct(state.data_excursion_pct)} of its average (20 % are allowed) and drifted by "
        f"{_pct(state.slope_excursion_pct)} (10 % are allowed). The average is "
        f"{units.number(state.average)} IOPS of random 4 KiB writes, {units.percent(share, 0)} of "
        f"what the drive did fresh out of the box.{_drift_meaning(state)}"
    )


def drifting(state: SteadyState) -> Literal["falling", "rising"] | None:
    """Whether the samples of a window still move one way, although the rule allows it.

    A line through five points with |r| of 0.9 or more is chance in fewer than one case in 25
    (t test with three degrees of freedom); an excursion below 2 % is less than two runs differ by.
    """
    if state.r is None or abs(state.r) < DRIFT_R or (state.slope_excursion_pct or 0) < DRIFT_PCT:
        return None
    return "falling" if state.slope < 0 else "rising"


def _drift_meaning(state: SteadyState) -> str:
    drift = drifting(state)
    if drift is None:
        return ""
    direction, end = ("fall", "lower") if drift == "falling" else ("rise", "higher")
    share = 100 * abs(state.slope) / state.average
    return (
        f" The samples still {direction} from round to round, by {share:.2g} % on average: the "
        f"rule allows it, but a longer run would end {end}, and the average is not the drive's "
        "final rate."
    )


def _purge_method(purge: PurgeReport) -> str:
    return purge.method.replace(" (", ", ").removesuffix(")")


def _first_note(data: RunData) -> tuple[str, ...]:
    """Where the rule was met first, if the run went on from there."""
    first = data.tracker.first_steady
    if first is None or data.decision is None or first.round == data.decision.round:
        return ()
    return (
        f"The rule was first met in rounds {first.rounds[0]} to {first.rounds[-1]}; the run went "
        "on, and the last window that meets it is reported.",
    )


def _unsteady_meaning(state: SteadyState) -> str:
    failed = []
    if not state.data_ok:
        failed.append(f"spread by {_pct(state.data_excursion_pct)} of its average (allowed: 20 %)")
    if not state.slope_ok:
        failed.append(f"drifted by {_pct(state.slope_excursion_pct)} (allowed: 10 %)")
    return (
        f"Over the last {len(state.rounds)} samples the rate {' and '.join(failed)}. {_TRANSITION}"
    )


def _pct(value: float | None) -> str:
    return units.UNKNOWN if value is None else f"{value:.2f} %"


def determination(state: SteadyState) -> Table:
    """The steady-state determination table of the standard, with allowed and measured values."""

    def row(name: str, allowed: str, measured: str, ok: bool | None) -> tuple[str, ...]:
        return (name, allowed, measured, {True: "met", False: "NOT met", None: ""}[ok])

    r = units.UNKNOWN if state.r is None else f"{state.r:.4f}"
    return Table(
        "Steady-state determination",
        ("Quantity", "Allowed", "Measured", ""),
        (
            row("Rounds", "", f"{state.rounds[0]} - {state.rounds[-1]}", None),
            row("Average", "", f"{units.number(state.average, 1)} IOPS", None),
            row(
                "Data excursion, max - min (20 % of average)",
                f"{units.number(state.data_excursion_allowed, 1)} IOPS",
                f"{units.number(state.data_excursion, 1)} IOPS",
                state.data_ok,
            ),
            row(
                "Slope excursion, |slope| x 4 (10 % of average)",
                f"{units.number(state.slope_excursion_allowed, 1)} IOPS",
                f"{units.number(state.slope_excursion, 1)} IOPS",
                state.slope_ok,
            ),
            row("Least-squares line, R = round", "", state.formula, None),
            row("Correlation coefficient r", "", r, None),
        ),
        ("left", "right", "right", "left"),
    )


def latency_table(histogram: Histogram) -> Table:
    """Average, nines and maximum in one unit, with what supports them."""
    unit = units.common_unit([histogram.mean_ns or 1.0], units.LATENCY_UNITS)
    rows = [("Average", units.latency(histogram.mean_ns, unit), "", "")]
    for q in NINES:
        quantile = histogram.quantile(q)
        beyond = units.number(histogram.count * (1 - q))
        if quantile.value_ns is None:
            rows.append((units.nines(q), units.NOT_ENOUGH, "", beyond))
            continue
        interval = _interval(quantile, unit)
        rows.append((units.nines(q), units.latency(quantile.value_ns, unit), interval, beyond))
    rows.append(("Maximum", units.latency(histogram.max_ns, unit), "", ""))
    return Table(
        "Response times",
        ("", "Response time", "95 % confidence interval", "I/Os beyond"),
        tuple(rows),
        ("left", "right", "right", "right"),
        f"{histogram.count:,} I/Os.",
    )


def _interval(quantile: Quantile, unit: units.Unit) -> str:
    """The confidence interval; a sample that is too small bounds it on one side or not at all."""
    low, high = quantile.low_ns, quantile.high_ns
    if low is None:
        return units.UNKNOWN if high is None else f"up to {units.latency(high, unit)}"
    if high is None:
        return f"{units.latency(low, unit)} or more"
    return f"{units.latency(low, unit)} to {units.latency(high, unit)}"


def latency_figures(histogram: Histogram) -> tuple[KeyFigure, ...]:
    """Average, nines and maximum, all in one unit, for the top of the page."""
    unit = units.common_unit([histogram.mean_ns or 1.0], units.LATENCY_UNITS)

    def figure(label: str, value_ns: float | None, note: str) -> KeyFigure:
        if value_ns is None:
            return KeyFigure(label, units.UNKNOWN, "", units.NOT_ENOUGH)
        number, _, name = units.latency(value_ns, unit).rpartition(" ")
        return KeyFigure(label, number, name, note)

    figures = [figure("Average latency", histogram.mean_ns, "")]
    for q in NINES:
        quantile = histogram.quantile(q)
        beyond = f"{units.number(quantile.count * (1 - q))} I/Os beyond"
        figures.append(figure(units.nines(q), quantile.value_ns, beyond))
    figures.append(figure("Maximum", histogram.max_ns, f"of {units.number(histogram.count)} I/Os"))
    return tuple(figures)
