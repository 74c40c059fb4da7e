"""Run independent simulations in parallel, within a memory budget.

A simulated drive is a native-code thread that has released the interpreter lock, so threads can use
all cores. A drive needs 8 bytes of memory per 4 KiB of flash (2 GB per terabyte), so memory rather
than cores often limits the number of parallel runs. Results are returned in task order, and do not
depend on the number of parallel runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Condition, Event, Lock
from typing import Any, Generic, Protocol, TypeVar

from writecliff.errors import ConfigError, WritecliffError

T = TypeVar("T")

SLOT_BYTES = 4096
MAP_BYTES_PER_SLOT = 4  # Size per slot of the forward and reverse maps.
FIXED_BYTES = 64 << 20  # Python memory per run: histograms, series, tables.


class Stopped(WritecliffError):
    """Error for a run that another failure or the user prevented or stopped."""


@dataclass(frozen=True)
class Task(Generic[T]):
    """An independent run that can be executed in parallel.

    Attributes:
        name: Name of the run.
        memory_bytes: Memory that the run needs, in bytes.
        run: Function that executes the run.
        remote: Function that executes the run in another process on any machine, or None if this is
            not possible.
        arrived: Converts the return value of `remote` to the result, and reports it.
    """

    name: str
    memory_bytes: int
    run: Callable[[], T]
    remote: Callable[[], Any] | None = None
    arrived: Callable[[Any], T] | None = None


def drive_memory_bytes(capacity_bytes: int, raw_bytes: int) -> int:
    """Return the memory that a simulated drive needs while it runs."""
    return (capacity_bytes + raw_bytes) // SLOT_BYTES * MAP_BYTES_PER_SLOT + FIXED_BYTES


class _Budget:
    """The memory budget of the running tasks."""

    def __init__(self, total_bytes: int) -> None:
        self._free_bytes = total_bytes
        self._changed = Condition()

    @contextmanager
    def reserved(self, size_bytes: int) -> Iterator[None]:
        """Wait until `size_bytes` are free, and reserve them while the block runs."""
        with self._changed:
            self._changed.wait_for(lambda: self._free_bytes >= size_bytes)
            self._free_bytes -= size_bytes
        try:
            yield
        finally:
            with self._changed:
                self._free_bytes += size_bytes
                self._changed.notify_all()


def available_memory_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Return four fifths of the available memory, counting cached files as free."""
    with suppress(OSError):
        for line in meminfo.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024 * 4 // 5
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 4 // 5


class Elsewhere(Protocol):
    """An executor for tasks that have a `remote` function: `cluster.Cluster`."""

    def run(self, tasks: Sequence[Task[T]], *, stop: Event | None = None) -> list[T]:
        """Run all tasks, and return their results in order."""


# This setting is local to a thread, because tasks on workers in this process must not be sent
# elsewhere again.
_elsewhere: ContextVar[Elsewhere | None] = ContextVar("elsewhere", default=None)
Watch = Callable[[int], Callable[[int], None]]
_watches: list[Watch] = []
_LOOK_S = 1.0


@contextmanager
def placed(elsewhere: Elsewhere | None) -> Iterator[None]:
    """While the block runs, run this thread's tasks that have a `remote` function on `elsewhere`.

    If `elsewhere` is `None`, tasks run here.
    """
    if elsewhere is None:
        yield
        return
    before = _elsewhere.set(elsewhere)
    try:
        yield
    finally:
        _elsewhere.reset(before)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Watch the tasks that run inside the block.

    `watch` receives the number of tasks in each set, and returns a function that is called every
    second with the number of completed tasks.
    """
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


def run_side_by_side(
    tasks: Sequence[Task[T]],
    *,
    memory_budget_bytes: int | None = None,
    workers: int | None = None,
    stop: Event | None = None,
) -> list[T]:
    """Run all tasks, and return their results in order, either here or as `placed` determines.

    If a task raises an error, tasks that have not started are skipped. The first error is raised
    after the running tasks have stopped. Tasks can check `stop`, which is set after an error and
    after Ctrl-C, and raise `Stopped`.

    Raises:
        ConfigError: If a task exceeds the memory budget (default: `available_memory_bytes`).
            If the budget is exceeded, no task is run.
    """
    elsewhere = _elsewhere.get()
    if elsewhere is not None and tasks and all(task.remote is not None for task in tasks):
        return elsewhere.run(tasks, stop=stop)
    budget_bytes = memory_budget_bytes or available_memory_bytes()
    for task in tasks:
        if task.memory_bytes > budget_bytes:
            raise ConfigError(
                f"{task.name} requires {task.memory_bytes / 1e9:.1f} GB of memory, "
                f"the budget is {budget_bytes / 1e9:.1f} GB"
            )
    budget = _Budget(budget_bytes)
    stopped = stop or Event()

    def run_task(task: Task[T]) -> T:
        with budget.reserved(task.memory_bytes):
            if stopped.is_set():
                raise Stopped(f"{task.name} was not run because another run failed or was stopped")
            try:
                return task.run()
            except BaseException:
                stopped.set()
                raise

    with ThreadPoolExecutor(max_workers=workers or os.cpu_count()) as pool:
        futures = [pool.submit(run_task, task) for task in tasks]
        try:
            _wait(futures)
        except BaseException:  # Only the main thread receives Ctrl-C.
            stopped.set()
            raise
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, Stopped)):
        raise error  # Raise the first error that is a cause rather than a consequence.
    return [future.result() for future in futures]


def _wait(futures: Sequence[Future[T]]) -> None:
    look = _watches[-1](len(futures)) if _watches else None
    while wait(futures, timeout=_LOOK_S if look else None).not_done:
        if look is not None:
            look(sum(future.done() for future in futures))


def map_side_by_side(
    function: Callable[..., T],
    cases: Iterable[tuple[Any, ...]],
    memory_bytes: int,
    tell: Callable[[str], None] | None = None,
) -> list[T]:
    """Return `function(*case)` for every case, in order, where each call needs `memory_bytes`.

    The callback `tell` receives a line about each completed case, including the estimated remaining
    time.
    """
    named = [(_name(case) or f"run {n}", case) for n, case in enumerate(cases, 1)]
    view = _Done(len(named), tell)
    tasks = []
    for name, case in named:
        run, done = partial(function, *case), partial(view.done, name)
        tasks.append(Task(name, memory_bytes, partial(_then, run, done), run, done))
    return run_side_by_side(tasks)


class _Done:
    """A counter of completed cases."""

    def __init__(self, count: int, tell: Callable[[str], None] | None) -> None:
        self._count = count
        self._tell = tell
        self._done = 0
        self._began_s = time.monotonic()
        self._lock = Lock()

    def done(self, name: str, result: T) -> T:
        with self._lock:
            self._done += 1
            done, took_s = self._done, time.monotonic() - self._began_s
        if self._tell is not None:
            text = f"{done}/{self._count}, {took_s:.0f} s"
            if done < self._count:
                left_s = took_s * (self._count / done - 1)
                text += f", about {left_s:.0f} s left"
            self._tell(f"[{text}]  {name}: done")
        return result


def _then(run: Callable[[], T], done: Callable[[T], T]) -> T:
    return done(run())


def _name(case: tuple[Any, ...]) -> str:
    """Return the arguments, excluding the texts of whole files."""
    words = [str(argument) for argument in case]
    return " ".join(word for word in words if len(word) <= 80 and "\n" not in word)
