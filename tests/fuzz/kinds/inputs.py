"""Inputs of the commands that choose, synthesise, import and replay; and command lines."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz import mutate
from tests.fuzz.kinds import Kind
from tests.fuzz.kinds.stored import _program, runs, sealed
from tests.fuzz.kinds.texts import small_drive
from tests.fuzz.kinds.traced import TEXTS

PRICES = "drive,price\n{0}/small.toml,249\n{0}/other.toml,199.90\npm863-960,300\n"
LOAD = 'name = "w"\nprecondition = "none"\n[[job]]\nblock_size = "4 KiB"\nduration = "5 ms"\n'
CAPTURE = """\
name = "portal"
source = "a paper"
streams = [
  { access = "random", operation = "read", size = "4 KiB", share = "60 %" },
  { access = "sequential", operation = "write", size = "64 KiB", share = "40 %" },
]
[[step]]
duration = "1 s"
iops = 200
queue_depth = 6
shares = ["70 %", "30 %"]
[[step]]
duration = "2 s"
"""
METER = "seconds,watts\n" + "".join(f"{n / 10:.1f},{3 + n % 4}\n" for n in range(40))
TABLE = "ts,op,lba,bytes,pid\n" + "".join(
    f"{100 * n},{'RW'[n % 3 == 0]},{8 * (n * 37 % 500)},{4096 * (1 + n % 4)},{n % 3}\n"
    for n in range(60)
)
_STREAM_BYTES = 100_000  # Block size of bzip2 at level 1.
COLUMNS = "time=ts:us,operation=op,offset=lba:sectors,length=bytes"


def written(path: Path, data: bytes, draw: Random) -> None:
    """Write the file, or occasionally create another kind of file instead."""
    chance = draw.random()
    if chance < 0.97:
        head = draw.choice((b"\xef\xbb\xbf", b"\xff\xfe")) if chance > 0.94 else b""
        path.write_bytes(head + (data.replace(b"\n", b"\r\n") if chance < 0.03 else data))
    elif chance < 0.975:
        path.mkdir()
    elif chance < 0.98:
        path.symlink_to(path.name)
    elif chance < 0.985:
        os.mkfifo(path)
    elif chance < 0.99:
        path.symlink_to("/dev/zero")
    elif chance < 0.995:
        path.write_bytes(b"")
    else:
        path.symlink_to("/nowhere")


def _two_drives(corpus: Path) -> str:
    """Return two candidates, because a single candidate is rejected without a limit."""
    return f"{corpus}/small.toml,{corpus}/other.toml"


def _made_drives(corpus: Path) -> None:
    small_drive(corpus)
    shutil.copy(corpus / "small.toml", corpus / "other.toml")


def _choose(corpus: Path, folder: Path, draw: Random) -> list[str]:
    prices = PRICES.format(corpus)
    changed = mutate.text(prices, draw, ["small.toml", "x", "price"], mutate.NUMBERS)
    written(folder / "prices.csv", draw.choice((prices.encode(), changed)), draw)
    (folder / "w.toml").write_text(LOAD)
    words = ["choose", "--workload", "w.toml", "--candidates", _two_drives(corpus),
             "--no-what-if", "--output", "out", "--prices", "prices.csv"]  # fmt: skip
    odd = draw.choice(
        (["--limit", f"p99 <= {mutate.number(draw)}"], ["--weight", f"iops={mutate.number(draw)}"],
         ["--overprovision", mutate.number(draw)], ["--writes-per-day", mutate.number(draw)],
         ["--duration", mutate.number(draw)], ["--capacity", f"{mutate.number(draw)}..1TB"],
         ["--limit", draw.choice(mutate.TEXTS)], ["--seeds", mutate.number(draw)], [], [], [])
    )  # fmt: skip
    return [*words, *_arguments(odd)]


def _choice(corpus: Path, folder: Path, draw: Random) -> list[str]:
    """Mutate the question and answers of a stored choice."""
    shutil.copytree(corpus / "choice", folder / "out")
    names = sorted(path for path in (folder / "out").rglob("*.json") if path.is_file())
    _resealed(draw.choice(names), draw)
    return ["choose", "--resume", "out", "--no-what-if", *draw.choice(([], ["--json"]))]


def _made_choice(corpus: Path) -> None:
    _made_drives(corpus)
    if not (corpus / "choice/choice.json").exists():
        (corpus / "choose.toml").write_text(LOAD)
        words = ("choose", "--workload", str(corpus / "choose.toml"), "--weight", "iops=1", "--no-what-if", "--quiet",
                 "--candidates", _two_drives(corpus), "--output", str(corpus / "choice"))  # fmt: skip
        _run(words)


def _resealed(path: Path, draw: Random) -> None:
    if draw.random() < 0.1:
        path.write_bytes(mutate.raw(path.read_bytes(), draw))
        return
    fields = json.loads(path.read_text())
    schema = fields.pop("schema", "")
    fields.pop("sha256", None)
    sealed(path, schema, mutate.document(fields, draw))


def _synthetic(corpus: Path) -> None:
    small_drive(corpus)
    if not (corpus / "synthetic/workload.toml").exists():
        (corpus / "msr.csv").write_text(TEXTS["msr.csv"])
        _run(("synthesise", str(corpus / "msr.csv"), "--output", str(corpus / "synthetic")))


def _model(corpus: Path, folder: Path, draw: Random) -> list[str]:
    """Mutate workloads that contain a trace model."""
    text = (corpus / "synthetic/workload.toml").read_text()
    keys = [word for word in dict.fromkeys(text.replace("=", " ").split()) if word[:1].isalpha()]
    written(folder / "w.toml", mutate.text(text, draw, keys, mutate.TOML), draw)
    more = draw.choice((["--dry-run"], ["--output", "out"]))
    return ["run", "w.toml", "--on", f"sim:{corpus}/small.toml", *more]


def _synthesise(corpus: Path, folder: Path, draw: Random) -> list[str]:
    name = draw.choice(sorted(TEXTS))
    written(folder / name, mutate.text(TEXTS[name], draw, ["Read", "R", "W", "D"]), draw)
    on = ["--on", f"sim:{corpus}/small.toml"] if draw.random() < 0.3 else []
    return ["trace", "synthesise", name, "--output", "out", *on]


def _table(corpus: Path, folder: Path, draw: Random) -> list[str]:
    """Mutate custom tables and their column descriptions."""
    table, columns = TABLE.encode(), COLUMNS
    if draw.random() < 0.6:
        table = mutate.text(TABLE, draw, ["ts", "op", "lba", "R", "W"])
    else:
        words = ["time", "ts", "us", "operation", "offset", "lba", "sectors", "length", "ns", "x"]
        columns = mutate.text(COLUMNS, draw, words).decode("utf-8", "surrogateescape")
    written(folder / "t.csv", table, draw)
    words = draw.choice((["characterise"], ["trace", "synthesise"], ["trace", "convert"]))
    more = ["out.parquet"] if words[0] == "trace" else ["--output", "out.html"]
    return [*words, "t.csv", *more, *_arguments(["--columns", columns])]


def _packed(corpus: Path, folder: Path, draw: Random) -> list[str]:
    """Mutate compressed traces: truncated, changed, nested, or expanding to gigabytes."""
    name = draw.choice(sorted(TEXTS))
    data = piece = TEXTS[name].encode()
    if draw.random() < 0.1:
        piece, size = draw.choice((b"\0", b"1,", b"\n", data)), draw.choice((1 << 20, 30 << 20))
        data = piece * (size // len(piece))
    for _ in range(draw.choice((1, 1, 1, 2))):
        data = _packings(draw, len(piece))(data)
    if draw.random() < 0.7:
        data = mutate.raw(data, draw)
    packed = f"{name}{draw.choice(('.gz', '.zst', '.bz2', '.tar', '.tar.gz', ''))}"
    written(folder / packed, data, draw)
    return draw.choice(
        (["characterise", packed, "--output", "w.html"], ["trace", "convert", packed, "o.parquet"])
    )


def _packings(draw: Random, repeats: int) -> Callable[[bytes], bytes]:
    """Return a random compressor for data that repeat every `repeats` bytes."""

    def tarred(data: bytes) -> bytes:
        sink = io.BytesIO()
        with tarfile.open(fileobj=sink, mode="w") as archive:
            entry = tarfile.TarInfo(draw.choice(("a.csv", "../../a.csv", "/a.csv", "a" * 200)))
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        return sink.getvalue()

    def zstd(data: bytes) -> bytes:
        import pyarrow as pa

        return bytes(pa.compress(data, "zstd", asbytes=True))

    def bzipped(data: bytes) -> bytes:
        """Compress data to bzip2 streams, compressing equal streams only once.

        bzip2 takes seconds for 30 MB of repeated data, which would count towards the case's time.
        """
        if len(data) <= _STREAM_BYTES:
            return bz2.compress(data, 1)
        block = repeats * (_STREAM_BYTES // repeats)
        # The archive header is a separate stream.
        cuts = (0, *range(tarfile.BLOCKSIZE, len(data), block))
        streams = [data[at:end] for at, end in zip(cuts, (*cuts[1:], len(data)), strict=True)]
        packed = {stream: bz2.compress(stream, 1) for stream in dict.fromkeys(streams)}
        return b"".join(packed[stream] for stream in streams)

    return draw.choice((gzip.compress, bzipped, tarred, zstd))


def _capture(corpus: Path, folder: Path, draw: Random) -> list[str]:
    words = ["access", "operation", "size", "share", "step", "streams", "duration", "iops", "name"]
    written(folder / "c.toml", mutate.text(CAPTURE, draw, words, mutate.TOML), draw)
    # The test tcqd is excluded, because its pilot runs take nine seconds with any capture.
    test = draw.choice(("replay-native", "multi-wsat", "is-wsat"))
    on = ["--on", f"sim:{corpus}/small.toml", "--output", "out", "--quick"]
    # The other tests simulate for ten seconds with any capture.
    runs_it = test == "replay-native" and draw.random() < 0.3
    return ["test", test, "--capture", "c.toml", *on, *([] if runs_it else ["--dry-run"])]


def _fio_document() -> dict[str, Any]:
    bins = {"100352": 90, "200704": 10}
    latency = {"min": 10, "max": 201_000, "mean": 110_000.0, "stddev": 5.0, "N": 100, "bins": bins}
    done = {
        "io_bytes": 409_600,
        "total_ios": 100,
        "runtime": 2000,
        "lat_ns": latency,
        "clat_ns": latency,
    }
    nothing = {"io_bytes": 0, "total_ios": 0, "runtime": 0, "lat_ns": {}, "clat_ns": {}}
    jobs = [
        {"jobname": name, "groupid": group, "error": 0, "read": done, "write": nothing, "trim": nothing,
         "job options": {"rw": "randread", "bs": "4k", "iodepth": "8", "numjobs": "2"}}
        for group, name in enumerate("ab")
    ]  # fmt: skip
    return {"fio version": "fio-3.33", "timestamp": 1_772_000_000, "jobs": jobs,
            "global options": {"filename": "/dev/sdq", "size": "1g"}}  # fmt: skip


def _fio_json(corpus: Path, folder: Path, draw: Random) -> list[str]:
    text = json.dumps(mutate.document(_fio_document(), draw)).encode("utf-8", "surrogatepass")
    if draw.random() < 0.2:
        text = mutate.text(text.decode("utf-8", "replace"), draw, ["jobs", "bins", "-1"])
    written(folder / "x.json", text, draw)
    more = ["--capacity", mutate.number(draw)] if draw.random() < 0.1 else []
    return ["runs", "import", "x.json", "--store", "store", *_arguments(more)]


def _archive(corpus: Path, folder: Path, draw: Random) -> list[str]:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as archive:
        name = draw.choice(("run", "run", "run", "../run", "/tmp/run", ".", "a/b/run", "x\n"))
        archive.add(corpus / "runs/load", name)
        if draw.random() < 0.5:
            entry = tarfile.TarInfo(f"{name}/{draw.choice(('x', '../../y', 'manifest.json'))}")
            entry.type = draw.choice(
                (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)
            )
            entry.linkname = draw.choice(("/etc/passwd", "..", "manifest.json"))
            archive.addfile(entry)
    data = sink.getvalue()
    written(folder / "a.tar.gz", mutate.raw(data, draw) if draw.random() < 0.5 else data, draw)
    return ["runs", "import", "a.tar.gz", "--store", "store"]


def _store(corpus: Path, folder: Path, draw: Random) -> list[str]:
    """Mutate the metadata of a store and of each run in it."""
    shutil.copytree(corpus / "store", folder / "store")
    files = sorted(path for path in (folder / "store").rglob("*") if path.is_file())
    inputs = [path for path in files if ".writecliff" in path.parts or path.suffix == ".json"]
    path = draw.choice(inputs)
    if path.suffix == ".json":
        _resealed(path, draw)
    else:
        path.write_bytes(mutate.raw(path.read_bytes(), draw))
    if draw.random() < 0.1:
        path.unlink()
        written(path, b"{}", draw)
    return draw.choice(
        (["runs", "list", "--store", "store"], ["runs", "index", "--store", "store"],
         ["runs", "sql", "select count(*) from intervals", "--store", "store"],
         ["runs", "tag", "load", "+x", "--store", "store"], ["runs", "show", "load", "--store", "store"])
    )  # fmt: skip


def _made_store(corpus: Path) -> None:
    runs(corpus)
    if not (corpus / "store/.writecliff").exists():
        shutil.rmtree(corpus / "store", ignore_errors=True)
        for name in ("load", "act"):
            shutil.copytree(corpus / "runs" / name, corpus / "store" / name)
        _run(("runs", "tag", "load", "+a", "--store", str(corpus / "store")))
        _run(("runs", "sql", "select count(*) from intervals", "--store", str(corpus / "store")))


def _meter(corpus: Path, folder: Path, draw: Random) -> list[str]:
    shutil.copytree(corpus / "runs/load", folder / "run")
    written(folder / "m.csv", mutate.text(METER, draw, ["seconds", "watts"], mutate.NUMBERS), draw)
    more = ["--power-offset", mutate.number(draw)] if draw.random() < 0.2 else []
    return ["report", "run", "--power", "m.csv", *_arguments(more)]


def _words(corpus: Path, folder: Path, draw: Random) -> list[str]:
    """Mutate command lines."""
    (folder / "w.toml").write_text(LOAD)
    drive, odd = f"sim:{corpus}/small.toml", mutate.number(draw)
    text = draw.choice(mutate.TEXTS)
    run = ["run", "w.toml", "--on", drive]
    return _arguments(draw.choice(
        ([*run, "--output", text], ["run", text, "--on", drive], ["run", "w.toml", "--on", f"sim:{text}"],
         ["run", "w.toml", "--on", text], ["run", "w.toml", "--on", f"file:{text}", "--size", odd, "--dry-run"],
         ["run", "w.toml", "--on", "file:x", "--size", odd, "--dry-run"], [*run, "--expect", f"iops >= {odd}"],
         [*run, "--expect", text], [*run, "--baseline", text], [*run, "--junit", text],
         ["device", "show", text], ["device", "new", "x.toml", "--like", "pm863-960", "--capacity", odd],
         ["report", text], ["compare", text, text], ["runs", "sql", text, "--store", "."],
         ["runs", "list", "--store", text], ["runs", "tag", text, f"+{text}", "--store", "."], ["trace", "convert", text, text],
         ["test", "act", "--on", drive, "--load", odd, "--dry-run"], ["test", "wsat", "--on", drive, "--time-hours", odd, "--dry-run"],
         ["sweep", "act", "--vary", f"load={odd},{text}", "--on", drive, "--output", "out", "--dry-run"],
         ["device", "cache", "prune", odd], ["fio", f"--on={drive}", "--name=j", f"--size={odd}", f"--bs={odd}", "--runtime=1ms"],
         ["profile", "show", text], ["replay", text, "--on", drive, "--fills", odd], [text], [text, odd], ["--json", text],
         ["serve", drive, "--nbd", text, "--memory", odd, "--precondition", text], ["characterise", text])
    ))  # fmt: skip


def _arguments(words: list[str]) -> list[str]:
    """Return arguments that the kernel accepts: without zero bytes, and not too long."""
    return [word.replace("\0", "").replace("/dev/", "/dev/no-")[:100_000] for word in words]


def _run(words: tuple[str, ...]) -> None:
    import subprocess

    subprocess.run(_program(*words), check=True, capture_output=True)


KINDS = (
    Kind("choose", _made_drives, _choose),
    Kind("choice", _made_choice, _choice),
    Kind("model", _synthetic, _model),
    Kind("synthesise", small_drive, _synthesise),
    Kind("table", small_drive, _table),
    Kind("packed", small_drive, _packed),
    Kind("capture", small_drive, _capture),
    Kind("fio-json", small_drive, _fio_json),
    Kind("archive", runs, _archive),
    Kind("store", _made_store, _store),
    Kind("meter", runs, _meter),
    Kind("words", small_drive, _words),
)
