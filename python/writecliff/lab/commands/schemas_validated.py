"""Schemas of the JSON output of `validate`; see `schemas.py`."""

from __future__ import annotations

from collections.abc import Mapping

from writecliff.cli.schema import Schema

VALIDATED: Mapping[str, Schema] = {
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
}
