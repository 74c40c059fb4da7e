"""The capture of a program's I/O at each step of its way: its options and its summary."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.cli.options import new_path
from writecliff.cli.output import emit_json, log, table
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from writecliff.capture.stack.result import Stack

_HEADER = ("step", "reads", "read", "writes", "written", "amplification", "syncs, flushes")


def capture_stack(
    command: Sequence[str], output: Path | None, root: Path | None, *, as_json: bool
) -> int:
    """Run `writecliff capture --stack`; the exit code of the command. Raises ConfigError, and as
    `api.capture_stack` does."""
    from writecliff.api import capture_stack as run
    from writecliff.report.io_stack import write_stack

    if not command:
        raise ConfigError("--stack requires a command", hint="give it after --")
    folder = output or new_path("traces", f"stack-{Path(command[0]).name}")
    stack = run(
        command,
        output=folder,
        root=root or Path(),
        stdout=sys.stderr.fileno() if as_json else None,
    )
    page = write_stack(stack, folder)
    if as_json:
        from writecliff.api.answers.captures import StackCapture

        emit_json(StackCapture(report=page, folder=folder, **stack.mapping()))
    else:
        log(_text(stack, page))  # the command owns stdout
    return stack.exit_code


def _text(stack: Stack, page: Path) -> str:
    from writecliff.report.io_stack import NAMES, OPS, verdict

    steps = [
        (
            NAMES[step.name],
            f"{step.reads.count:,}",
            units.size(step.reads.bytes),
            f"{step.writes.count:,}",
            units.size(step.writes.bytes),
            _factor(stack.amplification(step)),
            f"{step.syncs:,}",
        )
        for step in stack.steps
    ]
    origins = [
        (row.name, OPS[row.op], f"{row.traffic.count:,}", units.size(row.traffic.bytes))
        for row in stack.origins
    ]
    answer, *more = verdict(stack)
    lines = [
        table(_HEADER, steps),
        "",
        table(("requests of", "", "count", "bytes"), origins, "llrr") if origins else "",
        "",
        *more,
        *(f"note: {note}" for note in stack.notes),
        str(page),
        answer,
    ]
    return "\n".join(lines)


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} x"
