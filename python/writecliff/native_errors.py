"""Conversion of errors in the native module to user errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

from writecliff._native import NativeConfigError, PanicException, recorded_panics
from writecliff.errors import ConfigError, EngineError, InternalError, printable

T = TypeVar("T")

_NUMBER = re.compile(r" \(os error \d+\)")  # Suffix that Rust appends to the message.


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Convert exceptions raised by the native module.

    Raises:
        ConfigError: If the input is invalid.
        EngineError: If a system call failed.
        InternalError: If the native module panicked.
    """
    try:
        yield
    except NativeConfigError as error:
        message, hint = error.args
        raise ConfigError(message, hint=hint) from None
    except UnicodeEncodeError as error:  # The name is not valid text.
        raise ConfigError(f"'{printable(error.object)}' is not a valid UTF-8 file name") from None
    except PanicException as panic:
        raise internal_error(panic) from panic
    except OSError as error:
        raise EngineError(_NUMBER.sub("", str(error))) from error


def internal_error(panic: BaseException) -> InternalError:
    """Return the error for a native panic, with source location and any recorded stack."""
    message = str(panic)
    recorded = [entry for entry in recorded_panics() if entry[0] == message]
    if not recorded:
        return InternalError(message)
    _, place, stack = recorded[-1]
    return InternalError(f"{message} ({place})", details=stack)


def with_user_errors(native: T) -> T:
    """Return a proxy for a native object, whose methods raise user errors."""
    return cast(T, _WithUserErrors(native))


class _WithUserErrors:
    def __init__(self, native: object) -> None:
        self._native = native

    def __getattr__(self, name: str) -> object:
        return as_user_errors()(getattr(self._native, name))
