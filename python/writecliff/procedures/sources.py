"""Disagreements between sources of the standard, and the choice of each test.

The full text of the standard is not public. This implementation follows the SNIA primer (2013),
quotations, and published programs. A test names each point on which these disagree as a `Choice`,
and its report lists them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """A point on which sources disagree."""

    what: str
    sources: str  # their statements, the default first
    here: str  # the choice of the run
    option: str = ""  # the option that changes it; empty if there is none
