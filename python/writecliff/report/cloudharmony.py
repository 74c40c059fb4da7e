"""One row of a run in the columns of cloudharmony's block-storage, which data lakes still hold.

That tool (github.com/cloudharmony/block-storage, PTS-E 1.1; last commit 9b15364) saves a table a
test: the common columns and the test's own, sorted by name. The row here has the same columns in
the same order, and its units, which the names do not tell:

    iops_*, wsat_iops, hir_*   whole IOPS, mean of the rounds of the window (wait states: of all)
    throughput_*               MiB/s (it calls them MB/s), mean of the window
    latency_*_mean, _max       ms; the mean over the window's rounds of their averages and of their
                               maxima - so `_max` is not the maximum, which the report has
    ss_*                       of the first tracking variable, empty unless it was steady; IOPS,
                               MiB/s or ms
    target_size_gb             GiB, rounded

What is not known is left empty: a guess would be found by no one later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from writecliff.report.csvs import Value, csv_text
from writecliff.report.testdata import TestData, load

if TYPE_CHECKING:
    from writecliff.procedures.model import StepRow
    from writecliff.procedures.steady import SteadyState
    from writecliff.store.rundir import RunDirectory

_MIB, _GIB = 2**20, 2**30
_META = """
    burst compute_service compute_service_id cpu cpu_cache cpu_cores cpu_speed drive_interface
    drive_model drive_type encryption host_cache hostname instance_id memory memory_gb memory_mb
    os_info piops provider provider_id pthroughput region resource_id run_id storage_config
    storage_vol_info test_id test_sw
"""
_STEADY = """
    average largest_data_excursion largest_slope_excursion linear_fit_formula max_data_excursion
    max_rounds max_slope_excursion rounds slope start stop verification y_intercept
"""
_OTHERS = """
    active_range benchmark_version collectd_rrd fio_version iteration meltdown_vulnerable
    noprecondition noprecondition_rotational nopurge nopurge_ignore norandom nosecureerase notrim
    nozerofill nozerofill_non_rotational oio_per_thread precondition_once precondition_passes
    purge_methods purge_once report_pdf report_zip skip_blocksize skip_workload
    spectre_meltdown_report spectre_variant1_vulnerable spectre_variant2_vulnerable target
    target_count target_size_gb target_sizes test test_started test_stopped threads threads_total
    timeout wd_sleep_between wd_test_duration
