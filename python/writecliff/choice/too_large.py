"""Candidates that do not fit in this machine's memory.

A load whose addresses cannot be scaled, such as a trace, requires a drive at full size. A 15 TB
drive requires more memory than many machines have. If the candidates are specified by group or
pattern, drives that are too large are omitted and reported. A named drive that is too large is
rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from writecliff.choice.candidates import target_of
from writecliff.choice.plan import Contender, member_of
from writecliff.choice.question import Question, label_of
from writecliff.devices import show_device
from writecliff.errors import ConfigError
from writecliff.parallel import drive_memory_bytes

LEAST = 2  # Minimum number of candidates in a choice.


def without_too_large(question: Question, named: Collection[str], *, budget_bytes: int) -> Question:
    """Return the question, excluding candidates whose runs need more memory than `budget_bytes`.

    Args:
        question: Question that includes all candidates.
        named: Candidates that the user named, which are never omitted.
        budget_bytes: Memory available to a simulated drive, in bytes.

    Raises:
        ConfigError: If fewer than two candidates remain.
    """
    out: dict[str, str] = {}
    for drive in question.candidates:
        if drive not in named and (why := _too_large(question, drive, budget_bytes)):
            out[drive] = why
    remaining = tuple(drive for drive in question.candidates if drive not in out)
    if out and len(remaining) < LEAST:
        raise ConfigError(
            f"{'one drive is' if remaining else 'no drives are'} left to choose from: "
            f"{left_out_text(out)}",
            hint="select smaller drives with --candidates or --capacity",
        )
    return replace(question, candidates=remaining, left_out={**question.left_out, **out})


def left_out_text(left_out: Mapping[str, str]) -> str:
    """Return a comma-separated list of the omitted drives and the reasons."""
    return ", ".join(f"{label_of(drive)} {why}" for drive, why in left_out.items())


def _too_large(question: Question, drive: str, budget_bytes: int) -> str:
    """Return the reason why this machine cannot simulate a drive under the load, or ""."""
    shown = show_device(drive)
    needed = drive_memory_bytes(shown.capacity_bytes, shown.mapped_bytes)
    if needed <= budget_bytes:
        return ""
    run = member_of(question, Contender(label_of(drive), drive, target_of(drive)), 1)
    scale = run.options.get("scale") or 1.0
    if scale < shown.least_scale:
        return "cannot be simulated at full capacity"
    needed = drive_memory_bytes(
        round(shown.capacity_bytes / scale), round(shown.mapped_bytes / scale)
    )
    if needed <= budget_bytes:
        return ""
    return f"needs {needed / 1e9:.0f} GB of memory where {budget_bytes / 1e9:.0f} GB are free"
