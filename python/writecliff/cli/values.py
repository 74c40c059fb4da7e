"""How words of the command line become values where cyclopts is more lenient than we want."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token


def _whole(_type: Any, tokens: Sequence[Token]) -> int:
    """A whole number in decimal digits; cyclopts itself would round 2.7 threads to 3."""
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f"'{text}' is no whole number")
    return int(text)


Whole = Annotated[int | None, Parameter(converter=_whole)]
"""The annotation of an option that is a whole number or not given."""
