"""A page of the run list, with its filter and its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC
from typing import Any, Self
from urllib.parse import urlencode

from writecliff.errors import ConfigError
from writecliff.runs.queries import LISTED, Selection
from writecliff.ui.library import Library

PAGE = 100  # Number of runs per page.
_OFFERED = 200  # Maximum number of names in each list of the form.
SORTABLE = ("run", "status", "test", "target", "created_utc", "verdict")


@dataclass(frozen=True)
class Asked:
    """Filter of the list, as encoded in its URL; empty fields match everything."""

    q: str = ""
    kind: str = ""
    test: str = ""
    device: str = ""
    status: str = ""
    tag: str = ""  # Tags, separated by commas.
    since: str = ""
    set: str = ""  # Name of a suite or sweep.
    sort: str = "-created_utc"
    page: int = 1

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> Self:
        """Return the filter encoded in URL arguments.

        Raises:
            ConfigError: If the page number is not a number.
        """
        measured = {field.name: arguments[field.name].strip() for field in fields(cls)
                 if arguments.get(field.name, "").strip()}  # fmt: skip
        page = measured.pop("page", "1")
        if not (page.isascii() and page.isdigit() and 1 <= len(page) <= 9 and int(page) >= 1):
            raise ConfigError(f"page '{page}' must be 1 or greater")
        return cls(**measured, page=int(page))

    def address(self, **changes: Any) -> str:
        """Return the list's URL with some arguments changed."""
        asked = {k: v for k, v in asdict(replace(self, **changes)).items() if v != _NOTHING[k]}
        return f"/?{urlencode(asked)}" if asked else "/"

    def sorted_by(self, column: str) -> str:
        """Return the URL for the list sorted by a column, or in reverse if it is already sorted."""
        return self.address(sort=f"-{column}" if self.sort == column else column, page=1)

    def selection(self) -> Selection:
        """Return the filter as a `writecliff runs list` selection."""
        given = {name: getattr(self, name) or None
                 for name in ("kind", "test", "device", "status", "since")}  # fmt: skip
        return Selection(
            **given,
            text=self.q or None,
            tags=tuple(tag.strip() for tag in self.tag.split(",") if tag.strip()),
            member_of=self.set or None,
            sort=self.sort,
            limit=PAGE,
            offset=(self.page - 1) * PAGE,
        )

    @property
    def narrows(self) -> bool:
        """`True` if the filter may exclude runs."""
        return replace(self, sort=_NOTHING["sort"], page=1) != Asked()


_NOTHING = asdict(Asked())


@dataclass(frozen=True)
class Listing:
    """A page of the run list."""

    asked: Asked
    rows: Sequence[Mapping[str, Any]]
    total: int
    # Values of kind, test, status and tag that occur in the store.
    offered: Mapping[str, Sequence[str]]

    @property
    def pages(self) -> int:
        """Total number of pages."""
        return max(1, -(-self.total // PAGE))

    @property
    def first(self) -> int:
        """Number of the first run on the page."""
        return (self.asked.page - 1) * PAGE + 1


def listing(library: Library, asked: Asked) -> Listing:
    """Return a page of the run list.

    Raises:
        ConfigError: If a time or a column is not valid.
        StoreError: If the store cannot be read.
    """
    selection = asked.selection()
    sql, values = selection.sql(LISTED)
    with library.catalogue() as database:
        names, rows = database.rows(sql, values)
        total = int(database.rows(*selection.count_sql())[1][0][0])
        offered = {
            name: [row[0] for row in database.rows(
                f"select {name} from runs where {name} is not null group by all order by 1 "
                f"limit {_OFFERED}")[1]]
            for name in ("kind", "test", "status")
        }  # fmt: skip
        offered["tag"] = [row[0] for row in database.rows(
            f"select tag from tags group by tag order by count(*) desc, tag limit {_OFFERED}"
        )[1]]  # fmt: skip
    shown = [_shown(library, dict(zip(names, row, strict=True))) for row in rows]
    return Listing(asked, shown, total, offered)


def _shown(library: Library, row: dict[str, Any]) -> dict[str, object]:
    """Return a run's row, or only its name if the run links to outside the store."""
    if library.leads_outside(row["run"]):
        nothing = dict.fromkeys(row)
        return {**nothing, "run": row["run"], "status": "outside", "tags": [],
                "says": "has a link out of the store; not shown"}  # fmt: skip
    says = row["damage"] if row["status"] == "damaged" else row["verdict"]
    return {**row, "says": says or "", "begun": begun(row["created_utc"])}


def begun(when: Any) -> str:
    """Convert a time in the catalogue to the local time zone."""
    return "" if when is None else f"{when.replace(tzinfo=UTC).astimezone():%Y-%m-%d %H:%M}"
