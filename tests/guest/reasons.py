"""Errors of the bench, with a one-line reason for the user."""

from __future__ import annotations


class CannotRun(Exception):
    """No guest can run on this machine; the message names what is missing."""


class GuestFailed(Exception):
    """The guest ended without a result; the message has the end of its console."""
