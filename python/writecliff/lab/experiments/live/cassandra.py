"""Cassandra with its commit log and its tables on file systems of their own.

Cassandra itself can put nothing else apart: which tables were flushed and which compacted shows in
no folder. So this is the assignment that HotStorage 2014 calls "Multi-Log".
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from writecliff.capture.apps.cassandra import VALUE_BYTES, Node, find_java
from writecliff.capture.apps.jars import VERSION, jars
from writecliff.errors import WritecliffError
from writecliff.lab.experiments.live.model import MIB, Client, Part

LOG, TABLES = "log", "tables"
_COMMIT_LOG_MIB = 48  # at most, of which the newest segment may be beyond
_PHASE = re.compile(r"mixed: (\d+) operations in ([\d.]+) s, .*")
_LATENCY = re.compile(r"write latency, mixed: (.*)")
_POINTS = ("mean", "p50", "p99", "p99_9", "max")


@dataclass(frozen=True)
class Cassandra:
    """Half reads and half writes of random records, 128 at a time."""

    records: int = 150_000
    aging: int = 200_000  # writes of the preparation
    operations: int = 200_000
    slow_down: float = 300.0
    unit_bytes: int = 3 * MIB
    parts: tuple[Part, ...] = (
        Part(LOG, "commit log", 96 * MIB, 1),
        Part(TABLES, "flushed and compacted tables, metadata", 208 * MIB, 2),
    )
    name: str = "fms-cassandra"
    title: str = "Cassandra with and without streams, live"
    claim: str = "twice the lifetime and 45 % more I/O (Samsung, Flash Memory Summit 2016)"
    claimed_lifetime: float = 2.0
    claimed_io: float | None = 1.45
    client: str = "writes of a client that keeps 128 requests outstanding, from request to reply"

    @property
    def about(self) -> str:
        return (
            f"Cassandra {VERSION}: {self.records:,} records of {VALUE_BYTES} bytes, "
            f"{self.aging:,} random writes of preparation, {self.operations:,} operations "
            "measured, half of them reads"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            "The commit log alone has a stream of its own (Multi-Log). Cassandra has no setting "
            "that puts flushed tables and compacted ones apart; the replay of a capture "
            "(writecliff lab experiment fms-cassandra) has the assignment that does.",
            "The measured session includes the start of the server and its end, at which it "
            "flushes; the client's figures do not. Reads come from the page cache, mostly.",
        )

    def check(self) -> None:
        find_java()
        jars(_unheard)

    def prepare(self, folders: Mapping[str, Path], work: Path, seed: int) -> None:
        node = self._node(folders, work)
        with node.running(os.environ):
            node.load(self.records, self.aging, 0, seed=seed)

    def measure(self, folders: Mapping[str, Path], work: Path, seed: int) -> Client:
        node = self._node(folders, work)
        with node.running(os.environ):
            said = node.load(self.records, 0, self.operations, seed=seed + 1, again=True)
        return client_of(said)

    def _node(self, folders: Mapping[str, Path], work: Path) -> Node:
        make = partial(Node.in_folder, work, _unheard, commit_log_mib=_COMMIT_LOG_MIB)
        return make(root=folders[TABLES] / "cassandra", commit_log=folders[LOG] / "commitlog")


def _unheard(_: str) -> None:
    """Progress that nobody needs."""


def client_of(lines: Sequence[str]) -> Client:
    """The figures of the mixed phase in what the client prints. Raises WritecliffError if they are
    not there.
    """
    phase = next((found for line in lines if (found := _PHASE.match(line))), None)
    points = next((found for line in lines if (found := _LATENCY.match(line))), None)
    words = points[1].split() if points else []
    taken = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    if phase is None or tuple(taken) != _POINTS:
        raise WritecliffError("Cassandra's client reports no figures of its mixed phase")
    return Client(int(phase[1]), float(phase[2]), taken)
