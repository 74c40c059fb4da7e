"""The states that loads begin in: the workloads that lead to them, and drives that stay there.

A drive is prepared once for each state. Loads run on a copy of it, which is made in memory and
takes a tenth of a second for a terabyte, where reading a saved state takes seconds. Devices that
differ in times alone come to the same state, so the candidates of a fit copy it from each other.
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
    """Drives that the candidates for one drive copy their states from, each prepared when the first
    candidate wants it. Candidates that differ from it in what preconditioning depends on prepare
    their own.

    What is prepared is another drive of the first candidate's device, or, where `origins` has one
    for the name, of that device, whose states a `cache` may have.
    """

    def __init__(
        self, origins: Mapping[str, _native.Device] | None = None, cache: StateCache | None = None
    ) -> None:
        self._origins = origins or {}
        self._cache = cache
        self._kept: dict[tuple[str, tuple[Workload, ...]], _Kept] = {}
        self._lock = Lock()

    def bring(
        self,
        name: str,
        engine: SimEngine,
        steps: Sequence[Workload],
        on_progress: ProgressHook | None = None,
    ) -> None:
        """Bring a candidate for the drive `name` to the state after `steps`."""
        with self._lock:
            kept = self._kept.setdefault((name, tuple(steps)), _Kept())
        with kept.lock:  # of a drive that is in use no other may be copied
            if kept.drive is None:
                kept.drive = self._prepare(name, engine, steps, on_progress)
            engine.renew()
            try:
                engine.copy_from(kept.drive)
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


class _Kept:
    """A drive in a state, once there is one."""

    def __init__(self) -> None:
        self.drive: SimEngine | None = None
        self.lock = Lock()


class StatefulDrive:
    """A simulated drive, `scale` times smaller than the whole one, that loads run on, each from
    the state that it requires. With `copies` it takes twice the memory: one stays in the state.
    With `prepared` it copies every state from there.
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
        self.engine = engine
        self.capacity_bytes = engine.identify().capacity_bytes
        self._name = name
        self._scale = scale
        self._cache = cache
        self._prepared = prepared
        own = copies and prepared is None
        self._ready = SimEngine.from_device(engine.device, seed=engine.seed) if own else engine
        self._steps: Sequence[Workload] = ()  # that led to the state of `_ready`

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
        """The workloads that lead to the state that a load requires; none where that is new. The
        state of a drive without flash never changes.
        """
        if load.state == "fresh" or self.engine.description.without_flash:
            return ()
        client = load.state == "client"
        steps = self._client_steps() if client else recipe(load.state, self.capacity_bytes)
        return [_of_data(step, load.compressible_pct) for step in steps]

    def active_range(self, job: Job) -> Job:
        """The job on the active range of the PTS-C. A drive that is scaled down has as many times
        fewer segments.
        """
        count = max(1, round(_CLIENT_SEGMENTS / self._scale))
        segments = Segments(count, _CLIENT_BYTES // _CLIENT_SEGMENTS * count)
        return replace(job, range_bytes=self._client_range, segments=segments)

    def _client_steps(self) -> list[Workload]:
        """As the test does: twice 128 KiB in order over the range, twice the active segments."""
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
