"""A page of the list of runs: which are asked for, and what is shown of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC
from typing import Any, Self
from urllib.parse import urlencode

from writecliff.errors import ConfigError
from writecliff.runs.queries import LISTED, Selection
from writecliff.ui.library import Library

PAGE = 100  # runs
_OFFERED = 200  # names of tests, tags and so on in the form
SORTABLE = ("run", "status", "test", "target", "created_utc", "verdict")


@dataclass(frozen=True)
class Asked:
    """What the form of the list asks for, as in its address; empty: anything."""

    q: str = ""
    kind: str = ""
    test: str = ""
    device: str = ""
    status: str = ""
    tag: str = ""  # several with commas between
    since: str = ""
    set: str = ""  # a suite or sweep
    sort: str = "-created_utc"
    page: int = 1

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> Self:
        """From the arguments of an address. Raises ConfigError for a page that is no number."""
        known = {one.name: arguments[one.name].strip() for one in fields(cls)
                 if arguments.get(one.name, "").strip()}  # fmt: skip
        page = known.pop("page", "1")
        if not (page.isascii() and page.isdigit() and 1 <= len(page) <= 9 and int(page) >= 1):
            raise ConfigError(f"page '{page}' is no number from 1 on")
        return cls(**known, page=int(page))

    def address(self, **changes: Any) -> str:
        """The address of the list with some of it changed."""
        asked = {k: v for k, v in asdict(replace(self, **changes)).items() if v != _NOTHING[k]}
        return f"/?{urlencode(asked)}" if asked else "/"

    def sorted_by(self, column: str) -> str:
        """The address of the list sorted by a column: again, the other way round."""
        return self.address(sort=f"-{column}" if self.sort == column else column, page=1)

    def selection(self) -> Selection:
        """The same for the store: as `writecliff runs list` understands it."""
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
        """Whether it leaves out any run."""
        return replace(self, sort=_NOTHING["sort"], page=1) != Asked()


_NOTHING = asdict(Asked())


@dataclass(frozen=True)
class Listing:
    """A page of the list."""

    asked: Asked
    rows: Sequence[Mapping[str, Any]]
    total: int
    offered: Mapping[str, Sequence[str]]  # values of kind, test, status and tag that there are

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // PAGE))

    @property
    def first(self) -> int:
        """The number of the first run of the page among all."""
        return (self.asked.page - 1) * PAGE + 1


def listing(library: Library, asked: Asked) -> Listing:
    """Raises ConfigError: a time or column that means nothing; StoreError."""
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
    """The row of a run; of one that reaches out of the store, its name alone."""
    if library.leads_outside(row["run"]):
        nothing = dict.fromkeys(row)
        return {**nothing, "run": row["run"], "status": "outside", "tags": [],
                "says": "a link out of the store, which is not shown"}  # fmt: skip
    says = row["damage"] if row["status"] == "damaged" else row["verdict"]
    return {**row, "says": says or "", "begun": begun(row["created_utc"])}


def begun(when: Any) -> str:
    """A time of the catalogue by the clock of this machine."""
    return "" if when is None else f"{when.replace(tzinfo=UTC).astimezone():%Y-%m-%d %H:%M}"
