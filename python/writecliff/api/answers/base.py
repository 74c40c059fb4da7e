"""Base classes of the answers, and types that several of them use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from msgspec import Struct

Object = Mapping[str, Any]
"""An object whose keys the reference pages describe."""


class Answer(Struct, frozen=True, forbid_unknown_fields=True, tag_field="schema"):
    """A JSON object that a command prints; its tag is the value of the key `schema`.

    The comment beside or above a field is its description. Within a version of the tag, fields may
    be added, but never renamed or removed. Names contain the units; unknown values are `null`.
    """

    commands: ClassVar[str]
    """Commands that print the answer, separated by commas."""

    more: ClassVar[str] = ""
    """Section of docs/reference/json.md with more details."""

    @classmethod
    def of(cls, values: Mapping[str, Any], **others: Any) -> Self:
        """Return the answer with `values`, which may include `schema`, and `others`.

        Raises:
            TypeError: A key is unknown or missing.
        """
        return cls(**{key: value for key, value in values.items() if key != "schema"}, **others)


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """An object within an answer."""


class Refusal(Item, frozen=True):
    """Reason why a run would be refused."""

    message: str  # Error message
    hint: str | None  # Suggested remedy


class LimitResult(Item, frozen=True):
    """A limit on a figure, with its result."""

    run: str  # Name of the run
    text: str  # Limit as given
    figure: str  # Key of the figure; as given if the run has no such figure
    relation: str  # `<`, `<=`, `>` or `>=`
    limit: float  # Value of the limit, in `unit`
    unit: str  # Unit of the figure
    value: float | None  # Measured value; `null`: unknown
    result: Literal["met", "missed", "unknown"]  # Result of the limit
    certain: bool | None  # The whole 95 % interval agrees with `result`; `null`: no interval
    note: str  # Caveat; empty: none


class Difference(Item, frozen=True):
    """A setting in which the contenders differ."""

    what: str  # Setting in words
    # Value by contender; `null`: unknown, or the contender did not run these tests
    values: Sequence[str | None]
    tests: Sequence[str]  # Tests in which it differs, if the contenders share several
