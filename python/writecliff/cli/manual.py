"""Manual pages, generated from the command line help.

`python -m writecliff.cli.manual FOLDER` writes `writecliff.1` and, for each command,
`writecliff-COMMAND.1`, which has a section for each subcommand. `tools/build-wheel` adds the manual
pages to the wheel.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import version
from writecliff.cli.commands import (
    EPILOGUE,
    GROUPS,
    LAB,
    LAB_ABOUT,
    PROGRAM,
    TAGLINE,
    TARGETS,
    build_app,
    commands,
    names_below,
)

if TYPE_CHECKING:
    from cyclopts import App

_OPTION = re.compile(r"^  (-\S.*|[A-Z][A-Z_.\[\]]*.*)$")
_ENVIRONMENT = (
    ("WRITECLIFF_STORE", "The store of runs: a folder, or the URL of an object store."),
    ("WRITECLIFF_CACHE", "The folder for states of prepared simulated drives."),
    ("NO_COLOR", "If set, output has no colours."),
)
_WIDTH = 100_000  # Width that disables line wrapping, because man wraps lines itself.


def roff(text: str) -> str:
    """Escape a line of text, so that no character acts as a roff request or escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    text = text.replace("`", "\\(ga").replace("'", "\\(aq").replace('"', "\\(dq")
    text = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)
    return f"\\&{text}" if text.startswith(".") else text


def pages() -> dict[str, str]:
    """Return all manual pages, by file name."""
    app = build_app()
    texts = {f"{PROGRAM}.1": _root_page()}
    for command in commands():
        texts[f"{PROGRAM}-{command.name}.1"] = _command_page(app, command.name, command.help)
    texts[f"{PROGRAM}-{LAB[0]}.1"] = _command_page(app, LAB[0], LAB_ABOUT)
    return texts


def _head(title: str, about: str) -> Iterator[str]:
    yield f'.TH "{roff(title.upper())}" 1 "" "{PROGRAM} {version()}" "{PROGRAM}"'
    yield ".SH NAME"
    yield f"{roff(title)} \\- {roff(about)}"


def _root_page() -> str:
    lines = [*_head(PROGRAM, TAGLINE.rstrip(".")), ".SH SYNOPSIS"]
    lines += [f".B {PROGRAM}", ".I COMMAND", "[options]"]
    for number, group in enumerate(GROUPS):
        lines.append(f".SH {roff(group.upper())}")
        for command in commands():
            if command.position[0] == number:
                lines += [".TP", f".BR {roff(f'{PROGRAM}-{command.name}')} (1)", roff(command.help)]
    lines.append(".SH TARGETS")
    for name, about in TARGETS:
        lines += [".TP", f".B {roff(name)}", roff(about)]
    lines.append(".SH EXIT STATUS AND OUTPUT")
    lines += [roff(" ".join(EPILOGUE.split()))]
    lines.append(".SH ENVIRONMENT")
    for name, about in _ENVIRONMENT:
        lines += [".TP", f".B {name}", roff(about)]
    return "\n".join(lines) + "\n"


def _command_page(app: App, name: str, about: str) -> str:
    lines = [*_head(f"{PROGRAM}-{name}", about.rstrip(".")), *_help(app, (name,), ".SH")]
    lines += _below(app, (name,))
    lines += [".SH SEE ALSO", f".BR {PROGRAM} (1)"]
    return "\n".join(lines) + "\n"


def _below(app: App, words: tuple[str, ...]) -> Iterator[str]:
    """Yield a section for each subcommand of a command."""
    for name in names_below(app, words):
        below = (*words, name)
        yield f".SH {roff(' '.join((PROGRAM, *below)))}"
        yield from _help(app, below, ".SS")
        yield from _below(app, below)


def _help(app: App, words: Sequence[str], heading: str) -> Iterator[str]:
    """Yield the help of a command: usage, paragraphs, and options as tagged paragraphs."""
    parts = _screen(app, words).split("\n\n")
    usage = parts[0].removeprefix("Usage: ")
    yield f"{heading} SYNOPSIS" if heading == ".SH" else f"{heading} Synopsis"
    yield roff(usage)
    yield f"{heading} DESCRIPTION" if heading == ".SH" else f"{heading} Description"
    for number, part in enumerate(parts[1:]):
        title, _, body = part.partition("\n")
        if not body.startswith("  "):
            yield from ([".PP"] if number else [])
            yield roff(" ".join(part.split()))
            continue
        title = title.rstrip(":")
        yield f"{heading} {roff(title.upper() if heading == '.SH' else title)}"
        if title in ("Example", "Examples"):
            yield from (".nf", *(roff(line.strip()) for line in body.splitlines()), ".fi")
        else:
            yield from _entries(body)


def _entries(body: str) -> Iterator[str]:
    """Yield options or commands, with their descriptions."""
    for line in body.splitlines():
        if line.startswith("      "):
            yield roff(line.strip())
        elif _OPTION.match(line):
            yield from (".TP", f".B {roff(line.strip())}")
        else:
            name, _, about = line.strip().partition("  ")
            yield from (".TP", f".B {roff(name)}", roff(about.strip()))


def _screen(app: App, words: Sequence[str]) -> str:
    import io

    from rich.console import Console

    out = io.StringIO()
    app.help_print(words, console=Console(file=out, width=_WIDTH, color_system=None))
    return out.getvalue().strip("\n")


def main(arguments: Sequence[str]) -> int:
    """Write all manual pages into the folder in `arguments`."""
    (folder,) = map(Path, arguments)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
