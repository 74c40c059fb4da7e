"""Description of fio options, with the fields and table rows that define them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from writecliff.workload.fiojob.values import Context, Reader, flag, optional_string


class Treatment(Enum):
    """Treatment of an option in a job file."""

    HONOURED = "honoured"
    REPORTING = "honoured in the fio-shaped JSON"
    NO_EFFECT = "accepted, no effect"
    REFUSED = "refused"


@dataclass(frozen=True)
class Option:
    """A fio option; `text` states its meaning, or the reason why it is ignored or rejected.

    A rejected option is accepted with a value in `neutral`, because this value has no effect.
    `store_as` names the option whose value this option sets, in the form returned by `read`.
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
        """Name of the option as a Python identifier."""
        return self.store_as or self.name


def option(
    read: Reader,
    default: str | None,
    text: str,
    *aliases: str,
    treatment: Treatment = Treatment.HONOURED,
) -> Any:
    """Define a field of `FioOptions` named like its option (default: `None`; for flags: off).

    The field's annotation must be the return type of `read`.
    """
    off = False if read is flag else None
    value = off if default is None else read(default, Context())
    row = Option("", treatment, read, text, aliases, default)
    return field(default=value, metadata={"option": row})


def reported(read: Reader, default: str | None, text: str, *aliases: str) -> Any:
    """Define a field of `FioOptions` that only affects the JSON in fio's format."""
    return option(read, default, text, *aliases, treatment=Treatment.REPORTING)


def unused(treatment: Treatment, table: Mapping[str, str]) -> Iterator[Option]:
    """Yield the options from a table of unused options."""
    for reason, names in table.items():
        for words in names.split():
            spellings, _, neutral = words.partition("=")
            name, *aliases = spellings.split("/")
            accepted = tuple(neutral.split(",")) if neutral else ()
            yield Option(name, treatment, optional_string, reason, tuple(aliases), None, accepted)
