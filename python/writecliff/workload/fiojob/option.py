"""What is known of one fio option, and the field or table row that says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from writecliff.workload.fiojob.values import Context, Reader, flag, optional_string


class Treatment(Enum):
    """What happens to an option of a job file."""

    HONOURED = "honoured"
    REPORTING = "honoured in the fio-shaped JSON"
    NO_EFFECT = "accepted, no effect"
    REFUSED = "refused"


@dataclass(frozen=True)
class Option:
    """One option. `text` says how it is honoured, why it has no effect, or why it is refused.

    A refused option is accepted with a value in `neutral`, with which it has no effect.
    `store_as` names the option whose value this one sets, in the form that `read` returns.
    """

    name: str
    treatment: Treatment
    read: Reader
    text: str
    aliases: tuple[str, ...] = ()
    default: str | None = None
    neutral: tuple[str, ...] = ()
    store_as: str | None = None

    @property
    def key(self) -> str:
        return self.store_as or self.name


def option(
    read: Reader,
    default: str | None,
    text: str,
    *aliases: str,
    treatment: Treatment = Treatment.HONOURED,
) -> Any:
    """A field of `FioOptions`, named after its option; without a default it is None (flags: off).

    The annotation of the field must be the type that `read` returns.
    """
    off = False if read is flag else None
    value = off if default is None else read(default, Context())
    row = Option("", treatment, read, text, aliases, default)
    return field(default=value, metadata={"option": row})


def reported(read: Reader, default: str | None, text: str, *aliases: str) -> Any:
    """A field of `FioOptions` that only the fio-shaped JSON follows."""
    return option(read, default, text, *aliases, treatment=Treatment.REPORTING)


def unused(treatment: Treatment, table: Mapping[str, str]) -> Iterator[Option]:
    """The options of a table in `options_unused`."""
    for reason, names in table.items():
        for words in names.split():
            spellings, _, neutral = words.partition("=")
            name, *aliases = spellings.split("/")
            accepted = tuple(neutral.split(",")) if neutral else ()
            yield Option(name, treatment, optional_string, reason, tuple(aliases), None, accepted)
