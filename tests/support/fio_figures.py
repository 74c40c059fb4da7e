"""Random fio job files: I/Os, bytes, run time and rates of a simulated drive against fio itself.

`python -m tests.support.fio_figures --count 60 --seed 1` prints each figure that differs. fio runs
on a sparse file, whose I/Os take almost no time; so run times and rates are compared only of jobs
that a rate or think time paces. Left out are `ramp_time` (fio counts the I/Os of the ramp towards
`size` and `number_ios`) and the rest of a pause by which fio 3.33 exceeds `runtime`.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff import SimEngine
from writecliff.engines.fiojson import fio_json
from writecliff.workload.fiojob import load_fio_job

MIB = 1 << 20
CAPACITY = 64 * MIB
TOLERANCE = 0.02
ATTEMPTS = 3  # fio sleeps longer than asked on a busy machine
_FIGURES = ("ios", "bytes", "runtime_ms", "iops")
_DEVICE = "nvme-ms-480"


@dataclass(frozen=True)
class JobFile:
    """A job file, and which of its jobs are paced or draw what they do."""

    text: str
    paced: frozenset[str]
    drawn: frozenset[str]  # operations or sizes are random
    pauses_ms: Mapping[str, float]  # of jobs with think time
    sizes: Mapping[str, float]  # of a pass, in bytes


@dataclass(frozen=True)
class Difference:
    """A figure of a job that is not that of fio."""

    job: str
    figure: str
    ours: float
    fios: float

    def __str__(self) -> str:
        return f"{self.job}: {self.figure} {self.ours:g}, fio {self.fios:g}"


def job_file(seed: int) -> JobFile:
    """A random job file of one to three jobs that takes fio a few seconds at most."""
    draw = random.Random(seed)
    text, paced, drawn = "[global]\nthread\ninvalidate=0\n", set(), set()
    pauses_ms: dict[str, float] = {}
    sizes: dict[str, float] = {}
    text += draw.choice(("", "", "group_reporting\nnew_group\n"))
    for number in range(draw.choice((1, 1, 2, 3))):
        name = f"j{number}"
        late = "stonewall" in text  # startdelay counts from fio's own start
        lines, is_paced, is_drawn = _section(draw, first=number == 0, late=late)
        text += f"[{name}]\n" + "".join(f"{line}\n" for line in lines)
        paced |= {name} if is_paced else set()
        drawn |= {name} if is_drawn else set()
        for line in lines:
            if line.startswith("size="):
                sizes[name] = float(line.removeprefix("size="))
            if line.startswith("thinktime="):
                pauses_ms[name] = float(line.removeprefix("thinktime=").removesuffix("ms"))
    return JobFile(text, frozenset(paced), frozenset(drawn), pauses_ms, sizes)


def _section(draw: random.Random, *, first: bool, late: bool) -> tuple[list[str], bool, bool]:
    """The options of a job, whether it is paced, and whether its mix or sizes are drawn."""
    rw = draw.choice(("read", "write", "randread", "randwrite", "rw", "randrw"))
    mixed = rw in ("rw", "randrw")
    lines = [f"rw={rw}", f"iodepth={draw.choice((1, 1, 1, 4))}"]
    lines.append(f"ioengine={draw.choice(('psync', 'libaio'))}")
    sizes, mean, several = _sizes(draw, mixed)
    lines += sizes
    size = draw.choice((256, 512, 1024, 2048, 4096)) * 1024
    lines.append(f"size={size}")
    if draw.random() < 0.3:
        lines.append(f"offset={draw.randrange(0, 8) * MIB}")
    if rw.startswith("rand") and draw.random() < 0.5:
        lines.append("norandommap")
    if mixed:
        lines.append(f"rwmixread={draw.choice((10, 30, 50, 70, 90))}")
    pace, per_s = _pace(draw, mean, mixed)
    lines += pace
    lines += _ends(draw, size, mean, per_s)
    if draw.random() < 0.3:
        lines.append(f"numjobs={draw.choice((2, 3))}")
    stonewall = not first and draw.random() < 0.3
    if stonewall:
        lines.append("stonewall")
    elif not first and draw.random() < 0.15:
        lines.append("new_group")
    if not late and not stonewall and draw.random() < 0.35:
        lines.append(f"startdelay={draw.choice((200, 500, 1000))}ms")
    # Where think time keeps reads and writes behind their rates, the mix is drawn, too.
    split = mixed and any("," in line for line in pace) and not any("think" in x for x in pace)
    return lines, per_s is not None, several or (mixed and not split)


def _sizes(draw: random.Random, mixed: bool) -> tuple[list[str], float, bool]:
    """Block sizes, their mean, and whether there are several."""
    kind = draw.choice(("plain", "plain", "plain", "range", "split", "directions"))
    if kind == "range":
        return ["bsrange=4k-16k"], 10240.0, True
    if kind == "split":
        text, mean = draw.choice((
            ("4k/50:64k/50", 34816.0), ("4k/60:8k/40", 5734.0), ("4k/30:16k/30:32k/40", 18841.0),
            ("512/10:4k/90", 3737.0),
        ))  # fmt: skip
        return [f"bssplit={text}"], mean, True
    if kind == "directions" and mixed:
        return ["bs=4k,16k"], 10240.0, False
    block = draw.choice((512, 4096, 4096, 8192, 16384, 65536))
    return [f"bs={block}"], float(block), False


def _pace(draw: random.Random, mean: float, mixed: bool) -> tuple[list[str], float | None]:
    """Rates and think time, and I/Os per second that they allow, nearly; None: no pace."""
    kind = draw.choice(("rate", "rate_iops", "rate_iops", "think", "both", "both", "none"))
    lines, per_s = [], None
    if kind in ("rate", "rate_iops", "both"):
        per_s = float(draw.choice((100, 200, 333, 400, 1000)))
        option = draw.choice(("rate", "rate_iops")) if kind == "both" else kind
        unit = round(mean) if option == "rate" else 1
        value = round(per_s * unit)
        if mixed:
            value = value // 2
            other = draw.choice((value, value // 4, value * 2))
            lines.append(f"{option}={value},{other}")
        else:
            lines.append(f"{option}={value}")
    if kind in ("think", "both"):
        blocks = draw.choice((1, 4, 10, 50)) if kind == "both" else draw.choice((1, 2))
        think_ms = draw.choice((20, 50, 100)) if blocks > 1 else draw.choice((2, 10, 20))
        if kind == "think":
            think_ms = draw.choice((20, 50))
        lines += [f"thinktime={think_ms}ms", f"thinktime_blocks={blocks}"]
        idle = 1000 * blocks / think_ms
        if kind == "both" and draw.random() < 0.4:
            lines.append(f"rate_ignore_thinktime={draw.choice((0, 1, 1))}")
        per_s = min(per_s or idle, idle)
    return lines, per_s


def _ends(draw: random.Random, size: int, mean: float, per_s: float | None) -> list[str]:
    """Ends of a job that keep it from running much longer than two seconds."""
    kinds = ["time", "time", "count", "io_size"] if per_s else ["size", "loops", "io_size", "count"]
    kind = draw.choice(kinds)
    most = per_s * 1.5 if per_s else 2000.0  # I/Os
    if kind == "time":
        return [f"runtime={draw.choice((800, 1000, 1500, 2000))}ms", "time_based"]
    if kind == "count":
        return [f"number_ios={max(1, int(draw.uniform(0.4, 1) * most))}", "runtime=3"]
    if kind == "loops":
        return [f"loops={draw.choice((2, 3))}"]
    if kind == "io_size":
        chosen = draw.choice((size // 2, size * 2, size * 3)) if not per_s else most * mean
        return [f"io_size={max(65536, int(chosen))}", "runtime=3"]
    return []


def compare(file: JobFile, folder: Path, fio: str) -> list[Difference]:
    """The figures of the jobs that differ from fio's, at the attempt where fewest do."""
    path = folder / "case.fio"
    path.write_text(file.text)
    ours = _figures(_simulated(path))
    found: list[Difference] = []
    for attempt in range(ATTEMPTS):
        differences = list(_differences(file, ours, _figures(_run(path, folder, fio))))
        if not attempt or len(differences) < len(found):
            found = differences
        if not found:
            break
    return found


