"""`docs/reference/cli.md`, `cli-tests.md`, `cli-campaigns.md` and `cli-traces.md`, made of the
command line's own help.

`python -m writecliff.cli.reference` prints the first, with the word `tests` the second, which has
the commands `writecliff test NAME`: what all of them take once, then what each takes besides; with
the word `campaigns` the same of the tests that are campaigns, and their commands; with the word
`traces` the last, which has the commands that make and use traces. A test compares the files with
what the functions here return, so an option that they do not know fails it.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from writecliff.cli.commands import COMMANDS, PROGRAM, build_app, root_screen
from writecliff.cli.helptext import WIDTH_MAX
from writecliff.procedures.registry import PROCEDURES

if TYPE_CHECKING:
    from cyclopts import App

_HEAD = f"""\
# The command line

Made by `python -m writecliff.cli.reference > docs/reference/cli.md` from what `--help` shows; do
not edit it by hand. Guides: [WSAT](../guides/wsat.md), [workloads](../guides/workloads.md),
[devices](../guides/devices.md), [fio job files](../guides/fio-jobs.md). The options of each test
are on [a page of their own](cli-tests.md), those of [campaigns](cli-campaigns.md) on another, with
the commands that belong to them, and so are the commands on [traces](cli-traces.md).

## `{PROGRAM}`
"""
_TESTS_HEAD = """\
# The tests on the command line

Made by `python -m writecliff.cli.reference tests > docs/reference/cli-tests.md` from what `--help`
shows; do not edit it by hand. Guides: [the PTS](../guides/pts.md), [WSAT](../guides/wsat.md).

## Options of every test

A test that has one of them in words of its own lists it again.
"""
_CAMPAIGNS_HEAD = """\
# The published campaigns on the command line

Made by `python -m writecliff.cli.reference campaigns > docs/reference/cli-campaigns.md` from what
`--help` shows; do not edit it by hand. Guide: [campaigns](../guides/campaigns.md).

## Options of every campaign

A campaign that has one of them in words of its own lists it again.
"""
_CAMPAIGNS = ("act", "profile", "reproduce")
_TRACES = ("capture", "replay", "placement")
_TRACES_HEAD = """\
# Traces on the command line

Made by `python -m writecliff.cli.reference traces > docs/reference/cli-traces.md` from what
`--help` shows; do not edit it by hand. Guides: [captures](../guides/capture.md),
[replay and placement](../guides/replay.md).
"""
_OPTION = re.compile(r"^  -.*\n(?:(?!  -).*\n?)*", re.M)


def reference() -> str:
    """The text of the reference, in Markdown."""
    elsewhere = (*_TRACES, *_CAMPAIGNS)
    names = [command.name for command in COMMANDS if command.name not in elsewhere]
    return "\n".join([_HEAD, _block(root_screen()), *_commands(names)])


def reference_of_traces() -> str:
    """The text of the reference of the commands on traces, in Markdown."""
    return "\n".join([_TRACES_HEAD, *_commands(_TRACES)])


def _commands(names: Iterable[str]) -> Iterator[str]:
    app = build_app()
    for name in names:
        for words in _paths(app, (name,)):
            if words[0] == "test" and len(words) > 1:
                continue
            yield f"## `{' '.join((PROGRAM, *words))}`\n"
            yield _block(_screen(app, words))


def reference_of_tests() -> str:
    """The text of the reference of the standard's tests, in Markdown."""
    return _reference_of(_TESTS_HEAD, [n for n, e in PROCEDURES.items() if not e.campaign])


def reference_of_campaigns() -> str:
    """The same of the published campaigns, and of the commands that belong to them."""
    tests = _reference_of(_CAMPAIGNS_HEAD, [n for n, e in PROCEDURES.items() if e.campaign])
    return "\n".join([tests, *_commands(_CAMPAIGNS)])


def _reference_of(head: str, names: Iterable[str]) -> str:
    app = build_app()
    screens = {name: _screen(app, ("test", name)) for name in names}
    options = {name: _options(screen) for name, screen in screens.items()}
    first, *others = options.values()
    common = [text for text in first if all(text in other for other in others)]
    parts = [head, _block("".join(common))]
    for name, screen in screens.items():
        about = _OPTION.sub("", screen).replace("Options:", "").strip()
        own = "".join(text for text in options[name] if text not in common)
        parts += [f"## `{PROGRAM} test {name}`\n", _block(f"{about}\n\n{own}")]
    return "\n".join(parts)


def _options(screen: str) -> list[str]:
    """What a help screen says of each option."""
    return [f"{text.rstrip()}\n" for text in _OPTION.findall(screen)]


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
    pages = {
        "tests": reference_of_tests,
        "campaigns": reference_of_campaigns,
        "traces": reference_of_traces,
    }
    print(pages.get("".join(sys.argv[1:]), reference)(), end="")
