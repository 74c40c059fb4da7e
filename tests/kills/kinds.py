"""Kinds of commands that are killed, each with the results that must be equal."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.kills.files import file_kinds
from tests.kills.trial import Child, Kind, Result, Words, plain_json
from tests.support.small_drive import write_small_drive

LOAD = """\
name = "load"
interval = "10 ms"
precondition = "{precondition}"
""" + "".join(
    f"""\
[[step]]
[[step.job]]
read = "{20 * n} %"
queue_depth = {1 << n}
volume = "{100 + 50 * n} MB"
"""
    for n in range(4)
)
SHORT = 'name = "short"\nprecondition = "none"\n[[job]]\nread = "30 %"\nvolume = "40 MB"\n'
ON = ("--on", "sim:small.toml")
DRIVE = "small.toml"
# Keys that contain the time, location and program version of a run.
ABOUT = (
    "candidate", "command", "finished", "folder", "host", "name", "output", "pdf", "report", "resumed", "run", "runs",
    "seconds", "sessions", "size_bytes", "started", "store", "csv", "sha256", "pid", "path", "wall_s",
)  # fmt: skip


def _drives(corpus: Path) -> None:
    write_small_drive(corpus)
    (corpus / "load.toml").write_text(LOAD.format(precondition="none"))
    (corpus / "prepared.toml").write_text(LOAD.format(precondition="sustained"))


def _placed(*names: str) -> Callable[[Path, Path], None]:
    """Return a function that copies files and folders from the corpus to a trial's folder."""

    def place(corpus: Path, folder: Path) -> None:
        for name in (DRIVE, *names):
            if (corpus / name).is_dir():
                shutil.copytree(corpus / name, folder / name)
            else:
                shutil.copy(corpus / name, folder / name)

    return place


def _answer(words: Words, folder: Path) -> str:
    """Return the stdout of a command.

    Raises:
        RuntimeError: the command failed.
    """
    return Child(words, folder).answer()


def of_run(name: str) -> Callable[[Path], Result]:
    """Return a function that reads the summary, tables and plots of a run.

    A report depends on nothing else, so it is not rendered.
    """

    def result(folder: Path) -> Result:
        files = {"summary": plain_json(_answer(("runs", "show", name, "--json"), folder), ABOUT)}
        files |= {path.name: _rows(path) for path in (folder / name).glob("*.parquet")}
        page = (folder / name / "report.html").read_text()
        whole = b"whole" if page.rstrip().endswith("</html>") else b"cut"
        plots = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL)).encode()
        return {**files, "report.html": whole, "plots": plots}

    return result


