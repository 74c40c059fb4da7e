"""Result of a stack capture: the I/O at each layer, and the origins of the drive's requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from writecliff.capture.stack.extents import Waits
from writecliff.capture.stack.origins import OTHERS
from writecliff.capture.stack.steps import Step, Traffic

MEANINGS = {
    "calls": "system calls of the program on files below the root",
    "bios": "I/O of the file system to the block layer, for all programs",
    "requests": "requests to the driver after merging, without those of other programs",
}
"""Descriptions of the layers, by name."""


@dataclass(frozen=True)
class OriginRow:
    """Requests with the same origin and operation."""

    origin: int  # Request origin (see `origins`).
    name: str
    op: str  # Operation: read, write, punch or fsync.
    traffic: Traffic
    queue_p50_ns: int | None
    service_p50_ns: int | None
    service_p99_ns: int | None

    @property
    def is_others(self) -> bool:
        """`True` for requests from other programs."""
        return self.origin == OTHERS

    def mapping(self) -> dict[str, Any]:
        """Return the row in the format of `writecliff capture --stack --json`."""
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
    """Page cache activity for files on the file system."""

    asked_bytes: int  # Number of bytes that read calls requested.
    read_in_bytes: int  # Number of bytes read from the drive.
    readahead_bytes: int  # Number of bytes that were read ahead.
    added_pages: int  # Number of 4 KiB pages added to the page cache.
    removed_pages: int
    dirtied_folios: int  # Number of times that a clean folio (one or more pages) became dirty.

    @property
    def hit_ratio(self) -> float | None:
        """Fraction of read calls that did not read from the drive, or `None` if none ran."""
        if not self.asked_bytes:
            return None
        return max(0.0, 1 - self.read_in_bytes / self.asked_bytes)

    def mapping(self) -> dict[str, Any]:
        """Return the activity in the format of `writecliff capture --stack --json`."""
        return {"hit_ratio": self.hit_ratio, **vars(self)}


@dataclass(frozen=True)
class Journal:
    """Journal commits of ext4 (jbd2)."""

    commits: int
    handles: int  # Number of file system operations in the commits.
    blocks: int  # Number of blocks written to the journal.


@dataclass(frozen=True)
class Stack:
    """Result of a stack capture. Times are relative to the start of the capture."""

    command: tuple[str, ...]
    root: str
    file_system: Mapping[str, Any]
    program_ns: int  # Time when the program exited; later writes are write-back.
    duration_ns: int
    calls: Step
    bios: Step | None  # Bios; `None` for a device that creates no requests.
    requests: Step
    origins: tuple[OriginRow, ...]
    cache: PageCache
    journal: Journal | None
    waits: Waits | None
    written: Mapping[str, tuple[list[float], list[float]]] = field(repr=False)
    """Cumulative bytes written over time (seconds, bytes): calls, data, metadata and journal."""
    lost_events: int = 0
    exit_code: int = 0
    notes: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """Captured layers, from the system calls down to the drive."""
        return tuple(step for step in (self.calls, self.bios, self.requests) if step is not None)

    def amplification(self, step: Step) -> float | None:
        """Return the bytes written at a layer per byte that the program wrote, or `None`."""
        asked = self.calls.writes.bytes
        return step.writes.bytes / asked if asked else None

    @property
    def data_amplification(self) -> float | None:
        """Data bytes written to the drive per byte that the program wrote, or `None`."""
        asked = self.calls.writes.bytes
        return self.written_bytes("data") / asked if asked else None

    def written_bytes(self, kind: str) -> int:
        """Return the "data", "metadata" or "journal" bytes written to the drive."""
        return sum(
            row.traffic.bytes
            for row in self.origins
            if row.op == "write" and row.name.startswith(kind)
        )

    def mapping(self) -> dict[str, Any]:
        """Return the result in the format of `writecliff capture --stack --json`."""
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
