"""Saved answers of `run --json` and `replay --json`, which have no run directory, as runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from writecliff import units
from writecliff.errors import ConfigError
from writecliff.input_files import STUMBLES, parse_json, read_bytes
from writecliff.procedures.options import value_text
from writecliff.replay.summary import REPLAY_SCHEMA
from writecliff.report.comparison.runs import DRIVE, Run
from writecliff.report.loads import step_headlines
from writecliff.report.trace_replay import replay_headlines

RUN_SCHEMA = "writecliff/workload-run/1"
SUFFIX = ".json"


def read_answer(path: Path) -> Run:
    """The answer in a file. Raises ConfigError: it is none of these."""
    try:
        data = parse_json(read_bytes(path), path)
        read = _READERS[data["schema"]]
        return read(path, data)
    except (OSError, *STUMBLES):
        raise ConfigError(
            f"{path} is not an answer that can be compared",
            hint="save one with `writecliff run ... --json > A.json` or `writecliff replay ...`",
        ) from None


def _begun(path: Path) -> str:
    """An answer has no date; that of its file tells two of them apart."""
    return datetime.fromtimestamp(path.stat().st_mtime).astimezone().isoformat(timespec="seconds")


# -- run --json -------------------------------------------------------------------------------


def _workload_run(path: Path, data: Mapping[str, Any]) -> Run:
    steps = data["steps"]
    seeds = dict.fromkeys(str(step["seed"]) for step in steps)
    return Run(
        path=path,
        test="workload",
        created=_begun(path),
        setup={
            DRIVE: data["target"],
            "workload": Path(data["file"]).name,
            "seed": ", ".join(seeds),
        },
        headlines=[item for step in steps for item in step_headlines(step, many=len(steps) > 1)],
    )


# -- replay --json ----------------------------------------------------------------------------


def _replay(path: Path, data: Mapping[str, Any]) -> Run:
    trace, device = data["trace"], data["device"]
    return Run(
        path=path,
        test="trace_replay",
        created=_begun(path),
        setup={
            DRIVE: device["name"],
            "capacity": units.size(device["capacity_bytes"]),
            "trace": Path(trace["path"]).name,
            **{name: value_text(data[name]) for name in ("assign", "streams")},
            "mistagged": f"{data['mistag_pct']:g} %",
            **{
                name: value_text(trace[name])
                for name in ("writeback", "copies", "allocator", "trim", "rounds")
            },
            "simulated capacity": units.size(device["simulated_capacity_bytes"]),
        },
        headlines=replay_headlines(data),
    )


_READERS: Mapping[str, Callable[[Path, Mapping[str, Any]], Run]] = {
    RUN_SCHEMA: _workload_run,
    REPLAY_SCHEMA: _replay,
}
