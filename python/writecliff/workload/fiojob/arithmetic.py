"""Arithmetic in job files: `size=8*$mb_memory` and `bs=(4k*2)`.

fio passes a line with a $keyword to the calculator `bc`, and evaluates values in parentheses itself
(in builds with arithmetic support). Both forms are integer expressions with + - * / % ^ and
parentheses, but only values in parentheses support units.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from writecliff.input_files import shortened

_TOKEN = re.compile(r"\s*(?:(0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?[A-Za-z]*)|([-+*/%^()]))")
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "^": 3}
_POWER_MAX = 64
TERMS_MAX = 200  # Maximum number of numbers, operators and parentheses.
_BITS_MAX = 256


class ExpressionError(ValueError):
    """Raised if an expression is invalid."""


def evaluate(text: str, number: Callable[[str], int]) -> int:
    """Evaluate an expression whose numbers are parsed by `number`; divisions round towards zero."""
    tokens: list[str] = []
    position, stripped = 0, text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise ExpressionError(f"cannot calculate '{shortened(text)}'")
        tokens.append(match.group(1) or match.group(2))
        position = match.end()
        if len(tokens) > TERMS_MAX:
            raise ExpressionError(f"cannot calculate '{shortened(text)}': it is too long")
    try:
        value = _expression(tokens, number, 1)
        if tokens:
            raise ExpressionError(f"'{tokens[0]}' is unexpected")
    except ExpressionError as problem:
        raise ExpressionError(f"cannot calculate '{shortened(text)}': {problem}") from None
    return value


def _expression(tokens: list[str], number: Callable[[str], int], lowest: int) -> int:
    """Consume an expression from the tokens, up to an operator with a precedence below `lowest`."""
    value = _atom(tokens, number)
    while tokens and _PRECEDENCE.get(tokens[0], 0) >= lowest:
        operator = tokens.pop(0)
        right_associative = operator == "^"
        level = _PRECEDENCE[operator] + (not right_associative)
        value = _apply(operator, value, _expression(tokens, number, level))
    return value


def _atom(tokens: list[str], number: Callable[[str], int]) -> int:
    token = tokens.pop(0) if tokens else ""
    if token == "(":
        value = _expression(tokens, number, 1)
        if not tokens or tokens.pop(0) != ")":
            raise ExpressionError("')' is missing")
        return value
    if token == "-":
        return -_atom(tokens, number)
    if token in ("", *_PRECEDENCE, ")"):
        raise ExpressionError(f"unexpected '{token}'" if token else "the expression is incomplete")
    return number(token)


def _apply(operator: str, left: int, right: int) -> int:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        if left.bit_length() + right.bit_length() > _BITS_MAX:
            raise ExpressionError("the product is too large")
        return left * right
    if operator == "^":
        if not 0 <= right <= _POWER_MAX or left.bit_length() * right > _BITS_MAX:
            raise ExpressionError(f"exponent {right} is out of range")
        return int(left**right)
    if right == 0:
        raise ExpressionError("division by zero")
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient if operator == "/" else left - quotient * right
