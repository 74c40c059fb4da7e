"""Drive states before loads, the workloads that lead to these states, and drives in a state.

A drive is prepared once per state. Loads run on an in-memory copy, which takes 0.1 s per terabyte,
whereas reading a saved state takes seconds. Devices that differ only in timing reach the same
state, so a fit's candidates copy the state from each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from writecliff.engines.base import ProgressHook
from writecliff.engines.preconditioned import bring_to, recipe
from writecliff.engines.sim import SimEngine
from writecliff.engines.state_cache import StateCache
from writecliff.errors import ConfigError
from writecliff.published.conditions import KIB, Load
from writecliff.workload.model import BlockSize, Job, Segments, Workload

if TYPE_CHECKING:
    from writecliff import _native

_CLIENT_RANGE, _CLIENT_BYTES, _CLIENT_SEGMENTS = 0.8, 8 << 30, 1024
_CLIENT_DEPTH = 32


class PreparedDrives:
    """Prepared drives from which a fit's candidates copy their states.

    Each drive is prepared when the first candidate requests it. A prepared drive has the device
    that `origins` lists for the name, whose states may be in `cache`, or otherwise the candidate's
    device. A candidate whose preconditioning depends on other values prepares a separate drive.
    """

    def __init__(
        self, origins: Mapping[str, _native.Device] | None = None, cache: StateCache | None = None
    ) -> None:
        """Create an empty set of prepared drives; `origins` maps names to devices."""
        self._origins = origins or {}
        self._cache = cache
        self._drives: dict[tuple[str, tuple[Workload, ...]], _PreparedDrive] = {}
        self._lock = Lock()

    def bring(
        self,
        name: str,
        engine: SimEngine,
        steps: Sequence[Workload],
        on_progress: ProgressHook | None = None,
    ) -> None:
        """Bring the candidate for the drive `name` to the state after `steps`."""
        with self._lock:
            prepared = self._drives.setdefault((name, tuple(steps)), _PreparedDrive())
        with prepared.lock:  # A drive cannot be copied while it is in use.
            if prepared.drive is None:
                prepared.drive = self._prepare(name, engine, steps, on_progress)
            engine.renew()
            try:
                engine.copy_from(prepared.drive)
                return
            except ConfigError:
                pass
        bring_to(engine, steps, on_progress=on_progress)

    def _prepare(
        self,
        name: str,
        candidate: SimEngine,
        steps: Sequence[Workload],
        on_progress: ProgressHook | None,
    ) -> SimEngine:
        device = self._origins.get(name, candidate.device)
        drive = SimEngine.from_device(device, seed=candidate.seed)
        cache = self._cache if name in self._origins else None
        bring_to(drive, steps, cache=cache, on_progress=on_progress)
        return drive


class _PreparedDrive:
    """A drive in a prepared state; `drive` is `None` until preparation is complete."""

    def __init__(self) -> None:
        self.drive: SimEngine | None = None
        self.lock = Lock()


class StatefulDrive:
    """A simulated drive that is brought to the required state before each load.

    The drive is `scale` times smaller than at full size. With `copies`, the object takes twice the
    memory, because a second drive remains in the prepared state. With `prepared`, every state is
    copied from the prepared drives.
    """

    def __init__(
        self,
        name: str,
        engine: SimEngine,
        *,
        scale: float = 1.0,
        copies: bool = True,
        cache: StateCache | None = None,
        prepared: PreparedDrives | None = None,
    ) -> None:
        """Create the drive from `engine`; `name` identifies it in messages."""
        self.engine = engine
        self.capacity_bytes = engine.identify().capacity_bytes
        self._name = name
        self._scale = scale
        self._cache = cache
        self._prepared = prepared
        has_copy = copies and prepared is None
        self._ready = SimEngine.from_device(engine.device, seed=engine.seed) if has_copy else engine
        self._steps: Sequence[Workload] = ()  # Steps that led to the state in `_ready`.

    def bring(self, load: Load, on_progress: ProgressHook | None = None) -> None:
        """Bring the drive to the state that a load requires."""
        steps = self.steps_to(load)
        if not steps:
            self.engine.renew()
            return
        if self._prepared is not None:
            self._prepared.bring(self._name, self.engine, steps, on_progress)
            return
        copies = self._ready is not self.engine
        if steps != self._steps or not copies:
            self._steps = ()
            bring_to(self._ready, steps, cache=self._cache, on_progress=on_progress)
            self._steps = steps
        if copies:
            self.engine.copy_from(self._ready)

    def steps_to(self, load: Load) -> Sequence[Workload]:
        """Return the workloads that lead to the state before a load; none for a new drive.

        A drive without flash has only one state.
        """
        if load.state == "fresh" or self.engine.description.without_flash:
            return ()
        client = load.state == "client"
        steps = self._client_steps() if client else recipe(load.state, self.capacity_bytes)
        return [_of_data(step, load.compressible_pct) for step in steps]

    def active_range(self, job: Job) -> Job:
        """Return a job for the PTS-C active range.

        A scaled-down drive has proportionally fewer segments.
        """
        count = max(1, round(_CLIENT_SEGMENTS / self._scale))
        segments = Segments(count, _CLIENT_BYTES // _CLIENT_SEGMENTS * count)
        return replace(job, range_bytes=self._client_range, segments=segments)

    def _client_steps(self) -> list[Workload]:
        """Return the PTS-C steps: two sequential fills, then twice the active segments."""
        fill = Job(
            pattern="sequential",
            block_sizes=(BlockSize(128 * KIB),),
            queue_depth=_CLIENT_DEPTH,
            range_bytes=self._client_range,
            volume_bytes=2 * self._client_range,
        )
        active = self.active_range(Job(queue_depth=_CLIENT_DEPTH))
        assert active.segments is not None
        active = replace(active, volume_bytes=2 * active.segments.amount_bytes)
        return [
            Workload("client: fill", (fill,), seed=1003),
            Workload("client", (active,), seed=1004),
        ]

    @property
    def _client_range(self) -> int:
        return int(self.capacity_bytes * _CLIENT_RANGE) // (1 << 20) * (1 << 20)


def _of_data(step: Workload, compressible_pct: float) -> Workload:
    return replace(
        step, jobs=tuple(replace(job, compressible_pct=compressible_pct) for job in step.jobs)
    )
