"""Loading of steps from a manifest, with checks of types and ranges.

The dataclasses in `model.py` define the types, and the native crate defines the ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from typing import Any, get_type_hints

from writecliff import units
from writecliff.errors import ConfigError
from writecliff.input_files import as_type
from writecliff.workload import model
from writecliff.workload.load import LoadStep, check_load
from writecliff.workload.model import BlockSize, Job, Workload


def stored_steps(data: object, where: object) -> tuple[LoadStep, ...]:
    """Recreate steps from their stored `asdict`.

    Raises:
        ConfigError: If a value is invalid; the message names `where` and the key.
    """
    data = _without_ramps(data, where)
    as_type(data, list[_form(LoadStep)], where)  # type: ignore[misc, arg-type]
    steps = tuple(map(LoadStep.from_mapping, data))  # type: ignore[call-overload]
    for step in steps:
        check_load(step.workload)
    return steps


def _without_ramps(data: object, where: object) -> object:
    """Remove the key `ramp`, which steps had before ramps became part of jobs."""
    if not isinstance(data, list) or not all(isinstance(step, dict) for step in data):
        return data
    if any(step.get("ramp") is not None for step in data):
        raise ConfigError(
            f"{where}: the run contains a ramp as a separate step, which this version cannot repeat"
        )
    return [{key: value for key, value in step.items() if key != "ramp"} for step in data]


@cache
def _form(kind: type) -> Any:
    """Convert a dataclass to a msgspec structure, because msgspec does not support `InitVar`."""
    import msgspec

    hints: Mapping[str, Any] = get_type_hints(kind)
    columns: list[Any] = []
    for item in fields(kind):
        form = _form_of(hints[item.name])
        if item.default_factory is not MISSING:
            made = msgspec.field(default_factory=item.default_factory)
            columns.append((item.name, form, made))
        elif item.default is not MISSING:
            columns.append((item.name, form, item.default))
        else:
            columns.append((item.name, form))
    return msgspec.defstruct(kind.__name__, columns, kw_only=True, forbid_unknown_fields=True)


def _form_of(hint: Any) -> Any:
    """Return a field's type hint, with structures replacing the dataclasses that contain jobs."""
    if hint == tuple[Job, ...]:
        return tuple[_form(Job), ...]  # type: ignore[misc]
    if hint == Workload:
        return _form(Workload)
    return _form(Workload) | None if hint == Workload | None else hint


# -- a job with a changed field, given as text -----------------------------------------------------

BLOCK_SIZE = "block_size"


def job_with(job: Job, name: str, text: str) -> Job:
    """Return `job` with the field `name` parsed from `text`.

    The text is a number, on or off, a word, a size for byte fields and `block_size`, or a time for
    ns fields.

    Raises:
        ConfigError: If the job has no such field, if the field is not a single value, or if the
            text is invalid.
    """
    kinds = _single_values()
    if name == BLOCK_SIZE:
        return replace(job, block_sizes=(BlockSize(units.parse_size(text)),))
    if name not in kinds:
        raise ConfigError.unknown("field of a job", name, settable_fields())
    try:
        value = _read(name, kinds[name], text)
    except ValueError:
        raise ConfigError(f"the field {name} of a job cannot be '{text}'") from None
    return replace(job, **{name: value})


def settable_fields() -> list[str]:
    """Return the names of the fields that `job_with` can change."""
    return [BLOCK_SIZE, *_single_values()]


def _single_values() -> dict[str, object]:
    """Return the fields that have a single value, with their types."""
    hints = get_type_hints(Job, vars(model))
    kinds = {}
    for field in fields(Job):
        hint = hints[field.name]
        parts = {part for part in getattr(hint, "__args__", ()) if part is not type(None)}
        kind: Any = hint if hint in (int, float, bool) else None
        if kind is None and len(parts) == 1 and parts <= {int, float}:
            kind = parts.pop()
        if kind is None and parts and all(isinstance(part, str) for part in parts):
            kind = tuple(sorted(parts))  # Sort the words of a literal type.
        if kind is not None:
            kinds[field.name] = kind
    return kinds


def _read(name: str, kind: Any, text: str) -> Any:
    if kind is bool:
        return text == "on" if text in ("on", "off") else _refuse(text)
    if isinstance(kind, tuple):
        return text if text in kind else _refuse(text)
    if kind is int and name.endswith("_bytes"):
        return units.parse_size(text)
    if name.endswith("_ns"):
        return units.parse_time(text)
    return kind(text)


def _refuse(text: str) -> Any:
    raise ValueError(text)
