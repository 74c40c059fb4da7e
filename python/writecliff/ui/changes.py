"""Changes, if they are allowed: tags, and deletion. Both by the store's own functions."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from tornado.web import HTTPError

from writecliff.runs.delete import delete_runs
from writecliff.runs.tags import change_tags
from writecliff.ui.handler import Handler
from writecliff.ui.library import Library, NoSuchRun


class _Change(Handler):
    """A form that changes the store."""

    def prepare(self) -> None:
        super().prepare()
        if not self.dashboard.allow_changes:
            raise HTTPError(403, reason="Changes are not allowed: see --allow-changes")
        origin = self.request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != self.request.headers.get("Host"):
            raise HTTPError(403, reason="A form of another page")


class TagsForm(_Change):
    """Add and remove tags of a run: `name`, `add`, `remove`."""

    async def post(self) -> None:
        run = self.form("name")
        await self.in_thread(_tag, self.dashboard.library, run, self.form("add"),
                             self.form("remove"))  # fmt: skip
        self.redirect(f"/run?{urlencode({'name': run})}#tags", status=303)


def _tag(library: Library, run: str, add: str, remove: str) -> None:
    library.check(run)
    wanted = [tag.strip() for tag in add.split(",") if tag.strip()]
    try:
        change_tags(library.place, run, add=wanted, remove=[remove] if remove else [])
    except FileNotFoundError:
        raise NoSuchRun(f"{run} has gone") from None
    library.changed()


class DeleteForm(_Change):
    """Delete a run: `name`, and `confirm` with the same name."""

    async def get(self) -> None:
        await self.in_thread(self.dashboard.library.check, self.argument("name"))
        self.page("delete.html.j2", run=self.argument("name"))

    async def post(self) -> None:
        await self.in_thread(_delete, self.dashboard.library, self.form("name"))
        self.redirect("/", status=303)


def _delete(library: Library, run: str) -> None:
    library.check(run)
    deleted = delete_runs(library.place, [run])
    library.changed()
    if not deleted:
        raise NoSuchRun(f"{run} has gone")
