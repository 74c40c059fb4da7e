"""A suite, sweep or choice on disk: `suite.json` (schema "writecliff/suite/1") and its runs.

Each member has a directory named after it. A member's status is read only from its run directory
and is not stored elsewhere, so the status cannot become inconsistent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from writecliff.engines.target import is_simulated, target_now
from writecliff.errors import ConfigError, StoreError
from writecliff.store.checksums import damaged, parse_document, write_document
from writecliff.store.files import claim_directory, is_plain_name, read_regular
from writecliff.store.manifest import MANIFEST_NAME, Status, now
from writecliff.store.manifest import SUITE_NAME as SUITE_NAME  # noqa: PLC0414 - exported here
from writecliff.store.rundir import RunDirectory
from writecliff.store.typed import typed

SCHEMA = "writecliff/suite/1"
Kind = Literal["suite", "sweep", "choice"]
_COMMANDS: Mapping[Kind, str] = {"suite": "suite", "sweep": "sweep", "choice": "choose"}


@dataclass(frozen=True)
class Member:
    """A run in a set, with its test, options and target, and for sweeps the varied settings."""

    test: str
    options: Mapping[str, Any]
    target: str
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Stored:
    """Contents of `suite.json`."""

    kind: Kind
    about: str
    members: Mapping[str, Member]
    created: str


@dataclass(frozen=True)
class SuiteFolder:
    """A set of runs on disk: a suite, a sweep or a choice.

    A suite has all tests in an edition, a sweep has one test with varied options, and a choice has
    one load on several drives. `members` are in order. `about` is a suite's edition, a sweep's
    varied keys (comma-separated), or a choice's load.
    """

    path: Path
    kind: Kind
    about: str
    members: Mapping[str, Member]
    created: str

    @classmethod
    def create(
        cls,
        path: Path,
        kind: Kind,
        about: str,
        members: Mapping[str, Member],
        *,
        is_claimed: bool = False,
    ) -> Self:
        """Write `suite.json` to the directory `path`, which must be nonexistent or empty.

        If `is_claimed` is set, `path` is a directory that the caller has already created.

        Raises:
            ConfigError: If the directory is already in use.
            StoreError: If the file cannot be written.
        """
        if not is_claimed:
            claim_directory(path)
        folder = cls(path, kind, about, members, now())
        fields = asdict(folder)
        del fields["path"]
        write_document(path / SUITE_NAME, SCHEMA, fields)
        return folder

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a set of runs.

        Raises:
            ConfigError: `path` has no `suite.json`.
            StoreError: If `suite.json` is damaged or unreadable.
        """
        try:
            data = read_regular(path / SUITE_NAME)
        except (FileNotFoundError, NotADirectoryError):
            raise ConfigError(
                f"{path} is not a suite: it does not contain {SUITE_NAME}",
                hint="specify the directory that `writecliff suite` printed",
            ) from None
        except OSError as error:
            raise StoreError(f"cannot read {path / SUITE_NAME}: {error.strerror}") from None
        return cls.parse(data, path)

    @classmethod
    def parse(cls, data: bytes, path: Path) -> Self:
        """Return the set of runs for the contents `data` of `suite.json` in `path`.

        Raises:
            StoreError: If the contents are damaged.
        """
        fields = parse_document(data, path / SUITE_NAME, SCHEMA)
        stored = typed(fields, _Stored, path / SUITE_NAME)
        for name in stored.members:
            if not is_plain_name(name):
                raise damaged(path / SUITE_NAME, f"the member {name!r} is not a plain folder name")
        return cls(path, stored.kind, stored.about, stored.members, stored.created)

    @property
    def command(self) -> str:
        """Command that creates this type of set."""
        return _COMMANDS[self.kind]

    @property
    def simulated(self) -> bool:
        """`True` if all members run on simulated drives."""
        return all(is_simulated(member.target) for member in self.members.values())

    @property
    def targets(self) -> tuple[str, ...]:
        """Distinct targets of the members, in order."""
        return tuple(dict.fromkeys(member.target for member in self.members.values()))

    def run_directory(self, name: str) -> Path:
        """Return a member's run directory, which may not exist yet."""
        return self.path / name

    def status(self, name: str) -> Status | None:
        """Return the status of a member's run, or None if the run has not started."""
        if not (self.run_directory(name) / MANIFEST_NAME).is_file():
            return None
        return RunDirectory.open(self.run_directory(name)).status

    def target_now(self, target: str) -> str:
        """Return a target's current name, because a reboot may have renamed a real drive."""
        for name, member in self.members.items():
            if member.target == target and self.status(name) is not None:
                return target_now(RunDirectory.open(self.run_directory(name)).manifest.device)
        return target

    def complete(self) -> tuple[str, ...]:
        """Return the members whose runs are complete, in order."""
        return tuple(name for name in self.members if self.status(name) == "complete")

    def left(self) -> tuple[str, ...]:
        """Return the members whose runs are not complete, in order."""
        done = self.complete()
        return tuple(name for name in self.members if name not in done)
