"""Commands that create one file or folder and are simply repeated after a disturbance."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fuzz.kinds.traced import TEXTS
from tests.kills.trial import Kind, Result, Words, plain_json

_WHEN = ("sha256", "command", "timestamp", "timestamp_ms", "time")
_EXPORT = ("device", "export", "sata-tlc-120", "--output", "d.toml")
_PROGRAM = ("sh", "-c", "for n in 1 2 3; do echo $n > data; done")
# Text that depends on when and where a command ran.
_VARIES = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|\+00:00)?|[\d.]+ (\xc2\xb5s|ms|s) of wall time"
)


def _files(*names: str) -> Callable[[Path], Result]:
    """Return a function that reads files, and all files in folders."""

    def result(folder: Path) -> Result:
        contents: dict[str, bytes] = {}
        for name in names:
            path = folder / name
            files = (
                [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
            )
            assert files, f"{name} is not there"
            for file in sorted(files):
                contents[str(file.relative_to(folder))] = _plain(file)
        return contents

    return result


def _plain(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".json":
        return plain_json(data.decode(), _WHEN)
    if path.name.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            return repr(sorted((entry.name, entry.size) for entry in archive)).encode()
    return _VARIES.sub(b"", data)


def _traces(corpus: Path) -> None:
    (corpus / "msr.csv").write_text(TEXTS["msr.csv"])


def _captured(folder: Path) -> Result:
    """Return the captured program's I/O, without times and process IDs, which vary."""
    import pyarrow.parquet as pq

    path = folder / "again.parquet"
    data = io.BytesIO((path if path.exists() else folder / "t.parquet").read_bytes())
    table = pq.ParquetFile(data).read(use_threads=False)
    return {
        name: repr(table.column(name).to_pylist()).replace("create", "truncate").encode()
        for name in ("op", "path", "offset_bytes", "length_bytes")
    }


def _captured_again(folder: Path) -> Sequence[Words]:
    """Return the commands to repeat a capture; its recording stays until recovered."""
    if not (folder / "t.parquet.events").exists():
        return [("capture", "--output", "t.parquet", "--", *_PROGRAM)]
    return [("capture", "--output", "again.parquet", "--", *_PROGRAM)]


def file_kinds(prepare: Callable[[Path], None],
               placed: Callable[..., Callable[[Path, Path], None]]) -> Sequence[Kind]:  # fmt: skip
    """Return the kinds of commands that create a file or folder.

    `prepare` creates the drive and the runs `finished` and `more`; `placed` copies from the corpus.
    """

    def everything(corpus: Path) -> None:
        prepare(corpus)
        _traces(corpus)

    def kind(name: str, needs: Sequence[str], words: Words, *made: str) -> Kind:
        return Kind(name, everything, placed(*needs), words, lambda folder: [words], _files(*made))

    capture = ("capture", "--output", "t.parquet", "--", *_PROGRAM)
    return (
        kind("compare", ("finished", "more"),
             ("compare", "finished", "more", "--output", "c.html", "--csv", "csv"), "csv", "c.html"),
        kind("convert", ("msr.csv",), ("trace", "convert", "msr.csv", "o.log"), "o.log"),
        kind("characterise", ("msr.csv",),
             ("characterise", "msr.csv", "--output", "c.html", "--csv", "csv"), "csv", "c.html"),
        kind("synthesise", ("msr.csv",), ("synthesise", "msr.csv", "--output", "model"),
             "model/workload.toml", "model/workload.fio"),
        kind("export", ("store",), ("runs", "export", "run-1", "--store", "store", "--output", "runs.tar.gz"),
             "runs.tar.gz"),
        kind("tag", ("store",), ("runs", "tag", "run-1", "+kept", "--store", "store"), "store/run-1/tags.json"),
        # Existing files remain, because a command that is killed after its last step has completed
        # its work.
        Kind("drive", everything, placed(), _EXPORT, lambda folder: [] if (folder / "d.toml").exists() else [_EXPORT],
             _files("d.toml")),
        kind("fio", (), ("fio", "--on=sim:small.toml", "--name=j", "--rw=write", "--size=8m", "--output=f.json",
                         "--output-format=json"), "f.json"),
        Kind("capture", everything, placed(), capture, _captured_again, _captured),
    )  # fmt: skip
