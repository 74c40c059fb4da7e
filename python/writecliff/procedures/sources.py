"""Disagreements between sources about the standard, and the choice that each test makes.

The full text of the standard is not publicly available. This implementation follows the SNIA primer
(2013), quotations from the standard, and published programs. A test declares each point on which
these sources disagree as a `Choice`, and its report lists them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """A point on which sources disagree."""

    what: str
    sources: str  # statements of the sources, the default first
    here: str  # the choice made in the run
    option: str = ""  # the option that changes the choice, or "" if there is none
