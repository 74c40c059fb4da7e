"""Job entries in the JSON output of any fio version, from one machine or several clients.

Errors that `Fields` raises name the invalid field. This module hides differences between versions:

* before fio 2.99 bytes are in KiB, and latencies, in µs, have no readable bins;
* `client_stats` replaces `jobs` with the jobs of each client, and with the sum over all clients as
  another job;
* `job_start`, since fio 3.36, is the time at which a job started to measure.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from writecliff.engines.base import OPERATIONS, Operation
from writecliff.errors import ConfigError
from writecliff.workload.fiojob.values import Context, FioValueError, time_us

MS = 1_000_000
_ALL_CLIENTS = "All clients"
_IN_BYTES_FROM = (2, 99)
_VERSION = re.compile(r"fio-(\d+)\.(\d+)")
_OF_ONE_KIND: Mapping[str, Operation] = {
    "read": "read", "randread": "read", "write": "write", "randwrite": "write", "trim": "trim",
    "randtrim": "trim",
}  # fmt: skip


@dataclass(frozen=True)
class Fields:
    """A JSON object in the document, and the object's name in errors."""

    raw: Mapping[str, Any]
    where: str

    def _value(self, name: str) -> Any:
        if name not in self.raw:
            raise ConfigError(f"{self.where} does not contain '{name}'")
        return self.raw[name]

    def _wrong(self, name: str, kind: str) -> ConfigError:
        text = str(self.raw[name])
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        article = "an" if kind == "object" else "a"
        return ConfigError(f"{self.where}: '{name}' is not {article} {kind}: {shown}")

    def number(self, name: str, default: float | None = None) -> float:
        """Return a number of 0 or more.

        Raises:
            ConfigError: If the field is missing and has no default, or is not a number of 0 or
                more.
        """
        if default is not None and name not in self.raw:
            return default
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "number")
        if not (math.isfinite(value) and 0 <= value < 1 << 63):
            raise self._wrong(name, "number of 0 or more")
        return value

    def whole(self, name: str, default: int | None = None) -> int:
        """Return a number of 0 or more, rounded down.

        Raises:
            ConfigError: If the field is missing and has no default, or is not a number of 0 or
                more.
        """
        return int(self.number(name, default))

    def text(self, name: str) -> str:
        """Return a string.

        Raises:
            ConfigError: If the field is missing or not a string.
        """
        value = self._value(name)
        if not isinstance(value, str):
            raise self._wrong(name, "text")
        return value

    def part(self, name: str, where: str | None = None) -> Fields:
        """Return a nested object, which is empty if the field is missing.

        Raises:
            ConfigError: If the field is not an object.
        """
        value = self.raw.get(name, {})
        if not isinstance(value, dict):
            raise self._wrong(name, "object")
        return Fields(value, f"{self.where}, {where or name}")

    def options(self, name: str) -> dict[str, str]:
        """Return a nested object's values as strings.

        Raises:
            ConfigError: The field is not an object.
        """
        return {key: str(value) for key, value in self.part(name).raw.items()}

    def parts(self, name: str) -> list[Any]:
        """Return a list.

        Raises:
            ConfigError: If the field is missing or not a list.
        """
        value = self._value(name)
        if not isinstance(value, list):
            raise self._wrong(name, "list")
        return value


@dataclass(frozen=True)
class Entry:
    """A job in fio's output."""

    name: str
    options: Mapping[str, str]
    operations: Mapping[Operation, Fields]
    sync: Fields  # Flush statistics.
    error: int
    section: int  # Section number, which is equal for jobs that started together.
    # Start of the measurement on fio's clock, or relative to the end of the previous section.
    start_ms: float
    runtime_ms: float

    @property
    def end_ms(self) -> float:
        """End of the measurement in ms, on the same clock as `start_ms`."""
        return self.start_ms + self.runtime_ms


def last_document(text: str) -> Mapping[str, Any] | None:
    """Return fio's last complete document in a text, or None if there is none.

    fio's output may also contain messages, other output formats and, if `--status-interval` was
    given, several documents that contain cumulative counters.
    """
    decoder, latest, at = json.JSONDecoder(), None, 0
    while match := re.compile(r"^\s*\{", re.MULTILINE).search(text, at):
        begin = match.end() - 1
        try:
            value, at = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            at = begin + 1
            continue
        if isinstance(value, dict) and "fio version" in value:
            latest = value
    return latest


def job_fields(document: Mapping[str, object], name: str) -> list[Fields]:
    """Return the objects of all jobs, excluding the sum over clients.

    Raises:
        ConfigError: If the document has no jobs, or a job is not an object.
    """
    whole = Fields(document, name)
    listed = whole.parts("client_stats" if "client_stats" in document else "jobs")
    jobs = [entry for entry in listed if not (isinstance(entry, dict) and _is_sum(entry))]
    if not jobs:
        raise ConfigError(f"{name} contains no jobs")
    fields = []
    for number, job in enumerate(jobs, 1):
        if not isinstance(job, dict):
            raise ConfigError(f"{name}: job {number} is not an object")
        fields.append(Fields(job, f"{name}: job {job.get('jobname', number)}"))
    return fields


