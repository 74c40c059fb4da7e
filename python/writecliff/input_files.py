"""Reading of users' input files, with checks of size, TOML syntax and value types.

An untrusted file may be a pipe, endless, or deeply nested, or may contain a list where a number is
expected. All readers of input files use these functions, and therefore reject invalid files in the
same way.
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

TEXT_BYTES_MAX = 16 << 20  # Maximum input file size; a job file with 10,000 jobs has 1 MB.
DIGITS_MAX = 20  # Maximum number of digits in a whole number; 2^64 has 20.
_SHOWN = 60  # Maximum length of a value in a message, in characters.


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading.

    Raises:
        ConfigError: If the file does not exist, or is a folder, pipe or device.
    """
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
    """Return the contents of a file.

    Raises:
        ConfigError: If the file cannot be opened, or is too large.
    """
    try:
        with opened(path) as file:
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(data) > bytes_max:
        raise ConfigError(f"cannot read {path}: it is larger than {bytes_max >> 20} MiB")
    return data


def read_text(path: Path, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """Return the text of a UTF-8 file.

    Raises:
        ConfigError: If the file cannot be read, or is not text.
    """
    try:
        return read_bytes(path, bytes_max).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start})") from None


def parse_toml(text: str, where: object) -> dict[str, object]:
    """Parse a TOML document.

    Raises:
        ConfigError: If the document is not TOML, is nested too deeply, or contains too long a
            number. The message names `where`.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        raise ConfigError(f"{where}: {message[:1].lower()}{message[1:]}") from None
    except RecursionError:
        raise ConfigError(f"{where}: brackets are nested too deeply") from None
    except ValueError as error:  # The number or date is out of Python's range.
        raise ConfigError(f"{where}: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        ConfigError: If the file cannot be read, or is not TOML.
    """
    return parse_toml(read_text(path), path)


def as_type(document: Any, kind: type[T], where: object) -> T:
    """Convert `document` to `kind`, a type that msgspec supports, ignoring unknown keys.

    Raises:
        ConfigError: If a value has another type: "file: rule[2].stream: Expected `int`".
    """
    import msgspec

    try:
        return msgspec.convert(document, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        raise ConfigError(f"{where}: {placed(error)}") from None


def placed(error: Exception) -> str:
    """Return an msgspec error that starts with the location: "device.serial: Expected `str`"."""
    why, _, place = str(error).partition(" - at `$")
    at = place.rstrip("`").removeprefix(".")
    return f"{at}: {why}" if at else why


# Exceptions that code raises when it receives values of unexpected types.
STUMBLES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


@contextmanager
def understood(path: Path, what: str) -> Iterator[None]:
    """Convert exceptions that the block raises about the document in a file.

    Raises:
        ConfigError: If the block failed, which means that the file is not `what`.
    """
    try:
        yield
    except STUMBLES as error:
        raise ConfigError(
            f"{path} is not {what} ({type(error).__name__}: {shortened(error)})"
        ) from error


def parse_json(data: bytes, where: object) -> Any:
    """Parse a JSON document.

    Raises:
        ConfigError: If the document is not JSON, or is nested too deeply. The message names
            `where`.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not JSON: {error}") from None


def whole_number(text: str) -> int | None:
    """Return the value of up to 20 ASCII digits, or `None` for any other text."""
    if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX:
        return int(text)
    return None


def shortened(value: object) -> str:
    """Format a value from a file for a message, in one line of about sixty characters."""
    text_ = (
        value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, Exception)
        else repr(value)
    )
    text = printable(text_)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def only_keys(table: Mapping[str, Any], names: tuple[str, ...], where: object) -> None:
    """Check the keys of a table against the known keys.

    Raises:
        ConfigError: If a key is unknown. The hint suggests the most similar key.
    """
    for key in table:
        if key not in names:
            raise ConfigError.unknown("key", key, names, where=where)


def _unreadable(path: Path, error: OSError | ValueError) -> ConfigError:
    why = getattr(error, "strerror", None) or str(error)
    return ConfigError(f"cannot read {printable(str(path))}: {why.lower()}")
