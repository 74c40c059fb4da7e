"""TOML files: stream rules, fits, device files, workload files."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from tests.fuzz import mutate
from tests.fuzz.kinds import Kind
from tests.fuzz.kinds.texts import small_drive

RULES = """\
name = "store"
default = 0
[[rule]]
path = "*/log/*"
stream = 1
name = "log"
[[rule]]
thread = "merge-1"
process = "st*"
stream = 2
min_size = "64 KiB"
max_size = 1048576
[[rule]]
hint = "short"
stream = 3
[[rule]]
path = "*.tbl"
hint = 2
stream = 4
"""
FIT = """\
drives = ["DRIVE"]
rivals = []
scale = 4
[parameters."controller.command_time"]
from = "2 us"
to = "20 us"
spread = 2.0
[parameters."flash.program"]
from = "300 us"
to = 3000000
at_least = "controller.command_time"
"""
WORKLOAD = """\
name = "mix"
seed = 3
interval = "10 ms"
precondition = "none"
[[job]]
name = "a"
read = "70 %"
block_sizes = [{ size = "4 KiB", weight = 60 }, { size = "64 KiB", weight = 40 }]
threads = 2
queue_depth = 8
duration = "20 ms"
rate = "20 MB/s"
addresses = { kind = "zipf", theta = 1.1 }
[[job]]
name = "b"
pattern = "sequential"
block_size = "128 KiB"
volume = "1 MB"
offset = "10 %"
range = "20 %"
start_delay = "1 ms"
think = "10 us"
"""


def _tables(corpus: Path) -> None:
    from writecliff.capture.trace import write_trace
    from writecliff.replay.synthetic import synthetic_table

    small_drive(corpus)
    table = synthetic_table(table_bytes=64 << 10, chunk_bytes=16 << 10, logged_bytes=24 << 20)
    write_trace(corpus / "store.parquet", table, {"command": ["store"], "program": "store 1.0"})


def _rules(corpus: Path, folder: Path, draw: Random) -> list[str]:
    words = [
        "path",
        "thread",
        "process",
        "hint",
        "min_size",
        "max_size",
        "stream",
        "name",
        "default",
        "rule",
        "about",
    ]
    values = [
        '"*"',
        '"**/*[a-"',
        '"[!]"',
        "-1",
        "6",
        "65536",
        '"64 QB"',
        "true",
        '"' + "*a" * 300 + '"',
        '"²"',
    ]
    (folder / "rules.toml").write_bytes(mutate.text(RULES, draw, words, [*values, *mutate.TOML]))
    trace, drive = str(corpus / "store.parquet"), f"sim:{corpus}/small.toml"
    if draw.random() < 0.2:
        words = [
            "advise-streams",
            trace,
            "--on",
            drive,
            "--output",
            "a.html",
            "--no-timed",
            "--counts",
            "2",
        ]
        return [*words, "--streams", "rules.toml", "--fills", "1"]
    return ["replay", trace, "--on", drive, "--streams", "rules.toml", "--fills", "1", "--json"]


def _fit(corpus: Path, folder: Path, draw: Random) -> list[str]:
    names = [
        "drives",
        "rivals",
        "scale",
        "parameters",
        "from",
        "to",
        "spread",
        "at_least",
        "nand.read_time",
        "link.bandwidth",
        "user_capacity",
        "x",
    ]
    device = str(corpus / "small.toml")
    figures = f"source,item,device,baseline,access,block_kib,read_pct,oio,metric,value,unit,note\np,t,{device},,random,4,0,8,iops,9000,,\n"
    text = FIT.replace("DRIVE", device)
    if draw.random() < 0.15:
        figures = mutate.text(figures, draw, ["iops", "waf", "latency_mean"]).decode(
            "utf-8", "surrogateescape"
        )
    else:
        text = mutate.text(text, draw, names, mutate.TOML).decode("utf-8", "surrogateescape")
    (folder / "fit.toml").write_text(text, "utf-8", "surrogateescape")
    (folder / "figures.csv").write_text(figures, "utf-8", "surrogateescape")
    more = draw.choice(([], ["--cross-validate", "2"], ["--output", "out"]))
    return ["lab", "fit", "fit.toml", "--figures", "figures.csv", "--no-whole-drive", *more]


def _device_texts(corpus: Path) -> list[str]:
    from writecliff.devices import FOLDER

    small = (corpus / "small.toml").read_text()
    return [small, small, *(path.read_text() for path in sorted(FOLDER.glob("**/*.toml")))]


def _device(corpus: Path, folder: Path, draw: Random) -> list[str]:
    text = draw.choice(_device_texts(corpus))
    keys = sorted({*re.findall(r"^\s*\[*([\w.]+)", text, re.MULTILINE)})
    (folder / "d.toml").write_bytes(mutate.text(text, draw, keys, mutate.TOML))
    (folder / "w.toml").write_text('name = "w"\n[[job]]\nblock_size = "4 KiB"\nvolume = "1 MB"\n')
    run = ["run", "w.toml", "--on", "sim:d.toml"]
    return draw.choice(
        (["device", "show", "d.toml"], ["device", "show", "d.toml", "--json"], ["device", "export", "d.toml"],
         [*run, "--dry-run"], [*run, "--output", "out"], ["device", "show", "d.toml", "--sheet"])
    )  # fmt: skip


def _workload(corpus: Path, folder: Path, draw: Random) -> list[str]:
    from writecliff.profiles import FOLDER

    text = draw.choice(
        [WORKLOAD, WORKLOAD, *(path.read_text() for path in sorted(FOLDER.glob("*.toml")))]
    )
    words = [
        "name",
        "seed",
        "interval",
        "precondition",
        "expect",
        "job",
        "step",
        "read",
        "trim",
        "pattern",
        "block_size",
        "block_sizes",
        "size",
        "weight",
        "threads",
        "queue_depth",
        "offset",
        "range",
        "duration",
        "volume",
        "ios",
        "rate",
        "iops",
        "addresses",
        "zipf",
        "zones",
        "think",
        "start_delay",
        "align",
        "segments",
        "streams",
        "flow",
        "until_steady",
        "rest",
        "rounds",
        "ramp",
        "files",
        "holes",
        "host_zones",
        "compressible",
        "duplicate",
    ]
    values = [
        *mutate.TOML,
        '"1 ns"',
        '"1e9 s"',
        '"1000000000 s"',
        '"1 us"',
        '"1 B"',
        '"9 EB"',
        "1000000000",
        "65536",
    ]
    (folder / "w.toml").write_bytes(mutate.text(text, draw, words, values))
    more = draw.choice((["--dry-run"], ["--output", "out"], ["--output", "out", "--json"]))
    return ["run", "w.toml", "--on", f"sim:{corpus}/small.toml", *more]


KINDS = (
    Kind("rules", _tables, _rules),
    Kind("fit", small_drive, _fit),
    Kind("device", small_drive, _device),
    Kind("workload", small_drive, _workload),
)
