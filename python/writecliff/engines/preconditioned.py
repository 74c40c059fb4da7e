"""Preconditioned drives: recipes by name, and drives brought to the states that they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from writecliff.errors import ConfigError
from writecliff.workload.model import BlockSize, Job, Workload

if TYPE_CHECKING:
    from writecliff.engines.base import Engine, ProgressHook
    from writecliff.engines.state_cache import StateCache

RECIPES = {
    "none": "the drive as it is",
    "fill": "the whole capacity once, 128 KiB in order",
    "sustained": "the whole capacity once, 128 KiB in order, then twice, 4 KiB at random",
    "act": "the whole capacity twice, 128 KiB in order: zeros, then random data (ACT's act_prep)",
}
_QUEUE_DEPTH = 32
_SEEDS = (1001, 1002)  # apart from those of any load, which must not revisit the same addresses


def recipe(name: str, capacity_bytes: int) -> list[Workload]:
    """The workloads of a recipe for a drive of this capacity. Raises ConfigError.

    "sustained" is the preconditioning of Samsung's PM863 white paper (2015): one capacity of
    128 KiB sequential writes, two capacities of 4 KiB random writes.
    """
    if name not in RECIPES:
        known = ", ".join(RECIPES)
        raise ConfigError(f"there is no preconditioning '{name}'", hint=f"known: {known}")
    in_order = Job(
        pattern="sequential",
        block_sizes=(BlockSize(128 * 1024),),
        queue_depth=_QUEUE_DEPTH,
        volume_bytes=capacity_bytes,
    )
    if name == "act":
        zeros = replace(in_order, compressible_pct=100.0)
        return [
            Workload("preconditioning: zeros", (zeros,), seed=_SEEDS[0]),
            Workload("preconditioning: salt", (in_order,), seed=_SEEDS[1]),
        ]
    at_random = Job(queue_depth=_QUEUE_DEPTH, volume_bytes=2 * capacity_bytes)
    steps = [
        Workload("preconditioning: fill", (in_order,), seed=_SEEDS[0]),
        Workload("preconditioning: random", (at_random,), seed=_SEEDS[1]),
    ]
    return steps[: {"none": 0, "fill": 1, "sustained": 2}[name]]


def precondition(
    engine: Engine,
    name: str,
    *,
    cache: StateCache | None = None,
    on_progress: ProgressHook | None = None,
) -> bool:
    """Bring a purged drive to the state of a recipe; True if a cached state could be used."""
    steps = recipe(name, engine.identify().capacity_bytes)
    return bring_to(engine, steps, cache=cache, on_progress=on_progress) if steps else False


def bring_to(
    engine: Engine,
    steps: Sequence[Workload],
    *,
    cache: StateCache | None = None,
    on_progress: ProgressHook | None = None,
) -> bool:
    """The same for any workloads: purge, then precondition with each.

    A simulated drive begins anew, with its write cache as it is set: what it has been through
    before must not be in a state that others are served. Two processes that need the same state
    make it once.
    """
    from writecliff.engines.sim import SimEngine

    def make() -> None:
        if isinstance(engine, SimEngine):
            engine.renew()
        else:
            engine.purge()
        for workload in steps:
            engine.precondition(workload, on_progress)

    if cache is None or not isinstance(engine, SimEngine):
        make()
        return False
    with cache.held(engine, steps):
        if cache.restore(engine, steps):
            return True
        make()
        cache.save(engine, steps)
    return False
