"""Repeat the judgement of a stored run by its procedure.

Reports use steady-state windows and operating points from this module, which only the procedure's
stages determine, based on the stored rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from writecliff.procedures.journal import stored_rows
from writecliff.procedures.model import History, Procedure, Stage, StepRow
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.store.rundir import RunDirectory


@dataclass(frozen=True)
class Rejudged:
    """A run, complete or not, as judged by its procedure."""

    procedure: Procedure
    stages: Sequence[Stage]
    history: History


def rejudge(run: RunDirectory) -> Rejudged:
    """Recreate the history of a stored run, and judge complete rounds as during the run.

    Raises:
        StoreError: If the run is damaged, or this version does not have its test.
    """
    procedure = procedure_from_mapping(run.manifest.procedure, run.manifest.options)
    stages = procedure.stages(run.manifest.device)
    return Rejudged(procedure, stages, history_of(stages, stored_rows(run)))


def history_of(stages: Sequence[Stage], rows: Sequence[StepRow]) -> History:
    """Return the history of `rows`, assigned to `stages` in order."""
    history = History()
    left = list(rows)
    for stage in stages:
        if not left:
            break
        prepared = stage.prepare or stage.state
        while left and left[0].phase == stage.prepare_phase and prepared:
            history.add(left.pop(0))
        here = history.begin(stage)
        roles: dict[int, Sequence[str]] = {}
        while left and left[0].phase == stage.phase:
            row = left.pop(0)
            if row.round not in roles:
                roles[row.round] = [step.role for step in stage.steps(history, row.round)]
            mine = roles[row.round]
            history.add(replace(row, role=mine[row.step - 1]) if row.step <= len(mine) else row)
            if row.round and row.step == len(mine):
                here.round_complete(row.round)
    return history
