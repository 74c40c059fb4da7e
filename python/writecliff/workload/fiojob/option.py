"""What is known of one fio option, and the lookup over all of them.

To add an option, add one row to one of the `options_*` tables. The reader, the errors, and the
reference page `docs/reference/fio-options.md` all follow from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache

from writecliff.workload.fiojob.values import Reader, optional_string


class Treatment(Enum):
    """What happens to an option of a job file."""

    HONOURED = "honoured"
    REPORTING = "honoured in the fio-shaped JSON"
    NO_EFFECT = "accepted, no effect"
    REFUSED = "refused"


@dataclass(frozen=True)
class Option:
    """One row. `text` says how it is honoured, why it has no effect, or why it is refused.

    A refused option is accepted with a value in `neutral`, with which it asks for nothing.
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


def honoured(
    name: str,
    read: Reader,
    text: str,
    *aliases: str,
    default: str | None = None,
    store_as: str | None = None,
) -> Option:
    return Option(name, Treatment.HONOURED, read, text, aliases, default, (), store_as)


def reporting(
    name: str, read: Reader, text: str, *aliases: str, default: str | None = None
) -> Option:
    return Option(name, Treatment.REPORTING, read, text, aliases, default)


def no_effect(name: str, why: str, *aliases: str) -> Option:
    return Option(name, Treatment.NO_EFFECT, optional_string, why, aliases)


def refused(name: str, why: str, *aliases: str, neutral: tuple[str, ...] = ()) -> Option:
    return Option(name, Treatment.REFUSED, optional_string, why, aliases, None, neutral)


def all_options() -> tuple[Option, ...]:
    """Every known option, in the order of the reference page."""
    from writecliff.workload.fiojob.options_host import HOST
    from writecliff.workload.fiojob.options_load import LOAD
    from writecliff.workload.fiojob.options_refused import REFUSED
    from writecliff.workload.fiojob.options_report import REPORT

    return (*LOAD, *REPORT, *HOST, *REFUSED)


@cache
def by_name() -> dict[str, Option]:
    """Options by name and by alias."""
    table: dict[str, Option] = {}
    for option in all_options():
        for name in (option.name, *option.aliases):
            if name in table:
                raise AssertionError(f"fio option {name} has two rows")
            table[name] = option
    return table
