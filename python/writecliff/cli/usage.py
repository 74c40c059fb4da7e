"""cyclopts' usage errors as one line of ours, with the nearest option or command as the hint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from writecliff.cli.commands import PROGRAM, commands
from writecliff.errors import WritecliffError, did_you_mean
from writecliff.procedures.registry import PROCEDURES

if TYPE_CHECKING:
    from cyclopts import CycloptsError

_HELP_WORDS = ("help", "h", "?", "usage", "man")
_VERSION_WORDS = ("version", "v")


class UsageError(WritecliffError):
    """A command line that cannot mean anything."""

    exit_code = 2


def usage_error(error: CycloptsError, arguments: list[str]) -> UsageError:
    """What is wrong with `arguments`, in one line, and what is close to what was meant."""
    chain = " ".join((PROGRAM, *(error.command_chain or ())))
    unknown = _unknown_option(error)
    if unknown is not None:
        option, listed = unknown.split("=")[0], f"`{chain} --help` lists the options"
        hint = did_you_mean(option, _option_names(error), listed)
        return UsageError(f"unknown option '{unknown}' for `{chain}`", hint=hint)
    name = type(error).__name__
    if name in ("UnknownCommandError", "UnusedCliTokensError"):
        return _unknown_word(error, (error.unused_tokens or arguments)[0], chain)
    if name == "MissingArgumentError" and error.argument is not None:
        missing = error.argument.name
        if error.argument.index is not None:  # positional
            missing = missing.lstrip("-").upper()
            what = f"{missing} is missing for `{chain}`"
        else:
            what = f"{missing} of `{chain}` needs a value"
        return UsageError(what, hint=f"`{chain} --help` shows how it is used")
    error.verbose = False
    text = " ".join(str(error).split())
    text = text[:1].lower() + text[1:].rstrip(".")
    return UsageError(text, hint=f"`{chain} --help` shows how it is used")


def _unknown_word(error: CycloptsError, word: str, chain: str) -> UsageError:
    known = _command_names(error)
    if not known:
        hint = f"`{chain} --help` shows how it is used"
        return UsageError(f"unexpected argument '{word}' for `{chain}`", hint=hint)
    if word.strip("-/").lower() in _HELP_WORDS:
        hint = f"`{chain} --help` shows how it is used"
    elif word.strip("-").lower() in _VERSION_WORDS:
        hint = f"`{PROGRAM} --version` shows the version"
    elif chain == PROGRAM and word in PROCEDURES:
        hint = f"did you mean `{PROGRAM} test {word}`?"
    else:
        hint = did_you_mean(word, known, f"commands: {', '.join(known)}")
    return UsageError(f"unknown command '{word}' for `{chain}`", hint=hint)


def _unknown_option(error: CycloptsError) -> str | None:
    if type(error).__name__ == "UnknownOptionError":
        token = getattr(error, "token", None)
        return str(getattr(token, "keyword", None) or getattr(token, "value", None) or "")
    if type(error).__name__ == "UnusedCliTokensError":
        for token in error.unused_tokens or ():
            if token.startswith("-"):
                return token
    return None


def _option_names(error: CycloptsError) -> list[str]:
    app = error.app
    if app is None or error.target is None:
        return []
    collection = app.assemble_argument_collection()
    return [name for argument in collection for name in argument.names]


def _command_names(error: CycloptsError) -> list[str]:
    if error.app is None or not error.command_chain:
        return [command.name for command in commands()]
    return [name for name in error.app if not name.startswith("-")]
