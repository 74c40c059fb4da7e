"""The tags of a run. They are in its directory, `tags.json`, so that they go where the run goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from writecliff.errors import ConfigError, StoreError
from writecliff.store.checksums import parse_document, sealed_document

if TYPE_CHECKING:
    from writecliff.runs.place import Place

TAGS_NAME = "tags.json"
SCHEMA = "writecliff/tags/1"
LONGEST = 100  # characters


class TagsError(StoreError):
    """Tags that cannot be read; the run itself is as good as ever."""


def check_tag(tag: str) -> str:
    """The tag itself. Raises ConfigError: empty, long, with blanks at its ends, control characters
    or other characters that are not printed.
    """
    if not tag or len(tag) > LONGEST:
        raise ConfigError(f"a tag has 1 to {LONGEST} characters, not {len(tag)}")
    if not tag.isprintable() or tag != tag.strip() or tag[0] in "+-":
        raise ConfigError(
            f"{tag!r} cannot be a tag",
            hint="give printable characters, no blanks around them, and no + or - before them",
        )
    return tag


def read_tags(place: Place, run: str) -> list[str]:
    """The tags of a run, sorted. Raises TagsError."""
    try:
        data = place.read(run, TAGS_NAME)
    except FileNotFoundError:
        return []
    path = place.path_of(run) / TAGS_NAME
    try:
        tags = parse_document(data, path, SCHEMA).get("tags")
    except StoreError as error:
        raise TagsError(str(error)) from None
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise TagsError(f"{path} holds no list of tags")
    return sorted(set(tags))


def change_tags(
    place: Place, run: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> list[str]:
    """Add and remove tags; the tags after that. Tags that cannot be read are replaced.

    Raises ConfigError for what cannot be a tag, StoreError, FileNotFoundError: the run is gone.
    """
    new = [check_tag(tag) for tag in add]
    with place.saving():  # two processes that tag one run must not lose each other's
        try:
            before = set(read_tags(place, run))
        except TagsError:
            before = set()
        after = sorted((before | set(new)) - set(remove))
        if set(after) != before:
            place.write(run, TAGS_NAME, sealed_document(SCHEMA, {"tags": after}))
    return after
