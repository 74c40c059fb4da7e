"""Drive preconditioning by named recipes."""

from __future__ import annotations

import math
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
    "fill": "the whole capacity once, 128 KiB sequential",
    "sustained": "the whole capacity once, 128 KiB sequential, then twice, 4 KiB random",
    "act": "the whole capacity twice, 128 KiB sequential: zeros, then random data (ACT's act_prep)",
}
USED = "used"  # State "used:40%": like "sustained", but on this percentage of the capacity.
# State "overwritten:73%": a fill, followed by this volume of random writes.
OVERWRITTEN = "overwritten"
OVERWRITTEN_MAX_PCT = 10_000.0
_USED_TEXT = "{:g} % of the capacity once, 128 KiB sequential, then twice, 4 KiB random"
_OVERWRITTEN_TEXT = (
    "the whole capacity once, 128 KiB sequential, then {:g} % of it again, 4 KiB random"
)
_BLOCK_BYTES = 128 * 1024
_QUEUE_DEPTH = 32
# Preconditioning seeds, which differ from load seeds because loads must not revisit the same
# addresses.
_SEEDS = (1001, 1002)
# Seed distance between two repetitions, and the seed range.
_SEED_STEP, _SEED_RANGE = 10_007, 1 << 32


def used_pct(name: str) -> float | None:
    """Return the percentage in "used:40%", or None for another recipe.

    Raises:
        ConfigError: If the percentage is missing or out of range.

    >>> used_pct("used:40%"), used_pct("fill")
    (40.0, None)
    """
    return _percent(name, USED, 100.0, "40%")


def overwritten_pct(name: str) -> float | None:
    """Return the percentage in "overwritten:73%", or None for another recipe.

    Raises:
        ConfigError: If the percentage is missing or out of range.

    >>> overwritten_pct("overwritten:150%"), overwritten_pct("used:40%")
    (150.0, None)
    """
    return _percent(name, OVERWRITTEN, OVERWRITTEN_MAX_PCT, "73%")


def _percent(name: str, recipe: str, most: float, example: str) -> float | None:
    word, _, share = name.partition(":")
    if word != recipe:
        return None
    try:
        percent = float(share.removesuffix("%").strip())
    except ValueError:
        percent = math.nan
    if not (share.endswith("%") and 0 < percent <= most):
        hint = f'write "{recipe}:{example}"'
        raise ConfigError(f"'{name}' requires a percentage from 0 to {most:g}", hint=hint)
    return percent


def recipe_text(name: str) -> str:
    """Return a recipe's description.

    Raises:
        ConfigError: If the recipe is unknown.
    """
    percent = used_pct(name)
    if percent is not None:
        return _USED_TEXT.format(percent)
    if (again := overwritten_pct(name)) is not None:
        return _OVERWRITTEN_TEXT.format(again)
    if name not in RECIPES:
        names = ", ".join((*RECIPES, f"{USED}:40%", f"{OVERWRITTEN}:73%"))
        raise ConfigError(f"unknown preconditioning '{name}'", hint=f"choose from {names}")
    return RECIPES[name]


def recipe(name: str, capacity_bytes: int, *, seed: int = 1) -> list[Workload]:
    """Return a recipe's workloads for a drive of this capacity.

    Addresses depend on `seed`, so test repetitions that use different seeds prepare their drives
    independently.

    "sustained" is the preconditioning of Samsung's PM863 white paper (2015): 128 KiB sequential
    writes of one drive capacity, then 4 KiB random writes of two capacities. "used:40%" writes only
    the first 40 % of the capacity, like a drive whose file system is 40 % full and trims the
    remaining space. "overwritten:73%" is "sustained", except that the random writes cover 73 % of
    the capacity instead of 200 %.

    Raises:
        ConfigError: The recipe is unknown.
    """
    recipe_text(name)
    percent = used_pct(name)
    again = overwritten_pct(name)
    whole = percent is None or percent == 100
    size = capacity_bytes
    if percent is not None and not whole:
        size = max(1, round(capacity_bytes * percent / 100) // _BLOCK_BYTES) * _BLOCK_BYTES
    seeds = [(base + _SEED_STEP * (seed - 1)) % _SEED_RANGE for base in _SEEDS]
    in_order = Job(
        pattern="sequential",
        block_sizes=(BlockSize(_BLOCK_BYTES),),
        queue_depth=_QUEUE_DEPTH,
        range_bytes=None if whole else size,
        volume_bytes=size,
    )
    if name == "act":
        zeros = replace(in_order, compressible_pct=100.0)
        return [
            Workload("preconditioning: zeros", (zeros,), seed=seeds[0]),
            Workload("preconditioning: salt", (in_order,), seed=seeds[1]),
        ]
    random_bytes = 2 * size if again is None else _slots(size * again / 100)
    at_random = Job(
        queue_depth=_QUEUE_DEPTH, range_bytes=in_order.range_bytes, volume_bytes=random_bytes
    )
    steps = [
        Workload("preconditioning: fill", (in_order,), seed=seeds[0]),
        Workload("preconditioning: random", (at_random,), seed=seeds[1]),
    ]
    return steps[: {"none": 0, "fill": 1}.get(name, 2)]


def _slots(size: float) -> int:
    """Round to a whole number of 4 KiB writes, at least one."""
    return max(1, round(size / 4096)) * 4096


def precondition(
    engine: Engine,
    name: str,
    *,
    seed: int = 1,
    cache: StateCache | None = None,
    on_progress: ProgressHook | None = None,
) -> bool:
    """Precondition a drive by a recipe, and return True if a cached state was used."""
    steps = recipe(name, engine.identify().capacity_bytes, seed=seed)
    return bring_to(engine, steps, cache=cache, on_progress=on_progress) if steps else False


def bring_to(
    engine: Engine,
    steps: Sequence[Workload],
    *,
    cache: StateCache | None = None,
    on_progress: ProgressHook | None = None,
) -> bool:
    """Purge and precondition a drive, and return True if a cached state was used.

    A simulated drive is replaced by a new drive with the same write cache setting, because a cached
    state must not depend on the drive's history. If two processes need the same state, one of them
    prepares it. Scaled drives have separate states.
    """
    from writecliff.engines.scaled import ScaledEngine
    from writecliff.engines.sim import SimEngine

    if isinstance(engine, ScaledEngine):
        small = [engine.shrunk(workload) for workload in steps]
        return bring_to(engine.small, small, cache=cache, on_progress=engine.hook(on_progress))

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
    with cache.locked(engine, steps):
        if cache.restore(engine, steps):
            return True
        make()
        cache.save(engine, steps)
    return False