"""
_IOPS_SIZES = {1 << 20: "1m", **{k << 10: f"{k}k" for k in (128, 64, 32, 16, 8, 4)}, 512: "512b"}
_TP_SIZES = {1 << 20: "1024k", 128 << 10: "128k"}
_LAT_SIZES = {16 << 10: "16k", 8 << 10: "8k", 4 << 10: "4k", 512: "512b"}
_MIXES = ("100_0", "95_5", "65_35", "50_50", "35_65", "5_95", "0_100")
_LAT_MIXES = ("100_0", "65_35", "0_100")
_WAITS_S = (5, 10, 15, 25, 50)
# The last is spelt so in its tables.
_HIR = (
    "hir_steady_state_iops", "hir_wait_5s_iops", "hir_wait_10s_iops", "hir_wait_15s_iops",
    "hir_wait_25s_iops", "hir_ait_50s_iops",
)  # fmt: skip
# Their names of our tests, where they differ.
_TESTS = {"tp": "throughput", "lat": "latency"}
_UNITS = {"IOPS": 1.0, "B/s": 1 / _MIB, "MB/s": 1e6 / _MIB, "ns": 1e-6, "µs": 1e-3, "ms": 1.0}


def columns(test: str) -> list[str]:
    """The columns of their table `test` in its order; of a test they do not have, the common."""
    names = [*_OTHERS.split(), *(f"meta_{name}" for name in _META.split())]
    if test != "wsat":
        names += [f"ss_{name}" for name in _STEADY.split()]
    match test:
        case "iops":
            names += [f"iops_{size}_{mix}" for size in _IOPS_SIZES.values() for mix in _MIXES]
        case "throughput":
            names += [f"throughput_{s}_{mix}" for s in _TP_SIZES.values() for mix in _ends(_MIXES)]
        case "latency":
            names += [
                f"latency_{size}_{mix}_{kind}"
                for size in _LAT_SIZES.values()
                for mix in _LAT_MIXES
                for kind in ("max", "mean")
            ]
        case "wsat":
            names.append("wsat_iops")
        case "hir":
            names += _HIR
    return sorted(names)


def _ends(mixes: tuple[str, ...]) -> tuple[str, str]:
    return mixes[0], mixes[-1]


def cloudharmony_csv(run: RunDirectory) -> str:
    """A header line and the row of the run. Raises StoreError: nothing measured yet."""
    data = load(run)
    test = _TESTS.get(data.manifest.procedure, data.manifest.procedure)
    row = {**_common(data, test), **_steady(data), **_results(data, test)}
    names = columns(test)
    return csv_text(names, [[row.get(name) for name in names]])


def _common(data: TestData, test: str) -> dict[str, Value]:
    manifest = data.manifest
    device, options = manifest.device, manifest.options
    simulated = device.simulated
    threads = options.get("threads")
    row: dict[str, Value] = {
        "fio_version": None if simulated else manifest.versions.get("fio"),
        "meta_drive_interface": device.interface,
        "meta_drive_model": device.model,
        "meta_os_info": None if simulated else manifest.host.get("operating_system"),
        "meta_cpu": None if simulated else manifest.host.get("cpu"),
        "meta_memory": None if simulated else manifest.host.get("memory"),
        "meta_test_id": data.name,
        "meta_test_sw": f"writecliff {manifest.versions.get('writecliff') or ''}".strip(),
        "active_range": _percent(manifest.setup.get("active_range")),
        "oio_per_thread": options.get("queue_depth"),
        "purge_methods": manifest.purge.method if manifest.purge is not None else None,
        "target": device.target,
        "target_count": 1,
        "target_size_gb": max(round(device.capacity_bytes / _GIB), 1),
        "test": test,
        "test_started": _date(manifest.created),
        "test_stopped": _date(manifest.updated) if data.status == "complete" else None,
        "threads": threads,
        "threads_total": threads,
    }
    return row


def _percent(text: str | None) -> int | None:
    """ "100%" as 100."""
    digits = (text or "").rstrip("% ")
    return int(digits) if digits.isdigit() else None


def _date(iso: str) -> str:
    return datetime.fromisoformat(iso).strftime("%Y-%m-%d %H:%M:%S")


def _steady(data: TestData) -> dict[str, Value]:
    """Of the first stage that was steady, in its first tracking variable."""
    for stage in data.history.stages.values():
        decision = stage.decision
        if decision is None or not decision.steady:
            continue
        variable = stage.tracking[0]
        factor = _UNITS.get(variable.unit)
        if factor is None:
            return {}
        state = decision.states[variable.name]
        return {"ss_max_rounds": stage.max_rounds, **_determination(state, factor)}
    return {}


def _determination(state: SteadyState, factor: float) -> dict[str, Value]:
    slope, intercept = round(state.slope * factor, 4), round(state.intercept * factor, 4)
    return {
        "ss_average": round(state.average * factor, 4),
        "ss_max_data_excursion": round(state.data_excursion_allowed * factor, 4),
        "ss_largest_data_excursion": round(state.data_excursion * factor, 4),
        "ss_max_slope_excursion": round(state.slope_excursion_allowed * factor, 4),
        "ss_largest_slope_excursion": round(state.slope_excursion * factor, 4),
        "ss_slope": slope,
        "ss_y_intercept": intercept,
        "ss_linear_fit_formula": f"{slope:.9g} * R + {intercept:.9g}",
        "ss_start": state.rounds[0],
        "ss_stop": state.rounds[-1],
        "ss_rounds": f"{state.rounds[0]}-{state.rounds[-1]}",
    }


def _results(data: TestData, test: str) -> dict[str, Value]:
    rows = [row for stage in data.history.stages.values() for row in stage.window_rows()]
    match test:
        case "iops":
            found = _by_cell(rows, _IOPS_SIZES)
            return {f"iops_{cell}": round(_mean(r.iops for r in rs)) for cell, rs in found.items()}
        case "throughput":
            found = _by_cell(rows, _TP_SIZES)
            return {
                f"throughput_{cell}": round(_mean(r.bytes_per_s / _MIB for r in rs), 2)
                for cell, rs in found.items()
            }
        case "latency":
            return _latencies(_by_cell(rows, _LAT_SIZES))
        case "wsat":
            stage = data.stage("rounds")
            samples = stage.decision if stage is not None else None
            if samples is None or not samples.steady:
                return {}
            return {"wsat_iops": round(next(iter(samples.states.values())).average)}
        case "hir":
            return _idle_recovery(data)
    return {}


def _idle_recovery(data: TestData) -> dict[str, Value]:
    """Mean IOPS of the bursts of each wait state that it knows, and of the steady drive before."""
    from writecliff.report.hir import load_hir

    row: dict[str, Value] = {}
    before = data.stage("precondition")
    decision = before.decision if before is not None else None
    if decision is not None and decision.steady:
        row[_HIR[0]] = round(next(iter(decision.states.values())).average)
    by_wait: dict[float, str] = dict(zip(_WAITS_S, _HIR[1:], strict=True))
    for state in load_hir(data.run).waits:
        if state.wait_s in by_wait and state.burst_iops is not None:
            row[by_wait[state.wait_s]] = round(state.burst_iops)
    return row


def _by_cell(rows: Iterable[StepRow], sizes: Mapping[int, str]) -> dict[str, list[StepRow]]:
    """Rows by "4k_65_35"; those of no known block size or mix belong to none."""
    found: dict[str, list[StepRow]] = {}
    for row in rows:
        size = sizes.get(row.block_bytes or 0)
        if size is not None and row.read_pct is not None:
            mix = f"{row.read_pct:g}_{100 - row.read_pct:g}"
            found.setdefault(f"{size}_{mix}", []).append(row)
    return found


def _latencies(found: Mapping[str, list[StepRow]]) -> dict[str, Value]:
    row: dict[str, Value] = {}
    for cell, rows in found.items():
        means = [r.latency_mean_ns for r in rows if r.latency_mean_ns is not None]
        tops = [r.latency_max_ns for r in rows if r.latency_max_ns is not None]
        if means and tops:
            row[f"latency_{cell}_mean"] = round(_mean(means) / 1e6, 4)
            row[f"latency_{cell}_max"] = round(_mean(tops) / 1e6, 4)
    return row


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)
