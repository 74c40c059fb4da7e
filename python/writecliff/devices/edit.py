"""Read and replace values in the text of a device file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from functools import lru_cache
from typing import Any

from writecliff import _native
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors


def value_of(text: str, key: str) -> Any:
    """Return the value of the dotted `key`.

    Raises:
        ConfigError: If the file does not contain the key.
    """
    value: Any = _parsed(text)
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise ConfigError(f"the device file does not contain the key '{key}'")
        value = value[part]
    return deepcopy(value)


@lru_cache(maxsize=8)  # a fit reads dozens of keys of each text
def _parsed(text: str) -> Mapping[str, Any]:
    return tomllib.loads(text)


def with_values(text: str, changes: Mapping[str, tuple[str, str | None]]) -> str:
    """Return the text with changed values, but retain all other text and comments.

    `changes` maps dotted keys to (TOML value, source); a source of `None` preserves the current
    comment. A missing key is added to its table.

    Raises:
        ConfigError: If the key's table does not exist.
    """
    with as_user_errors():
        rows = [(key, value, source) for key, (value, source) in changes.items()]
        return _native.toml_changed(text, "device file", rows)


def toml_word(text: str, key: str, value: Any) -> str:
    """Return `value` in TOML notation, formatted for the dotted `key`.

    The value is quoted if the key currently has a string value, or if the value is not a number, a
    flag or a list.
    """
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        is_text = isinstance(value_of(text, key), str)
    except ConfigError:  # The file does not contain the key yet.
        is_text = False
    with suppress(tomllib.TOMLDecodeError):
        if not is_text and not isinstance(tomllib.loads(f"x = {value}")["x"], str):
            return value
    return json.dumps(value)
