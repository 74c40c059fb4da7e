"""The workload file of a model."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING

from writecliff import units

if TYPE_CHECKING:
    from writecliff.workload.io_model import Column, IoModel

_WIDTH = 98  # of lines
_SAID = {
    "streams": "I/O streams: operations (r read, w write, t trim, f flush), bytes, and 1 for means",
    "gaps": "times between I/Os: eight values for each class",
    "states": "what an I/O is: its stream, whether it continues a run, the class of the gap before",
    "transitions": "how often a state follows another, in each phase",
    "periods": "demand over time: phase, I/Os and length of each period",
    "places": "where runs begin: groups of places that are used alike",
    "sweeps": "I/Os that go through the addresses upwards, what they leave out, weights of pages",
    "mixes": "mixes of I/O streams of sweeps that are alike",
    "demand": "demand over time: I/Os, length and shape of intervals",
}


def workload_text(model: IoModel, name: str, *, queue_depth: int) -> str:
    """The file, in TOML. The job ends after one pass."""
    span = units.duration(model.duration_ns)
    lines = [
        f"# Made by `writecliff trace synthesise` from {name}: {model.ios:,} I/Os in {span},",
        f"# as a model of {model.numbers:,} numbers. The I/Os follow from it and its seed.",
        f"name = {json.dumps(name, ensure_ascii=False)}",
        "",
        "[[job]]",
        'name = "synthetic"',
        f"ios = {model.ios - model.flushes}  # a pass; more repeat it",
        f"queue_depth = {queue_depth}  # an open loop: arrivals do not wait below it",
        "",
        "[job.model]",
        f"seed = {model.seed}",
        f'range = "{model.range_bytes} B"',
        *_column("read_ranks", model.read_ranks),
        *_column("write_ranks", model.write_ranks),
    ]
    for table in model.tables:
        lines += ["", f"# {_SAID[table]}", f"[job.model.{table}]"]
        of = getattr(model, table)
        for one in fields(of):
            value = getattr(of, one.name)
            if isinstance(value, tuple):
                lines += _column(one.name, value)
            else:
                lines.append(f"{one.name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _column(name: str, values: Column) -> list[str]:
    """A column of numbers in lines of bounded length."""
    lines, line = [], f"{name} = ["
    for n, value in enumerate(values):
        word = f"{value}" + ("" if n == len(values) - 1 else ", ")
        if len(line) + len(word) > _WIDTH:
            lines.append(line.rstrip())
            line = "    "
        line += word
    return [*lines, line + "]"]
