"""What all answers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from msgspec import Struct

Object = Mapping[str, Any]
"""An object that is described elsewhere."""


class Answer(Struct, frozen=True, forbid_unknown_fields=True, tag_field="schema"):
    """A JSON object that a command prints; its tag is the value of the key `schema`.

    The comment beside or above a field is its description. Within a version of the tag, fields may
    be added, but never renamed or removed. Units are in the names; unknown is `null`.
    """

    commands: ClassVar[str]
    """The commands that print it, with commas between."""

    more: ClassVar[str] = ""
    """The section of docs/reference/json.md that describes it further."""

    @classmethod
    def of(cls, values: Mapping[str, Any], **others: Any) -> Self:
        """Return the answer with `values`, which may name their schema, and `others`.

        Raises TypeError: a key that the answer does not have, or a missing key.
        """
        return cls(**{key: value for key, value in values.items() if key != "schema"}, **others)


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """An object within an answer."""


class Refusal(Item, frozen=True):
    """Why a run would be refused."""

    message: str  # The error
    hint: str | None  # What to do


class LimitResult(Item, frozen=True):
    """A limit on a figure, and what became of it."""

    run: str  # The run, by its name
    text: str  # The limit, as given
    figure: str  # Key of the figure; as given if there is no such figure
    relation: str  # `<`, `<=`, `>` or `>=`
    limit: float  # The limit, in `unit`
    unit: str  # Unit of the figure
    value: float | None  # The figure
    result: Literal["met", "missed", "unknown"]  # The outcome
    certain: bool | None  # All of the 95 % interval is on that side; `null`: there is no interval
    note: str  # What the reader must know


class Difference(Item, frozen=True):
    """A part of the set-up that is not the same for all."""

    what: str  # The part, in words
    # Its value by contender; `null`: not known, or the contender did not run these tests
    values: Sequence[str | None]
    tests: Sequence[str]  # The tests in which it differs, if the contenders have several in common
