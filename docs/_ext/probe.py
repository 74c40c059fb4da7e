"""What a reader of TOML says of the keys that it knows, found out by asking it.

Readers have no list of their keys: each is one line of code that says what it takes (`located` in
crates/base), and what they do not take they refuse by name, kind, unit and bounds. So a file that
is right is changed at one place at a time, and the refusal is read. Nothing here knows a key.
"""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

Reader = Callable[[str], str | None]
"""Reads a file; None, or the message and the hint of why it is refused."""

Path = tuple[str, ...]
Tree = dict[str, Any]

_STRANGE = datetime.date(1979, 5, 27)  # a date: no key takes one
_UNKNOWN = "qqqqqqqqqqqqqqqq"  # near to no key
_UNITS = {"ns": "time", "B": "size", "B/s": "rate", "W": "power", "C": "temperature",
          "C/W": "thermal resistance", "J/C": "heat capacity"}  # fmt: skip


@dataclass(frozen=True)
class Key:
    """A key of a table, `path` from the root; `value` is what it takes, in words."""

    path: Path
    value: str
    required: bool


class Unclear(Exception):
    """A refusal that is not about what was changed."""


def keys(texts: Sequence[str], reader: Reader) -> list[Key]:
    """All keys that `reader` knows of the tables of some files, which it must take as they are.

    They come in the order in which they are read, those of an inner table after its own. What a key
    takes is asked of the first file in which it can stand; it is required if it is in each of them
    that has its table. Raises Unclear: a file is refused, or a key can stand in none.
    """
    found: dict[Path, Key | None] = {}
    for text in texts:
        if why := reader(text):
            raise Unclear(f"a file is refused: {why}")
        for path, value, required in _of_table(tomllib.loads(text), (), reader):
            before = found.get(path)
            if before is None:
                found[path] = None if value is None else Key(path, value, required)
            elif not required:
                found[path] = replace(before, required=False)
    if nowhere := [".".join(path) for path, key in found.items() if key is None]:
        raise Unclear(f"no file has what these need: {', '.join(nowhere)}")
    return [key for key in found.values() if key is not None]


def _of_table(tree: Tree, path: Path, reader: Reader) -> Iterator[tuple[Path, str | None, bool]]:
    """Path and value of the keys of a table and those within it, and whether they are required; as
    value None for one that cannot stand in this file."""
    for name in _known(tree, path, reader):
        here = (*path, name)
        yield here, _value(tree, here, reader), _is_required(tree, here, reader)
        if _get(tree, here) is not None:
            yield from _of_table(tree, here, reader)


def _known(tree: Tree, path: Path, reader: Reader) -> list[str]:
    why = reader(_with(tree, (*path, _UNKNOWN), 1)) or ""
    found = re.search(r"known keys here: (.*)", why)
    if found is None:
        raise Unclear(f"{'.'.join(path) or 'the file'}: {why}")
    return found[1].split(", ")


def _value(tree: Tree, path: Path, reader: Reader) -> str | None:
    """What a key takes, in words; None if it cannot stand in this file."""

    def why(value: Any) -> str:
        said = reader(_with(tree, path, value)) or ""
        return said if re.search(rf"\b{re.escape(path[-1])}\b", said) else ""

    wanted = re.search(r"expected (.*), found", why(_STRANGE))
    if wanted is None:
        return None
    kind = wanted[1]
    if kind == "text in quotes":
        choices = re.search(r"is not one of ([^\n]*)", why(_UNKNOWN))
        words = choices[1].split(", ") if choices else []
        return ", ".join(f'`"{word}"`' for word in words) or "text"
    if kind == "true or false":
        return "flag"
    if kind == "a whole number":
        return f"whole number, {_bounds(why(-1))}"
    if kind == "a number":
        return f"number, {_bounds(why(-1e300))}"
    if kind.startswith("a number with a unit"):
        return _quantity(why)
    if kind.startswith("a list"):
        inner = _quantity(lambda text: why([text]))
        return f"list of {inner}s" if inner else f"list of numbers, {_bounds(why([-1]))}"
    return "tables" if kind.startswith("tables") else "table"


def _quantity(why: Callable[[str], str]) -> str:
    """The kind of quantity that a text stands for; "" if none."""
    said = why("1 qq")
    units = re.search(r"known here: ([^\n]*)", said)
    share = re.search(r"is outside (\S+) % to (\S+) %", why("1e300 %"))
    words = [_UNITS[units[1].split(", ")[0]]] if units else []
    if share:
        words.append(f"{_number(share[1])} to {_number(share[2])} %")
    return " or ".join(words)


def _bounds(said: str) -> str:
    found = re.search(r"(?:is outside|number from) (\S+) to (\S+)", said)
    if found is None:
        raise Unclear(f"no bounds in: {said}")
    if float(found[2]) >= 2**62:
        return f"from {_number(found[1])}"
    return f"{_number(found[1])} to {_number(found[2])}"


def _number(text: str) -> str:
    value = float(text)
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:g}"


def _is_required(tree: Tree, path: Path, reader: Reader) -> bool:
    """Whether the file is refused without a key that it has."""
    changed = deepcopy(tree)
    inner = _get(changed, path[:-1])
    assert inner is not None
    had = inner.pop(path[-1], None)
    return had is not None and reader(_toml(changed)) is not None


def _get(tree: Tree, path: Path) -> Tree | None:
    """The table at a path, the first of several; None if there is none."""
    here: Any = tree
    for name in path:
        here = here.get(name) if isinstance(here, dict) else None
        if isinstance(here, list):
            here = here[0] if here and isinstance(here[0], dict) else None
    return here if isinstance(here, dict) else None


def _with(tree: Tree, path: Path, value: Any) -> str:
    """The file with another value at a path."""
    changed = deepcopy(tree)
    inner = _get(changed, path[:-1])
    assert inner is not None
    inner[path[-1]] = value
    return _toml(changed)


def _toml(tree: Tree) -> str:
    return "".join(f"{name} = {_inline(value)}\n" for name, value in tree.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        parts = (f"{json.dumps(name)} = {_inline(inner)}" for name, inner in value.items())
        return f"{{ {', '.join(parts)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return json.dumps(value) if not isinstance(value, float) else repr(value)
