"""Kinds of input files, each with its mutations and the commands that read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random


@dataclass(frozen=True)
class Kind:
    """A kind of input file.

    `prepare(corpus)` creates, once, the files from which cases are derived or which they need;
    `case(corpus, folder, draw)` writes the files of a case and returns its command line.
    """

    name: str
    prepare: Callable[[Path], None]
    case: Callable[[Path, Path, Random], list[str]]


def all_kinds() -> Mapping[str, Kind]:
    """Return the kinds of input files by name."""
    from tests.fuzz.kinds import inputs, stored, texts, tomls, traced

    kinds = (*texts.KINDS, *tomls.KINDS, *stored.KINDS, *traced.KINDS, *inputs.KINDS)
    return {kind.name: kind for kind in kinds}
