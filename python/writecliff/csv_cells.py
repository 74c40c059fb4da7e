"""Cells of CSV files that are safe to open in a spreadsheet.

A spreadsheet takes a cell that begins with "=", "+", "-", "@", a tab or a line end for a formula,
and a formula can send what is in the sheet elsewhere. Names come from files of others, so such text
gets an apostrophe in front, which spreadsheets read as "this is text". Numbers stay numbers, with
sign and unit.
"""

from __future__ import annotations

import re

_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d[\d.,]*(e[+-]?\d+)?( ?[%a-zµ/]{1,8})?)?", re.IGNORECASE)


def cell(text: str) -> str:
    """`text` as a cell: as it is, or with an apostrophe in front of what would be a formula.

    >>> [cell(text) for text in ("=1+1", "@SUM(A1)", "-5.2", "+3 %", "-", "randwrite", "-a|b")]
    ["'=1+1", "'@SUM(A1)", '-5.2', '+3 %', '-', 'randwrite', "'-a|b"]
    """
    # Some spreadsheets trim what they read, so spaces and zero bytes hide nothing.
    if _FORMULA.match(text.lstrip(" \0")) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text
