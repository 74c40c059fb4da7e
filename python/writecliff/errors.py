"""User errors, which state problem, location and remedy in one line, without a traceback."""

from __future__ import annotations

from collections.abc import Iterable

# `False` except for type checkers, because importing typing takes 10 % of the `--help` time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

# Drives that have no flash, as named in messages.
A_HARD_DISK, AN_SCM_DRIVE = "a hard disk", "a drive of storage-class memory"
NO_SPACE_HINT = "free some space and try again; continue an interrupted run with --resume RUN"


_LISTED = 40  # Maximum number of names in a hint.


def did_you_mean(name: str, names: Iterable[str], otherwise: str | None = None) -> str:
    """Return a hint with the most similar of `names`, or with a name that starts with `name`.

    If no name is similar, return `otherwise`, or else a list of the first names.
    """
    from difflib import get_close_matches

    texts = [str(candidate) for candidate in names]
    near = get_close_matches(name, texts, n=1)
    near = near or [text for text in texts if len(name) > 2 and text.startswith(name)]
    if near or otherwise:
        return f"did you mean '{near[0]}'?" if near else str(otherwise)
    more = len(texts) - _LISTED
    return f"known: {', '.join(texts[:_LISTED])}{f' and {more} more' if more > 0 else ''}"


class WritecliffError(Exception):
    """Base class of user errors; the CLI prints the message and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        """Create an error with a message and, if possible, a hint that states the remedy."""
        super().__init__(message)
        self.hint = hint

    @classmethod
    def unknown(
        cls,
        what: str,
        name: str,
        names: Iterable[str],
        *,
        where: object = "",
        otherwise: str | None = None,
    ) -> Self:
        """Return the error for an unknown name of kind `what`, with a similar name as a hint.

        Args:
            what: Kind of name, such as "key".
            name: The unknown name.
            names: The valid names.
            where: File or table that contains the name.
            otherwise: Hint if no valid name is similar (default: a list of the names).
        """
        start = f"{where}: " if where else ""
        return cls(f"{start}unknown {what} '{name}'", hint=did_you_mean(name, names, otherwise))


class ConfigError(WritecliffError):
    """An error for an invalid device file, job file, workload file or option."""

    exit_code = 2


class TargetError(WritecliffError):
    """An error for a target that does not exist or must not be accessed."""

    exit_code = 2


class EngineError(WritecliffError):
    """An engine failure; `partial` is the StepResult up to the failure, or `None`."""

    def __init__(self, message: str, *, hint: str | None = None, partial: Any = None) -> None:
        """Create an error with the step's partial result, if there is any."""
        super().__init__(message, hint=hint)
        self.partial = partial


class InternalError(Exception):
    """A bug in writecliff, with `details` to print after the traceback."""

    def __init__(self, message: str, *, details: str = "") -> None:
        """Create an error with details for the bug report."""
        super().__init__(message)
        self.details = details


class StoreError(WritecliffError):
    """An error for a run directory that cannot be read or written."""


def encoded(text: str) -> bytes:
    r"""Return the text in UTF-8, replacing undecodable file name bytes with escapes (\udcff)."""
    return text.encode("utf-8", "backslashreplace")


def texts_only(value: Any) -> Any:
    """Return a JSON value with valid UTF-8 only, replacing undecodable bytes with escapes."""
    if isinstance(value, str):
        return value if value.isascii() else encoded(value).decode()
    if isinstance(value, dict):
        return {key: texts_only(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(texts_only, value))
    return value


def printable(text: str) -> str:
    r"""Return the text with control characters replaced by escapes such as \x1b.

    Line separators and direction marks are also escaped, so that text cannot move a terminal's
    cursor.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
