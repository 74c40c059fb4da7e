"""stdout and stderr of a command: any text can be written, and none of it moves the cursor.

Names of files, drives, jobs and runs come from others. They may hold escape sequences, or
characters that the encoding of the terminal does not have; both are written as escapes such as
\\x1b.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from writecliff.errors import printable

TYPE_CHECKING = False  # see errors.py
if TYPE_CHECKING:
    from typing import Any, TextIO

# Control characters but for tabs and ends of lines, separators of lines, marks of direction.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029"
    "\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class SafeStream:
    """A text stream without what is unsafe on a terminal; in all else the stream that it is on."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write the text, as escapes where need be; returns its length."""
        self.raw.write(_UNSAFE.sub(lambda found: printable(found[0]), text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of the lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def raw(stream: TextIO) -> TextIO:
    """The stream below, for what draws on a terminal."""
    return stream.raw if isinstance(stream, SafeStream) else stream


@contextmanager
def safe_streams() -> Iterator[None]:
    """Within the block, stdout and stderr take any text."""
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
