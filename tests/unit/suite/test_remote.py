"""Sets of runs on a Dask scheduler: identical tables, even if workers fail."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from tests.support.processes import WAIT_LIMIT_S
from tests.support.small_drive import write_small_drive
from writecliff import cluster
from writecliff.cluster import MEMORY, Cluster, connected
from writecliff.errors import ConfigError, EngineError
from writecliff.lab.validate import power_cuts
from writecliff.lab.validate.quick import compare, suite_of
from writecliff.parallel import Task, map_side_by_side, placed
from writecliff.report import write_report
from writecliff.suite.children import ChildEvent
from writecliff.suite.folder import SuiteFolder
from writecliff.suite.runner import SuiteStopped, run_suite
from writecliff.suite.sweep import plan_sweep

if find_spec("distributed") is None:
    pytest.skip("needs the extra dask", allow_module_level=True)
if TYPE_CHECKING:
    from distributed import Client, LocalCluster

KILLS = int(os.environ.get("WRITECLIFF_WORKER_KILLS", "2"))
MEMBERS = 3 if KILLS <= 3 else 16
SHORT = {"drive_fills": 0.5, "sample_seconds": 1.0, "round_minutes": 0.1}


@pytest.fixture(scope="module")
def local() -> Iterator[LocalCluster]:
    """Two workers that restart when they die."""
    import distributed

    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        resources={MEMORY: 4e9},
        memory_limit=0,
        dashboard_address=None,
        silence_logs=50,
    ) as made:
        yield made


@pytest.fixture
def client(local: LocalCluster) -> Iterator[Client]:
    import distributed

    with distributed.Client(local, set_as_default=False) as made:
        yield made


def folder_of(path: Path, device: Path, depths: range) -> SuiteFolder:
    cells = [{"queue_depth": depth} for depth in depths]
    plan = plan_sweep("wsat", f"sim:{device}", cells, SHORT, folder=path)
    return SuiteFolder.create(path, "sweep", "queue_depth", plan.members)


Tables = dict[tuple[str, str], object]


def tables(folder: SuiteFolder) -> Tables:
    return {
        (name, table): pq.read_table(folder.run_directory(name) / f"{table}.parquet")
        for name in folder.members
        for table in ("rounds", "intervals", "histograms")
    }


def replace_nannies(local: LocalCluster) -> None:
    """Replace workers whose nanny gave up, as it does if its worker dies early."""
    for name, nanny in [*local.workers.items()]:
        if nanny.status.name in ("closed", "failed"):
            local.workers.pop(name)
            local.worker_spec.pop(name)
    local.scale(2)


def none(event: ChildEvent) -> None:
    """Ignore progress."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Return the results of all cells on this machine."""
    path = tmp_path_factory.mktemp("here")
    folder = folder_of(path / "here", write_small_drive(path), range(1, MEMBERS + 1))
    run_suite(folder, none, opening={}, finish=str)
    return tables(folder)


def test_workers_that_die_cost_their_runs_only(
    local: LocalCluster, client: Client, here: Tables, tmp_path: Path
) -> None:
    """Check that workers and members killed at random leave every cell once, as on one machine."""
    device = write_small_drive(tmp_path)
    there = folder_of(tmp_path / "there", device, range(1, MEMBERS + 1))
    killed: list[int] = []
    over, one_at_a_time = Event(), Lock()
    moments = random.Random(1)

    def kill(most: int) -> None:
        with one_at_a_time:
            pids = [n.pid for n in local.workers.values() if n.worker_address in scheduler.workers]
            if pids and len(killed) < most:
                os.kill(moments.choice(pids), signal.SIGKILL)
                killed.append(1)

    def kill_now_and_then() -> None:
        while len(killed) < KILLS and not over.wait(moments.uniform(0.5, 4.0)):
            replace_nannies(local)
            kill(KILLS)

    scheduler = local.scheduler
    events: list[ChildEvent] = []

    def watch(event: ChildEvent) -> None:
        events.append(event)
        # The kill must precede the last cell, even if all cells are quick.
        if event.text == "complete":
            kill(2)

    killer = Thread(target=kill_now_and_then)
    killer.start()
    outcomes = run_suite(there, watch, opening={}, finish=str, cluster=Cluster(client))
    over.set()
    killer.join()
    assert len(killed) >= 2
    assert sorted(outcome.name for outcome in outcomes) == sorted(there.members)
    assert there.complete() == tuple(there.members)
    assert tables(there) == here
    complete = [event.name for event in events if event.text == "complete"]
    assert sorted(complete) == sorted(there.members)
    left = [path.name for path in there.path.iterdir() if path.name.startswith(".")]
    assert left == []


