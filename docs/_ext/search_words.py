"""Search phrases that a page itself does not contain.

A page lists its phrases in a comment: `<!-- search: which ssd, choose drive -->`. GitHub does not
show the comment. The site turns each phrase into an index entry, which its search lists first.
"""

from __future__ import annotations

import re
from typing import Any

_COMMENT = re.compile(r"^<!-- search: (?P<phrases>[^\n]+?) -->$", re.MULTILINE)


def with_index_entries(text: str) -> str:
    """Return the Markdown text with index directives in place of each comment."""
    return _COMMENT.sub(_directive, text)


def _directive(comment: re.Match[str]) -> str:
    phrases = [phrase.strip() for phrase in comment["phrases"].split(",")]
    # The search lists only main entries (!) first, and all other index entries last.
    return "\n\n".join(f"```{{index}} ! single: {phrase}\n```" for phrase in phrases)


def _read(_app: Any, _name: str, source: list[str]) -> None:
    source[0] = with_index_entries(source[0])


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
