"""The driver's side of the run directory: manifest, rows, lock.

One session holds the directory at a time (an advisory lock), the manifest is replaced atomically at
every change of state, and a row is on disk before the next step starts.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from writecliff.engines.base import CacheReport, DeviceIdentity, PurgeReport, StepResult
from writecliff.errors import ConfigError, StoreError, TargetError
from writecliff.procedures.model import End, History, Procedure, StepRow


@dataclass(frozen=True)
class StoredRun:
    test: str
    options: Mapping[str, Any]
    target: str
    status: str


def stored_run(directory: Path) -> StoredRun:
    manifest = _read(directory)
    return StoredRun(
        manifest["test"], manifest["options"], manifest["target"]["target"], manifest["status"]
    )


def _read(directory: Path) -> dict[str, Any]:
    try:
        return json.loads((directory / "manifest.json").read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"{directory} holds no run") from None
    except ValueError as error:
        raise StoreError(f"{directory / 'manifest.json'} is damaged: {error}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Journal:
    def __init__(self, directory: Path, procedure: Procedure, identity: DeviceIdentity) -> None:
        self.directory = directory
        self.procedure = procedure
        self.identity = identity
        self.manifest: dict[str, Any] = {}

    @contextmanager
    def opened(self, resume: bool) -> Iterator[None]:
        if not resume:
            if self.directory.exists() and any(self.directory.iterdir()):
                raise ConfigError(f"{self.directory} is not empty")
            self.directory.mkdir(parents=True, exist_ok=True)
        with open(self.directory / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(f"{self.directory} is in use by another process") from None
            if resume:
                self._reopen()
            else:
                self.manifest = {
                    "test": self.procedure.name,
                    "options": self.procedure.options_mapping(),
                    "target": asdict(self.identity),
                    "status": "running",
                    "started": _now(),
                    "interruptions": [],
                    "warnings": [],
                }
                self._write()
            yield

    def _reopen(self) -> None:
        self.manifest = _read(self.directory)
        if self.manifest["status"] == "complete":
            raise ConfigError(f"{self.directory} is complete; there is nothing to resume")
        then = self.manifest["target"]
        for name in ("serial", "device_hash", "capacity_bytes"):
            if then[name] != getattr(self.identity, name):
                raise TargetError(f"not the drive of the run: {name}")
        self.manifest["status"] = "running"
        self._write()

    def _write(self) -> None:
        path = self.directory / "manifest.json"
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.manifest))
        os.replace(temporary, path)

    def rows(self) -> list[StepRow]:
        path = self.directory / "rows.jsonl"
        if not path.exists():
            return []
        lines = path.read_text().splitlines(keepends=True)
        return [StepRow(**json.loads(line)) for line in lines if line.endswith("\n")]

    def append(self, row: StepRow, result: StepResult) -> None:
        with open(self.directory / "rows.jsonl", "a") as file:
            file.write(json.dumps(asdict(row)) + "\n")

    def prepared_bytes(self) -> int:
        return int(self.manifest.get("prepared_bytes", 0))

    @property
    def device_zero_ns(self) -> int | None:
        return self.manifest.get("device_zero_ns")

    @device_zero_ns.setter
    def device_zero_ns(self, value: int) -> None:
        self.manifest["device_zero_ns"] = value
        self._write()

    def warnings(self) -> list[str]:
        return list(self.manifest["warnings"])

    def prepared(self, purge: PurgeReport, cache: CacheReport, warnings: Sequence[str]) -> None:
        self.manifest |= {
            "purge": asdict(purge),
            "cache": asdict(cache),
            "warnings": list(warnings),
        }
        self._write()

    def preconditioned(self, written_bytes: int) -> None:
        self.manifest["prepared_bytes"] = written_bytes
        self._write()

    def resumed(self, steps: int, again: int, *, exact: bool) -> None:
        self.manifest["interruptions"].append(
            {"after_steps": steps, "resumed": _now(), "exact": exact}
        )
        self._write()

    def close(self, status: str, reason: str, partial: StepRow | None = None) -> None:
        self.manifest |= {"status": status, "reason": reason, "ended": _now()}
        if partial is not None:
            self.manifest["partial"] = asdict(partial)
        self._write()

    def complete(self, end: End, history: History, warnings: Sequence[str]) -> None:
        self.manifest |= {"ended_by": end.name, "warnings": list(warnings)}
        self.close("complete", end.text)
