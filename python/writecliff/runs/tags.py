"""Run tags. Tags of runs, stored in `tags.json` in each run directory to move with the run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from writecliff.errors import ConfigError, StoreError
from writecliff.store.checksums import parse_document, sealed_document

if TYPE_CHECKING:
    from writecliff.runs.place import Place

TAGS_NAME = "tags.json"
SCHEMA = "writecliff/tags/1"
LONGEST = 100  # Maximum tag length, in characters.


class TagsError(StoreError):
    """Raised if a run's tags cannot be read although the run is intact."""


def check_tag(tag: str) -> str:
    """Return `tag` if it is valid.

    Raises:
        ConfigError: If the tag is empty or too long, has leading or trailing blanks, starts with +
            or -, or contains non-printable characters.
    """
    if not tag or len(tag) > LONGEST:
        raise ConfigError(f"a tag must have 1 to {LONGEST} characters, not {len(tag)}")
    if not tag.isprintable() or tag != tag.strip() or tag[0] in "+-":
        raise ConfigError(
            f"{tag!r} is not a valid tag",
            hint="use printable characters, without blanks around them or a leading + or -",
        )
    return tag


def read_tags(place: Place, run: str) -> list[str]:
    """Return a run's tags in sorted order.

    Raises:
        TagsError: If the tag file is damaged.
    """
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
        raise TagsError(f"{path} does not contain a list of tags")
    return sorted(set(tags))


def change_tags(
    place: Place, run: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> list[str]:
    """Add and remove tags, and return the resulting tags. A damaged tag file is replaced.

    Raises:
        ConfigError: If an added tag is invalid.
        StoreError: If the tags cannot be written.
        FileNotFoundError: If the run was deleted.
    """
    new = [check_tag(tag) for tag in add]
    with place.saving():  # A concurrent change to the run's tags must not be lost.
        try:
            before = set(read_tags(place, run))
        except TagsError:
            before = set()
        after = sorted((before | set(new)) - set(remove))
        if set(after) != before:
            place.write(run, TAGS_NAME, sealed_document(SCHEMA, {"tags": after}))
    return after
