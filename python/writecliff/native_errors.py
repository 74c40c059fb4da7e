"""Errors of the native module as errors for users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from writecliff._native import NativeConfigError
from writecliff.errors import ConfigError, EngineError


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Turn what the native module raises into ConfigError (bad input) or EngineError (system)."""
    try:
        yield
    except NativeConfigError as error:
        message, hint = error.args
        raise ConfigError(message, hint=hint) from None
    except OSError as error:
        raise EngineError(str(error)) from error
