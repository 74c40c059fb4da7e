"""Conversion of cyclopts usage errors to one line, with the most similar word as a hint."""

from __future__ import annotations

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    Token,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from writecliff.cli.commands import LAB, PROGRAM, commands
from writecliff.errors import WritecliffError, did_you_mean
from writecliff.procedures.registry import PROCEDURES

_HELP_WORDS = ("help", "h", "?", "usage", "man")
_VERSION_WORDS = ("version", "v")


class UsageError(WritecliffError):
    """An invalid command line."""

    exit_code = 2


def usage_error(error: CycloptsError, arguments: list[str]) -> UsageError:
    """Return the error in `arguments` as one line, with the most similar valid word as a hint."""
    chain = " ".join((PROGRAM, *(error.command_chain or ())))
    hint = f"see `{chain} --help`"
    unknown = _unknown_option(error)
    if unknown is not None:
        if (word := _unknown_subcommand(error, arguments)) is not None:
            return _unknown_word(error, word, chain)
        near = did_you_mean(unknown.split("=")[0], _option_names(error), hint)
        return UsageError(f"unknown option '{unknown}' for `{chain}`", hint=near)
    if isinstance(error, UnknownCommandError | UnusedCliTokensError):
        return _unknown_word(error, (error.unused_tokens or arguments)[0], chain)
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        missing = error.argument.name
        if error.argument.index is not None:  # The argument is positional.
            what = f"missing argument {missing.lstrip('-').upper()} for `{chain}`"
        else:
            what = f"{missing} requires a value"
        return UsageError(what, hint=hint)
    if isinstance(error, CoercionError) and error.token is not None:
        return _invalid_value(error, error.token, hint)
    error.verbose = False
    text = " ".join(str(error).split())
    text = text[:1].lower() + text[1:].rstrip(".")
    return UsageError(text, hint=hint)


def _invalid_value(error: CoercionError, token: Token, hint: str) -> UsageError:
    """Return the error for a value that is not a choice, not a number, or unexpected."""
    option = token.keyword or (error.argument.name if error.argument else "")
    what = f"invalid value '{token.value}' for {option}"
    choices = error.argument.get_choices() if error.argument else None
    if choices:
        return UsageError(what, hint=did_you_mean(token.value, choices))
    kinds = {
        int: "the option requires a whole number",
        float: "the option requires a number",
        bool: "the option does not take a value",
    }
    reason = error.msg or (kinds.get(error.target_type) if error.target_type else None)
    return UsageError(f"{what}: {reason}" if reason else what, hint=hint)


def _unknown_word(error: CycloptsError, word: str, chain: str) -> UsageError:
    names, hint = _command_names(error), f"see `{chain} --help`"
    if not names:
        return UsageError(f"unexpected argument '{word}' for `{chain}`", hint=hint)
    if word.strip("-/").lower() in _HELP_WORDS:
        pass
    elif word.strip("-").lower() in _VERSION_WORDS:
        hint = f"see `{PROGRAM} --version`"
    elif chain == PROGRAM and word in PROCEDURES:
        hint = f"did you mean `{PROGRAM} test {word}`?"
    else:
        hint = did_you_mean(word, names, f"commands: {', '.join(names)}")
    return UsageError(f"unknown command '{word}' for `{chain}`", hint=hint)


def _unknown_option(error: CycloptsError) -> str | None:
    if isinstance(error, UnknownOptionError):
        return error.token.keyword or error.token.value
    if isinstance(error, UnusedCliTokensError):
        return next((token for token in error.unused_tokens or () if token.startswith("-")), None)
    return None


def _unknown_subcommand(error: CycloptsError, arguments: list[str]) -> str | None:
    """Return the word that stands for a subcommand, if the command takes no other words."""
    word = next(iter(arguments[len(error.command_chain or ()) :]), "-")
    names = _command_names(error)
    if error.app is None or not names or word in names or word.startswith("-"):
        return None
    collection = error.app.assemble_argument_collection()
    return None if any(argument.index is not None for argument in collection) else word


def _option_names(error: CycloptsError) -> list[str]:
    app = error.app
    if app is None or error.target is None:
        return []
    collection = app.assemble_argument_collection()
    return [name for argument in collection for name in argument.names]


def _command_names(error: CycloptsError) -> list[str]:
    if error.app is None or not error.command_chain:
        return [*(command.name for command in commands() if command.shown), LAB[0]]
    return [name for name in error.app if not name.startswith("-")]
