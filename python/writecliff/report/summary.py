"""The summary of a WSAT run: small, stable, for programs. Schema "writecliff/wsat/1".

Documented in docs/reference/json.md. Fields may be added within version 1, never renamed or
removed; unknown is null, never a made-up figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from writecliff.report.data import RunData
from writecliff.report.disclosure import disclosures
from writecliff.report.latency import latency_mapping

if TYPE_CHECKING:
    from writecliff.procedures.steady import SteadyState
    from writecliff.report.testdata import Reported

SCHEMA = "writecliff/wsat/1"


def summary(data: RunData) -> dict[str, Any]:
    """JSON-able values only; units are in the names."""
    return {
        "schema": SCHEMA,
        **described(data),
        "steady_state": _steady_state(data),
        "figures": {
            "fob_iops": data.fob_iops,
            "steady_state_iops": data.saturated_iops if data.state == "steady" else None,
            "last_window_iops": data.saturated_iops,
            "window_to_fob_ratio": data.saturated_iops / data.fob_iops if data.fob_iops else None,
            "waf": data.waf,
            "host_write_bytes": round(data.written_bytes),
            "drive_fills": data.drive_fills,
            "device_time_ns": round(data.elapsed_ns),
            "steps": len(data.series),
        },
        "latency": _latency(data),
        **files(data),
    }


def described(data: Reported) -> dict[str, Any]:
    """The keys `run` and `device` of a summary of any test."""
    manifest = data.manifest
    device = manifest.device
    return {
        "run": {
            "name": data.name,
            "status": data.status,
            "reason": manifest.reason or None,
            "procedure": manifest.procedure,
            "edition": manifest.edition,
            "created": manifest.created,
            "updated": manifest.updated,
            "seed": manifest.seed,
            "command": list(manifest.command),
            "versions": dict(manifest.versions),
        },
        "device": {
            "target": device.target,
            "vendor": device.vendor,
            "model": device.model,
            "serial": device.serial,
            "firmware": device.firmware,
            "capacity_bytes": device.capacity_bytes,
            "simulated": device.simulated,
            "device_hash": device.device_hash,
        },
    }


def files(data: Reported) -> dict[str, Any]:
    """The keys `disclosures` and `files` of a summary of any test."""
    return {
        "disclosures": list(disclosures(data)),
        "files": {
            "manifest": "manifest.json",
            "rounds": "rounds.parquet",
            "intervals": "intervals.parquet",
            "histograms": "histograms.parquet",
        },
    }


def _steady_state(data: RunData) -> dict[str, Any]:
    tracker, state = data.tracker, data.steady
    first = tracker.first_steady
    return {
        "state": data.state.replace(" ", "_"),
        "reached": first is not None,
        "first_reached_at_round": None if first is None else first.round,
        "rounds_done": len(tracker.rounds),
        "tracking_variable": data.variable,
        "window": None if state is None else window_mapping(state),
        "window_drive_fills": None if state is None else data.window_drive_fills,
        "maybe_fresh": None if state is None else data.fresh,
    }


def window_mapping(state: SteadyState) -> dict[str, Any]:
    """The determination table of a window, also when it fails."""
    return {
        "rounds": list(state.rounds),
        "values": list(state.values),
        "average": state.average,
        "data_excursion_allowed": state.data_excursion_allowed,
        "data_excursion": state.data_excursion,
        "slope_excursion_allowed": state.slope_excursion_allowed,
        "slope_excursion": state.slope_excursion,
        "slope_per_round": state.slope,
        "intercept": state.intercept,
        "r": state.r,
        "formula": state.formula,
        "steady": state.steady,
    }


def _latency(data: RunData) -> dict[str, Any] | None:
    histogram = data.latency
    if histogram is None:
        return None
    steps = data.series.seq[data.window].tolist()
    return {
        "kind": "service",
        "source": data.latency_source,
        "steps": [steps[0], steps[-1]] if data.latency_source == "window" else None,
        **latency_mapping(histogram),
    }
