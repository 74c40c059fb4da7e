"""Store a replay in a run directory, where the report generator reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.engines.base import JobResult, OperationResult, StepResult
from writecliff.engines.counters import Counters
from writecliff.engines.sim import identity_of
from writecliff.parallel import SLOT_BYTES
from writecliff.procedures.measure import record_of
from writecliff.procedures.model import StepPosition
from writecliff.procedures.trace_replay import PHASE, STEP, TraceReplay
from writecliff.store.manifest import Manifest
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from writecliff.replay.model import Replayed, ReplaySetup


def store(
    directory: Path,
    setup: ReplaySetup,
    done: Replayed,
    answer: Mapping[str, Any],
    *,
    target: str,
    seed: int,
) -> None:
    """Write the run directory for a replay on the drive `target`; `answer` is the JSON output.

    Raises:
        ConfigError: If the directory is already in use.
        StoreError: If the directory cannot be written.
    """
    procedure = TraceReplay(answer=answer, seed=seed)
    identity = identity_of(setup.device, target)
    manifest = Manifest(
        procedure=procedure.name,
        title=procedure.title,
        edition=procedure.edition,
        device=identity,
        options=procedure.options_mapping(),
        seed=seed,
        setup=dict(procedure.setup(identity)),
        status="running",
    )
    result = _result(done)
    record = record_of(
        result,
        StepPosition(PHASE, 0, 1),
        STEP,
        started_ns=0,
        written_before_bytes=setup.blocks.written_bytes - result.written_bytes,
        capacity_bytes=setup.simulated.capacity_bytes,
    )
    with RunDirectory.create(directory, manifest) as run:
        run.append_round(replace(record, waf=done.waf))
        run.finish("complete", reason="the whole trace was replayed", ended_by="done")


def _result(done: Replayed) -> StepResult:
    """Return the result of the timed replay, which provides the latencies and the duration."""
    operations = {
        "read": OperationResult(done.reads.count, done.reads.count * SLOT_BYTES, done.reads),
        "write": OperationResult(done.writes.count, done.timed_written_bytes, done.writes),
    }
    measured = {name: operation for name, operation in operations.items() if operation.ios}
    return StepResult(
        started_ns=0,
        elapsed_ns=done.timed_ns,
        jobs=(JobResult("trace", done.timed_ns, measured),),  # type: ignore[arg-type]
        intervals={},
        counters_before=Counters(**dict.fromkeys(done.counters, 0)),
        counters_after=Counters(**done.counters),
    )
