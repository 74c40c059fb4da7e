"""Code blocks of pages: what their first line says besides the language.

    ```sh not-run="needs a real drive"    why the tests do not run it
    ```sh exit=3                          the exit code of its last command
    ```toml file=orders.toml              the file that later blocks use
    ```text output                        what the block before prints, among other lines

GitHub ignores these words. The site shows the name of a file as a caption.
tests/support/doc_examples.py runs the blocks of the tutorial and the guides, and tools/gallery uses
the files that they define.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_FENCE = re.compile(
    r"^(?P<dent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Fence:
    """A code block of a page."""

    line: int
    """Line of the page that opens the block, counted from 1."""

    language: str
    words: Mapping[str, str]
    """Words after the language; a flag has the value ""."""

    body: str


def fences(text: str) -> list[Fence]:
    """Return the fenced code blocks of a page, in order."""
    blocks = []
    for match in _FENCE.finditer(text):
        language, *words = shlex.split(match["info"]) or [""]
        named = dict(word.partition("=")[::2] for word in words)
        line = text.count("\n", 0, match.start()) + 1
        dent = match["dent"]
        body = "".join(code.removeprefix(dent) for code in match["body"].splitlines(keepends=True))
        blocks.append(Fence(line, language, named, body))
    return blocks


_ANNOTATED = re.compile(r"^(?P<dent> *)```(?P<info>\w+ +\S.*)$", re.MULTILINE)


def with_captions(text: str) -> str:
    """Markdown whose annotated code blocks are directives with a caption."""
    return _ANNOTATED.sub(_directive, text)


def _directive(opening: re.Match[str]) -> str:
    language, *words = shlex.split(opening["info"])
    named = dict(word.partition("=")[::2] for word in words)
    dent, caption = opening["dent"], named.get("file")
    if caption is None:
        return f"{dent}```{language}"
    return f"{dent}```{{code-block}} {language}\n{dent}:caption: {caption}\n"


def _read(_app: Any, _name: str, source: list[str]) -> None:
    source[0] = with_captions(source[0])


def setup(app: Any) -> dict[str, Any]:
    """Registers with Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
