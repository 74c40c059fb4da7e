"""Run `writecliff` and make it signal itself at a given point.

Usage: `stop_itself.py SIGNAL WHERE WORDS...`. WHERE is `step:N`, when N steps of a test have been
    stored, or `event:TEXT`, when a member of a set reports TEXT. A test that waits for output and
    then sends the signal may be too late, because the process may already have ended.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from writecliff.cli.main import main
from writecliff.cli.progress import ProgressView
from writecliff.cli.sets import SetView


def stop(number: int, where: str) -> None:
    kind, _, what = where.partition(":")
    owner: Any = {"step": ProgressView, "event": SetView}[kind]
    name = {"step": "step_end", "event": "log"}[kind]
    original = getattr(owner, name)
    stopped = False

    def after(view: Any, event: Any, *more: Any, **options: Any) -> None:
        nonlocal stopped
        original(view, event, *more, **options)
        here = len(more[0].rows) == int(what) if kind == "step" else what in event.text
        if here and not stopped:
            stopped = True
            os.kill(os.getpid(), number)

    setattr(owner, name, after)


if __name__ == "__main__":
    stop(int(sys.argv[1]), sys.argv[2])
    sys.exit(main(sys.argv[3:]))
