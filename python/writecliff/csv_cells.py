"""CSV cells that are safe to open in a spreadsheet.

A spreadsheet interprets a cell that starts with "=", "+", "-", "@", a tab or a line break as a
formula, and a formula can leak the sheet's contents. Names in a table may originate from other
people's files. Therefore, text that resembles a formula is prefixed with an apostrophe, which marks
text in spreadsheets. Signed numbers, with or without a unit, remain unchanged.
"""

from __future__ import annotations

import re

_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d[\d.,]*(e[+-]?\d+)?( ?[%a-zµ/]{1,8})?)?", re.IGNORECASE)


def cell(text: str) -> str:
    """Return `text` as a cell, prefixed with an apostrophe if it is a formula.

    >>> [cell(text) for text in ("=1+1", "@SUM(A1)", "-5.2", "+3 %", "-", "randwrite", "-a|b")]
    ["'=1+1", "'@SUM(A1)", '-5.2', '+3 %', '-', 'randwrite', "'-a|b"]
    """
    # Some spreadsheets strip leading spaces and null bytes.
    if _FORMULA.match(text.lstrip(" \0")) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text
