"""Options that decide what is reported. The fio-shaped JSON follows them."""

from __future__ import annotations

from writecliff.workload.fiojob.option import Option, no_effect, reporting
from writecliff.workload.fiojob.values import boolean, choice, flag, percentiles

_DEFAULT_PERCENTILES = "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"
_NO_LOGS = "no log files are written"
_SERIES = "rows of the series are as wide as log_avg_msec says, or 1 s"
_DISPLAY = "concerns fio's text output"

REPORT: tuple[Option, ...] = (
    reporting("group_reporting", flag, "jobs of a reporting group are one entry"),
    reporting("stats", boolean, "0: the job is left out", default="1"),
    reporting("percentile_list", percentiles, "which percentiles", default=_DEFAULT_PERCENTILES),
    reporting("clat_percentiles", boolean, "percentiles of clat_ns", default="1"),
    reporting("lat_percentiles", boolean, "percentiles of lat_ns", default="0"),
    reporting("slat_percentiles", boolean, "slat_ns is empty: no submission on a simulated drive",
              default="0"),
    reporting("unified_rw_reporting",
              choice("none", "mixed", "both", **{"0": "none", "1": "mixed", "2": "both"}),
              "reads, writes and trims together, as `mixed`", default="none"),
    reporting("disable_lat", boolean, "lat_ns is empty", default="0"),
    reporting("disable_clat", boolean, "clat_ns is empty", default="0"),
    reporting("disable_slat", boolean, "slat_ns is empty anyway", default="0"),
    reporting("disable_bw_measurement", boolean, "bw_* and iops_* samples are empty", "disable_bw",
              default="0"),
    reporting("gtod_reduce", boolean, "as disable_lat, _clat, _slat and _bw together", default="0"),
    no_effect("write_bw_log", _NO_LOGS),
    no_effect("write_lat_log", _NO_LOGS),
    no_effect("write_iops_log", _NO_LOGS),
    no_effect("write_hist_log", _NO_LOGS),
    no_effect("per_job_logs", _NO_LOGS),
    no_effect("log_entries", _NO_LOGS),
    no_effect("log_hist_msec", _NO_LOGS),
    no_effect("log_hist_coarseness", _NO_LOGS),
    no_effect("log_max_value", _NO_LOGS),
    no_effect("log_window_value", _NO_LOGS),
    no_effect("log_offset", _NO_LOGS),
    no_effect("log_prio", _NO_LOGS),
    no_effect("log_issue_time", _NO_LOGS),
    no_effect("log_compression", _NO_LOGS),
    no_effect("log_compression_cpus", _NO_LOGS),
    no_effect("log_store_compressed", _NO_LOGS),
    no_effect("log_unix_epoch", _NO_LOGS),
    no_effect("log_alternate_epoch", _NO_LOGS),
    no_effect("log_alternate_epoch_clock_id", _NO_LOGS, "job_start_clock_id"),
    no_effect("bwavgtime", _SERIES),
    no_effect("iopsavgtime", _SERIES),
    no_effect("block_error_percentiles", "a simulated drive has no trim errors to count"),
    no_effect("disk_util", "the kernel's counters do not know a simulated drive"),
    no_effect("significant_figures", _DISPLAY),
    no_effect("unit_base", _DISPLAY),
    no_effect("error_dump", _DISPLAY),
)  # fmt: skip
