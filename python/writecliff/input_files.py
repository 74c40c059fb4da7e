"""Files that people give to writecliff: text of a bounded size, TOML, values of the right types.

A file that somebody sent may be a pipe, endless, of a million brackets, or have a list where a
number belongs. Each reader of such a file begins here, so that all of them refuse it the same way.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from writecliff.errors import ConfigError, printable

T = TypeVar("T")

TEXT_BYTES_MAX = 16 << 20  # of a file that is read whole; job files of 10,000 jobs have 1 MB
DIGITS_MAX = 20  # of a whole number as text: 2^64 has 20
_SHOWN = 60  # characters of a value in a message


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file for reading. Raises ConfigError: there is none, a folder, a pipe, a device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a device or pipe"
            raise ConfigError(f"cannot read {path}: it is {kind}, not a file")
        yield file


def read_bytes(path: Path, bytes_max: int = TEXT_BYTES_MAX) -> bytes:
    """The content of a file that is read whole. Raises ConfigError: as `opened`, or too large."""
    try:
        with opened(path) as file:
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(data) > bytes_max:
        raise ConfigError(f"cannot read {path}: it is larger than {bytes_max >> 20} MiB")
    return data


def read_text(path: Path, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """The text of a file in UTF-8. Raises ConfigError: as `read_bytes`, or no text."""
    try:
        return read_bytes(path, bytes_max).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text in UTF-8 (byte {error.start})") from None


def parse_toml(text: str, where: object) -> dict[str, object]:
    """A TOML document. Raises ConfigError with `where`: no TOML, too deep, a number too long."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        raise ConfigError(f"{where}: {said[:1].lower()}{said[1:]}") from None
    except RecursionError:
        raise ConfigError(f"{where}: brackets are nested too deep") from None
    except ValueError as error:  # a number or date that Python cannot hold
        raise ConfigError(f"{where}: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file. Raises ConfigError."""
    return parse_toml(read_text(path), path)


def as_type(document: Any, kind: type[T], where: object) -> T:
    """`document` as `kind`, a dataclass, a TypedDict or another type that msgspec knows; keys that
    it does not have are left out. Raises ConfigError: "file: rule[2].stream: Expected `int`".
    """
    import msgspec

    try:
        return msgspec.convert(document, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        raise ConfigError(f"{where}: {placed(error)}") from None


def placed(error: Exception) -> str:
    """What msgspec says of a value, its place first: "device.serial: Expected `str`"."""
    why, _, place = str(error).partition(" - at `$")
    at = place.rstrip("`").removeprefix(".")
    return f"{at}: {why}" if at else why


# What code raises that is given values of which it counts on others.
STUMBLES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


@contextmanager
def understood(path: Path, what: str) -> Iterator[None]:
    """Where the block stumbles over the document in a file, raise ConfigError: it is not `what`."""
    try:
        yield
    except STUMBLES as error:
        raise ConfigError(
            f"{path} is not {what} ({type(error).__name__}: {shortened(error)})"
        ) from error


def parse_json(data: bytes, where: object) -> Any:
    """A JSON document. Raises ConfigError with `where`: no JSON, or nested too deep."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not JSON: {error}") from None


def whole_number(text: str) -> int | None:
    """The value of ASCII digits; None for anything else, a sign and 21 digits among it."""
    if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX:
        return int(text)
    return None


def shortened(value: object) -> str:
    """A value of a file for a message: one line of some sixty characters."""
    said = (
        value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, Exception)
        else repr(value)
    )
    text = printable(said)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def only_keys(table: Mapping[str, Any], known: tuple[str, ...], where: object) -> None:
    """Raises ConfigError, naming the nearest, for a key that is not `known`."""
    for key in table:
        if key not in known:
            raise ConfigError.unknown("key", key, known, where=where)


def _unreadable(path: Path, error: OSError | ValueError) -> ConfigError:
    why = getattr(error, "strerror", None) or str(error)
    return ConfigError(f"cannot read {printable(str(path))}: {why.lower()}")
