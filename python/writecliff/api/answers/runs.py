"""JSON output of the run store and the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from writecliff.api.answers.base import Answer, Difference, Item, Object


class ListedRun(Item, frozen=True):
    """A listed run, with columns of the view `runs` ([reference](run-store.md))."""

    run: str  # Run name
    status: str  # Run status
    test: str | None  # Test name
    target: str | None  # Target as given on the command line
    drive: str | None  # Vendor and model of the drive
    created_utc: str | None  # Start time of the run (ISO 8601)
    verdict: str | None  # One-line summary of the result
    tags: Sequence[str]  # Run tags
    member_of: str | None  # Suite, sweep or choice that contains the run
    kind: str | None  # Set type: suite, sweep or choice
    limits_met: bool | None  # `true` if all limits are met; `null` if the run has no limits
    damage: str | None  # Description of damage to the run; `null` if the run is intact


class RunsList(Answer, frozen=True, tag="writecliff/runs-list/1"):
    """The runs of a store."""

    commands = "runs list"

    store: str  # Folder or URL of the store
    runs: Sequence[ListedRun]  # Runs, most recent first


class StoredFigure(Item, frozen=True):
    """A headline figure of a run."""

    key: str  # Figure key
    label: str  # Figure name in words
    value: float  # Value, in `unit`
    unit: str  # Unit of `value`, `low` and `high`
    low: float | None  # Lower bound of the 95 % interval
    high: float | None  # Upper bound of the 95 % interval
    interval_of: str | None  # Population that the 95 % interval describes
    higher_is_better: bool  # `false` for latencies and other figures where lower is better
    at: str  # Workload that produced the figure
    steady: bool  # `true` if the figure was measured in steady state


class RunDetails(Answer, frozen=True, tag="writecliff/runs-show/1"):
    """A run of a store."""

    commands = "runs show"

    store: str  # Folder or URL of the store
    run: Object  # All columns of the view `runs` ([reference](run-store.md))
    figures: Sequence[StoredFigure]  # Headline figures
    expectations: Sequence[Object]  # Limits and their results, as in the run manifest


class RunTags(Answer, frozen=True, tag="writecliff/runs-tag/1"):
    """Tags of a run."""

    commands = "runs tag"

    run: str  # Run name
    tags: Sequence[str]  # Tags of the run after the change


class RunsDeleted(Answer, frozen=True, tag="writecliff/runs-delete/1"):
    """Deleted runs."""

    commands = "runs delete"

    store: str  # Folder or URL of the store
    deleted: Sequence[str]  # Names of the deleted runs


class RunsExported(Answer, frozen=True, tag="writecliff/runs-export/1"):
    """Exported runs."""

    commands = "runs export"

    store: str  # Folder or URL of the store
    runs: Sequence[str]  # Names of the exported runs and suites
    output: Path  # Archive or folder that was created


class RunsImported(Answer, frozen=True, tag="writecliff/runs-import/1"):
    """Imported runs."""

    commands = "runs import"

    store: str  # Folder or URL of the store
    runs: Sequence[str]  # Names of the imported runs and suites


class Column(Item, frozen=True):
    """A column of a query result."""

    name: str  # Column name
    type: str  # Arrow data type of the column


class QueryResult(Answer, frozen=True, tag="writecliff/runs-sql/1"):
    """A query result."""

    commands = "runs sql"

    store: str  # Folder or URL of the store
    columns: Sequence[Column]  # Result columns
    rows: Sequence[Object]  # Result rows, each an object with a key per column


class RunsDifference(Answer, frozen=True, tag="writecliff/runs-diff/1"):
    """Comparison of two runs."""

    commands = "runs diff"

    runs: Sequence[str]  # Names of runs A and B
    differences: Sequence[Difference]  # Set-up differences between the runs
    environment: Sequence[Object]  # Differences in software versions and host: `what`, `values`
    # Figures, as in `compare --json`, each with the `judgement` of run B: `"better"`, `"worse"`,
    # `"equal"` or `"cannot tell"`
    figures: Sequence[Object]
    rule: str  # Rule that separates significant differences from noise
    judgement: str  # Overall judgement: better or worse if all significant differences agree
    verdict: str  # One-sentence summary


class DamagedRun(Item, frozen=True):
    """A run that cannot be read completely."""

    run: str  # Run name
    damage: str  # Description of the damage


class RunsIndex(Answer, frozen=True, tag="writecliff/runs-index/1"):
    """The updated catalogue of a store."""

    commands = "runs index"

    store: str  # Folder or URL of the store
    runs: int  # Number of runs in the store
    read: int  # Number of changed runs that were read
    gone: int  # Number of deleted runs that were removed from the catalogue
    damaged: Sequence[DamagedRun]  # Runs that cannot be read completely


class Dashboard(Answer, frozen=True, tag="writecliff/ui/1"):
    """A running dashboard."""

    commands = "ui"

    address: str  # URL that includes the token; printed once the dashboard accepts connections
    store: str  # Folder or URL of the store
    allow_changes: bool  # `true` if visitors can change tags and delete runs