def _simulated(path: Path) -> dict[str, Any]:
    loaded = load_fio_job(path, device_capacity_bytes=CAPACITY)
    engine = SimEngine(_DEVICE)
    results = []
    for step in loaded.steps:
        if step.ramp is not None:
            engine.run(step.ramp)
        results.append(engine.run(step.workload))
    return fio_json(loaded, results, version="0")


def _run(path: Path, folder: Path, fio: str) -> dict[str, Any]:
    target = folder / "target.img"
    if not target.exists():
        with target.open("wb") as file:
            file.truncate(CAPACITY)
    given = folder / "fio.fio"
    given.write_text(path.read_text().replace("[global]\n", f"[global]\nfilename={target}\n", 1))
    done = subprocess.run(
        [*shlex.split(fio), "--output-format=json", str(given)],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr + done.stdout[:2000])
    document: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return document


def _figures(document: dict[str, Any]) -> list[tuple[str, dict[str, dict[str, float]]]]:
    """Yield the name of each entry with its figures of reads, writes, and both."""
    found = []
    for entry in document["jobs"]:
        of: dict[str, dict[str, float]] = {}
        for name in ("read", "write"):
            given = entry[name]
            of[name] = {"ios": given["total_ios"], "bytes": given["io_bytes"],
                        "runtime_ms": given["runtime"] if given["total_ios"] else 0,
                        "iops": given["iops"]}  # fmt: skip
        both = {key: of["read"][key] + of["write"][key] for key in ("ios", "bytes")}
        longest = max(one["runtime_ms"] for one in of.values())
        of["both"] = both | {"runtime_ms": longest,
                             "iops": 1000 * both["ios"] / longest if longest else 0.0}  # fmt: skip
        found.append((entry["jobname"], of))
    return found


