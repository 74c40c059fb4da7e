"""Warnings of libraries stay out of the terminal."""

from __future__ import annotations

import subprocess
import sys

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
