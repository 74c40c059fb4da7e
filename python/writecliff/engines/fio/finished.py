"""Results of fio runs that writecliff did not start, from fio's own JSON output.

Latencies need the histograms of `--output-format=json+`. Total latencies (`lat_ns`) are taken where
their bins were asked for (`lat_percentiles=1`), completion latencies (`clat_ns`) otherwise. Without
bins there are no latencies: from a few percentiles no distribution follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from writecliff.engines.base import OPERATIONS, JobResult, OperationResult, StepResult
from writecliff.engines.counters import Counters
from writecliff.engines.fio.parse import (
    MS,
    Document,
    OperationStats,
    flush_result,
    histogram_of,
    read_operation,
)
from writecliff.errors import ConfigError
from writecliff.units import parse_size
from writecliff.workload.model import Job, Workload

COMPLETION = "latencies are completion latencies (clat): fio's output has no others by bin"
NO_BINS = (
    "no latencies: fio's output has no histograms (--output-format=json+ writes them), and none "
    "follow from percentiles"
)
_MIXES = {"read": 100.0, "randread": 100.0, "write": 0.0, "randwrite": 0.0}


@dataclass(frozen=True)
class FinishedStep:
    """The jobs that ran together, and what they measured."""

    workload: Workload
    result: StepResult


def finished_steps(document: Document, name: str) -> list[FinishedStep]:
    """The steps of fio's JSON output: jobs of one group ran together, and jobs of the next one
    after them unless they say otherwise (`new_group`).

    Raises ConfigError for a document that is none of fio's, and for failed jobs only.
    """
    try:
        common = dict(document.get("global options", {}))
        entries = [({**common, **job.get("job options", {})}, job) for job in document["jobs"]]
        groups = list(_groups(entries))
        steps, started_ns = [], 0
        for number, group in enumerate(groups, 1):
            many = f"{name}-{number}" if len(groups) > 1 else name
            step = _step(group, many, started_ns)
            started_ns += step.result.elapsed_ns
            steps.append(step)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{name} is not fio's JSON output: {error!r}") from None
    if not any(step.result.total()[0] for step in steps):
        raise ConfigError(f"{name} holds no I/O that completed")
    return steps


Entry = tuple[Mapping[str, str], Mapping[str, Any]]  # options, and the object of `jobs`


def _groups(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    number = None
    for options, job in entries:
        together = "new_group" in options and "stonewall" not in options
        if group and job["groupid"] != number and not together:
            yield group
            group = []
        number = job["groupid"]
        group.append((options, job))
    if group:
        yield group


def _step(group: Sequence[Entry], name: str, started_ns: int) -> FinishedStep:
    jobs, results, notes = [], [], []
    for options, entry in group:
        measured, elapsed_ns = {}, 0
        for operation in OPERATIONS:
            stats, note = _stats(entry[operation])
            if stats is None:
                continue
            notes += [note] if note else []
            measured[operation] = OperationResult(stats.ios, stats.bytes, histogram_of(stats))
            elapsed_ns = max(elapsed_ns, stats.runtime_ms * MS)
        flushes = read_operation(entry["sync"]) if "sync" in entry else None
        flush = None if flushes is None or not flushes.bins else flush_result(flushes)
        result_of_job = JobResult(str(entry["jobname"]), elapsed_ns, measured, flush=flush)
        jobs.append(_job(str(entry["jobname"]), options, result_of_job))
        results.append(result_of_job.following(jobs[-1]))
        if int(entry.get("error", 0)):
            notes.append(f"job {entry['jobname']} ended with error {int(entry['error'])}")
    unknown = Counters()
    result = StepResult(
        started_ns=started_ns,
        elapsed_ns=max((one.elapsed_ns for one in results), default=0),
        jobs=tuple(results),
        intervals={},
        counters_before=unknown,
        counters_after=unknown,
        warnings=tuple(dict.fromkeys(notes)),
    )
    return FinishedStep(Workload(name, tuple(jobs)), result)


def _stats(raw: Mapping[str, Any]) -> tuple[OperationStats | None, str]:
    """Stats of a "read", "write" or "trim" object, and what must be said of them."""
    if not int(raw["total_ios"]):
        return None, ""
    for key, note in (("lat_ns", ""), ("clat_ns", COMPLETION)):
        if raw.get(key, {}).get("bins"):
            return read_operation({**raw, "lat_ns": raw[key]}), note
    bare = {"N": int(raw["total_ios"]), "min": 0, "max": 0, "mean": 0, "stddev": 0}
    return read_operation({**raw, "lat_ns": bare}), NO_BINS


def _job(name: str, options: Mapping[str, str], result: JobResult) -> Job:
    """The job of the model, as far as the options tell."""
    direction = options.get("rw", options.get("readwrite", "read")).partition(":")[0]
    ios = {name: one.ios for name, one in result.operations.items()}
    total = sum(ios.values()) or 1
    read_pct = _MIXES.get(direction, 100 * ios.get("read", 0) / total)
    return Job(
        name=name,
        pattern="random" if direction.startswith("rand") else "sequential",
        read_pct=read_pct,
        trim_pct=100 * ios.get("trim", 0) / total,
        block_size=_block_bytes(options, result),
        threads=_whole(options.get("numjobs")),
        queue_depth=_whole(options.get("iodepth")),
        duration_ns=result.elapsed_ns or MS,
    )


def _block_bytes(options: Mapping[str, str], result: JobResult) -> int:
    """The block size of the options; without one, the mean of what was transferred."""
    text = options.get("bs", options.get("blocksize", "")).partition(",")[0]
    if re.fullmatch(r"\d+", text):
        return int(text) or 4096
    if re.fullmatch(r"\d+[kKmMgG]", text):
        return parse_size(f"{text[:-1]} {text[-1].upper()}iB")
    ios = sum(one.ios for one in result.operations.values())
    return max(1, round(sum(one.bytes for one in result.operations.values()) / max(1, ios)))


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() and int(text) else 1


def range_bytes(document: Document) -> int | None:
    """The largest size that a job was given; None if none says one in bytes."""
    sizes = []
    common = document.get("global options", {})
    for job in document.get("jobs", ()):
        text = str({**common, **job.get("job options", {})}.get("size", ""))
        if (found := re.fullmatch(r"(\d+)([kmgt]?)(?:i?b)?", text.lower())) is not None:
            sizes.append(int(found[1]) << 10 * " kmgt".index(found[2] or " "))
    return max(sizes, default=0) or None
