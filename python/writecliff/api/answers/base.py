"""Base classes of the JSON output, and types that several commands use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from msgspec import Struct

Object = Mapping[str, Any]
"""An object whose keys the reference pages describe."""


class Answer(Struct, frozen=True, forbid_unknown_fields=True, tag_field="schema"):
    """A JSON object that a command prints, identified by the tag in its `schema` key.

    The comment next to or above a field is the field's description. A new version of a tag may add
    fields, but does not rename or remove any. Key names contain units, and unknown values are
    `null`.
    """

    commands: ClassVar[str]
    """Commands that print the answer, separated by commas."""

    more: ClassVar[str] = ""
    """Section of docs/reference/json.md with more details."""

    @classmethod
    def of(cls, values: Mapping[str, Any], **others: Any) -> Self:
        """Return an instance built from `values` (ignoring a `schema` key) and `others`.

        Raises:
            TypeError: If a key is unknown or missing.
        """
        return cls(**{key: value for key, value in values.items() if key != "schema"}, **others)


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object nested in an output object."""


class Refusal(Item, frozen=True):
    """Reason why a run would be rejected."""

    message: str  # Error message
    hint: str | None  # Suggested remedy


class LimitResult(Item, frozen=True):
    """A limit on a figure, with the outcome of its check."""

    run: str  # Run name
    text: str  # Limit as given
    figure: str  # Figure key; the key as given if the run has no such figure
    relation: str  # `<`, `<=`, `>` or `>=`
    limit: float  # Limit value, in `unit`
    unit: str  # Unit of the figure
    value: float | None  # Measured value; `null` if unknown
    result: Literal["met", "missed", "unknown"]  # Outcome of the check
    # `true` if the whole 95 % interval confirms `result`; `null` if there is no interval
    certain: bool | None
    note: str  # Caveat; empty if no caveat applies


class Difference(Item, frozen=True):
    """A setting that differs between contenders."""

    what: str  # Description of the setting
    # Setting by contender; `null` if unknown, or if the contender did not run these tests
    values: Sequence[str | None]
    tests: Sequence[str]  # Tests in which the setting differs
