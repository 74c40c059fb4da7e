"""What became of a program's I/O: the steps of its way, and whose the requests to the drive are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from writecliff.capture.stack.extents import Waits
from writecliff.capture.stack.origins import OTHERS
from writecliff.capture.stack.steps import Step, Traffic

MEANINGS = {
    "calls": "system calls of the program on files below the root",
    "bios": "what the file system asks the block layer for, for all programs",
    "requests": "what the driver gets after merging, without those of other programs",
}
"""The steps by their names."""


@dataclass(frozen=True)
class OriginRow:
    """The requests of one origin and operation."""

    origin: int  # see `origins`
    name: str
    op: str  # read, write, punch, fsync
    traffic: Traffic
    queue_p50_ns: int | None
    service_p50_ns: int | None
    service_p99_ns: int | None

    @property
    def is_others(self) -> bool:
        return self.origin == OTHERS

    def mapping(self) -> dict[str, Any]:
        return {
            "origin": self.name,
            "op": self.op,
            **self.traffic.mapping(),
            "queue_p50_ns": self.queue_p50_ns,
            "service_p50_ns": self.service_p50_ns,
            "service_p99_ns": self.service_p99_ns,
        }


@dataclass(frozen=True)
class PageCache:
    """What the page cache did, for files of the file system."""

    asked_bytes: int  # read calls
    read_in_bytes: int  # of data from the drive
    readahead_bytes: int  # of these, read ahead
    added_pages: int  # to the cache, of 4 KiB
    removed_pages: int
    dirtied_folios: int  # times that a clean folio (a page or several) became dirty

    @property
    def hit_ratio(self) -> float | None:
        """The share of what was asked for that did not have to be read in; None without reads."""
        if not self.asked_bytes:
            return None
        return max(0.0, 1 - self.read_in_bytes / self.asked_bytes)

    def mapping(self) -> dict[str, Any]:
        return {"hit_ratio": self.hit_ratio, **vars(self)}


@dataclass(frozen=True)
class Journal:
    """Commits of the journal (jbd2: ext4)."""

    commits: int
    handles: int  # operations of the file system in them
    blocks: int  # written to the journal


@dataclass(frozen=True)
class Stack:
    """All of it. Times are since the capture began."""

    command: tuple[str, ...]
    root: str
    file_system: Mapping[str, Any]
    program_ns: int  # when the program had ended; the rest was written back then
    duration_ns: int
    calls: Step
    bios: Step | None  # None for a device without requests, which gets the bios
    requests: Step
    origins: tuple[OriginRow, ...]
    cache: PageCache
    journal: Journal | None
    waits: Waits | None
    written: Mapping[str, tuple[list[float], list[float]]] = field(repr=False)
    """Seconds and bytes written until then: by calls, data, metadata and journal."""
    lost_events: int = 0
    exit_code: int = 0
    notes: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for step in (self.calls, self.bios, self.requests) if step is not None)

    def amplification(self, step: Step) -> float | None:
        """Bytes written in a step for each byte that the program wrote; None if it wrote none."""
        asked = self.calls.writes.bytes
        return step.writes.bytes / asked if asked else None

    @property
    def data_amplification(self) -> float | None:
        """The same of data alone, without metadata and journal."""
        asked = self.calls.writes.bytes
        return self.written_bytes("data") / asked if asked else None

    def written_bytes(self, kind: str) -> int:
        """Bytes that the drive was written: "data", "metadata", "journal"."""
        return sum(
            row.traffic.bytes
            for row in self.origins
            if row.op == "write" and row.name.startswith(kind)
        )

    def mapping(self) -> dict[str, Any]:
        """All of it, as `writecliff capture --stack --json` prints it."""
        return {
            "command": list(self.command),
            "exit_code": self.exit_code,
            "root": self.root,
            "file_system": dict(self.file_system),
            "program_ns": self.program_ns,
            "duration_ns": self.duration_ns,
            "steps": [
                {**step.mapping(), "write_amplification": self.amplification(step)}
                for step in self.steps
            ],
            "origins": [row.mapping() for row in self.origins],
            "page_cache": self.cache.mapping(),
            "journal": None if self.journal is None else vars(self.journal),
            "data_amplification": self.data_amplification,
            "write_wait": None if self.waits is None else self.waits.mapping(),
            "lost_events": self.lost_events,
            "notes": list(self.notes),
        }
