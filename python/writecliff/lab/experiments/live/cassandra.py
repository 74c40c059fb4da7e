"""Cassandra, with its commit log and tables on separate file systems.

Cassandra cannot separate other files, because flushed and compacted tables share their folders.
HotStorage 2014 calls this assignment "Multi-Log".
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
_COMMIT_LOG_MIB = 48  # Size limit, which the newest segment may exceed.
_PHASE = re.compile(r"mixed: (\d+) operations in ([\d.]+) s, .*")
_LATENCY = re.compile(r"write latency, mixed: (.*)")
_POINTS = ("mean", "p50", "p99", "p99_9", "max")


@dataclass(frozen=True)
class Cassandra:
    """Equal numbers of random record reads and writes, with 128 outstanding."""

    records: int = 150_000
    aging: int = 200_000  # Number of writes that age the database.
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
        """Sentence that states the version and the load."""
        return (
            f"Cassandra {VERSION}: {self.records:,} records of {VALUE_BYTES} bytes, "
            f"{self.aging:,} random writes of preparation, {self.operations:,} operations "
            "measured, half of them reads"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that state the experiment's limitations."""
        return (
            "Only the commit log has a separate stream (Multi-Log). Cassandra has no setting that "
            "separates flushed from compacted tables; the replay of a capture (writecliff lab "
            "experiment fms-cassandra) has an assignment that does.",
            "The measured session includes starting and stopping the server, which flushes its "
            "data, but the client's figures do not. Most reads are served from the page cache.",
        )

    def check(self) -> None:
        """Check that Java and Cassandra's packages are available.

        Raises:
            TargetError: If Java or a package is missing.
        """
        find_java()
        jars(_ignore)

    def prepare(self, folders: Mapping[str, Path], work: Path, seed: int) -> None:
        """Insert all records and overwrite `aging` random records."""
        node = self._node(folders, work)
        with node.running(os.environ):
            node.load(self.records, self.aging, 0, seed=seed)

    def measure(self, folders: Mapping[str, Path], work: Path, seed: int) -> Client:
        """Run the mixed load and return the client's figures."""
        node = self._node(folders, work)
        with node.running(os.environ):
            lines = node.load(self.records, 0, self.operations, seed=seed + 1, again=True)
        return client_of(lines)

    def _node(self, folders: Mapping[str, Path], work: Path) -> Node:
        make = partial(Node.in_folder, work, _ignore, commit_log_mib=_COMMIT_LOG_MIB)
        return make(root=folders[TABLES] / "cassandra", commit_log=folders[LOG] / "commitlog")


def _ignore(_: str) -> None:
    """Ignore progress messages."""


def client_of(lines: Sequence[str]) -> Client:
    """Parse the figures of the mixed phase from the client's output.

    Raises:
        WritecliffError: If the output does not contain the figures.
    """
    phase = next((match for line in lines if (match := _PHASE.match(line))), None)
    points = next((match for line in lines if (match := _LATENCY.match(line))), None)
    words = points[1].split() if points else []
    taken = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    if phase is None or tuple(taken) != _POINTS:
        raise WritecliffError("Cassandra's client reports no figures for its mixed phase")
    return Client(int(phase[1]), float(phase[2]), taken)
