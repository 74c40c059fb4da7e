"""Why the bench cannot run, as one line for the one who asked."""

from __future__ import annotations


class CannotRun(Exception):
    """This machine has no guest: what is missing, in one line."""


class GuestFailed(Exception):
    """The guest ended without a result: what is known about it, with the end of its console."""
