"""Runs the command line in this process, with the fake drive behind every target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.support.fake_engine import FakeEngine
from writecliff.cli.main import main
from writecliff.errors import TargetError


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


class CommandLine:
    """`cli("test wsat --on sim:fake")`; words may be given as a list if one holds blanks."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, words: str | list[str]) -> Said:
        self._capsys.readouterr()
        code = main(words.split() if isinstance(words, str) else words)
        out, err = self._capsys.readouterr()
        return Said(code, out, err)


def serve_fake_drive(monkeypatch: pytest.MonkeyPatch, make: Callable[[], FakeEngine]) -> None:
    """Let `open_target("sim:fake")` give `make()`; every other target is not there."""

    def open_target(text: str, **options: object) -> FakeEngine:
        if text != "sim:fake":
            raise TargetError(f"no simulated drive '{text}'", hint="see `writecliff device list`")
        return make()

    # No device file describes the fake drive, so its memory cannot be estimated. This
    # imports the module, which would keep the fake if it were imported after the next line.
    monkeypatch.setattr("writecliff.suite.memory.check_memory", lambda members, engine: None)
    monkeypatch.setattr("writecliff.engines.target.open_target", open_target)
