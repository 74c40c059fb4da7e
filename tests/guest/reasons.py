"""Errors of the bench, each with a one-line reason for the user."""

from __future__ import annotations


class CannotRun(Exception):
    """Error: no guest can run on this machine; the message names the missing requirement."""


class GuestFailed(Exception):
    """Error: the guest ended without a result; the message includes the end of its console."""
