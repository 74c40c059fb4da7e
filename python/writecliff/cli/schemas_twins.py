"""What the commands about twins print with `--json`."""

from __future__ import annotations

from collections.abc import Mapping

from writecliff.cli.schema import Schema

_FIGURES = "of each figure `load`, `state`, `metric`, `unit`, `measured`, `twin` and `error_pct`"
_ERRORS = "medians: `rates_pct`, `means_pct`, `tails_pct` (99th percentiles), and `figures`"

TWINS: Mapping[str, Schema] = {
    "twin": Schema(
        "twin",
        {
            "name": "of the twin",
            "drive": "the target that was measured",
            "device_file": "of the twin",
            "scale": "the twin was simulated so many times smaller; 1: whole",
            "starts": "how many the fit chose from",
            "dies": "of the twin",
            "bounds": "what bounds reads and writes at the start of the fit",
            "overprovision_pct": "of the twin",
            "waf_measured": "write amplification at the end of the overwrites; `null`: the drive "
            "does not tell",
            "waf_twin": "the same of the twin",
            "overwritten_pct": "of the capacity, 4 KiB at random",
            "cache_bytes": "what the first writes took before their rate dropped; `null`: not seen",
            "values": "of each fitted value `key`, `unit`, `start`, `value`, `error_pct` (one "
            "standard error; `null`: unbounded), `determined`, `at_bound` and `source`",
            "fitted": f"figures of the fit: {_FIGURES}",
            "kept_aside": f"figures that the fit has not seen: {_FIGURES}",
            "errors": f"of what was kept aside, {_ERRORS}",
            "errors_of_fit": f"of what was fitted, {_ERRORS}",
            "not_told_apart": "sentences",
            "verdict": "a line",
            "run": "the directory of the measurements",
            "report": "the page",
        },
    ),
    "twin-check": Schema(
        "twin --check",
        {
            "drive": "the target that was measured",
            "expected": "what it is compared with",
            "is_sheet": "whether that is a data sheet",
            "model_error_known": "whether the device file says how far it is off elsewhere",
            "kinds": "of each kind of load `name`, `figures`, `worse_pct` (median), `allowed_pct` "
            'and `outcome` (`"as expected"`, `"better"`, `"degraded"`)',
            "figures": "of each `kind`, `load`, `metric`, `unit`, `measured`, `expected` and "
            "`worse_pct`",
            "degraded": "whether a kind is; the exit code is 3 then",
            "verdict": "a line",
            "run": "the directory of the measurements",
            "report": "the page",
        },
    ),
    "validate-twin": Schema(
        "validate twin",
        {
            "ok": "all medians are within the goals",
            "goals": "`rates_pct` and `tails_pct`",
            "drives": "of each hidden drive `drive`, `ok`, `rates_pct` and `tails_pct` (median "
            "errors over the other loads), `kept_rates_pct` and `kept_tails_pct` (of what the twin "
            "kept aside), `values` (`key`, `hidden`, `twin`) and `loads` (`load`, `iops`, "
            "`iops_twin`, `p99_ms`, `p99_twin_ms`, `rate_error_pct`, `p99_error_pct`)",
        },
    ),
}
