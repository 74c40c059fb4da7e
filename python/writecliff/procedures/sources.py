"""Where the sources of the standard differ: what they say, and which of it a test does.

The full text of the standard is not public; what is known of it comes from the SNIA primer (2013),
from quotations, and from published programs that follow it. A test names each point at which these
differ as a `Choice`, and its report shows them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """A point at which sources differ."""

    what: str
    sources: str  # what they say, the default first
    here: str  # what the run does
    option: str = ""  # of the command, which sets another one; empty: there is none