def test_the_device_file_and_the_report_travel(client: Client, tmp_path: Path) -> None:
    device = write_small_drive(tmp_path)
    folder = folder_of(tmp_path / "there", device, range(1, 3))
    text = device.read_text()
    events: list[ChildEvent] = []
    run_suite(folder, events.append, opening={}, finish=write_report, cluster=Cluster(client))
    assert device.read_text() == text
    for name in folder.members:
        assert (folder.run_directory(name) / "report.html").is_file()
    deadline_s = time.monotonic() + WAIT_LIMIT_S
    while not any(
        event.text.startswith("started: ") for event in events
    ):  # Events do not wait for results.
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_a_sweep_that_is_stopped_goes_on_elsewhere(
    client: Client, here: Tables, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path / "stopped", write_small_drive(tmp_path), range(1, 3))

    stopped = Event()

    def stop_once_it_runs(event: ChildEvent) -> None:
        # The start event is independent of the results and may arrive after them.
        if event.text.startswith("started: ") or event.text == "complete":
            if not stopped.is_set():
                os.kill(os.getpid(), signal.SIGINT)
            stopped.set()

    with pytest.raises(SuiteStopped):
        run_suite(folder, stop_once_it_runs, opening={}, finish=str, cluster=Cluster(client))
    run_suite(folder, none, opening={}, finish=str, cluster=Cluster(client))
    contents = tables(folder)
    assert contents == {name: table for name, table in here.items() if name[0] in folder.members}
    assert len(contents) == 2 * 3


def no_page(run: Path) -> None:
    raise EngineError(f"no page of {run.name}", hint="a hint")


def test_a_test_that_fails_says_why_and_is_kept(client: Client, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "there", write_small_drive(tmp_path), range(1, 3))
    with pytest.raises(EngineError, match=r"queue-depth-\d: no page of queue-depth-\d") as caught:
        run_suite(folder, none, opening={}, finish=no_page, cluster=Cluster(client))
    assert caught.value.hint == "a hint"
    assert folder.complete()


def test_what_no_worker_can_hold_is_refused_before_it_runs(client: Client) -> None:
    task = Task("a drive", 5_000_000_000, int, int)
    with pytest.raises(ConfigError, match=r"a drive requires 5.0 GB of memory, .* has 4.0 GB"):
        Cluster(client).run([task])


def test_power_cuts_are_the_same_there(client: Client) -> None:
    here = power_cuts.run(60, 7)
    with placed(Cluster(client)):
        assert power_cuts.run(60, 7) == here
    assert here.failure is None
    assert sum(row.cuts for row in here.rows) == 60


def test_the_quick_suite_is_the_same_there(client: Client, tmp_path: Path) -> None:
    drive = f"sim:{write_small_drive(tmp_path)}"
    here, there = (
        suite_of(drive, tmp_path / name, quick=True, tests=["wsat"], cluster=cluster)
        for name, cluster in (("here", None), ("there", Cluster(client)))
    )
    assert tables(there) == tables(here)
    assert all(row.error_pct == 0 for row in compare(here, there))


