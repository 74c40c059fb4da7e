"""Text of others on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text without what moves a terminal's cursor or ends a line: control characters, line
    separators and marks of direction become escapes such as \\\\x1b."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
