"""Many cases of one kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from random import Random

from tests.fuzz.kinds import Kind
from tests.fuzz.outcome import Outcome, Summary
from tests.fuzz.worker import run_case

# Imported before processes are forked; those with threads of their own use one.
_MODULES = (
    "numpy", "pyarrow.parquet", "pyarrow.dataset", "duckdb", "msgspec", "cyclopts", "jinja2", "matplotlib.backends.backend_svg",
    "matplotlib.figure", "writecliff._native", "writecliff.cli.commands", "writecliff.report.pages", "writecliff.engines.sim",
    "writecliff.procedures.framework", "writecliff.workload.fiojob", "writecliff.cli.runner",
)  # fmt: skip


def run_cases(kind: Kind, numbers: Iterable[int], seed: int, folder: Path,
              seen: Callable[[Outcome], None] = lambda one: None) -> Summary:  # fmt: skip
    """Run the cases of these numbers in `folder`, which keeps what kinds need for all of them."""
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    os.environ["WRITECLIFF_CACHE"] = str(folder / "cache")
    os.environ.pop("WRITECLIFF_STORE", None)
    kind.prepare(corpus)
    for module in _MODULES:
        import_module(module)
    summary, own = Summary(kind.name), folder / kind.name
    own.mkdir(exist_ok=True)
    for number in numbers:
        draw = Random(f"{kind.name} {seed} {number}")
        outcome = run_case(number, own, lambda case, draw=draw: kind.case(corpus, case, draw))  # type: ignore[misc]
        summary.outcomes.append(outcome)
        seen(outcome)
    return summary