def test_other_independent_runs_go_there_too(client: Client) -> None:
    cases = [(number, 2) for number in range(8)]
    with placed(Cluster(client)):
        assert map_side_by_side(pow, cases, 1000) == [number**2 for number in range(8)]
        with pytest.raises(EngineError, match="ZeroDivisionError"):
            map_side_by_side(divmod, [(1, 0)], 1000)
        pids = {pid for pid, _ in map_side_by_side(_where, [(n,) for n in range(8)], 1000)}
    assert os.getpid() not in pids


def _where(number: int) -> tuple[int, int]:
    return os.getpid(), number


def test_a_scheduler_is_an_address_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_S", 1)
    for address, message in (
        ("here", "is not a scheduler address"),
        ("tcp://127.0.0.1:9", "no Dask scheduler"),
    ):
        with pytest.raises(ConfigError, match=message), connected(address):
            pass
    refused = pytest.raises(ConfigError, match="--jobs cannot be combined")
    with refused, connected("tcp://127.0.0.1:9", workers=2):
        pass
    with connected(None) as none_there:
        assert none_there is None


def test_the_local_scheduler_listens_to_nothing(here: Tables, tmp_path: Path) -> None:
    """Check that neither this process nor its members has a port, so nobody can run code."""
    folder = folder_of(tmp_path / "local", write_small_drive(tmp_path), range(1, 3))
    before = _listening()
    seen: set[str] = set()

    def watch(event: ChildEvent) -> None:
        seen.update(_listening() - before)

    with connected("local", workers=2) as made:
        seen |= _listening() - before
        run_suite(folder, watch, opening={}, finish=str, cluster=made)
    assert tables(folder) == {name: table for name, table in here.items() if name in tables(folder)}
    assert seen == set()


def _listening() -> set[str]:
    """Return the type and inode of each socket on which this process or a descendant listens."""
    inodes = set()
    for process in _descendants(os.getpid()):
        with suppress(OSError):  # The process has ended.
            for descriptor in Path(f"/proc/{process}/fd").iterdir():
                with suppress(OSError):
                    inodes.add(os.readlink(descriptor).removeprefix("socket:[").rstrip("]"))
    sockets = set()
    for kind, state, inode in (("tcp", 3, 9), ("tcp6", 3, 9), ("unix", 5, 6)):
        listens = {"0A", "01"} if kind == "unix" else {"0A"}
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            words = line.split()
            accepts = kind != "unix" or words[3] == "00010000"
            if words[state] in listens and accepts and words[inode] in inodes:
                sockets.add(f"{kind} {words[inode]}")  # Rows in the kernel's table move.
    return sockets


def _descendants(process: int) -> list[int]:
    descendants = [process]
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text().split():
                descendants += _descendants(int(child))
    return descendants


def test_the_ports_of_a_process_are_seen() -> None:
    """Check that the method used above detects a port and a named socket."""
    before = _listening()
    with socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX) as named:
        named.bind("\0writecliff-test-" + uuid4().hex)
        named.listen()
        assert {line.split()[0] for line in _listening() - before} == {"tcp", "unix"}
    assert _listening() <= before


def test_tasks_of_tasks_run_where_they_are() -> None:
    """Single-thread workers would deadlock if tasks submitted tasks to the scheduler."""
    with connected("local", workers=1) as made, placed(made):
        assert map_side_by_side(_squares, [(3,), (4,)], 1000) == [[0, 1, 4], [0, 1, 4, 9]]


def _squares(count: int) -> list[int]:
    return map_side_by_side(pow, [(number, 2) for number in range(count)], 1000)


def test_workers_without_memory_are_refused(tmp_path: Path) -> None:
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=False
        ) as made,
        connected(made.scheduler_address) as there,
        pytest.raises(
            ConfigError, match="none of the scheduler's workers declares a memory resource"
        ),
    ):
        assert there is not None
        there.run([Task("one", 1, int, partial(int, 1))])
