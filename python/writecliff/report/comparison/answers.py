"""Saved answers of `run --json` and `replay --json`, which have no run directory, as runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from writecliff import units
from writecliff.errors import ConfigError
from writecliff.procedures.options import value_text
from writecliff.replay.summary import REPLAY_SCHEMA
from writecliff.report.comparison.runs import DRIVE, Run
from writecliff.report.headline import NS_PER_MS, Headline, Interval, headline, ms
from writecliff.units import MB_S

RUN_SCHEMA = "writecliff/workload-run/1"
SUFFIX = ".json"
_PERCENTILES = (99, 99.9, 99.99)


def read_answer(path: Path) -> Run:
    """The answer in a file. Raises ConfigError: it is none of these."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        read = _READERS[data["schema"]]
        return read(path, data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
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
        test="run",
        created=_begun(path),
        setup={
            DRIVE: data["target"],
            "workload": Path(data["file"]).name,
            "seed": ", ".join(seeds),
        },
        headlines=[item for step in steps for item in _step(step, many=len(steps) > 1)],
    )


def _step(step: Mapping[str, Any], *, many: bool) -> Iterator[Headline]:
    """The figures of every job and operation of a step."""
    for job in step["jobs"]:
        for operation, done in job["operations"].items():
            words = (step["workload"] if many else "", job["name"], f"{operation}s")
            key, label = "/".join(words), " ".join(filter(None, words))
            yield from headline(f"{key}/iops", f"{label}, IOPS", done["iops"], "IOPS")
            rate = None if done["bytes_per_s"] is None else done["bytes_per_s"] / MB_S.size
            yield from headline(f"{key}/mb_per_s", f"{label}, throughput", rate, "MB/s")
            service, slow = done["service"], {"higher_is_better": False}
            yield from headline(f"{key}/mean", f"{label}, average", ms(service["mean_ns"]), "ms",
                                **slow)  # fmt: skip
            for one in service["percentiles"]:
                if one["pct"] in _PERCENTILES:
                    yield from _percentile(key, label, one)
            yield from headline(f"{key}/max", f"{label}, maximum", ms(service["max_ns"]), "ms",
                                **slow)  # fmt: skip
    yield from headline(
        f"{step['workload'] if many else ''}/waf", "Write amplification", step["waf"], "",
        higher_is_better=False,
    )  # fmt: skip


def _percentile(key: str, label: str, one: Mapping[str, Any]) -> list[Headline]:
    interval = None
    if one["low_ns"] is not None and one["high_ns"] is not None:
        of = f"{one['pct']:g} % quantile of the I/Os"
        interval = Interval(one["low_ns"] / NS_PER_MS, one["high_ns"] / NS_PER_MS, of)
    return headline(
        f"{key}/p{one['pct']:g}", f"{label}, p{one['pct']:g}", ms(one["value_ns"]), "ms",
        higher_is_better=False, interval=interval,
    )  # fmt: skip


# -- replay --json ----------------------------------------------------------------------------


def _replay(path: Path, data: Mapping[str, Any]) -> Run:
    trace, device = data["trace"], data["device"]
    rate = data["write_bytes_per_s"]
    slow = {"higher_is_better": False}
    return Run(
        path=path,
        test="replay",
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
        headlines=[
            *headline("years", "Lifetime at this rate", data["years"], "years"),
            *headline("endurance_tb", "Endurance", _tb(data["endurance_bytes"]), "TB"),
            *headline("waf", "Write amplification", data["waf"], "", **slow),
            *headline("read_p9999", "Reads, p99.99", ms(data["read_p9999_ns"]), "ms", **slow),
            *headline("read_mean", "Reads, average", ms(data["read_mean_ns"]), "ms", **slow),
            *headline("write_mb_per_s", "Writes", rate and rate / MB_S.size, "MB/s"),
        ],
    )


def _tb(size_bytes: float | None) -> float | None:
    return None if size_bytes is None else size_bytes / 1e12


_READERS: Mapping[str, Callable[[Path, Mapping[str, Any]], Run]] = {
    RUN_SCHEMA: _workload_run,
    REPLAY_SCHEMA: _replay,
}
