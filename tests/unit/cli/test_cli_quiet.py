"""What is said on stderr: no warnings of libraries, and where a long step is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from writecliff.cli import progress
from writecliff.cli.progress import ProgressView
from writecliff.cli.screen import Screen
from writecliff.engines.base import Progress

WARN = """
import logging, warnings
from writecliff.quiet import silence_libraries
silence_libraries()
warnings.warn("identical low and high ylims")
logging.getLogger("matplotlib.font_manager").warning("findfont: no such font")
"""


def said(*options: str) -> str:
    done = subprocess.run(
        [sys.executable, *options, "-c", WARN], capture_output=True, text=True, check=True
    )
    return done.stdout + done.stderr


def test_users_see_none() -> None:
    assert said() == ""


def test_developers_can_ask_for_them() -> None:
    assert "identical low and high ylims" in said("-W", "default")


def test_a_log_says_where_a_long_step_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    view = ProgressView(Screen())
    view.phase("rounds")
    view.step_begin("rounds", 0, 1, 2, "mix")
    for now_s in range(600):
        view.step_progress(Progress(elapsed_ns=now_s, ios=1, iops=1.0, fraction=now_s / 1000))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "rounds: step 1 of 2: mix  0 %"
    assert 9 < len(lines) < 16, lines  # after 5 s, then ever more seldom, then once a minute
    assert lines[-1].startswith("rounds: step 1 of 2: mix  2")