def _is_sum(job: Mapping[str, Any]) -> bool:
    return job.get("jobname") == _ALL_CLIENTS and "job options" not in job


def entries_of(document: Mapping[str, object], name: str) -> list[Entry]:
    """Return all jobs and their measured times.

    Raises:
        ConfigError: If the document is not in fio's format, or reports reads and writes together.
    """
    common = Fields(document, name).options("global options")
    jobs = job_fields(document, name)
    unit = _byte_unit(document)
    known_starts = all(job.number("job_start", 0) > 0 for job in jobs)
    hosts = {host for job in jobs if (host := _host(job))}
    sections = _sections(jobs)
    entries = []
    for job, section in zip(jobs, sections, strict=True):
        options = {**common, **job.options("job options")}
        operations = _operations(job, options, unit)
        runtime_ms = max(
            (operation.number("runtime") for operation in operations.values()), default=0.0
        )
        start_ms = job.number("job_start") if known_starts else _delay_ms(options)
        host = f"@{_host(job)}" if len(hosts) > 1 else ""
        entries.append(
            Entry(f"{job.text('jobname')}{host}", options, operations, job.part("sync"),
                  job.whole("error", 0), 0 if known_starts else section, start_ms, runtime_ms)
        )  # fmt: skip
    return entries


def _host(job: Fields) -> str:
    """Return a client's address, or "" if fio ran locally."""
    host, port = job.raw.get("hostname"), job.raw.get("port")
    return "" if host is None else f"{host}:{port}" if port is not None else str(host)


def _sections(jobs: Sequence[Fields]) -> Iterator[int]:
    """Yield each job's section number, where jobs in the same section start together.

    Sections are the job groups on each machine, in order. `new_group` alone does not start a
    section.
    """
    at: dict[str, tuple[int, int]] = {}  # Last group and section of each machine.
    for job in jobs:
        host, group = _host(job), job.whole("groupid")
        options = job.options("job options")
        before, section = at.get(host, (group, 0))
        together = "new_group" in options and "stonewall" not in options
        if group != before and not together:
            section += 1
        at[host] = group, section
        yield section


def _delay_ms(options: Mapping[str, str]) -> float:
    """Return the time in ms from the end of the previous section to a job's measurement start."""
    total_us = 0
    for name in ("startdelay", "ramp_time"):
        try:
            total_us += time_us("s")(options.get(name, "0").partition("-")[0], Context())
        except FioValueError:
            continue  # Only fio can evaluate this expression.
    return total_us / 1000


def _byte_unit(document: Mapping[str, object]) -> int:
    version = _VERSION.match(str(document.get("fio version", "")))
    old = version is not None and (int(version[1]), int(version[2])) < _IN_BYTES_FROM
    return 1024 if old else 1


def _operations(job: Fields, options: Mapping[str, str], unit: int) -> dict[Operation, Fields]:
    """Return the fields for each of a job's operations, with `io_bytes` in bytes."""
    kinds = {name: job.part(name) for name in OPERATIONS if name in job.raw}
    if not kinds:
        if "mixed" not in job.raw:
            raise ConfigError(f"{job.where} has none of 'read', 'write' and 'trim'")
        kinds = _unmixed(job, options)
    operations: dict[Operation, Fields] = {}
    for name, fields in kinds.items():
        if fields.whole("total_ios"):
            size = {"io_bytes": fields.whole("io_bytes") * unit}
            operations[name] = Fields({**fields.raw, **size}, fields.where)
    return operations


def _unmixed(job: Fields, options: Mapping[str, str]) -> dict[Operation, Fields]:
    """Return the single operation of a job that has `unified_rw_reporting=1`.

    Raises:
        ConfigError: If the job has several operations.
    """
    mixed = job.part("mixed")
    direction = options.get("rw", options.get("readwrite", "read")).partition(":")[0]
    if direction not in _OF_ONE_KIND:
        raise ConfigError(
            f"{job.where} reports its reads and writes together (unified_rw_reporting=1)",
            hint="run fio with unified_rw_reporting=both, or omit the option",
        )
    return {_OF_ONE_KIND[direction]: mixed}


def together(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Split entries into steps, where each step consists of jobs whose times overlap.

    Overlaps shorter than 10 ms are ignored, because fio rounds run times.
    """
    steps: list[list[Entry]] = []
    end_ms = 0.0
    for entry in sorted(entries, key=lambda entry: (entry.section, entry.start_ms)):
        ran = bool(steps) and steps[-1][0].section == entry.section
        slack_ms = min(10.0, entry.runtime_ms / 2)
        if ran and (entry.start_ms < end_ms - slack_ms or not entry.runtime_ms or not end_ms):
            steps[-1].append(entry)
            end_ms = max(end_ms, entry.end_ms)
        else:
            steps.append([entry])
            end_ms = entry.end_ms
    return steps
