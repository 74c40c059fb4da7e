"""Run the command line in this process, against the fake drive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import pytest

from tests.support.fake_engine import FakeEngine
from writecliff.cli.main import main
from writecliff.errors import TargetError


@dataclass(frozen=True)
class CommandOutput:
    code: int
    out: str
    err: str


class CommandLine:
    """A callable that runs a command line, such as `cli("test wsat --on sim:fake")`.

    Pass a list of arguments if any of them contains spaces.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, words: str | list[str]) -> CommandOutput:
        self._capsys.readouterr()
        code = main(words.split() if isinstance(words, str) else words)
        out, err = self._capsys.readouterr()
        return CommandOutput(code, out, err)


def serve_fake_drive(monkeypatch: pytest.MonkeyPatch, make: Callable[[], FakeEngine]) -> None:
    """Make `open_target("sim:fake")` return `make()`; no other target exists."""

    def open_target(text: str, **options: object) -> FakeEngine:
        if text != "sim:fake":
            raise TargetError(f"no simulated drive '{text}'", hint="see `writecliff device list`")
        return make()

    # A module that is imported while a function is replaced would keep the replacement.
    for module in ("suite.plan", "choice.plan", "lab.bench.store"):
        import_module(f"writecliff.{module}")
    # No device file describes the fake drive, so its memory use cannot be estimated.
    monkeypatch.setattr("writecliff.suite.memory.check_memory", lambda members, engine: None)
    monkeypatch.setattr("writecliff.engines.target.open_target", open_target)
