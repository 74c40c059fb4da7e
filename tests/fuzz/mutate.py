"""Mutations of bytes, structured text, and JSON documents."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

DIGITS = "9" * 5000
NUMBERS = (
    "0", "1", "2", "7", "-1", "-0", "0.5", "1.5", "1e3", "1e9", "1e18", "1e308", "-1e308", "1e-320",
    "1e999", "nan", "inf", "-inf", "²", "٣", "1_0", "0x10", "2147483647", "2147483648",
    "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551616", DIGITS,
)  # fmt: skip
TEXTS = (
    "", " ", "\0", "\x1b[31mred\x1b[0m", "\u202eabc", "é", "\udc80", "%s%n{0}", "../../x", "/dev/zero", "=1+1",
    "<script>alert(1)</script>", "a" * 70_000, "\n", "true", "no", "*" * 40 + "a", "[" * 300, "%", "-", "none",
)  # fmt: skip
UNITS = (
    "",
    " ",
    "k",
    "KiB",
    " GB",
    "TB",
    " ns",
    " us",
    " ms",
    " s",
    " h",
    "d",
    "%",
    " %",
    " V",
    "Hz",
)
TOML = (
    "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "true", "false", '""', '"x"', "''", "[]", "[[]]",
    "{}", "{ x = 1 }", "[1, 2]", '["a", 1]', "-1", "0", "1e308", "inf", "nan", '"²"', '"1 ns"', '"1e9 s"',
    DIGITS, '"' + DIGITS + ' s"', "[" * 2000, "{a=" * 500, '"\\u001b[2J"', '"999999999999 TB"', "0.0", "-0.0",
    "9223372036854775807", "9223372036854775808", "1e-320", '"1e999 s"', '"nan s"', '"-5 %"', '"101 %"',
)  # fmt: skip
_NUMBER = re.compile(r"\d[\d_]*(\.\d+)?(e[+-]?\d+)?")
_VALUE = re.compile(r"(?<=[=:,\[ ])\s*(\"[^\"\n]*\"|[^\s,=\[\]{}\"]+)")

Mutation = Callable[[str, Random, Sequence[str]], str]


def text(data: str, draw: Random, words: Sequence[str], values: Sequence[str] = ()) -> bytes:
    """Mutate a text file; `words` are names and `values` complete values of its format."""
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        change = draw.choice(_TEXT_CHANGES)
        data = change(data, draw, [*values] if change is _value and values else words)
    encoded = data.encode("utf-8", "surrogateescape")
    return raw(encoded, draw) if draw.random() < 0.08 else encoded


def raw(data: bytes, draw: Random) -> bytes:
    """Change, delete, duplicate or insert a few bytes."""
    mutated = bytearray(data or b"x")
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        at = draw.randrange(len(mutated))
        match draw.randrange(6):
            case 0:
                mutated[at] = draw.randrange(256)
            case 1:
                mutated[at] ^= 1 << draw.randrange(8)
            case 2:
                del mutated[at : at + draw.choice((1, 4, 64))]
            case 3:
                mutated[at:at] = mutated[at : at + draw.choice((1, 8, 64))]
            case 4:
                mutated[at:at] = draw.choice((b"\0" * 8, b"\xff" * 8, b"\xc3(", b"\x80", b"\n\n"))
            case _:
                size = draw.choice((1, 2, 4, 8))
                mutated[at : at + size] = draw.choice((0, 1, 2**31, 2**63, 2**64 - 1)).to_bytes(
                    8, "little"
                )[:size]
        mutated = mutated or bytearray(b"x")
    return bytes(mutated[: draw.randrange(len(mutated))]) if draw.random() < 0.1 else bytes(mutated)


def number(draw: Random) -> str:
    """Return a number as text, mostly with an unusual unit or sign."""
    return draw.choice(NUMBERS) + (draw.choice(UNITS) if draw.random() < 0.3 else "")


def document(value: Any, draw: Random) -> Any:
    """Return a JSON document with one to three values replaced, deleted or moved, at any depth."""
    changed = copy.deepcopy(value)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        _change_inside(changed, draw)
    return changed


def strange(draw: Random) -> Any:
    """Return a value that is rarely valid."""
    return draw.choice(
        (None, True, False, 0, -1, 1.5, 1e308, -1e308, 10**22, -(10**22), 2**31, 2**63, 1e-320, "", "x", "²", "../x",
         "\0", "\x1b[2J", "\ud800", "a" * 5000, DIGITS, "1979-05-27", "9999-12-31T23:59:59+00:00",
         [], [[]], [None], {}, {"": None}, [1, "a"], {"a": {"b": []}}, nested(draw.choice((5, 500))))
    )  # fmt: skip


def nested(depth: int) -> Any:
    """Return nested lists."""
    document: Any = []
    for _ in range(depth):
        document = [document]
    return document


def _change_inside(value: Any, draw: Random) -> None:
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        if isinstance(value, list):
            value.append(strange(draw))
        else:
            value["x"] = strange(draw)
        return
    key = draw.choice(keys)
    if isinstance(value[key], dict | list) and value[key] and draw.random() < 0.75:
        _change_inside(value[key], draw)
        return
    match draw.randrange(8):
        case 0:
            del value[key]
        case 1:
            value[key] = copy.deepcopy(value[draw.choice(keys)])
        case 2 if isinstance(value, list):
            value.append(copy.deepcopy(value[key]))
        case 3 if isinstance(value, dict):
            value[draw.choice(("x", "", "\x1b[2J", "0"))] = value.pop(key)
        case 4 if isinstance(value[key], int | float):
            value[key] = value[key] * draw.choice((-1, 0, 2, 1e6, 1e300))
        case _:
            value[key] = strange(draw)


def _replace(data: str, match: re.Match[str], new: str) -> str:
    return data[: match.start()] + new + data[match.end() :]


def _number(data: str, draw: Random, _words: Sequence[str]) -> str:
    matches = list(_NUMBER.finditer(data))
    return _replace(data, draw.choice(matches), number(draw)) if matches else data


def _value(data: str, draw: Random, words: Sequence[str]) -> str:
    matches = list(_VALUE.finditer(data))
    new = draw.choice(
        (draw.choice(TEXTS), number(draw), draw.choice(TOML), *draw.choices(words or [""], k=4))
    )
    return _replace(data, draw.choice(matches), new) if matches else data


def _word(data: str, draw: Random, words: Sequence[str]) -> str:
    matches = list(re.finditer(r"[A-Za-z_][\w-]*", data))
    return _replace(data, draw.choice(matches), draw.choice([*words, ""])) if matches else data


def _line(data: str, draw: Random, words: Sequence[str]) -> str:
    """Delete, duplicate, move, truncate or invent a line."""
    lines = data.split("\n")
    at = draw.randrange(len(lines))
    match draw.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            lines.insert(draw.randrange(len(lines)), lines.pop(at))
        case 3:
            lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
        case 4:
            lines.insert(at, f"{draw.choice([*words, ''])}{draw.choice('=: ')}{number(draw)}")
        case _:
            lines[at : at + 1] = [lines[at]] * draw.choice((2, 10, 300))
    return "\n".join(lines)


def _put_in(data: str, draw: Random, _words: Sequence[str]) -> str:
    at = draw.randrange(len(data) + 1)
    new = draw.choice(
        (
            draw.choice(TEXTS),
            draw.choice(TOML),
            draw.choice("=[]{}\"'#:,;()*+-\\\t\r"),
            "(" * 100_000,
        )
    )
    return data[:at] + new + data[at:]


_TEXT_CHANGES: tuple[Mutation, ...] = (
    _number,
    _number,
    _number,
    _value,
    _value,
    _value,
    _word,
    _line,
    _line,
    _put_in,
)
