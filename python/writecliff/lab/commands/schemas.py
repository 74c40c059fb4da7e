"""Schemas of the JSON output of the lab's commands; see `writecliff.cli.schemas`."""

from __future__ import annotations

from collections.abc import Mapping

from writecliff.cli.schema import Schema

SCHEMAS: Mapping[str, Schema] = {
    "validate-waf": Schema(
        "validate waf",
        {"tolerance_pct": "", "ok": "no case is off", "rows": "a case each, with its theory"},
    ),
    "validate-reduction": Schema(
        "validate reduction",
        {"tolerance_pct": "", "ok": "no case is off", "rows": "a case each, with its theory"},
    ),
    "validate-quick": Schema(
        "validate quick",
        {
            "tolerance_pct": "",
            "ok": "no figure is off",
            "rows": "`test`, `key`, `label`, `unit`, `scale` of the quick suite, `full`, `quick` "
            "(`null`: not given), the loads `at` and `quick_at`, `error_pct` and `ok` of each",
        },
    ),
    "validate-streams": Schema(
        "validate streams",
        {"ok": "no row is off", "rows": "a load each", "crossovers": "who wins where"},
    ),
    "torture": Schema(
        "torture",
        {
            "target": "the drive",
            "program": "",
            "file_system": "",
            "cuts": "how many there were; the first failure is the last",
            "intact": "those after which nothing was missing",
            "first_failure": "`seed`, `at_write` (of the drive, from the begin of the program), "
            "`acknowledged` (lines that it had printed), `pages_undone` and `undone_as` (as "
            "in `serve`: no loss of the drive's) and `finding`; or `null`",
        },
    ),
    "validate-intervals": Schema(
        "validate intervals",
        {
            "ok": "at most 5 % of equal drives are called different, and no coverage is below "
            "93 % by more than chance",
            "coverage": "`load`, `figure`, `truth` (IOPS, ns or a ratio), `runs`, `intervals` "
            "(runs with one), `covered` (that hold the truth), `covered_pct`, `shares_covered` "
            "and `shares_covered_pct` (that hold the true share of I/Os slower than a percentile, "
            "else `null`), `probability` (of so few if 93 % held it) and `half_width_pct` (of the "
            "median interval) of each figure",
            "pairs": "of each `load`: `pairs` of equal drives, `false_winners`, `false_pct`, "
            "`slower_pairs`, `slower_found` and `slower_pct` (lower IOPS of a slower drive)",
        },
    ),
    "validate-power-cuts": Schema(
        "validate power-cuts",
        {
            "ok": "nothing was violated",
            "seed": "",
            "rows": "`extra` (SLC cache, parity across dies or none), `write_cache`, "
            "`power_loss_protection`, `data_placement`, `cuts`, `commands`, "
            "`lost_slots` (confirmed and not flushed), `unconfirmed_slots` (there all the same), "
            "`torn_units`, `interrupted_erases`, `saved_slots` (by capacitors) and "
            "`rebuild_ns_max` of each kind of drive",
            "not_covered": "kinds of drives whose power cuts are not modelled without power-loss "
            "protection",
            "failure": "`drive`, its kind and the `violation` of the first drive that fails, or "
            "`null`",
        },
    ),
    "act-log": Schema("act log", {"run": "the run directory", "log": "the log as ACT writes it"}),
    "act-latency": Schema(
        "act latency",
        {
            "run": "the run directory",
            "slices": "`slice` (its number), `reads`, and `over_1ms_pct` to `over_64ms_pct`: the "
            "share of its reads over each threshold",
        },
    ),
    "campaign-list": Schema(
        "reproduce --list", {"campaigns": "`name`, `figures`, `about` of each"}
    ),
    "reproduce": Schema(
        "reproduce",
        dict.fromkeys(
            (
                "report",
                "campaign",
                "about",
                "build",
                "wall_s",
                "kinds",
                "comparisons",
                "parts",
                "figures",
                "not_simulated",
                "skipped",
                "loads",
                "drives",
            ),
            "",
        ),
        more="published-figures-reproduced",
        version=2,
    ),
    "reproduce-ssd-iq": Schema(
        "reproduce ssd-iq",
        {
            "report": "the page",
            "campaign": "",
            "build": "the build of the simulator",
            "wall_s": "duration of the simulations in seconds",
            "rows": "each figure of the table with `condition`, `metric`, `value`, `unit`, "
            "`simulated` (`null` with a `reason` if it could not be simulated), `error_pct` "
            "(simulated over published, minus 1), `note`, `drive` (name and capacity on the data "
            "sheet), `load`",
            "curves": "write rates relative to uniform writes: `drive`, `load`, `kind` "
            "(`zipf`, `static`, `zones`), `published`, `simulated`, `error_pct`",
            "scores": "absolute errors by `kind`: number of `figures`, `median` and `p90` in "
            "`unit` (`%`, or `x` for the larger value over the smaller), `within` (percentage of "
            "factors up to 1.5)",
            "disclosures": "what a reader of the errors must know",
            "drives": "each simulated drive: `drive` (name and capacity on the data sheet), "
            "`name`, `device_hash`, `scale` (factor by which it was scaled down), number of "
            "`loads`",
        },
    ),
    "experiment-list": Schema("experiment --list", {"experiments": "`name`, `about` of each"}),
    "feature-list": Schema("reliability --list", {"features": "`name`, `about` of each"}),
    "fit-list": Schema("fit --list", {"fits": "`name`, `drives`, `parameters` (keys) of each"}),
    "fit": Schema(
        "fit",
        {
            "fits": "names",
            "drives": "that are fitted",
            "scale": "the drives are simulated so many times smaller",
            "simulations": "how many were made",
            "output": "the folder of the fitted device files, or `null`",
            "parameters": "`key`, `drive` (`null`: all), `unit`, `start`, `value`, bounds `low` "
            "and `high`, `error_pct` (one standard error), `at_bound`, `determined`",
            "unidentifiable": "combinations (key: share) that change hardly any figure",
            "measure_next": "what would determine a `combination` (its place in that list): "
            "`device`, `load`, `metric`, and `change_pct` of it if the combination changes by 10 %",
            "errors": "by kind of figure: before the fit, after it, of predictions",
            "figures": "measured, simulated and predicted, with errors",
        },
    ),
    "bench-fit": Schema(
        "bench fit",
        {
            "capacity_bytes": "of the drive",
            "parameters": "how many",
            "figures": "how many",
            "first_output_s": "until the first line",
            "scaled_s": "until the search on the scaled drive has ended",
            "wall_s": "until the drive was simulated at full size too",
            "cpu_s": "user and system",
            "simulations": "how many",
            "rows": "of each parameter `key`, `truth`, `start`, `found`, `error_pct`, `determined`",
            "figure_errors_pct": "of the figures at full size",
        },
    ),
    "bench-sim": Schema(
        "bench sim", {"device": "", "scale": "of the drive", "rows": "a case each"}
    ),
    "bench-serve": Schema(
        "bench serve",
        {
            "device": "",
            "seconds": "of a load",
            "rows": "of each load `case`, `transport` (`nbd-unix`, `nbd-tcp`, `nvme-tcp`; "
            "`nvmet-tcp`: the kernel's), `client` (`lean`, or `fio` over NBD), `iops`, "
            "`latency_p50_us`, `latency_p99_9_us`, `added_p50_us` (to the latency of the drive), "
            "`server_cpu_us` (CPU time of the server per request, null for the kernel's)",
        },
    ),
    "bench-fio": Schema(
        "bench fio", {"target": "", "seconds": "of a run", "summary": "", "rows": "a pair each"}
    ),
}
