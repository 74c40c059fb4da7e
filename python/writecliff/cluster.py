"""Independent runs on an existing Dask scheduler, or on a scheduler in this process.

A Dask scheduler runs any code that a client sends, and does not authenticate clients unless it uses
TLS keys. Therefore, the local scheduler opens no ports. Scheduler and workers are objects in this
process that are connected by queues (Dask's "inproc"). The local scheduler's workers are threads,
because simulated drives are native code that releases the interpreter lock, and members of sets run
in separate processes.

A task reserves the worker resource "memory" (in bytes), so that a scheduler never starts more tasks
on a worker than fit in memory. Workers of an existing scheduler declare this resource: `dask worker
tcp://HOST:PORT --nthreads 8 --resources memory=16e9`. If a worker dies, its task is repeated on
another worker. Results do not depend on which worker runs a task.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from writecliff.errors import ConfigError, EngineError, WritecliffError
from writecliff.parallel import Stopped, available_memory_bytes

if TYPE_CHECKING:
    from distributed import Client

    from writecliff.parallel import Task

T = TypeVar("T")

LOCAL = "local"
MEMORY = "memory"
ATTEMPTS = 20  # Maximum number of attempts for a task whose workers die.
_CONNECT_S = 10
_POLL_S = 0.05
_STOP_S = 20.0  # Time, in seconds, for stopped tasks to store their results.
_ASK_S, _ALONE_S = 5.0, 60.0
# Local workers run no dashboard. They do not monitor themselves at the default rate of 50 times a
# second.
_QUIET = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.profile.enabled": False,
}


@contextmanager
def connected(address: str | None, *, workers: int | None = None) -> Iterator[Cluster | None]:
    """Connect to the cluster at `address`.

    A scheduler at an address, the scheduler's workers, and everyone who can connect to them can run
    code as this user. Use a trusted network, or "tls://HOST:PORT" with the keys in Dask's
    configuration (`distributed.comm.tls`).

    Args:
        address: "local", a scheduler address such as "tcp://HOST:PORT", or None, which yields None.
        workers: Number of threads in a local scheduler (default: one per core).

    Raises:
        ConfigError: If Dask is not installed, the scheduler does not respond, `workers` is given
            for an existing scheduler, or workers have a different writecliff version.
    """
    if address is None:
        yield None
        return
    try:
        import distributed
    except ImportError:
        raise ConfigError(
            "--scheduler requires the package Dask, which is not installed",
            hint="install it with: pip install 'writecliff[dask]'",
        ) from None
    if address != LOCAL and "://" not in address:
        hint = "use local, or the address that `dask scheduler` prints: tcp://HOST:PORT"
        raise ConfigError(f"--scheduler '{address}' is not a scheduler address", hint=hint)
    if address == LOCAL:
        with _local(workers or os.cpu_count() or 1) as client:
            yield Cluster(client)
        return
    if workers is not None:
        hint = "omit --jobs: the number of `dask worker` processes determines the parallelism"
        raise ConfigError("--jobs cannot be combined with a scheduler address", hint=hint)
    try:
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"no Dask scheduler responds at {address}",
            hint="start a scheduler with `dask scheduler`",
        ) from error
    with client:
        _check_versions(client, address)
        yield Cluster(client)


def _check_versions(client: Client, address: str) -> None:
    """Check that all workers have this version, because other versions may differ in results."""
    ours = version("writecliff")
    try:
        theirs: Mapping[str, str] = client.run(version, "writecliff")
    except Exception as error:  # Any error means that the worker lacks the package.
        raise ConfigError(f"writecliff cannot be used on a worker of {address}: {error}") from error
    for worker, worker_version in theirs.items():
        if worker_version != ours:
            raise ConfigError(
                f"worker {worker} has writecliff {worker_version}, but this machine has {ours}"
            )


@contextmanager
def _local(workers: int) -> Iterator[Client]:
    """Start, without ports, a scheduler and `workers` single-threaded workers in this process."""
    import dask
    from distributed import Client, Scheduler, SpecCluster, Worker

    scheduler = {"cls": _portless(Scheduler), "options": {"protocol": "inproc://"}}
    options = {
        "nthreads": 1,
        "resources": {MEMORY: available_memory_bytes() / workers},
        "memory_limit": 0,  # Drives occupy native memory, which the `memory` resource limits.
        "silence_logs": logging.CRITICAL,
    }
    worker = {"cls": _portless(Worker), "options": options}
    with (
        dask.config.set(_QUIET),
        SpecCluster(
            scheduler=scheduler,
            workers=dict.fromkeys(range(workers), worker),
            silence_logs=logging.CRITICAL,
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


def _portless(server: type) -> type:
    """Return a Dask server class without HTTP pages, which no setting can disable."""

    def start_http_server(self: object, *arguments: object, **options: object) -> None:
        """Open no port."""

    return type(server.__name__, (server,), {"start_http_server": start_http_server})


@dataclass(frozen=True)
class Cluster:
    """An executor that runs tasks on a Dask scheduler."""

    client: Client
    stopping: str = field(default_factory=lambda: f"writecliff-stop-{uuid4().hex}")
    """Name of the `StopSign` that tasks check while they run."""

    def run(
        self,
        tasks: Sequence[Task[T]],
        *,
        stop: Event | None = None,
    ) -> list[T]:
        """Run the `remote` function of all tasks, and return the results in task order.

        The calling thread processes each result as it arrives. The first error in a task is raised,
        and tasks that have not started are skipped.

        Raises:
            ConfigError: If a task requires more memory than any worker has. If a task requires too
                much memory, no task is run.
        """
        from distributed import as_completed

        _check_memory(self.client, tasks)
        attempts: dict[Any, tuple[int, int]] = {}
        results: dict[int, T] = {}

        def submitted(number: int, attempt: int) -> Any:
            task = tasks[number]
            future = self.client.submit(
                task.remote,
                key=f"{task.name}-{uuid4().hex}",
                pure=False,
                resources={MEMORY: task.memory_bytes},
                priority=-number,
            )
            attempts[future.key] = (number, attempt)
            return future

        watch = _Watch(self.client)
        first = [submitted(number, 1) for number in range(len(tasks))]
        running = as_completed(first, loop=self.client.loop)
        try:
            while not running.is_empty():
                if stop is not None and stop.is_set():
                    raise Stopped("stopped")
                batch = running.next_batch(block=False)
                if not batch:
                    time.sleep(_POLL_S)
                    watch.look()
                for future in batch:
                    number, attempt = attempts.pop(future.key)
                    if _was_killed(future) and attempt < ATTEMPTS:
                        running.add(submitted(number, attempt + 1))
                        continue
                    answer, arrived = _result(future, tasks[number].name), tasks[number].arrived
                    results[number] = answer if arrived is None else arrived(answer)
        except BaseException:
            self._stop(running, {key: tasks[number] for key, (number, _) in attempts.items()})
            raise
        return [results[number] for number in range(len(tasks))]

    def _stop(self, running: Any, tasks: Mapping[Any, Task[Any]]) -> None:
        """Stop the tasks, and process the results that the tasks stored."""
        # This call must not wait for dead workers.
        self.client.run(_stop, self.stopping, wait=False)
        until_s = time.monotonic() + _STOP_S
        while not running.is_empty() and time.monotonic() < until_s:
            for future in running.next_batch(block=False):
                arrived = tasks[future.key].arrived
                if future.status == "finished" and arrived is not None:
                    # The exception that caused the stop is being raised.
                    with suppress(WritecliffError):
                        arrived(future.result())
            time.sleep(_POLL_S)
        self.client.cancel(list(running.futures))


class _Watch:
    """A periodic check that a scheduler still has workers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen_s = self._asked_s = time.monotonic()

    def look(self) -> None:
        """Check the workers, unless the last check was recent.

        Raises:
            EngineError: If the scheduler had no worker for `_ALONE_S` seconds.
        """
        now_s = time.monotonic()
        if now_s < self._asked_s + _ASK_S:
            return
        self._asked_s = now_s
        if self._client.scheduler_info(n_workers=1)["workers"]:
            self._seen_s = now_s
        elif now_s > self._seen_s + _ALONE_S:
            hint = "start workers with `dask worker`, then resume the runs"
            raise EngineError(f"no worker has joined the scheduler for {_ALONE_S:.0f} s", hint=hint)


