"""Disagreements between sources on the standard, and the choice that each test makes.

The full text of the standard is not publicly available. This implementation follows the SNIA primer
(2013), quotations from the standard, and published programs. A test declares each point that these
sources disagree about as a `Choice`, and the test's report lists the choices.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """A point that sources disagree about."""

    what: str
    sources: str  # Statements in the sources, starting with the default.
    here: str  # Choice made in the run.
    option: str = ""  # Option that changes the choice; "" if there is none.
