"""Sums in job files: `size=8*$mb_memory` and `bs=(4k*2)`.

fio hands a line that had a $keyword to the calculator `bc`, and reads a value in parentheses
itself (builds with arithmetic support). Both are integer sums of + - * / % and parentheses; only
the second knows units.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(r"\s*(?:(0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?[A-Za-z]*)|([-+*/%^()]))")


class ExpressionError(ValueError):
    """An expression that is not a sum of numbers."""


def evaluate(text: str, number: Callable[[str], int]) -> int:
    """The value of an expression, whose numbers `number` reads. Divisions cut towards zero."""
    tokens: list[str] = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise ExpressionError(f"cannot calculate '{text}'")
        tokens.append(match.group(1) or match.group(2))
        at = match.end()
    parser = _Parser(tokens, number, text)
    value = parser.sum()
    if parser.tokens:
        raise ExpressionError(f"cannot calculate '{text}': '{parser.tokens[0]}' is left over")
    return value


class _Parser:
    """Recursive descent, a method a level of precedence."""

    def __init__(self, tokens: list[str], number: Callable[[str], int], text: str) -> None:
        self.tokens = tokens
        self._number = number
        self._text = text

    def sum(self) -> int:
        value = self._product()
        while self.tokens and self.tokens[0] in "+-":
            sign = self.tokens.pop(0)
            other = self._product()
            value = value + other if sign == "+" else value - other
        return value

    def _product(self) -> int:
        value = self._power()
        while self.tokens and self.tokens[0] in "*/%":
            operator = self.tokens.pop(0)
            other = self._power()
            if operator == "*":
                value *= other
            elif other == 0:
                raise ExpressionError(f"cannot calculate '{self._text}': division by zero")
            else:
                quotient = abs(value) // abs(other) * (1 if (value < 0) == (other < 0) else -1)
                value = quotient if operator == "/" else value - quotient * other
        return value

    def _power(self) -> int:
        base = self._atom()
        if self.tokens and self.tokens[0] == "^":
            self.tokens.pop(0)
            exponent = self._power()
            if not 0 <= exponent <= 64:
                raise ExpressionError(f"cannot calculate '{self._text}': power {exponent}")
            power: int = base**exponent
            return power
        return base

    def _atom(self) -> int:
        if not self.tokens:
            raise ExpressionError(f"cannot calculate '{self._text}': it ends too early")
        token = self.tokens.pop(0)
        if token == "(":
            value = self.sum()
            if not self.tokens or self.tokens.pop(0) != ")":
                raise ExpressionError(f"cannot calculate '{self._text}': ')' is missing")
            return value
        if token == "-":
            return -self._atom()
        if token in "+*/%^)":
            raise ExpressionError(f"cannot calculate '{self._text}': '{token}' out of place")
        return self._number(token)
