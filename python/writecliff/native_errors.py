"""Errors of the native module as errors for users."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from writecliff._native import NativeConfigError
from writecliff.errors import ConfigError, EngineError, printable

T = TypeVar("T")

_NUMBER = re.compile(r" \(os error \d+\)")  # what Rust adds to the words


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Turn what the native module raises into ConfigError (bad input) or EngineError (system)."""
    try:
        yield
    except NativeConfigError as error:
        message, hint = error.args
        raise ConfigError(message, hint=hint) from None
    except UnicodeEncodeError as error:  # a name as bytes that are no text
        raise ConfigError(f"'{printable(error.object)}' is not a name in UTF-8") from None
    except OSError as error:
        raise EngineError(_NUMBER.sub("", str(error))) from error


def with_user_errors(native: T) -> T:
    """An object of the native module whose methods raise as under `as_user_errors`."""
    return cast(T, _WithUserErrors(native))


class _WithUserErrors:
    def __init__(self, native: object) -> None:
        self._native = native

    def __getattr__(self, name: str) -> Any:
        return as_user_errors()(getattr(self._native, name))
