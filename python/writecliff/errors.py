"""The errors that users see: one clear line (what, where, what would be right), no traceback."""

from __future__ import annotations

from collections.abc import Iterable

TYPE_CHECKING = False  # of type checkers; to import typing takes a tenth of `--help`
if TYPE_CHECKING:
    from typing import Any, Self

# Drives without flash, in messages.
A_HARD_DISK, AN_SCM_DRIVE = "a hard disk", "a drive of storage-class memory"
NO_SPACE_HINT = "free some space and try again; a run that has begun goes on with --resume RUN"


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """A hint: the name in `known` nearest to `name`, or that `name` begins; if there is none,
    `otherwise` or all of them.
    """
    from difflib import get_close_matches

    names = [str(one) for one in known]
    near = get_close_matches(name, names, n=1)
    near = near or [one for one in names if len(name) > 2 and one.startswith(name)]
    return f"did you mean '{near[0]}'?" if near else otherwise or f"known: {', '.join(names)}"


class WritecliffError(Exception):
    """Base of all errors for the user; the CLI prints its message and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    @classmethod
    def unknown(cls, what: str, name: str, known: Iterable[str], *, where: object = "") -> Self:
        """The error for a `what` called `name` that is not among `known`; hints at the nearest.

        `where` is the file or table that has the name.
        """
        start = f"{where}: " if where else ""
        return cls(f"{start}unknown {what} '{name}'", hint=did_you_mean(name, known))


class ConfigError(WritecliffError):
    """A device file, job file, workload file or option that cannot mean anything."""

    exit_code = 2


class TargetError(WritecliffError):
    """A target that is not there, or that must not be touched."""

    exit_code = 2


class EngineError(WritecliffError):
    """The engine failed while running; `partial` is the StepResult until then, or None."""

    def __init__(self, message: str, *, hint: str | None = None, partial: Any = None) -> None:
        super().__init__(message, hint=hint)
        self.partial = partial


class InternalError(Exception):
    """A bug in writecliff; `details` are printed after the traceback."""

    def __init__(self, message: str, *, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class StoreError(WritecliffError):
    """A run directory that cannot be read or written."""


def encoded(text: str) -> bytes:
    """The text in UTF-8; the bytes of a name that are no text become escapes such as \\\\udcff."""
    return text.encode("utf-8", "backslashreplace")


def texts_only(value: Any) -> Any:
    """A JSON value whose texts all have UTF-8: in names, bytes that are no text become escapes."""
    if isinstance(value, str):
        return value if value.isascii() else encoded(value).decode()
    if isinstance(value, dict):
        return {key: texts_only(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(texts_only, value))
    return value


def printable(text: str) -> str:
    """The text without what moves a terminal's cursor or ends a line: control characters, line
    separators and marks of direction become escapes such as \\\\x1b.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
