"""Print a script that completes commands in a shell."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from writecliff.cli.output import JsonFlag, emit_json

GROUP = "hidden", 1
FOLDER = Path(__file__).with_name("shells")


def completion(shell: Literal["bash", "zsh", "fish"], *, json: JsonFlag = False) -> int:
    """Print a script that completes commands, options, drives, workloads and runs in a shell.

    The script calls the program at every Tab, so the script remains valid when the program is
    updated.

    Parameters
    ----------
    shell
        Shell to complete in: bash, zsh or fish.
    """
    script = (FOLDER / shell).read_text(encoding="utf-8")
    if json:
        from writecliff.api.answers.devices import Completion

        emit_json(Completion(shell, script))
    else:
        print(script, end="")
    return 0
