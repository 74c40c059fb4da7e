"""Changing values of a device file's text, line by line, so that all comments stay.

Only for values on one line, as all of the device files here are.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from writecliff.errors import ConfigError

_KEY = re.compile(r"^(\w+) *= *(?:[^#\n]*?) *(?:# *(.*))?$")


def value_of(text: str, key: str) -> Any:
    """The value of a dotted key, as the text writes it. Raises ConfigError if it is missing."""
    value: Any = tomllib.loads(text)
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise ConfigError(f"the device file has no '{key}'")
        value = value[part]
    return value


def with_values(text: str, changes: Mapping[str, tuple[str, str | None]]) -> str:
    """`changes`: dotted key to (TOML value, source); None keeps the comment that is there.

    Keys that the text does not have are added to their table. Raises ConfigError where there is no
    such table."""
    lines: list[str] = []
    table = ""
    left = dict(changes)
    for line in text.splitlines():
        if line.startswith("["):
            lines.extend(_added(left, table))
            table = line.strip("[] ")
        match = _KEY.match(line)
        key = f"{table}.{match[1]}".lstrip(".") if match else ""
        if match and key in left:
            value, source = left.pop(key)
            lines.append(_line(key, value, match[2] if source is None else source))
        else:
            lines.append(line)
    lines.extend(_added(left, table))
    if left:
        raise ConfigError(f"the device file has no table for {next(iter(left))}")
    return "\n".join(lines) + "\n"


def _added(left: dict[str, tuple[str, str | None]], table: str) -> Iterator[str]:
    """Lines for keys of `table` that the text does not have; taken out of `left`."""
    for key in [key for key in left if key.rpartition(".")[0] == table]:
        yield _line(key, *left.pop(key))


def _line(key: str, value: str, source: str | None) -> str:
    return f"{key.rpartition('.')[2]} = {value}" + (f"  # {source}" if source else "")
