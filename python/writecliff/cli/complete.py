"""Command line completion at the cursor, which shells request at each Tab.

`writecliff completion words -- WORD...` receives the words after the program name; the last word is
incomplete. The command prints `words`, or `files` if a path is also possible. It then prints a line
for each possible word, with a tab and a description. Option values with fixed names are completed
without cyclopts, which takes longer to load than all other modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from writecliff.cli.commands import LAB, LAB_ABOUT, build_app, commands
from writecliff.cli.complete_values import OPTIONS, POSITIONS, Values

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import Argument


class Answer(NamedTuple):
    """Possible words with descriptions, where `files` is `True` if a path is also possible."""

    words: Sequence[tuple[str, str]]
    files: bool = False

    def text(self) -> str:
        """Return the output lines for the shell."""
        lines = [f"{word}\t{' '.join(about.split())}" for word, about in self.words]
        return "\n".join(["files" if self.files else "words", *lines])


def answer(words: Sequence[str]) -> Answer:
    """Return the possible completions of the last word in `words`."""
    *before, typed = words or [""]
    if "--" in before:  # The arguments after `--` belong to another program.
        return Answer((), files=True)
    option, equals, value = typed.partition("=")
    if equals and option.startswith("--"):
        completed = _value_of(option, before, value)
        return Answer(
            [(f"{option}={word}", about) for word, about in completed.words], completed.files
        )
    if not before:
        names = [(c.name, c.help) for c in commands() if c.shown]
        names.append((LAB[0], LAB_ABOUT))
        return _fitting([*names, ("--help", ""), ("--version", "")], typed)
    if before[-1] in OPTIONS:
        return _named(OPTIONS[before[-1]], typed)
    app, path, rest = _command(before)
    arguments = _arguments(app)
    if rest and (taking := _takes_value(arguments, rest[-1])) is not None:
        return _of_argument(taking, typed)
    if typed.startswith("-"):
        return _fitting([*_options(arguments), ("--help", "")], typed)
    if app is not None and not rest and (below := _subcommands(app)):
        commands_below = _fitting(below, typed)
        if app.default_command is None:
            return commands_below
        values = _position(" ".join(path), arguments, rest, typed)
        return Answer([*commands_below.words, *values.words], values.files)
    return _position(" ".join(path), arguments, rest, typed)


def _fitting(words: Sequence[tuple[str, str]], typed: str, *, files: bool = False) -> Answer:
    return Answer([entry for entry in words if entry[0].startswith(typed)], files)


def _named(values: Values, typed: str) -> Answer:
    """Return the matching values, separated by commas within a list."""
    begin = typed[: typed.rfind(",") + 1] if values.is_list else ""
    matches = [(begin + word, about) for word, about in values.find(typed.removeprefix(begin))]
    return _fitting(matches, typed, files=values.files)


def _value_of(option: str, before: Sequence[str], typed: str) -> Answer:
    if option in OPTIONS:
        return _named(OPTIONS[option], typed)
    app, _, _ = _command(before)
    taking = _takes_value(_arguments(app), option)
    return Answer(()) if taking is None else _of_argument(taking, typed)


def _command(before: Sequence[str]) -> tuple[App | None, list[str], list[str]]:
    """Return the command before the cursor, the words in its name, and the words that follow."""
    app, path, rest = build_app(), list[str](), list(before)
    while rest and rest[0] in app and not rest[0].startswith("-"):
        path.append(rest.pop(0))
        app = app[path[-1]]
    return (app if path else None), path, rest


def _arguments(app: App | None) -> Sequence[Argument]:
    """Return a command's arguments, or an empty result if it only has subcommands."""
    if app is None or app.default_command is None:
        return []
    return list(app.assemble_argument_collection(parse_docstring=True))


def _subcommands(app: App) -> list[tuple[str, str]]:
    names = [name for name in app if not name.startswith("-")]
    shown = [(name, app[name]) for name in names]
    return [(name, sub.help.strip().split("\n")[0]) for name, sub in shown if sub.show]


def _is_switch(argument: Argument) -> bool:
    hint = argument.hint
    return hint is bool or bool in get_args(hint)


def _takes_value(arguments: Sequence[Argument], word: str) -> Argument | None:
    """Return the option `word` if the next word is its value."""
    for argument in arguments:
        if word in argument.names and word.startswith("-"):
            return None if _is_switch(argument) else argument
    return None


def _options(arguments: Sequence[Argument]) -> list[tuple[str, str]]:
    """Return all options except those that merely undo a default."""
    options = []
    for argument in arguments:
        if argument.index is not None or not argument.show:
            continue
        undone = set(argument.negatives) if not _shows_negative(argument) else set()
        options += [
            (name, _text(argument))
            for name in argument.names
            if name.startswith("--") and name not in undone
        ]
    return options


def _shows_negative(argument: Argument) -> bool:
    return bool(argument.parameter.negative)


def _text(argument: Argument) -> str:
    return str(argument.parameter.help or "").split(". ")[0].split("\n\n")[0]


def _of_argument(argument: Argument, typed: str) -> Answer:
    """Return an argument's choices, or paths if it takes a path, else an empty result."""
    if choices := argument.get_choices():
        return _fitting([(choice, "") for choice in choices], typed)
    return Answer((), files=_is_path(argument.hint))


def _is_path(hint: Any) -> bool:
    return hint is Path or any(_is_path(part) for part in get_args(hint))


def _position(path: str, arguments: Sequence[Argument], rest: Sequence[str], typed: str) -> Answer:
    """Return the completions of a positional argument, by command or by type."""
    places = [argument for argument in arguments if argument.index is not None]
    index, skip = 0, False
    for word in rest:
        if skip or word.startswith("-"):
            skip = not skip and _takes_value(arguments, word) is not None
        else:
            index += 1
    if not places or (index >= len(places) and not places[-1].is_var_positional()):
        return _fitting(_options(arguments), typed)
    values = _positions(path).get(path)
    if values is not None:
        return _named(values, typed)
    return _of_argument(places[min(index, len(places) - 1)], typed)


def _positions(path: str) -> Mapping[str, Values]:
    """Return argument values by command; the lab has a separate table."""
    name, target = LAB
    if not path.startswith(f"{name} "):
        return POSITIONS
    positions: Mapping[str, Values] = import_module(target.partition(":")[0]).POSITIONS
    return positions
