"""Execution of a suite or sweep, which runs the remaining members, in parallel if possible.

Every test starts with a purge. Tests on simulated drives are therefore independent. Simulated tests
run in parallel within a memory budget, and produce the same results as in sequence. On a real
drive, tests run in sequence, and a failure ends the suite.
"""

from __future__ import annotations

import io
import shutil
import signal
import tarfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Event
from typing import TYPE_CHECKING, Any

from writecliff.errors import WritecliffError
from writecliff.parallel import Stopped, Task, run_side_by_side
from writecliff.signals import handling
from writecliff.suite.children import ChildEvent, ChildSpec, MemberProcesses, Outcome
from writecliff.suite.folder import Member, SuiteFolder
from writecliff.suite.memory import member_memory_bytes

if TYPE_CHECKING:
    from writecliff.cluster import Cluster

Log = Callable[[ChildEvent], None]
# Tests start in descending order of their run times on `sata-tlc-120`, so that all cores are busy
# until the end.
_LONGEST = ("ecw", "dirth", "hir", "wsat", "iops", "xsr", "lat", "tp")


class SuiteStopped(WritecliffError):
    """Raised if the user stopped the set; the complete steps of all tests are stored."""

    exit_code = 130


def run_suite(
    folder: SuiteFolder,
    log: Log,
    *,
    opening: Mapping[str, Any],
    finish: Callable[[Path], object],
    names: Collection[str] | None = None,
    workers: int | None = None,
    memory_budget_bytes: int | None = None,
    cluster: Cluster | None = None,
) -> list[Outcome]:
    """Run all incomplete members, locally or on a cluster, and return their outcomes.

    Several threads call `log` with events. `opening` holds the keyword arguments of `open_target`.
    Each run's process calls `finish` with the run directory.

    Raises:
        SuiteStopped: If the user stopped the set.
        EngineError: If a test failed; the other tests' runs are preserved.
        ConfigError: If an option is not allowed or memory is insufficient.
    """
    stop = Event()
    specs = [
        (spec, member_memory_bytes(spec.member))
        for spec in (_spec(folder, name, opening, finish) for name in _left(folder, names))
    ]
    outcomes: list[Outcome] = []
    try:
        with handling((signal.SIGINT, signal.SIGTERM), lambda number, frame: stop.set()):
            if cluster is not None:
                outcomes = run_members(cluster, specs, log, stop)
            else:
                with MemberProcesses() as processes:
                    outcomes = run_side_by_side(
                        [
                            Task(spec.name, need, partial(_checked, processes, spec, log, stop))
                            for spec, need in specs
                        ],
                        workers=workers if folder.simulated else 1,
                        memory_budget_bytes=memory_budget_bytes,
                    )
    except WritecliffError:
        if not stop.is_set():
            raise
    if stop.is_set():
        raise SuiteStopped(
            f"stopped; complete: {len(folder.complete())} of {len(folder.members)}",
            hint=f"resume with `writecliff {folder.command} --resume {folder.path}`",
        )
    return outcomes


def _checked(processes: MemberProcesses, spec: ChildSpec, log: Log, stop: Event) -> Outcome:
    outcome = None if stop.is_set() else processes.run(spec, log, stop)
    if outcome is None or outcome.exit_code == SuiteStopped.exit_code:
        raise Stopped(f"{spec.name} was stopped")
    outcome.check()
    log(ChildEvent(spec.name, "line", "complete", 1.0))
    return outcome


def _left(folder: SuiteFolder, names: Collection[str] | None = None) -> Sequence[str]:
    """Return the incomplete members, longest first if they run in parallel."""
    left = [name for name in folder.left() if names is None or name in names]
    return sorted(left, key=lambda name: _rank(folder.members[name])) if folder.simulated else left


def _rank(member: Member) -> int:
    return _LONGEST.index(member.test) if member.test in _LONGEST else len(_LONGEST)


def _spec(
    folder: SuiteFolder, name: str, opening: Mapping[str, Any], finish: Callable[[Path], object]
) -> ChildSpec:
    member = folder.members[name]
    return ChildSpec(
        name=name,
        member=replace(member, target=folder.target_now(member.target)),
        opening=opening,
        directory=folder.run_directory(name),
        resume=folder.status(name) is not None,
        finish=finish,
    )


# -- remote ----------------------------------------------------------------------------------------

