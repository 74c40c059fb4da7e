r"""A command's stdout and stderr, which accept any text but escape control characters.

The names of files, drives, jobs and runs come from other sources. Such names may contain escape
sequences or characters outside the terminal's encoding, which are written as escapes such as \x1b.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from writecliff.errors import printable

TYPE_CHECKING = False  # See `errors.py` for the reason.
if TYPE_CHECKING:
    from typing import Any, TextIO

# Control characters (except tabs and line ends), line separators, and direction marks.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029"
    "\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class SafeStream:
    """A text stream that escapes unsafe characters, but otherwise acts like the `raw` stream."""

    def __init__(self, raw: TextIO) -> None:
        """Write to `raw`."""
        self.raw = raw

    def write(self, text: str) -> int:
        """Write the text, escaped where necessary, and return its length."""
        self.raw.write(_UNSAFE.sub(lambda match: printable(match[0]), text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write every line."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the `raw` stream."""
        return getattr(self.raw, name)


def raw(stream: TextIO) -> TextIO:
    """Return the unescaped stream, for libraries that draw on a terminal."""
    return stream.raw if isinstance(stream, SafeStream) else stream


@contextmanager
def safe_streams() -> Iterator[None]:
    """Make stdout and stderr accept any text inside the block."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "backslashreplace":
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (
        stream if isinstance(stream, SafeStream) else SafeStream(stream) for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
