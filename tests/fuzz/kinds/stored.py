"""Stored files with valid checksums: manifests, suites, Parquet files, saved drives.

Changes that the checksum detects are the simple case; most of these files have a valid checksum
over contents that no run has written.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz import mutate
from tests.fuzz.kinds import Kind
from tests.fuzz.kinds.texts import small_drive
from tests.support.forked import fork

_LOAD = """\
name = "load"
interval = "10 ms"
[[job]]
name = "a"
read = "50 %"
block_size = "4 KiB"
queue_depth = 8
duration = "100 ms"
[[job]]
name = "b"
pattern = "sequential"
block_size = "64 KiB"
duration = "100 ms"
"""
_TABLES = ("rounds", "intervals", "histograms")
_STOPS = 10  # Number of attempts.
# Variable that names a folder of additional run directories to mutate.
MORE_RUNS = "WRITECLIFF_FUZZ_RUNS"


def _program(*words: str) -> list[str]:
    return [sys.executable, "-m", "writecliff", *words]


def _run(*words: str) -> None:
    """Run a command in a fork, where all modules have already been imported."""
    from writecliff.cli.main import main

    def silently() -> int:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return main(list(words))

    _, status = os.waitpid(fork(silently), 0)
    assert status == 0, words


def runs(corpus: Path) -> None:
    """Create finished runs of several kinds, an interrupted run, and a suite in `corpus/runs`."""
    small_drive(corpus)
    (corpus / "load.toml").write_text(_LOAD)
    folder, drive = corpus / "runs", f"sim:{corpus}/small.toml"
    made = {
        "load": ["run", str(corpus / "load.toml"), "--attribute-latency"],
        "act": ["test", "act", "--quick", "--test-duration-sec", "4"],
        "blocksizes": ["test", "blocksizes", "--quick"],
    }
    for name, words in made.items():
        if not (folder / name).exists():
            _run(*words, "--on", drive, "--quiet", "--output", str(folder / name))
    if not (folder / "wsat").exists():
        from tests.support.synthetic_run import build_run

        build_run(folder / "wsat", rounds=8, steps_per_round=5)
    if not (corpus / "sweep").exists():
        words = ("sweep", "--vary", "queue_depth=4,32", "--set", "drive_fills=1", "--on", drive,
                 "--set", "sample_seconds=1", "--set", "round-minutes=0.1")  # fmt: skip
        _run(*words, "--quiet", "--output", str(corpus / "sweep"))


def interrupted(corpus: Path) -> None:
    """Create a run that was stopped early, with the saved drive from which to resume it."""
    small_drive(corpus)
    run = corpus / "stopped"
    steps = "".join(f'[[step]]\n[[step.job]]\nvolume = "{n + 1} MB"\n' for n in range(120))
    (corpus / "steps.toml").write_text(f'name = "steps"\n{steps}')
    for _ in range(_STOPS):
        if list(run.glob("*.wcs")):
            return
        shutil.rmtree(run, ignore_errors=True)
        _stop_early(corpus, run)
    raise AssertionError(f"{_STOPS} stopped runs left no checkpoint")


def _stop_early(corpus: Path, run: Path) -> None:
    """Stop a run, usually between two steps; a run stopped within a step leaves no checkpoint."""
    words = ("run", str(corpus / "steps.toml"), "--on", f"sim:{corpus}/small.toml",
             "--quiet", "--output", str(run))  # fmt: skip
    child = subprocess.Popen(_program(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while child.poll() is None and len(list(run.glob("rounds/*.parquet"))) < 3:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    child.wait()


def _chosen(corpus: Path, draw: Random) -> Path:
    paths = sorted((corpus / "runs").iterdir())
    if more := os.environ.get(MORE_RUNS):
        paths += sorted(Path(more).iterdir())
    return draw.choice(paths)


def _reading(corpus: Path, run: str, draw: Random) -> list[str]:
    """Return a command that reads the run."""
    other = str(corpus / "runs" / draw.choice(("load", "act", "wsat")))
    return draw.choice(
        (["report", run, "--output", "r.html"], ["report", run, "--output", "r.html", "--csv", "csv", "--json"],
         ["report", run, "--output", "r.html"], ["runs", "show", run], ["runs", "show", run, "--json"],
         ["runs", "list", "--store", "."], ["runs", "diff", run, other], ["compare", run, other, "--output", "c.html"],
         ["compare", other, run, "--output", "c.html", "--json"], ["lab", "act", "log", run], ["lab", "act", "latency", run],
         ["runs", "index", "--store", "."],
         ["runs", "sql", "select * from intervals limit 3", "--store", "."], ["runs", "sql", "select * from runs", "--store", "."])
    )  # fmt: skip


def sealed(path: Path, schema: str, fields: Any) -> None:
    from writecliff.store.checksums import sealed_document

    try:
        path.write_bytes(sealed_document(schema, fields))
    except ValueError:  # The text is not valid JSON, so write it as another program might.
        path.write_text(json.dumps({"schema": schema, **fields}))


def _manifest(corpus: Path, folder: Path, draw: Random) -> list[str]:
    from writecliff.store.manifest import SCHEMA

    shutil.copytree(_chosen(corpus, draw), folder / "run")
    (folder / "run/figures.json").unlink(missing_ok=True)
    path = folder / "run/manifest.json"
    if draw.random() < 0.1:
        path.write_bytes(mutate.raw(path.read_bytes(), draw))
    else:
        fields = json.loads(path.read_text())
        del fields["schema"], fields["sha256"]
        sealed(path, SCHEMA, mutate.document(fields, draw))
    return _reading(corpus, "run", draw)


def _suite(corpus: Path, folder: Path, draw: Random) -> list[str]:
    from writecliff.suite.folder import SCHEMA

    shutil.copytree(corpus / "sweep", folder / "suite")
    path = folder / "suite/suite.json"
    if draw.random() < 0.1:
        path.write_bytes(mutate.raw(path.read_bytes(), draw))
    else:
        fields = json.loads(path.read_text())
        del fields["schema"], fields["sha256"]
        sealed(path, SCHEMA, mutate.document(fields, draw))
    other = str(corpus / "runs/act")
    drive = f"sim:{corpus}/small.toml"
    return draw.choice(
        (["report", "suite"], ["runs", "list", "--store", "."], ["compare", "suite", other, "--output", "c.html"],
         ["runs", "show", "suite"], ["runs", "diff", "suite", "suite"], ["sweep", "--resume", "suite"],
         ["runs", "index", "--store", "."], ["suite", "--resume", "suite", "--on", drive])
    )  # fmt: skip


def _parquet_bytes(corpus: Path, folder: Path, draw: Random) -> list[str]:
    from writecliff.store.checksums import PARQUET_KEY

    shutil.copytree(_chosen(corpus, draw), folder / "run")
    (folder / "run/figures.json").unlink(missing_ok=True)
    path = folder / "run" / f"{draw.choice(_TABLES)}.parquet"
    data = mutate.raw(path.read_bytes(), draw)
    if PARQUET_KEY in data and draw.random() < 0.9:
        from writecliff.store.checksums import seal_parquet

        with contextlib.suppress(ValueError):
            data = seal_parquet(data)
    path.write_bytes(data)
    return _reading(corpus, "run", draw)


def _columns(corpus: Path, folder: Path, draw: Random) -> list[str]:
    import io

    import pyarrow.parquet as pq

    from writecliff.store.checksums import NO_DIGEST, PARQUET_KEY, seal_parquet

    shutil.copytree(_chosen(corpus, draw), folder / "run")
    (folder / "run/figures.json").unlink(missing_ok=True)
    path = folder / "run" / f"{draw.choice(_TABLES)}.parquet"
    table = pq.read_table(path)
    metadata = {**(table.schema.metadata or {}), PARQUET_KEY: NO_DIGEST}
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        table = _changed(table, draw)
    if draw.random() < 0.05:
        metadata[b"writecliff.steps"] = draw.choice(
            (b"", b"-1", b"x", b"9" * 30, b"\xff", "²".encode())
        )
    if draw.random() < 0.02:
        del metadata[b"writecliff.steps"]
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    path.write_bytes(seal_parquet(sink.getvalue()))
    return _reading(corpus, "run", draw)


def _changed(table: Any, draw: Random) -> Any:
    """Return a table with one of its columns, or its rows, changed."""
    import numpy as np
    import pyarrow as pa

    names = table.column_names
    if not names:
        return table
    at = draw.randrange(len(names))
    name, column = names[at], table.column(at)
    rows = len(column)
    numbers = (-1, 0, 1, 2**31, 2**62, -(2**62), 7, 10**12)
    match draw.randrange(12):
        case 0:
            return table.remove_column(at)
        case 1:
            return table.rename_columns([("x" if n == name else n) for n in names])
        case 2:
            return table.set_column(at, name, pa.nulls(rows, column.type))
        case 3:
            return table.set_column(
                at, name, pa.array([draw.choice(mutate.TEXTS[:6]) for _ in range(rows)])
            )
        case 4:
            values = [
                draw.choice((1.5, float("nan"), float("inf"), -1.0, 1e308, 0.0))
                for _ in range(rows)
            ]
            return table.set_column(at, name, pa.array(values))
        case 5:
            return table.set_column(at, name, pa.array([draw.choice(numbers)] * rows))
        case 6:
            whole = draw.choice(([[1]] * rows, [{"a": 1}] * rows, [True] * rows, [b"\xff"] * rows))
            return table.set_column(at, name, pa.array(whole))
        case 7:
            return table.slice(0, draw.choice((0, 1, max(0, rows - 1))))
        case 8:
            return table.take(
                pa.array(np.array([draw.randrange(rows) for _ in range(rows)], np.int64))
            )
        case 9:
            return table.append_column(draw.choice((name, "x", "extra")), column)
        case _:
            values = column.to_pylist()
            for _ in range(draw.choice((1, rows))):
                if values:
                    values[draw.randrange(rows)] = _strange_value(column.type, draw)
            try:
                return table.set_column(at, name, pa.array(values, column.type))
            except (pa.ArrowException, ValueError, TypeError, OverflowError):
                return table.set_column(at, name, pa.nulls(rows, column.type))


def _strange_value(kind: Any, draw: Random) -> Any:
    import pyarrow as pa

    if pa.types.is_unsigned_integer(kind):
        return draw.choice((None, 0, 1, 2**63, 2**64 - 1))
    if pa.types.is_integer(kind):
        bits = kind.bit_width - 1
        return draw.choice((None, 0, -1, 2**bits - 1, -(2**bits), 100))
    if pa.types.is_floating(kind):
        return draw.choice((None, float("nan"), float("inf"), -float("inf"), -1.0, 1e308, 1e-320))
    if pa.types.is_string(kind):
        return draw.choice((None, *mutate.TEXTS, "{}", "[]", "write", "service"))
    return None


def _state(corpus: Path, folder: Path, draw: Random) -> list[str]:
    shutil.copytree(corpus / "stopped", folder / "run")
    path = next((folder / "run").glob("*.wcs"))
    data = path.read_bytes()
    if draw.random() < 0.3:
        path.write_bytes(mutate.raw(data, draw))
    else:
        path.write_bytes(resealed(data, draw))
    return ["run", "--resume", "run"]


def resealed(data: bytes, draw: Random) -> bytes:
    """Return a saved drive with one or two chunks changed and their checksums valid.

    `crates/base/src/codec.rs` defines the format.
    """
    sections: list[tuple[bytes, int, list[tuple[int, bytes]]]] = []
    at = 8
    while length := struct.unpack_from("<H", data, at)[0]:
        name = data[at + 2 : at + 2 + length]
        at += 2 + length
        (raw_length,) = struct.unpack_from("<Q", data, at)
        at += 8
        chunks = []
        for _ in range(-(-raw_length // (4 << 20))):
            packing, packed = struct.unpack_from("<BI", data, at)
            at += 9
            chunks.append((packing, data[at : at + packed]))
            at += packed
        sections.append((name, raw_length, chunks))
    for _ in range(draw.choice((1, 1, 2))):
        index = draw.randrange(len(sections))
        name, raw_length, chunks = sections[index]
        if chunks and draw.random() < 0.85:
            number = draw.randrange(len(chunks))
            packing, packed = chunks[number]
            changed = mutate.raw(packed, draw)
            if draw.random() < 0.7:  # The length must not change, so that decompression succeeds.
                changed = (changed + packed)[: len(packed)]
            chunks[number] = (packing if draw.random() < 0.9 else draw.randrange(4), changed)
        else:
            raw_length = draw.choice((0, 1, raw_length + 1, 2**40, 2**63, 2**64 - 1))
            sections[index] = (name if draw.random() < 0.5 else b"x", raw_length, chunks)
    encoded = data[:8]
    for name, raw_length, chunks in sections:
        encoded += struct.pack("<H", len(name)) + name + struct.pack("<Q", raw_length)
        for number, (packing, packed) in enumerate(chunks):
            header = struct.pack("<BI", packing, len(packed))
            sealed = (
                name + struct.pack("<Q", raw_length) + struct.pack("<Q", number) + header + packed
            )
            encoded += header + struct.pack("<I", zlib.crc32(sealed)) + packed
    return encoded + b"\0\0"


KINDS = (
    Kind("manifest", runs, _manifest),
    Kind("suite", runs, _suite),
    Kind("parquet", runs, _parquet_bytes),
    Kind("columns", runs, _columns),
    Kind("state", interrupted, _state),
)
