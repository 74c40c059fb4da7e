"""`docs/reference/cli.md`, made of the command line's own help.

`python -m writecliff.cli.reference` prints it. A test compares the file with
`reference()`, so an option that the file does not know fails it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from writecliff.cli.commands import COMMANDS, PROGRAM, build_app, root_screen
from writecliff.cli.helptext import WIDTH_MAX

if TYPE_CHECKING:
    from cyclopts import App

_HEAD = f"""\
# The command line

Made by `python -m writecliff.cli.reference > docs/reference/cli.md` from what `--help` shows; do
not edit it by hand. Guides: [WSAT](../guides/wsat.md), [workloads](../guides/workloads.md),
[devices](../guides/devices.md), [fio job files](../guides/fio-jobs.md).

## `{PROGRAM}`
"""


def reference() -> str:
    """The text of the reference, in Markdown."""
    app = build_app()
    parts = [_HEAD, _block(root_screen())]
    for command in COMMANDS:
        for words in _paths(app, (command.name,)):
            parts += [f"## `{' '.join((PROGRAM, *words))}`\n", _block(_screen(app, words))]
    return "\n".join(parts)


def _paths(app: App, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The command and its subcommands."""
    yield words
    for name in app[words[0]]:
        if not name.startswith("-"):
            yield (*words, name)


def _screen(app: App, words: tuple[str, ...]) -> str:
    from rich.console import Console

    out = io.StringIO()
    app.help_print(words, console=Console(file=out, width=WIDTH_MAX, color_system=None))
    return out.getvalue()


def _block(text: str) -> str:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "\n".join(["```text", *lines, "```", ""])


if __name__ == "__main__":
    print(reference(), end="")
