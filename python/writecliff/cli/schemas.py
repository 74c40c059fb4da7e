"""What each command prints with `--json`: the schema of its object, and the meaning of its keys.

`stamped` puts the schema into an object and refuses keys that are not listed here, so that nothing
is printed that is not documented. `python -m writecliff.cli.schemas` prints
`docs/reference/json-commands.md`; a test compares the file with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from writecliff.cli.commands import PROGRAM
from writecliff.cli.schema import Schema
from writecliff.cli.schemas_captured import CAPTURED
from writecliff.cli.schemas_runs import RUNS
from writecliff.cli.schemas_served import SERVED
from writecliff.cli.schemas_twins import TWINS

_PREFIX = "writecliff/"
_IDENTITY = "the drive: `target`, `vendor`, `model`, `serial`, `capacity_bytes`, `simulated`, ..."
_REFUSAL = "`null`, or `message` and `hint` if the run would be refused; the exit code is then 2"
_PLAN = (
    "`title`, `phases`, bounds of `steps`, `device_time` and `write_bytes` (`_min`, `_max`), "
    "`estimate` by a pilot run (`null`: none was possible)"
)
_RUNS = "for each run `name`, `test`, `status`, `run` (its directory) and `report` (its page)"
_CACHED = {
    "folder": "of the cache",
    "limit_bytes": "`WRITECLIFF_CACHE_LIMIT`, or 20 GB",
    "size_bytes": "of all states",
}
_COMPARED = "with `--baseline`, what `compare --json` prints; else `null`"
_LIMITS = (
    "limits of `--expect` and of the file: `run`, `text`, `figure`, `relation`, `limit`, `unit`, "
    "`value`, `result` (`met`, `missed`, `unknown`), `certain`, `note` of each"
)
_STATES = "`file`, `drive`, `steps`, `size_bytes`, `used` (ISO 8601) and `current` of each"


SCHEMAS: Mapping[str, Schema] = {
    "test-list": Schema(
        "test --list",
        {"tests": "`name`, `title`, `summary`, `editions`, `required` and `campaign` of each"},
    ),
    "test-plan": Schema(
        "test NAME --dry-run",
        {"dry_run": "`true`", "target": _IDENTITY, "plan": _PLAN, "refusal": _REFUSAL},
    ),
    "test-outcome": Schema(
        "test NAME",
        {
            "run": "the run directory",
            "report": "its page",
            "status": '`"complete"`',
            "scale": "the drive was simulated so many times smaller (`--quick`, or too large to be "
            "simulated whole); 1: whole",
            "ended_by": "the rule that ended it",
            "steps": "how many were measured",
            "stages": "their steady state",
            "device_time_ns": "by the drive's clock",
            "host_write_bytes_total": "written in the run",
            "drive_fills": "the same divided by the capacity",
            "last_step": "the last row of the run's table",
            "warnings": "sentences",
            "expectations": _LIMITS,
            "comparison": _COMPARED,
            "verdict": "the outcome in one line",
        },
        more="steady-state-of-a-stage",
    ),
    "suite-plan": Schema(
        "suite EDITION --dry-run",
        {
            "dry_run": "`true`",
            "target": _IDENTITY,
            "tests": f"by test: {_PLAN}",
            "refusal": _REFUSAL,
        },
    ),
    "set-outcome": Schema(
        "suite, sweep",
        {
            "kind": '`"suite"` or `"sweep"`',
            "about": "the edition, or the option that is varied",
            "folder": "the directory of the runs",
            "report": "its page",
            "expectations": _LIMITS,
            "comparison": _COMPARED,
            "runs": _RUNS,
        },
    ),
    "choose": Schema(
        "choose",
        {
            "workload": "the file",
            "limits": "as given",
            "weights": "by figure",
            "ranking": "of each `device` (its row), `candidate` (the drive that it is made of), "
            "`rank`, `passes`, `score` from 0 to 1, `why`, `sure` (of the difference to the "
            "first), `not_sustained` (why it did not keep up with the load, else `null`), "
            "`best_of_its_kind` (no drive is better in every figure that counts), "
            "`metrics` (with units in their names; `null` if unknown), `intervals` (by figure), "
            "`limits` (what became of them), `model_error` (of this kind of load, in percent: "
            "`rates_pct`, `means_pct` and `tails_pct` of IOPS, mean and p99.99; `by_figure`: of "
            "each figure that counts or is limited, `error_pct`, whether that is a `lower_bound`, "
            "and the `kinds` of held-out figures behind it with their number and `scope`; `null`: "
            "not known), `scale` (how many times smaller it was simulated), "
            "`power_loss_protection` (`null`: no volatile buffer), "
            "`life_end` (the rating that ends its life: `rated cycles` or `rated bytes (TBW)`; "
            "`null`: it outlives the longest time that is quoted, or has no rating) and `runs`",
            "what_if": "of each `change`, which drive is `first` then, whether that "
            "`changes_answer`, and the `ranking` of the first drives",
            "left_out": "of drives of a group that could not be simulated here under the load, why",
            "verdict": "a sentence or two",
            "folder": "the directory of the runs",
            "report": "the page",
        },
    ),
    **TWINS,
    **SERVED,
    **RUNS,
    "sweep-list": Schema("sweep --list", {"sweeps": "`name`, `option`, `values` and `summary`"}),
    "report": Schema(
        "report",
        {
            "report": "the page",
            "pdf": "the same as PDF, or `null`",
            "csv": "the folder of its numbers, or `null`",
            "summary": "the summary of the run, with a schema of its own for each test",
        },
        more="run",
    ),
    "comparison": Schema(
        "compare",
        dict.fromkeys(("report", "contenders", "differences", "figures", "rule", "verdict"), ""),
        more="suites-sweeps-and-comparisons",
        version=2,
    ),
    "demo": Schema(
        "demo",
        {"run": "the run directory", "report": "its page", "summary": "the summary of the run"},
        more="run",
    ),
    "workload-run": Schema(
        "run",
        {
            "file": "the workload",
            "target": "the drive",
            "scale": "the drive was simulated so many times smaller; 1: whole",
            "precondition": "what the drive was brought to",
            "precondition_because": "what decided that",
            "steps": "what each step measured: `jobs` with `operations`, `waf`, `counters`",
            "run": "the run directory",
            "report": "its page",
            "warnings": "sentences",
            "expectations": _LIMITS,
            "comparison": _COMPARED,
            "verdict": "the outcome in one line",
        },
        more="suites-sweeps-and-comparisons",
    ),
    "profile-list": Schema("profile list", {"profiles": "each as `profile show` prints it"}),
    "profile": Schema(
        "profile show",
        {
            "name": "of the profile",
            "title": "in words",
            "source": "where its figures are from",
            "jobs": "`name`, `pattern`, `read_pct`, `block_sizes`, `threads`, `rate_iops` of each",
        },
    ),
    **CAPTURED,
    "replay": Schema(
        "replay",
        {
            "run": "the run directory",
            "report": "its page",
            "expectations": _LIMITS,
            "comparison": _COMPARED,
            "verdict": "the outcome in one line",
            "not_quoted": "why `waf` and what follows from it are `null`; else `null`",
            **dict.fromkeys(
                (
                    "trace",
                    "device",
                    "assign",
                    "streams",
                    "mistag_pct",
                    "waf",
                    "waf_drift",
                    "mapped_bytes",
                    "endurance_bytes",
                    "years",
                    "read_p9999_ns",
                    "read_mean_ns",
                    "reads",
                    "write_bytes_per_s",
                    "oracle",
                    "statistics",
                    "overflow_bytes",
                    "data_placement",
                    "by_stream",
                    "series",
                ),
                "",
            ),
        },
        more="replays-and-stream-advice",
    ),
    "stream-advice": Schema(
        "advise-streams",
        dict.fromkeys(
            ("report", "trace", "device", "verdict", "best", "rules", "cells", "mistagged"), ""
        ),
        more="replays-and-stream-advice",
    ),
    "device-list": Schema(
        "device list",
        {
            "devices": "`name`, `description`, `capacity_bytes`, `interface`, `nand_type`, "
            "`overprovision_pct` of each, `null` without flash, and `least_scale`, how many times "
            "smaller it must be simulated"
        },
    ),
    "device": Schema(
        "device show NAME",
        {
            "name": "of the drive",
            "kind": '`"ssd"`, `"disk"` or `"scm"`',
            "description": "in words",
            "vendor": "",
            "model": "",
            "firmware": "",
            "capacity_bytes": "user capacity",
            "raw_bytes": "of the flash",
            "mapped_bytes": "that the map of the flash has entries for",
            "least_scale": "how many times smaller it must be simulated; 1: whole",
            "reclaim_units": "how many",
            "rated_cycles": "of the flash",
            "overprovision_pct": "flash beyond the user capacity, in percent of that",
            "interface": '`"SATA 6Gb/s"`, ...',
            "nand_type": '`"TLC"`, ...',
            "rpm": "of a hard disk",
            "streams": "that it can open",
            "data_placement_interface": '`"none"`, `"nvme-streams"`, `"scsi-streams"`, '
            '`"nvme-fdp"`',
            "data_placement_reports": "what that interface reports of a new drive",
            "write_cache": "after power-up",
            "power_loss_protection": "",
            "power_states": "from 0 on: `max_active_dies` and `watts_max`; empty: one, without a "
            "limit on active dies",
            "rebuild_ns": "the shortest and the longest time from power-up after a power cut until "
            "it takes commands, by `[recovery]`; `null`: not modelled",
            "rated_tbw_bytes": "by the data sheet",
            "device_hash": "of all values that change behaviour",
            "path": "of the file",
            "values": "every value: `key`, `value`, `source`, `line`",
        },
    ),
    "drive": Schema(
        "device show /dev/NAME",
        {
            "device": _IDENTITY,
            "health": "what the drive says of its condition; `null`: nothing",
            "power": "power states of an NVMe drive: `state` in force, `states` with `watts_max`, "
            "`operational`, `entry_us` and `exit_us`, `autonomous`; `null`: none told",
            "data_placement": "as `device probe` prints it",
        },
    ),
    "data-sheet": Schema(
        "device show NAME --sheet",
        {
            "name": "of the drive",
            "description": "in words",
            "device_hash": "of all values that change behaviour",
            "scale": "the drive was measured so many times smaller; 1: whole",
            "rows": "`group`, `name`, `value` with its unit, and `source` of each",
            "not_stated": "what sheets have and nobody says of this drive",
            "page": "the HTML file, or `null`",
        },
    ),
    "device-file": Schema(
        "device export",
        {"name": "of the drive", "output": "the file, or `null`", "text": "of the device file"},
    ),
    "device-new": Schema(
        "device new",
        {
            "device_file": "the drive",
            "figures_file": "the figures of the sheet, for `fit` and `reproduce`",
            "fit_file": "a specification for `fit`",
            "figures": "`load`, `metric`, `sheet`, `simulated`, `unit` and `error_pct` of each; "
            "empty with `--no-check`",
        },
    ),
    "device-probe": Schema(
        "device probe",
        {
            "path": "as given",
            "disk": "its name, or `null`",
            "kernel": "its release",
            "hints": "`call`, `hint` and `refused` (the error, or `null`) of each",
            "max_write_streams": "of the queue",
            "write_stream_granularity_bytes": "of the queue",
            "fdp_handles": "placement handles",
            "streams": "of the Streams directive",
            "permanent_streams": "of a SCSI drive: `reduced_control`, `lifetimes`",
            "notes": "sentences",
            "verdict": "sentences",
        },
    ),
    "cache-list": Schema(
        "device cache list", {**_CACHED, "states": _STATES}, "cache-of-prepared-drives"
    ),
    "cache-prune": Schema(
        "device cache prune", {**_CACHED, "removed": _STATES}, "cache-of-prepared-drives"
    ),
    "doctor": Schema(
        "doctor",
        {
            "checks": "each with `name`, `purpose` (what needs it), `state` (`ok`, `limited` or "
            "`missing`), `found`, and `remedy` (empty if there is nothing to do)"
        },
    ),
    "completion": Schema(
        "completion", {"shell": "", "script": "to be put where the shell finds it"}
    ),
}


def schema_id(name: str, schemas: Mapping[str, Schema] = SCHEMAS) -> str:
    """The value of the key `schema`: "writecliff/replay/1"."""
    return f"{_PREFIX}{name}/{schemas[name].version}"


def stamped(
    name: str, value: Mapping[str, Any], schemas: Mapping[str, Schema] = SCHEMAS
) -> dict[str, Any]:
    """The object with its schema. Raises ValueError for a key that is not documented."""
    unknown = set(value) - set(schemas[name].keys) - {"schema"}
    if unknown:
        raise ValueError(f"'{min(unknown)}' is no key of {schema_id(name, schemas)}")
    return {"schema": schema_id(name, schemas), **value}


def reference() -> str:
    """The page of all schemas, in Markdown."""
    head = (
        "# What `--json` prints\n\n"
        "Generated by `python -m writecliff.cli.schemas > docs/reference/json-commands.md`; do not "
        "edit it by hand.\n\n"
        "Every command takes `--json` and prints one object, whose key `schema` is its name and "
        "version: within a version keys may be added, but never renamed or removed. Units are in "
        "the names. Unknown is `null`. An error is one object on stderr: `error` with `message`, "
        "`hint` and `exit_code`. `run --output-format fio-json` prints fio's own format. What is "
        "nested further is described in [JSON summaries](json.md). Objects of the lab are on [its "
        "page](lab.md#what-json-prints).\n"
    )
    return "\n".join((head, *sections(SCHEMAS, PROGRAM, "##")))


def sections(schemas: Mapping[str, Schema], program: str, heading: str) -> Iterator[str]:
    """Yield the section of each schema, in Markdown."""
    for name, one in schemas.items():
        commands = ", ".join(f"`{program} {command}`" for command in one.command.split(", "))
        yield f'{heading} {commands}\n\n`schema` is `"{schema_id(name, schemas)}"`.\n'
        described = {key: text for key, text in one.keys.items() if text}
        if described:
            rows = "".join(f"| `{key}` | {text} |\n" for key, text in described.items())
            yield f"| key | meaning |\n|---|---|\n{rows}"
        plain = [f"`{key}`" for key in one.keys if key not in described]
        if plain:
            yield f"Keys{' too' if described else ''}: {', '.join(plain)}.\n"
        if one.more:
            yield f"More: [{one.more.replace('-', ' ')}](json.md#{one.more}).\n"


if __name__ == "__main__":
    print(reference(), end="")
