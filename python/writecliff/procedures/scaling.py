"""Quick tests, which run the complete test on a scaled-down simulated drive.

A test that writes the drive four times exhibits the write cliff at any drive size. `--quick`
therefore preserves the length of a test in drive fills, and scales the drive and all times down
(`engines/scaled.py`). The scale is limited by quantities that do not shrink with the drive: the
write buffer, which must keep all dies busy, and the I/Os outstanding at the end of a step.
`writecliff lab validate quick` measures the differences between quick and full-length suites
(docs/performance.md).

A drive whose flash exceeds the range of page numbers cannot be simulated at full size. Such a drive
is always scaled down in the same way, and every result discloses the scaling.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from writecliff.engines.base import Engine, ScalableEngine
from writecliff.errors import ConfigError
from writecliff.procedures.model import History, Procedure
from writecliff.workload.model import SECOND_NS, Job

if TYPE_CHECKING:
    from writecliff.procedures.workload import WorkloadRun

LARGEST_USER_SCALE = 1024.0  # Largest scale factor that users can request.
# Largest scale factor of quick tests. At larger factors, blocks of typical drives have hardly any
# word lines left.
LARGEST_QUICK_SCALE = 32.0
SHORTEST_STEP_NS = SECOND_NS  # Minimum step duration on the scaled drive.
# Minimum burst duration; after a pause, the empty buffer absorbs a twentieth of such a burst.
SHORTEST_BURST_NS = SECOND_NS // 2


def quick_engine(procedure: Procedure, engine: Engine) -> Engine:
    """Return the engine whose drive `procedure` runs on.

    The drive is scaled down for a quick test if possible, or as far as the procedure requires, or
    because it cannot be simulated at full size.

    Raises:
        ConfigError: If the drive cannot be scaled down as required.
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
            f"{engine.identify().target} is too large to be simulated at full capacity, and the "
            f"addresses in a trace cannot be scaled down",
            hint="choose a drive with less than 16 TiB of flash",
        )
    return least


def quick_scale(procedure: Procedure, engine: Engine) -> float:
    """Return the factor by which a quick run of `procedure` scales down the drive of `engine`.

    The factor is 1 for a drive that cannot be scaled or is already scaled.
    """
    if not isinstance(engine, ScalableEngine) or engine.identify().scale != 1.0:
        return 1.0
    possible = possible_scales(procedure, engine, SHORTEST_STEP_NS, SHORTEST_BURST_NS)
    return max((scale for scale in possible if scale <= LARGEST_QUICK_SCALE), default=1.0)


def scaled_down(run: WorkloadRun, engine: Engine, limit: float) -> WorkloadRun:
    """Return the run on a drive that is scaled down as far as the run permits.

    Args:
        run: A run of a workload.
        engine: The drive's engine.
        limit: Largest scale factor, as for `choose --scale`.

    Raises:
        ConfigError: If the factor is out of range, the drive is not simulated, or the load replays
            a trace.
    """
    if not 1 <= limit <= LARGEST_USER_SCALE:
        raise ConfigError(f"--scale must be from 1 to {LARGEST_USER_SCALE:g}, not {limit:g}")
    if not isinstance(engine, ScalableEngine):
        raise ConfigError(
            f"--scale does not apply to {engine.identify().target}",
            hint="the option applies only to simulated drives",
        )
    if any(job.model or job.log for job in _jobs(run, engine)):
        raise ConfigError(
            "--scale does not apply to this load, whose addresses come from a trace",
            hint="omit --scale",
        )
    possible = possible_scales(run, engine, SHORTEST_STEP_NS, SHORTEST_BURST_NS)
    scale = max((scale for scale in possible if scale <= limit), default=1.0)
    return run if scale == 1.0 else replace(run, scale=scale)


def possible_scales(
    procedure: Procedure, engine: ScalableEngine, step_ns: int, burst_ns: int
) -> list[float]:
    """Return the scales that preserve `step_ns` and `burst_ns` of steps, largest first."""
    jobs = _jobs(procedure, engine)
    limits = [job.burst_ns / burst_ns for job in jobs if job.burst_ns]
    limits += [job.duration_ns / step_ns for job in jobs if job.duration_ns and not job.burst_ns]
    return [scale for scale in engine.scales() if scale <= min(limits, default=scale)]


def largest_io_bytes(procedure: Procedure, engine: Engine) -> int:
    """Return the largest command size of a test, which must fit in a scaled buffer."""
    return max(size.bytes for job in _jobs(procedure, engine) for size in job.block_sizes)


def _jobs(procedure: Procedure, engine: Engine) -> list[Job]:
    """Return the jobs of all steps that are known before the run."""
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
