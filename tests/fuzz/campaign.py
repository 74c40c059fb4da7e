"""Many cases of one kind."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from random import Random

from tests.fuzz.kinds import Kind
from tests.fuzz.outcome import Summary
from tests.fuzz.worker import run_case
from tests.support.forked import get_ready


def run_cases(
    kind: Kind, numbers: Iterable[int], seed: int, folder: Path, summary: Summary
) -> None:
    """Run the numbered cases and add their outcomes to `summary`.

    `folder` stores the corpus that the cases share.
    """
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    os.environ["WRITECLIFF_CACHE"] = str(folder / "cache")
    os.environ.pop("WRITECLIFF_STORE", None)
    get_ready()
    kind.prepare(corpus)
    kind_folder = folder / kind.name
    kind_folder.mkdir(exist_ok=True)
    for number in numbers:
        draw = Random(f"{kind.name} {seed} {number}")
        outcome = run_case(
            number, kind_folder, lambda case, draw=draw: kind.case(corpus, case, draw)
        )  # type: ignore[misc]
        summary.outcomes.append(outcome)
