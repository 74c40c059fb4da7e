"""Cells of CSV files that are safe to open in a spreadsheet.

A spreadsheet interprets a cell that starts with "=", "+", "-", "@", a tab or a line end as a
formula, and a formula can send the content of the sheet elsewhere. Names may come from other
people's files. So such text gets a leading apostrophe, which marks text in spreadsheets. Numbers
stay numbers, with sign and unit.
"""

from __future__ import annotations

import re

_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d[\d.,]*(e[+-]?\d+)?( ?[%a-zµ/]{1,8})?)?", re.IGNORECASE)


def cell(text: str) -> str:
    """Return `text` as a cell, with a leading apostrophe if it would be a formula.

    >>> [cell(text) for text in ("=1+1", "@SUM(A1)", "-5.2", "+3 %", "-", "randwrite", "-a|b")]
    ["'=1+1", "'@SUM(A1)", '-5.2', '+3 %', '-', 'randwrite', "'-a|b"]
    """
    # Some spreadsheets strip leading spaces and zero bytes.
    if _FORMULA.match(text.lstrip(" \0")) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text
