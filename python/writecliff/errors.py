"""The errors that users see: one clear line (what, where, what would be right), no traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from writecliff.engines.base import StepResult


class WritecliffError(Exception):
    """Base of all errors for the user; the CLI prints its message and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(WritecliffError):
    """A device file, job file, workload file or option that cannot mean anything."""

    exit_code = 2


class TargetError(WritecliffError):
    """A target that is not there, or that must not be touched."""

    exit_code = 2


class EngineError(WritecliffError):
    """The engine failed while running; `partial` keeps what was measured until then."""

    def __init__(
        self, message: str, *, hint: str | None = None, partial: StepResult | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.partial = partial


class StoreError(WritecliffError):
    """A run directory that cannot be read or written."""