def _rows(path: Path) -> bytes:
    """Return the rows of a Parquet file, read without threads because this process forks."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(io.BytesIO(path.read_bytes())).read(use_threads=False)
    return repr(table.to_pydict()).encode()


def _taken_up(start: Words, command: str, mark: str) -> Callable[[Path], Sequence[Words]]:
    """Return the commands that complete a run.

    They repeat `start` if the run had not started, resume a started run, and only render the report
    of a finished run.
    """

    def again(folder: Path) -> Sequence[Words]:
        if not (folder / "out" / mark).exists():
            return [start]
        if _is_complete(folder / "out"):
            return [("report", "out")]
        return [[*command.split(), "--resume", "out", "--quiet"]]

    return again


def _is_complete(run: Path) -> bool:
    path = run / "manifest.json"
    return path.exists() and json.loads(path.read_text())["status"] == "complete"


def _same(start: Words) -> Callable[[Path], Sequence[Words]]:
    return lambda folder: [start]


RUN = ("run", "load.toml", *ON, "--output", "out", "--quiet")
PREPARED = ("run", "prepared.toml", *ON, "--output", "out", "--quiet")
TEST = ("test", "act", "--quick", "--test-duration-sec", "12", *ON, "--output", "out", "--quiet")
SWEEP = (
    "sweep", "--vary", "queue_depth=4,32", "--set", "drive_fills=1", "--set", "sample_seconds=1",
    "--set", "round-minutes=0.1", *ON, "--output", "out", "--quiet",
)  # fmt: skip
CHOOSE = (
    "choose", "--workload", "load.toml", "--candidates", "small.toml,other.toml", "--no-what-if",
    "--precondition", "none", "--weight", "iops=1", "--output", "out", "--quiet",
)  # fmt: skip
REPLAY = ("replay", "store.parquet", *ON, "--fills", "2")
REPORT = ("report", "finished", "--csv", "csv")
IMPORT = ("runs", "import", "more", "--store", "store")
INDEX = ("runs", "index", "--store", "store")


def _prepared_again(folder: Path) -> Sequence[Words]:
    """Return commands for the run and for another run, with the cache that was being written."""
    first = _taken_up(PREPARED, "run", "manifest.json")(folder)
    return [*first, ("run", "prepared.toml", *ON, "--output", "fresh", "--quiet")]


def _of_prepared(folder: Path) -> Result:
    first = dict(of_run("out")(folder))
    if (folder / "fresh").exists():
        second = of_run("fresh")(folder)
        assert second == first, "the cache has another state"
    return first


def _import_again(folder: Path) -> Sequence[Words]:
    """Return the command to import missing runs; existing runs would be stored twice."""
    there = [path for path in folder.glob("store/imports/*") if not path.name.startswith(".")]
    return [] if there else [IMPORT]


def _trace(corpus: Path) -> None:
    from writecliff.capture.trace import write_trace
    from writecliff.replay.synthetic import synthetic_table

    _drives(corpus)
    table = synthetic_table(table_bytes=64 << 10, chunk_bytes=16 << 10, logged_bytes=48 << 20)
    write_trace(corpus / "store.parquet", table, {"command": ["store"], "program": "store 1.0"})


def _replay_again(folder: Path) -> Sequence[Words]:
    """Return the command to repeat the replay in a new location; it cannot be resumed."""
    return [(*REPLAY, "--output", "again")]


def _of_replay(folder: Path) -> Result:
    return of_run("again" if (folder / "again").exists() else "out")(folder)


def _finished(corpus: Path) -> None:
    _drives(corpus)
    finished, store = corpus / "finished", corpus / "store"
    if not (finished / "report.html").exists():
        shutil.rmtree(finished, ignore_errors=True)
        (corpus / "short.toml").write_text(SHORT)
        _answer(("run", "short.toml", *ON, "--output", "finished", "--quiet"), corpus)
    if not (corpus / "more").exists():
        shutil.copytree(finished, corpus / "more")
    for number in range(6):
        if not (store / f"run-{number}").exists():
            shutil.copytree(finished, store / f"run-{number}")


def _of_report(folder: Path) -> Result:
    tables = {path.name: path.read_bytes() for path in (folder / "csv").iterdir()}
    return {**tables, "report.html": (folder / "finished/report.html").read_bytes()}


def _of_store(folder: Path) -> Result:
    names = "select run, test, status from runs order by run"
    rows = "select run, count(*) as n, sum(ios) as ios from intervals group by run order by run"
    return {
        "runs": plain_json(
            _answer(["runs", "sql", names, "--json", "--store", "store"], folder), ABOUT
        ),
        "rows": plain_json(
            _answer(["runs", "sql", rows, "--json", "--store", "store"], folder), ABOUT
        ),
    }


def _two_drives(corpus: Path) -> None:
    _drives(corpus)
    text = (corpus / DRIVE).read_text()
    (corpus / "other.toml").write_text(f"# The same drive under another name.\n{text}")


def _of_choice(folder: Path) -> Result:
    answer = _answer(["choose", "--resume", "out", "--no-what-if", "--quiet", "--json"], folder)
    return {"answer": plain_json(answer, ABOUT)}


# The capacity exceeds 1 GiB because twins of smaller drives are not supported.
TWIN = ("twin", "sim:large.toml", "--gentle", "--output", "out", "--quiet")


def _larger_drive(corpus: Path) -> None:
    path = write_small_drive(corpus, user_capacity='"1200 MB"', blocks_per_plane="700")
    path.rename(corpus / "large.toml")
    _drives(corpus)


def _of_twin(folder: Path) -> Result:
    files = dict(of_run("out")(folder)) | {"twin.toml": (folder / "out/twin.toml").read_bytes()}
    whole = (folder / "out/twin.html").read_text().rstrip().endswith("</html>")
    return {**files, "twin.html": b"whole" if whole else b"cut"}


def _twin_again(folder: Path) -> Sequence[Words]:
    """Return the commands to resume the measurements, or to repeat the fit if they are complete."""
    if not (folder / "out/manifest.json").exists():
        return [TWIN]
    return [("twin", "--resume", "out", "--quiet")]


SERVED = ("-m", "tests.kills.served")


def _served_before(corpus: Path) -> None:
    """Create a drive with its state on disk, from an earlier session, and a copy of the state."""
    _drives(corpus)
    if not (corpus / "drive.state").exists():
        child = Child((*SERVED, "first"), corpus)
        child.wait()
        if child.code != 0:
            raise RuntimeError(f"served: {child.last_stderr_lines()}")
        shutil.rmtree(corpus / "first")
        shutil.copy(corpus / "drive.state", corpus / "before.state")


def _served_again(folder: Path) -> Sequence[Words]:
    """Return the commands to serve the drive again.

    A session that did not store its state leaves the drive unchanged. The session's record can be
    shown once it contains an interval.
    """
    state, before = (folder / name for name in ("drive.state", "before.state"))
    again = [] if state.read_bytes() != before.read_bytes() else [(*SERVED, "again")]
    shown = "out" if not again else "again"
    return [*again, ("report", shown)]


def _of_served(folder: Path) -> Result:
    return {"drive.state": (folder / "drive.state").read_bytes()}


def all_kinds() -> Mapping[str, Kind]:
    """Return the kinds of commands by name."""
    return {
        kind.name: kind
        for kind in (
            Kind("run", _drives, _placed("load.toml"), RUN,
                 _taken_up(RUN, "run", "manifest.json"), of_run("out")),
            Kind("test", _drives, _placed(), TEST, _taken_up(TEST, "test act", "manifest.json"), of_run("out")),
            Kind("sweep", _drives, _placed(), SWEEP, _taken_up(SWEEP, "sweep", "suite.json"), _of_sweep),
            Kind("replay", _trace, _placed("store.parquet"), (*REPLAY, "--output", "out"), _replay_again,
                 _of_replay),
            Kind("report", _finished, _placed("finished"), REPORT, _same(REPORT), _of_report),
            Kind("cache", _drives, _placed("prepared.toml"), PREPARED, _prepared_again, _of_prepared),
            Kind("import", _finished, _placed("more", "store"), IMPORT, _import_again, _of_store),
            Kind("index", _finished, _placed("store"), INDEX, _same(INDEX), _of_store),
            Kind("choose", _two_drives, _placed("other.toml", "load.toml"), CHOOSE,
                 _taken_up(CHOOSE, "choose", "choice.json"), _of_choice),
            Kind("twin", _larger_drive, _placed("large.toml"), TWIN, _twin_again, _of_twin),
            Kind("serve", _served_before, _placed("drive.state", "before.state"), (*SERVED, "out"),
                 _served_again, _of_served),
            *file_kinds(_finished, _placed),
        )
    }  # fmt: skip


def _of_sweep(folder: Path) -> Result:
    files: dict[str, bytes] = {}
    for member in sorted(folder.glob("out/*/manifest.json")):
        name = member.parent.name
        files |= {f"{name}/{key}": data for key, data in of_run(f"out/{name}")(folder).items()}
    files["summary.html"] = b"there" if (folder / "out/summary.html").exists() else b"not there"
    return files
