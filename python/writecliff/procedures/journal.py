"""The record of a run in its directory, with manifest changes and rows of earlier sessions.

A run can be resumed only by the same test, with the same options, on the same drive. The store
writes the files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from writecliff.engines.base import CacheReport, DeviceIdentity, PowerStates, PurgeReport
from writecliff.errors import ConfigError, StoreError, TargetError
from writecliff.procedures.measure import EXTRA_COLUMNS, row_of
from writecliff.procedures.model import Procedure, StepRow
from writecliff.store.manifest import Manifest, Status, now
from writecliff.store.record import RoundRecord
from writecliff.store.rundir import RunDirectory

# Steps are stored in groups, because writing three files per step would take longer than some
# steps. This is safe because a simulated drive repeats the steps since its last checkpoint.
GROUPED_S = 2.0
_SAME_DRIVE = ("model", "serial", "backing", "capacity_bytes", "device_hash", "scale")


def stored_rows(run: RunDirectory) -> list[StepRow]:
    """Return the complete steps of a run, in order. Raises StoreError if the steps are damaged."""
    table = run.rounds()
    for column in EXTRA_COLUMNS:
        if table.num_rows and column not in table.column_names:
            raise StoreError(
                f"{run.path} does not contain the column '{column}', so the run cannot be resumed",
                hint="start a new run instead of resuming this run",
            )
    return [row_of(columns) for columns in table.to_pylist()]


class Journal:
    """Writer for a session of a run, used inside `with journal.opened(...)`."""

    def __init__(
        self,
        directory: Path,
        procedure: Procedure,
        identity: DeviceIdentity,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare a session. `clock` returns monotonic wall-clock seconds."""
        self._directory = directory
        self._procedure = procedure
        self._identity = identity
        self._clock = clock
        self._waiting: list[RoundRecord] = []  # Steps that have not been stored yet.
        self._stored_s = clock()
        self._run: RunDirectory

    @contextmanager
    def opened(self, resume: bool) -> Iterator[None]:
        """Create the directory, or open it to resume its run.

        Raises:
            ConfigError: If the run is complete, or the directory is in use.
            TargetError: If the drive is not the drive that the run was measured on.
            StoreError: If the directory cannot be written, or is damaged.
        """
        self._run = self._reopen() if resume else self._create()
        with self._run:
            yield

    def _create(self) -> RunDirectory:
        procedure = self._procedure
        manifest = Manifest(
            procedure=procedure.name,
            title=procedure.title,
            edition=procedure.edition,
            device=self._identity,
            options=procedure.options_mapping(),
            seed=procedure.seed,
            setup=dict(procedure.setup(self._identity)),
            deviations=tuple({**asdict(d), "text": str(d)} for d in procedure.deviations()),
            write_cache_required=procedure.write_cache,
            status="running",
        )
        return RunDirectory.create(self._directory, manifest)

    def _reopen(self) -> RunDirectory:
        stored = RunDirectory.open(self._directory)
        if stored.status == "complete":
            raise ConfigError(
                f"the run in {self._directory} is complete, so there is nothing to resume",
                hint=f"writecliff report {self._directory}",
            )
        self._check_same_drive(stored.manifest.device)
        run = RunDirectory.open(self._directory, write=True)
        run.update(status="running", reason="")
        return run

    def _check_same_drive(self, then: DeviceIdentity) -> None:
        if not (then.simulated or then.serial or then.backing):
            raise TargetError(
                f"{then.target} has neither a serial number nor another identity, so a run on it "
                "cannot be resumed"
            )
        for name in _SAME_DRIVE:
            old, new = getattr(then, name), getattr(self._identity, name)
            if name == "backing" and then.serial and old is None:
                continue  # Older runs store no backing device in addition to the serial number.
            if old != new:
                raise TargetError(
                    f"{self._identity.target} is not the drive that the run was started on: "
                    f"its {name.replace('_', ' ')} is {new}, not {old}"
                )

    # -- earlier sessions -------------------------------------------------------------------

    def rows(self) -> list[StepRow]:
        """Return the steps of earlier sessions."""
        return stored_rows(self._run)

    def warnings(self) -> list[str]:
        """Return the warnings of earlier sessions."""
        return list(self._run.manifest.warnings)

    @property
    def prepares(self) -> bool:
        """`True` if the run has set the write cache, which it does when it purges the drive."""
        return self._run.manifest.write_cache is not None

    @property
    def device_zero_ns(self) -> int | None:
        """Device clock at the first step of the run."""
        return self._run.manifest.extra.get("device_zero_ns")

    @device_zero_ns.setter
    def device_zero_ns(self, value: int) -> None:
        self._extra(device_zero_ns=value)

    @property
    def steps(self) -> int:
        """Number of stored steps."""
        return self._run.steps

    # -- events -----------------------------------------------------------------------------

    def phase(self, name: str, detail: str = "") -> None:
        """Record the start of a phase."""
        self.store()
        entry = {"name": name, "detail": detail, "started": now()}
        self._run.update(phases=(*self._run.manifest.phases, entry))

    def prepared(self, purge: PurgeReport, cache: CacheReport, warnings: Sequence[str]) -> None:
        """Record the purge of the drive and the state of its write cache."""
        self._run.update(purge=purge, write_cache=cache, warnings=tuple(warnings))

    def power(self, states: PowerStates | None) -> PowerStates | None:
        """Record a session's power state, and return the previous session's power state."""
        before = self._run.manifest.power
        if states is not None:
            self._run.update(power=states)
        return before

    def append(self, record: RoundRecord) -> None:
        """Add a step, which survives a kill once it is stored.

        Steps of a real drive are stored immediately, and those of a simulated drive at most
        `GROUPED_S` of wall-clock time and one step later.
        """
        self._waiting.append(record)
        if not self._identity.simulated or self._clock() - self._stored_s >= GROUPED_S:
            self.store()

    def store(self) -> None:
        """Store the pending steps. Raises StoreError if none of the steps could be stored."""
        records, self._waiting = self._waiting, []
        if records:
            self._run.append_rounds(records)
        self._stored_s = self._clock()

    def resumed(self, steps: int, *, exact: bool) -> None:
        """Record an interruption; `exact` means that the drive resumes from its exact state."""
        entry = {"after_steps": steps, "resumed": now(), "exact": exact}
        self._run.update(interruptions=(*self._run.manifest.interruptions, entry))

    def health(self, when: str, values: Mapping[str, object] | None) -> None:
        """Store the drive's health `when` ("before" or "after"), but never replace a "before"."""
        health = self._run.manifest.health
        if values is not None and (when == "after" or when not in health):
            self._run.update(health={**health, when: dict(values)})

    def close(self, status: Status, reason: str, partial: StepRow | None = None) -> None:
        """Close the session, leaving a run that can be resumed."""
        try:
            self.store()
        finally:  # A full disk may still have room for the failure reason.
            if partial is not None:
                self._extra(partial=asdict(partial))
            self._run.finish(status, reason=reason)

    def complete(self, ended_by: str, reason: str, warnings: Sequence[str]) -> None:
        """Mark the run as complete."""
        self.store()
        self._run.finish("complete", reason=reason, ended_by=ended_by, warnings=tuple(warnings))

    def _extra(self, **values: Any) -> None:
        self._run.update(extra={**self._run.manifest.extra, **values})


class NoJournal(Journal):
    """A journal that stores nothing, for simulating a procedure without a run directory."""

    def __init__(self) -> None:
        """Create a journal without steps."""
        self._zero_ns: int | None = None

    @property
    def device_zero_ns(self) -> int | None:
        """Device clock at the first step, held in memory."""
        return self._zero_ns

    @device_zero_ns.setter
    def device_zero_ns(self, value: int) -> None:
        self._zero_ns = value

    def phase(self, name: str, detail: str = "") -> None:
        """Discard a phase."""

    def prepared(self, purge: PurgeReport, cache: CacheReport, warnings: Sequence[str]) -> None:
        """Discard the purge record."""

    def power(self, states: PowerStates | None) -> None:
        """Discard the power state record."""

    def append(self, record: RoundRecord) -> None:
        """Discard a step."""

    def store(self) -> None:
        """Do nothing."""