_Entry = tuple[str, dict[str, dict[str, float]]]


def _differences(
    file: JobFile, ours: Sequence[_Entry], fios: Sequence[_Entry]
) -> Iterator[Difference]:
    if [name for name, _ in ours] != [name for name, _ in fios]:
        yield Difference("file", "entries", len(ours), len(fios))
        return
    for (name, mine), (_, theirs) in zip(ours, fios, strict=True):
        drawn = name in file.drawn
        for operation in ("both",) if drawn else ("read", "write"):
            for figure in _FIGURES if name in file.paced else ("ios", "bytes"):
                one, other = mine[operation][figure], theirs[operation][figure]
                count = max(theirs[operation]["ios"], 1.0)
                # fio repeats the draws of a pass over the size in the next one.
                passes = max(1.0, theirs[operation]["bytes"] / file.sizes[name])
                late_ms = 15.0 + file.pauses_ms.get(name, 0.0)
                late = late_ms / max(theirs[operation]["runtime_ms"], 1.0)
                slack = {"ios": 1.0, "bytes": other / count, "runtime_ms": late_ms,
                         "iops": other * late}  # fmt: skip
                spread = 5 * other / (count / passes) ** 0.5 if drawn else 0.0
                if abs(one - other) > max(TOLERANCE * other, slack[figure] + spread):
                    yield Difference(f"{name} {operation}", figure, one, other)


def main(report: Callable[[str], None] = print) -> int:
    """Compare job files of consecutive seeds; exit code 1 if a figure differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.fio_figures", description=__doc__
    )
    parser.add_argument("--count", type=int, default=60, help="job files")
    parser.add_argument("--seed", type=int, default=1, help="of the first file")
    parser.add_argument(
        "--fio", default=shutil.which("fio"), help="command of the fio to compare with"
    )
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="fio-figures-") as folder:
        for seed in range(options.seed, options.seed + options.count):
            file = job_file(seed)
            try:
                found: Sequence[object] = compare(file, Path(folder), options.fio)
            except Exception as error:
                found = [repr(error)]
            wrong += bool(found)
            if found:
                report(f"--- seed {seed}\n{file.text}" + "\n".join(map(str, found)))
                sys.stdout.flush()
    report(f"{options.count - wrong} of {options.count} job files agree with fio")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
