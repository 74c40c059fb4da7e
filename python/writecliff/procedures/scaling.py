"""Quick tests on simulated drives: the whole test on a drive that is scaled down.

A test that writes the drive four times shows the write cliff at any size of the drive. So `--quick`
leaves the length of a test in drive fills as it is, and scales the drive and all times down
(`engines/scaled.py`). What does not shrink with the drive bounds the scale: the write buffer, which
must keep all dies busy, and what is outstanding at the end of a step. `writecliff lab validate
quick` measures how far a quick suite is from the full-length one (docs/performance.md).

A drive of more flash than page numbers reach cannot be simulated whole: it is scaled down in the
same way without being asked, and every result says so.
"""

from __future__ import annotations

from writecliff.engines.base import Engine, ScalableEngine
from writecliff.errors import ConfigError
from writecliff.procedures.model import History, Procedure
from writecliff.workload.model import SECOND_NS, Job

LARGEST_SCALE = 32.0  # beyond it, blocks of usual drives have hardly a word line left
SHORTEST_STEP_NS = SECOND_NS  # on the small drive
SHORTEST_BURST_NS = SECOND_NS // 2  # the buffer, empty after the pause, takes a twentieth of it


def quick_engine(procedure: Procedure, engine: Engine) -> Engine:
    """The drive of `engine` as `procedure` tests it: scaled down for a quick test if it can be, as
    the procedure says, or because it must be. Raises ConfigError: not possible.
    """
    if not isinstance(engine, ScalableEngine):
        return engine
    scale = procedure.scale or (quick_scale(procedure, engine) if procedure.quick else 1.0)
    scale = max(scale, _least_scale(procedure, engine))
    if scale == 1.0:
        return engine
    return engine.scaled(scale, largest_io_bytes=largest_io_bytes(procedure, engine))


def _least_scale(procedure: Procedure, engine: ScalableEngine) -> float:
    least = engine.least_scale()
    if least > 1.0 and any(job.model or job.log for job in _jobs(procedure, engine)):
        raise ConfigError(
            f"{engine.identify().target} is too large to be simulated whole, and the addresses of "
            "a trace do not shrink with it",
            hint="take a drive with less than 16 TiB of flash",
        )
    return least


def quick_scale(procedure: Procedure, engine: Engine) -> float:
    """How many times smaller the drive of `engine` is in a quick run of `procedure`; 1 for a drive
    that cannot be scaled, or is scaled already.
    """
    if not isinstance(engine, ScalableEngine) or engine.identify().scale != 1.0:
        return 1.0
    possible = possible_scales(procedure, engine, SHORTEST_STEP_NS, SHORTEST_BURST_NS)
    return max((scale for scale in possible if scale <= LARGEST_SCALE), default=1.0)


def possible_scales(
    procedure: Procedure, engine: ScalableEngine, step_ns: int, burst_ns: int
) -> list[float]:
    """The scales at which no step is shorter than `step_ns` and no burst than `burst_ns`, largest
    first.
    """
    jobs = _jobs(procedure, engine)
    limits = [job.burst_ns / burst_ns for job in jobs if job.burst_ns]
    limits += [job.duration_ns / step_ns for job in jobs if job.duration_ns and not job.burst_ns]
    return [scale for scale in engine.scales() if scale <= min(limits, default=scale)]


def largest_io_bytes(procedure: Procedure, engine: Engine) -> int:
    """The largest command of a test, which must fit into the buffer of a small drive."""
    return max(size.bytes for job in _jobs(procedure, engine) for size in job.block_sizes)


def _jobs(procedure: Procedure, engine: Engine) -> list[Job]:
    """The jobs of all steps, as far as they are known before the run."""
    stages = procedure.stages(engine.identify())
    loads = [
        load
        for stage in stages
        for load in (
            *stage.state,
            *(step.workload for step in stage.prepare),
            *(step.workload for step in stage.steps(History(), 1 if stage.ends else 0)),
        )
    ]
    return [job for load in loads for job in load.jobs]
