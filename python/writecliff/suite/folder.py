"""A suite or sweep on disk: `suite.json`, schema "writecliff/suite/1", and its run directories.

Each member has a directory of its own name. What state it is in is read from its run directory
alone, so that nothing can disagree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from writecliff.errors import ConfigError, StoreError
from writecliff.procedures.journal import stored_run
from writecliff.store.files import store_error, write_atomically
from writecliff.store.manifest import MANIFEST_NAME, Status, now

SUITE_NAME = "suite.json"
SCHEMA = "writecliff/suite/1"
Kind = Literal["suite", "sweep"]


@dataclass(frozen=True)
class Member:
    """One run: a test with its options on a target."""

    test: str
    options: Mapping[str, Any]
    target: str


@dataclass(frozen=True)
class SuiteFolder:
    """A suite (all tests of an edition) or a sweep (one test, one option varied) that was started.

    `members` are in order; `about` is the edition of a suite, the varied option of a sweep.
    """

    path: Path
    kind: Kind
    about: str
    members: Mapping[str, Member]
    created: str

    @classmethod
    def create(cls, path: Path, kind: Kind, about: str, members: Mapping[str, Member]) -> Self:
        """Raises ConfigError for a directory in use, StoreError if it cannot be written."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ConfigError(
                f"{path} exists and is not empty",
                hint="give a new directory, or go on with its suite with --resume",
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise store_error(error, path) from error
        folder = cls(path, kind, about, members, now())
        document = {"schema": SCHEMA, **asdict(folder)}
        del document["path"]
        write_atomically(path / SUITE_NAME, (json.dumps(document, indent=2) + "\n").encode())
        return folder

    @classmethod
    def open(cls, path: Path) -> Self:
        """Raises ConfigError (no suite there) or StoreError (damaged)."""
        try:
            data = json.loads((path / SUITE_NAME).read_bytes())
            if data.pop("schema") != SCHEMA:
                raise ValueError(f"its schema is not {SCHEMA}")
            members = {name: Member(**member) for name, member in data.pop("members").items()}
            return cls(path, members=members, **data)
        except FileNotFoundError:
            raise ConfigError(
                f"{path} is not a suite: it has no {SUITE_NAME}",
                hint="give the directory that `writecliff suite` named",
            ) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"cannot read {path / SUITE_NAME}: {error}") from None

    @property
    def simulated(self) -> bool:
        return all(member.target.startswith("sim:") for member in self.members.values())

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(member.target for member in self.members.values()))

    def run_directory(self, name: str) -> Path:
        return self.path / name

    def status(self, name: str) -> Status | None:
        """None: it was not begun."""
        if not (self.run_directory(name) / MANIFEST_NAME).is_file():
            return None
        return stored_run(self.run_directory(name)).status

    def complete(self) -> tuple[str, ...]:
        return tuple(name for name in self.members if self.status(name) == "complete")
