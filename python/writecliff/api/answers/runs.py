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
    target: str | None  # The drive, as it was named
    drive: str | None  # Vendor and model
    created_utc: str | None  # Start of the run (ISO 8601)
    verdict: str | None  # The outcome in one line
    tags: Sequence[str]  # Tags of the run
    member_of: str | None  # The suite, sweep or choice that it belongs to
    kind: str | None  # Kind of that set
    limits_met: bool | None  # All limits are met; `null`: it has none
    damage: str | None  # Damage that was found


class RunsList(Answer, frozen=True, tag="writecliff/runs-list/1"):
    """The runs of a store."""

    commands = "runs list"

    store: str  # Folder or URL of the store
    runs: Sequence[ListedRun]  # The runs


class StoredFigure(Item, frozen=True):
    """A headline figure of a run."""

    key: str  # Key of the figure
    label: str  # The figure in words
    value: float  # The figure
    unit: str  # Unit of the values
    low: float | None  # Low end of its 95 % interval
    high: float | None  # High end of its 95 % interval
    interval_of: str | None  # Population that the interval is about
    higher_is_better: bool  # `false` for latencies and the like
    at: str  # Load at which it was measured
    steady: bool  # It was measured in steady state


class RunDetails(Answer, frozen=True, tag="writecliff/runs-show/1"):
    """A run of a store."""

    commands = "runs show"

    store: str  # Folder or URL of the store
    run: Object  # All columns of the view `runs` ([reference](run-store.md))
    figures: Sequence[StoredFigure]  # The headline figures
    expectations: Sequence[Object]  # Limits and what became of them, as the manifest has them


class RunTags(Answer, frozen=True, tag="writecliff/runs-tag/1"):
    """Tags of a run."""

    commands = "runs tag"

    run: str  # Name of the run
    tags: Sequence[str]  # All of its tags after the change


class RunsDeleted(Answer, frozen=True, tag="writecliff/runs-delete/1"):
    """Runs that were deleted."""

    commands = "runs delete"

    store: str  # Folder or URL of the store
    deleted: Sequence[str]  # Names of runs


class RunsExported(Answer, frozen=True, tag="writecliff/runs-export/1"):
    """Runs that were exported."""

    commands = "runs export"

    store: str  # Folder or URL of the store
    runs: Sequence[str]  # Names of runs and suites
    output: Path  # Archive or folder


class RunsImported(Answer, frozen=True, tag="writecliff/runs-import/1"):
    """Runs that were imported."""

    commands = "runs import"

    store: str  # Folder or URL of the store
    runs: Sequence[str]  # Names of new runs and suites


class Column(Item, frozen=True):
    """A column of a query's result."""

    name: str  # Name of the column
    type: str  # Its type, as Arrow names it


class QueryResult(Answer, frozen=True, tag="writecliff/runs-sql/1"):
    """The result of a query."""

    commands = "runs sql"

    store: str  # Folder or URL of the store
    columns: Sequence[Column]  # The columns
    rows: Sequence[Object]  # The rows, by the names of the columns


class RunsDifference(Answer, frozen=True, tag="writecliff/runs-diff/1"):
    """The difference of two runs."""

    commands = "runs diff"

    runs: Sequence[str]  # Names of A and B
    differences: Sequence[Difference]  # Differences in the set-up
    environment: Sequence[Object]  # Differences in versions and host: `what`, `values`
    # Figures as `compare --json` prints them, each with its `judgement`: B is `"better"`,
    # `"worse"` or `"equal"`, or `"cannot tell"`
    figures: Sequence[Object]
    rule: str  # The rule for differences that are more than noise
    judgement: str  # Judgement of all figures: better or worse if some are and none is the other
    verdict: str  # The outcome in a sentence


class DamagedRun(Item, frozen=True):
    """A run that cannot be read in full."""

    run: str  # Name of the run
    damage: str  # Damage that was found


class RunsIndex(Answer, frozen=True, tag="writecliff/runs-index/1"):
    """The catalogue of a store."""

    commands = "runs index"

    store: str  # Folder or URL of the store
    runs: int  # Runs in the store
    read: int  # Runs that had changed
    gone: int  # Runs that were gone
    damaged: Sequence[DamagedRun]  # Runs that cannot be read in full


class Dashboard(Answer, frozen=True, tag="writecliff/ui/1"):
    """A dashboard that is ready."""

    commands = "ui"

    address: str  # URL to open in a browser, with the token; printed when the dashboard is ready
    store: str  # Folder or URL of the store
    allow_changes: bool  # Tags can be changed and runs be deleted