# Members of suites and sweeps on a cluster, where workers receive and return run directories.
#
# A worker runs the member in a temporary folder and returns the run directory as an archive. A
# worker receives the options, the text of the device file, and the stored data from an interrupted
# run. Preconditioned states are in the cache of the user who runs the worker. Workers that share a
# cache (on one machine, or in a shared folder) or the shared states (`engines/state_cache.py`)
# prepare each state only once.

STOPPED = 130
_processes = MemberProcesses()  # Process pool of this worker for the current sweep.


@dataclass(frozen=True)
class Parcel:
    """A member to send to a worker. `before` is an interrupted run's archive."""

    spec: ChildSpec
    before: bytes | None
    topic: str
    stopping: str


def run_members(
    cluster: Cluster,
    specs: list[tuple[ChildSpec, int]],
    log: Callable[[ChildEvent], None],
    stop: Event,
) -> list[Outcome]:
    """Run members on a cluster, and store each returned run in the directory given by its spec.

    Each spec is accompanied by its run's memory size in bytes.

    Raises:
        Stopped: `stop` was set.
        EngineError: A test failed.
        ConfigError: If an option is not allowed.
    """
    topic = f"{cluster.stopping}-log"
    tasks = []
    for spec, memory_bytes in specs:
        parcel = partial(run_parcel, _packed(spec, topic, cluster.stopping))
        arrived = partial(_arrived, spec.directory, log)
        tasks.append(Task[Outcome](spec.name, memory_bytes, _nowhere, parcel, arrived))
    cluster.client.subscribe_topic(topic, lambda event: log(ChildEvent(**event[1]["event"])))
    try:
        return cluster.run(tasks, stop=stop)
    finally:
        cluster.client.unsubscribe_topic(topic)
        cluster.client.run(_processes_end, on_error="ignore")


def _processes_end() -> None:
    """Stop the idle processes of a worker. Busy processes stop when their worker stops."""
    _processes.close_idle()


def _nowhere() -> Outcome:
    raise AssertionError("runs packed for a worker can run only on a worker")


def _arrived(
    directory: Path, log: Callable[[ChildEvent], None], result: tuple[Outcome, bytes | None]
) -> Outcome:
    outcome, archive = result
    if archive is not None:
        _store(archive, directory)
    if outcome.exit_code == STOPPED:
        raise Stopped(f"{outcome.name} was stopped")
    outcome.check()
    log(ChildEvent(outcome.name, "line", "complete", 1.0))
    return outcome


def _packed(spec: ChildSpec, topic: str, stopping: str) -> Parcel:
    from writecliff.devices import read_device_file

    device = read_device_file(spec.member.target.removeprefix("sim:"))
    opening = {**spec.opening, "device_file": device}
    before = _archive(spec.directory) if spec.resume else None
    return Parcel(replace(spec, opening=opening), before, topic, stopping)


def run_parcel(parcel: Parcel) -> tuple[Outcome, bytes | None]:
    """Run a member on a worker.

    Returns:
        The outcome, and the archive of the run directory, or `None` if the run created no
        directory.
    """
    from distributed import get_worker

    from writecliff.cluster import StopSign

    stop = StopSign(parcel.stopping)
    if stop.is_set():
        return Outcome(parcel.spec.name, False, "stopped", None, STOPPED), None
    worker = get_worker()
    with TemporaryDirectory(prefix="writecliff-", dir=worker.local_directory) as folder:
        directory = Path(folder) / parcel.spec.directory.name
        if parcel.before is not None:
            _extract(parcel.before, directory)

        def log(event: ChildEvent) -> None:
            worker.log_event(parcel.topic, {"event": asdict(event)})

        spec = replace(parcel.spec, directory=directory)
        outcome = _processes.run(spec, log, stop)
        return outcome, _archive(directory) if directory.exists() else None


def _archive(directory: Path) -> bytes:
    """Return a run directory's files as an archive without owners, modes and times."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                info = tarfile.TarInfo(str(path.relative_to(directory)))
                info.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(info, file)
    return out.getvalue()


def _extract(archive: bytes, directory: Path) -> None:
    directory.mkdir()
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(directory, filter="data")


def _store(archive: bytes, directory: Path) -> None:
    """Replace a run directory atomically with the contents of an archive."""
    made = Path(mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        _extract(archive, made / "new")
        if directory.exists():
            directory.rename(made / "old")
        (made / "new").rename(directory)
    finally:
        shutil.rmtree(made, ignore_errors=True)
