"""The report of the write saturation test: what is shown, in which order, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.report import figures, wsat_figures
from writecliff.report.assembly import assembled
from writecliff.report.csvs import csv_text, histogram_csv
from writecliff.report.data import RunData, load
from writecliff.report.header import NOT_APPLICABLE, header
from writecliff.report.latency import NINES, latency_table, latency_unit, service_note
from writecliff.report.model import DataFile, Figure, KeyFigure, ReportModel, Section, drawn
from writecliff.report.parts import determination
from writecliff.report.style import house_style
from writecliff.report.summary import summary
from writecliff.report.wsat_text import drifting, test_parameters, verdict
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from writecliff.report.data import Numbers

STEPS_CSV = "steps.csv"
WINDOW_CSV = "samples.csv"
HISTOGRAM_CSV = "histogram.csv"


def report(run: RunDirectory) -> ReportModel:
    """The report of a WSAT run. Raises StoreError: another test's run, or nothing measured yet."""
    data = load(run)
    box = verdict(data)
    flag = "" if data.state == "steady" else " - NOT STEADY STATE"
    with house_style():
        sections = _sections(data)
    return assembled(
        data,
        title=f"Write Saturation Test{flag}",
        header=header(data, NOT_APPLICABLE, test_parameters(data)),
        verdict=box,
        key_figures=_key_figures(data),
        histogram=data.latency,
        latency_note=_latency_note(data),
        sections=sections,
        more_notes=_more_notes(data),
        files=_data_files(data),
        summary=summary(data),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    return summary(load(run))


def _key_figures(data: RunData) -> tuple[KeyFigure, ...]:
    steady = data.state == "steady"
    label = "Steady-state IOPS" if steady else "IOPS, not steady"
    samples = len(data.tracker.rounds)
    source = f"average of {min(samples, 5)} samples" if samples > 1 else "last step"
    if steady and data.steady is not None and (drift := drifting(data.steady)):
        source += f", still {drift}"
    fob_s = data.fob_ns / 1e9
    fob_time = "minute" if round(fob_s) == 60 else f"{fob_s:.3g} s"
    ratio = data.saturated_iops / data.fob_iops if data.fob_iops else None
    amount = units.size(data.written_bytes).rpartition(" ")
    return (
        KeyFigure(
            "FOB IOPS", units.number(data.fob_iops), "", f"fresh out of box: first {fob_time}"
        ),
        KeyFigure(label, units.number(data.saturated_iops), "", source),
        KeyFigure(
            "Share of FOB",
            units.percent(ratio).removesuffix(" %"),
            "%",
            f"of the IOPS of the first {fob_time}",
        ),
        KeyFigure(
            "Write amplification",
            units.number(data.waf, 2),
            "",
            "in the window" if data.waf is not None else "the drive does not tell",
        ),
        KeyFigure("Written", amount[0], amount[2], f"in {units.duration(data.elapsed_ns)}"),
        KeyFigure(
            "Drive fills", units.significant(data.drive_fills), "", "times the user capacity"
        ),
    )


def _sections(data: RunData) -> tuple[Section, ...]:
    return (
        _saturation(data),
        _steady_state(data),
        _amplification(data),
        _response_times(data),
    )


def _saturation(data: RunData) -> Section:
    plots: list[Figure] = []
    for over, draw, title in (
        ("time", wsat_figures.iops_over_time, "time"),
        ("volume", wsat_figures.iops_over_volume, "volume written"),
    ):
        for log in (False, True):
            kind = "log" if log else "linear"
            plots += drawn(
                f"iops-{over}-{kind}",
                f"WSAT IOPS ({kind}) v {title}",
                draw(f"iops-{over}-{kind}", data, log=log),
                STEPS_CSV,
                f"IOPS of every step over {title}",
            )
    seconds = (data.series.end_ns - data.series.start_ns)[0] / 1e9
    return Section(
        "Saturation",
        f"One point a step of {seconds:.3g} s."
        + (
            " Shaded: from the first to the last sample of the measurement window."
            if data.decision is not None
            else ""
        ),
        tuple(plots),
    )


def _steady_state(data: RunData) -> Section:
    tracker, state = data.tracker, data.steady
    plots: list[Figure] = []
    if state is not None:
        title = f"Steady-state measurement window, rounds {state.rounds[0]}-{state.rounds[-1]}"
        plots += drawn(
            "steady-window",
            title if state.steady else f"{title} - NOT STEADY STATE",
            figures.steady_window("steady-window", state, "IOPS"),
            WINDOW_CSV,
            "Samples of the window with average, 110 %, 90 % and the least-squares line",
        )
    if tracker.rounds:
        plots += drawn(
            "convergence",
            "Steady-state convergence",
            figures.convergence(
                "convergence",
                tracker.rounds,
                next(iter(tracker.values.values())),
                state.rounds if state is not None else (),
                "IOPS",
            ),
            WINDOW_CSV,
            "The steady-state sample of each round",
        )
    return Section(
        "Steady state",
        f"Tracking variable: IOPS of {data.load} in the sample step of each round "
        f"({data.manifest.setup.get('round', 'last step of a round')}).",
        tuple(plots),
        (determination(state),) if state is not None else (),
    )


def _amplification(data: RunData) -> Section:
    return Section(
        "Write amplification and latency over the run",
        "",
        drawn(
            "waf",
            "Write amplification v drive fills",
            wsat_figures.write_amplification("waf", data),
            STEPS_CSV,
            "Write amplification of every step over drive fills",
        )
        + drawn(
            "latency-time",
            "Latency v time (log)",
            wsat_figures.latency_over_time("latency-time", data),
            STEPS_CSV,
            "Average, 99.9 %, 99.99 % and maximum latency of every step over time",
        ),
    )


def _latency_note(data: RunData) -> str:
    if data.latency_source == "rth":
        source = "the response-time histogram phase after the rounds"
    elif data.decision is not None:
        source = "all steps from the first to the last sample of the window"
    elif data.tracker.rounds:
        source = "all steps from the first to the last sample"
    else:
        source = "the last step"
    return service_note(data.latency, f": {source}", otherwise="No latencies were measured.")


def _response_times(data: RunData) -> Section:
    histogram = data.latency
    if histogram is None:
        return Section("Response times", "")
    longest = units.latency(histogram.max_ns, latency_unit(histogram))
    return Section(
        "Response times",
        f"{_latency_note(data)} Percentiles are of the merged histograms, as upper bounds that "
        "never exceed the maximum.",
        drawn(
            "histogram",
            f"Response-time histogram (maximum {longest})",
            figures.response_time_histogram("histogram", histogram),
            HISTOGRAM_CSV,
            "Number of I/Os by response time with average, nines and maximum",
        )
        + drawn(
            "confidence",
            "Confidence level plot",
            figures.confidence("confidence", histogram),
            HISTOGRAM_CSV,
            "Cumulative share of I/Os over response time",
        ),
        (latency_table(histogram),),
    )


def _more_notes(data: RunData) -> tuple[str, ...]:
    unknown = "The drive does not report NAND writes, so write amplification is unknown."
    return (unknown,) if data.waf is None else ()


def _data_files(data: RunData) -> tuple[DataFile, ...]:
    files = [DataFile(STEPS_CSV, _steps_csv(data))]
    if data.tracker.rounds:
        rows = zip(data.tracker.rounds, next(iter(data.tracker.values.values())), strict=True)
        files.append(DataFile(WINDOW_CSV, csv_text(("round", "iops"), rows)))
    if data.latency is not None:
        files.append(DataFile(HISTOGRAM_CSV, histogram_csv(data.latency)))
    return tuple(files)


def _steps_csv(data: RunData) -> str:
    s = data.series
    columns: dict[str, Sequence[float | int | None]] = {
        "step": s.seq.tolist(),
        "round": s.round.tolist(),
        "sample": s.sample.astype(int).tolist(),
        "start_ns": _whole(s.start_ns),
        "end_ns": _whole(s.end_ns),
        "written_bytes": _whole(s.written_bytes),
        "drive_fills": (s.written_bytes / data.capacity_bytes).tolist(),
        "iops": s.iops.tolist(),
        "interval_iops_min": s.iops_low.tolist(),
        "interval_iops_max": s.iops_high.tolist(),
        "latency_mean_ns": s.latency_mean_ns.tolist(),
        **{
            f"latency_p{units.nines(q).removesuffix(' %')}_ns": _whole(s.latency_quantile_ns[q])
            for q in NINES
        },
        "latency_max_ns": _whole(s.latency_max_ns),
        "waf": s.waf.tolist(),
    }
    return csv_text(columns.keys(), zip(*columns.values(), strict=True))


def _whole(column: Numbers) -> list[int | None]:
    return [round(value) if np.isfinite(value) else None for value in column.tolist()]
