"""Answers of the run store and the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from writecliff.api.answers.base import Answer, Difference, Item, Object


class ListedRun(Item, frozen=True):
    """A run in a list: columns of the view `runs` ([reference](run-store.md))."""

    run: str  # Name of the run
    status: str  # Status of the run
    test: str | None  # Name of the test
    target: str | None  # Target as given
    drive: str | None  # Vendor and model
    created_utc: str | None  # Start of the run (ISO 8601)
    verdict: str | None  # Result in one line
    tags: Sequence[str]  # Tags of the run
    member_of: str | None  # Suite, sweep or choice that the run belongs to
    kind: str | None  # Kind of that set
    limits_met: bool | None  # `true` if all limits are met; `null`: no limits
    damage: str | None  # Damage to the run; `null`: none


class RunsList(Answer, frozen=True, tag="writecliff/runs-list/1"):
    """The runs of a store."""

    commands = "runs list"

    store: str  # Folder or URL of the store
    runs: Sequence[ListedRun]  # Runs, latest first


class StoredFigure(Item, frozen=True):
    """A headline figure of a run."""

    key: str  # Key of the figure
    label: str  # Name of the figure in words
    value: float  # Value, in `unit`
    unit: str  # Unit of `value`, `low` and `high`
    low: float | None  # Low end of its 95 % interval
    high: float | None  # High end of its 95 % interval
    interval_of: str | None  # Population that the interval describes
    higher_is_better: bool  # `false` for latencies and the like
    at: str  # Load at which it was measured
    steady: bool  # `true` if it was measured in steady state


class RunDetails(Answer, frozen=True, tag="writecliff/runs-show/1"):
    """A run of a store."""

    commands = "runs show"

    store: str  # Folder or URL of the store
    run: Object  # All columns of the view `runs` ([reference](run-store.md))
    figures: Sequence[StoredFigure]  # Headline figures
    expectations: Sequence[Object]  # Limits with their results, as in the manifest


class RunTags(Answer, frozen=True, tag="writecliff/runs-tag/1"):
    """Tags of a run."""

    commands = "runs tag"

    run: str  # Name of the run
    tags: Sequence[str]  # Tags of the run after the change


class RunsDeleted(Answer, frozen=True, tag="writecliff/runs-delete/1"):
    """Runs that a command deleted."""

    commands = "runs delete"

    store: str  # Folder or URL of the store
    deleted: Sequence[str]  # Names of the deleted runs


class RunsExported(Answer, frozen=True, tag="writecliff/runs-export/1"):
    """Runs that a command exported."""

    commands = "runs export"

    store: str  # Folder or URL of the store
    runs: Sequence[str]  # Names of the exported runs and suites
    output: Path  # Archive or folder that was written


class RunsImported(Answer, frozen=True, tag="writecliff/runs-import/1"):
    """Runs that a command imported."""

    commands = "runs import"

    store: str  # Folder or URL of the store
    runs: Sequence[str]  # Names of the new runs and suites


class Column(Item, frozen=True):
    """A column of a query's result."""

    name: str  # Name of the column
    type: str  # Arrow type of the column


class QueryResult(Answer, frozen=True, tag="writecliff/runs-sql/1"):
    """The result of a query."""

    commands = "runs sql"

    store: str  # Folder or URL of the store
    columns: Sequence[Column]  # Columns of the result
    rows: Sequence[Object]  # Rows, each an object with a key per column


class RunsDifference(Answer, frozen=True, tag="writecliff/runs-diff/1"):
    """Comparison of two runs."""

    commands = "runs diff"

    runs: Sequence[str]  # Names of A and B
    differences: Sequence[Difference]  # Differences in the set-up
    environment: Sequence[Object]  # Differences in versions and host: `what`, `values`
    # Figures as in `compare --json`, each with the `judgement` of B: `"better"`, `"worse"`,
    # `"equal"` or `"cannot tell"`
    figures: Sequence[Object]
    rule: str  # Rule that separates differences from noise
    judgement: str  # Overall: better (worse) if some figures are and none is worse (better)
    verdict: str  # Result in a sentence


class DamagedRun(Item, frozen=True):
    """A run that cannot be read in full."""

    run: str  # Name of the run
    damage: str  # Damage to the run


class RunsIndex(Answer, frozen=True, tag="writecliff/runs-index/1"):
    """The catalogue of a store."""

    commands = "runs index"

    store: str  # Folder or URL of the store
    runs: int  # Runs in the store
    read: int  # Changed runs that were read
    gone: int  # Deleted runs that were removed from the catalogue
    damaged: Sequence[DamagedRun]  # Runs that cannot be read in full


class Dashboard(Answer, frozen=True, tag="writecliff/ui/1"):
    """A running dashboard."""

    commands = "ui"

    address: str  # URL with the token; printed once the dashboard accepts connections
    store: str  # Folder or URL of the store
    allow_changes: bool  # `true` if visitors can change tags and delete runs