_stopping: set[str] = set()  # In a worker: names of the clusters whose tasks must stop.


@dataclass(frozen=True)
class StopSign:
    """A flag in a task, which is set when the cluster's tasks must stop."""

    name: str

    def is_set(self) -> bool:
        """Return `True` if the tasks must stop."""
        return self.name in _stopping


async def _stop(name: str) -> None:
    _stopping.add(name)


def _was_killed(future: Any) -> bool:
    """Return `True` if a task was abandoned because too many of its workers died."""
    from distributed import KilledWorker

    return future.status == "error" and isinstance(future.exception(), KilledWorker)


def _result(future: Any, name: str) -> Any:
    if future.status == "cancelled":
        raise EngineError(
            f"the scheduler lost the run {name}", hint="check that the scheduler is still running"
        )
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, WritecliffError):
        raise error
    raise EngineError(f"{name}: {error!r}", hint="check the worker's log") from error


def _check_memory(client: Client, tasks: Sequence[Task[Any]]) -> None:
    workers: Mapping[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    most_bytes = max((worker["resources"].get(MEMORY, 0) for worker in workers.values()), default=0)
    if not most_bytes:
        raise ConfigError(
            "none of the scheduler's workers declares a memory resource",
            hint=f"start workers with `dask worker ... --resources {MEMORY}=16e9`",
        )
    for task in tasks:
        if task.memory_bytes > most_bytes:
            raise ConfigError(
                f"{task.name} requires {task.memory_bytes / 1e9:.1f} GB of memory, "
                f"the largest worker has {most_bytes / 1e9:.1f} GB"
            )
