"""The words of the WSAT report: the verdict in plain terms, its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from writecliff import units
from writecliff.procedures.steady import WINDOW_ROUNDS
from writecliff.report.data import FOB_DRIVE_FILLS
from writecliff.report.header import NOT_APPLICABLE, Rows, amount, setup
from writecliff.report.model import Verdict

if TYPE_CHECKING:
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
        f"{kind} ({how}) was {_loaded(data)} for {units.duration(data.elapsed_ns)}: "
        f"{units.size(data.written_bytes)}, {units.significant(data.drive_fills)} times its "
        f"capacity.{ended}"
    )


def _loaded(data: RunData) -> str:
    if data.load == "random 4 KiB writes":
        return "written at random"
    note = data.manifest.setup.get("load_note")
    return f"loaded with {data.load}{f' ({note})' if note else ''}"


def _steady_meaning(data: RunData, state: SteadyState) -> str:
    share = data.saturated_iops / data.fob_iops if data.fob_iops else None
    return (
        f"Over these {len(state.rounds)} samples the rate spread by "
        f"{units.pct(state.data_excursion_pct)} of its average (20 % are allowed) and drifted by "
        f"{units.pct(state.slope_excursion_pct)} (10 % are allowed). The average is "
        f"{units.number(state.average)} IOPS of {data.load}, {units.percent(share, 0)} of "
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
        failed.append(
            f"spread by {units.pct(state.data_excursion_pct)} of its average (allowed: 20 %)"
        )
    if not state.slope_ok:
        failed.append(f"drifted by {units.pct(state.slope_excursion_pct)} (allowed: 10 %)")
    return (
        f"Over the last {len(state.rounds)} samples the rate {' and '.join(failed)}. {_TRANSITION}"
    )


def test_parameters(data: RunData) -> Rows:
    """The fourth column of the header block in its variant for this test."""
    rth = data.latency_source == "rth"
    return (
        ("Data Pattern", setup(data, "data_pattern")),
        ("AR & Amount", amount(data)),
        ("Test Stimulus 1", setup(data, "test_stimulus")),
        ("TOIO - TC/QD", setup(data, "toio")),
        ("Steady State", steady_text(data)),
        ("Time", units.duration(data.elapsed_ns)),
        ("Test Stimulus 2", f"{setup(data, 'test_stimulus')} (RTH)" if rth else "None"),
        ("TOIO - TC/QD", setup(data, "toio") if rth else NOT_APPLICABLE),
        ("Steady State", NOT_APPLICABLE),
        ("Time", units.duration(data.rth_elapsed_ns) if rth else NOT_APPLICABLE),
    )


def steady_text(data: RunData) -> str:
    """The rounds of the window as the standard prints them, or why there are none."""
    if data.decision is None:
        return f"undecided ({len(data.tracker.rounds)} of 5 rounds)"
    rounds = data.decision.rounds
    text = f"Rounds {rounds[0]} - {rounds[-1]}"
    if data.state == "left":
        return f"{text}, then left"
    return text if data.state == "steady" else "NOT ACHIEVED"
