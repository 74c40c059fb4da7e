"""Random fio job files: I/Os, bytes, run time and rates of a simulated drive against fio itself.

`python -m tests.support.fio_figures --count 60 --seed 1` prints each figure that differs. fio runs
on a sparse file, whose I/Os take almost no time; so run times and rates are compared only of jobs
that a rate or think time paces. Figures may differ by `TOLERANCE`, and further by what `_Allowance`
derives from the options of their jobs.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.processes import WAIT_LIMIT_S
from writecliff import SimEngine
from writecliff.engines.fiojson import fio_json
from writecliff.workload.fiojob import load_fio_job

MIB = 1 << 20
CAPACITY = 64 * MIB
TOLERANCE = 0.02
# A difference counts if it repeats: on a busy machine, fio sleeps longer than it should.
ATTEMPTS = 3
# Two draws of a binomial or of a sum of sizes differ by more once in 16,000 times.
DEVIATIONS = 4 * 2**0.5
# fio counts run time in whole milliseconds, and starts a thread within another one.
RUNTIME_MS = 2.0
_FIGURES = ("ios", "bytes", "runtime_ms", "iops")
_OPERATIONS = ("read", "write")
_DEVICE = "nvme-ms-480"
_PAUSE_IS_CUT = (3, 34)  # at the end of `runtime`
_PAUSES_AFTER_RAMP = (3, 36)  # before, not until as many I/Os are done as in the ramp


_Entry = tuple[str, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class Section:
    """A job of a job file, and what its figures depend on beside its options."""

    name: str
    lines: tuple[str, ...]
    paced: bool
    read_share: float | None  # of a mix that is drawn
    size_variation: float  # standard deviation of the drawn sizes, as a share of their mean
    begins_group: bool

    def option(self, name: str) -> str | None:
        """The value of an option; None if it is not given."""
        values = [line.partition("=")[2] for line in self.lines if line.partition("=")[0] == name]
        return values[0] if values else None

    def number(self, name: str) -> int:
        """The value of an option as a number, without its unit; 0 if it is not given."""
        return int((self.option(name) or "0").removesuffix("ms"))

    @property
    def threads(self) -> int:
        return max(1, self.number("numjobs"))


@dataclass(frozen=True)
class JobFile:
    """A job file and its jobs."""

    text: str
    sections: tuple[Section, ...]
    reports_groups: bool

    def entries(self) -> list[tuple[Section, ...]]:
        """The jobs of each entry of fio's results."""
        if not self.reports_groups:
            return [(one,) for one in self.sections for _ in range(one.threads)]
        groups: list[list[Section]] = []
        for one in self.sections:
            if one.begins_group or not groups:
                groups.append([])
            groups[-1].append(one)
        return [tuple(group) for group in groups]


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
    reports_groups = draw.random() < 1 / 3
    text = "[global]\nthread\ninvalidate=0\n" + "group_reporting\n" * reports_groups
    sections: list[Section] = []
    for number in range(draw.choice((1, 1, 2, 3))):
        late = "stonewall" in text  # startdelay counts from fio's own start
        section = _section(draw, f"j{number}", late=late)
        text += f"[{section.name}]\n" + "".join(f"{line}\n" for line in section.lines)
        sections.append(section)
    return JobFile(text, tuple(sections), reports_groups)


def _section(draw: random.Random, name: str, *, late: bool) -> Section:
    first = name == "j0"
    rw = draw.choice(("read", "write", "randread", "randwrite", "rw", "randrw"))
    mixed = rw in ("rw", "randrw")
    lines = [f"rw={rw}", f"iodepth={draw.choice((1, 1, 1, 4))}"]
    lines.append(f"ioengine={draw.choice(('psync', 'libaio'))}")
    sizes, mean, variation = _sizes(draw, mixed)
    lines += sizes
    size = draw.choice((256, 512, 1024, 2048, 4096)) * 1024
    lines.append(f"size={size}")
    if draw.random() < 0.3:
        lines.append(f"offset={draw.randrange(0, 8) * MIB}")
    if rw.startswith("rand") and draw.random() < 0.5:
        lines.append("norandommap")
    read_pct = draw.choice((10, 30, 50, 70, 90))
    if mixed:
        lines.append(f"rwmixread={read_pct}")
    pace, per_s = _pace(draw, mean, mixed)
    lines += pace
    lines += _ends(draw, size, mean, per_s)
    if per_s and draw.random() < 0.3:
        lines.append(f"ramp_time={draw.choice((200, 500))}ms")
    if draw.random() < 0.3:
        lines.append(f"numjobs={draw.choice((2, 3))}")
    stonewall = not first and draw.random() < 0.3
    if stonewall:
        lines.append("stonewall")
    elif not first and draw.random() < 0.15:
        lines.append("new_group")
    if not late and not stonewall and draw.random() < 0.35:
        lines.append(f"startdelay={draw.choice((200, 500, 1000))}ms")
    # Rates of reads and writes decide the mix, unless think time keeps both behind.
    split = any("," in line for line in pace) and not any("think" in line for line in pace)
    share = read_pct / 100 if mixed and not split else None
    if share is not None and "bs=4k,16k" in lines:
        variation = 12 * (share * (1 - share)) ** 0.5 / (4 * share + 16 * (1 - share))
    return Section(
        name,
        tuple(lines),
        paced=per_s is not None,
        read_share=share,
        size_variation=variation,
        begins_group=stonewall or "new_group" in lines,
    )


def _sizes(draw: random.Random, mixed: bool) -> tuple[list[str], float, float]:
    """Block sizes, their mean, and their standard deviation as a share of it."""
    kind = draw.choice(("plain", "plain", "plain", "range", "split", "directions"))
    if kind == "range":  # four sizes, each as often
        return ["bsrange=4k-16k"], 10240.0, 1.25**0.5 / 2.5
    if kind == "split":
        shares = draw.choice((
            {4096: 50, 65536: 50}, {4096: 60, 8192: 40}, {4096: 30, 16384: 30, 32768: 40},
            {512: 10, 4096: 90},
        ))  # fmt: skip
        mean = sum(size * share for size, share in shares.items()) / 100
        square = sum((size - mean) ** 2 * share for size, share in shares.items()) / 100
        text = ":".join(f"{size}/{share}" for size, share in shares.items())
        return [f"bssplit={text}"], mean, square**0.5 / mean
    if kind == "directions" and mixed:
        return ["bs=4k,16k"], 10240.0, 0.0
    block = draw.choice((512, 4096, 4096, 8192, 16384, 65536))
    return [f"bs={block}"], float(block), 0.0


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


@dataclass(frozen=True)
class Comparison:
    """Figures that differ in every attempt, the number of attempts, and jobs left out, with why."""

    differences: tuple[Difference, ...]
    attempts: int
    left_out: tuple[str, ...]


def compare(file: JobFile, folder: Path, fio: str) -> Comparison:
    """Compare the figures of the jobs with fio's, up to `ATTEMPTS` times."""
    path = folder / "case.fio"
    path.write_text(file.text)
    ours = _figures(_simulated(path))
    repeated: dict[tuple[str, str], Difference] | None = None
    left_out: tuple[str, ...] = ()
    for attempt in range(1, ATTEMPTS + 1):
        fios = _run(path, folder, fio)
        reasons = ((one.name, _left_out(one, fios[0])) for one in file.sections)
        left_out = tuple(f"{name}: {reason}" for name, reason in reasons if reason)
        found = {(one.job, one.figure): one for one in _differences(file, ours, fios)}
        repeated = found if repeated is None else {k: found[k] for k in repeated if k in found}
        if not repeated:
            return Comparison((), attempt, left_out)
    return Comparison(tuple((repeated or {}).values()), ATTEMPTS, left_out)


def _simulated(path: Path) -> dict[str, Any]:
    loaded = load_fio_job(path, device_capacity_bytes=CAPACITY)
    engine = SimEngine(_DEVICE)
    results = [engine.run(step.workload) for step in loaded.steps]
    return fio_json(loaded, results, version="0")


def _run(path: Path, folder: Path, fio: str) -> tuple[tuple[int, int], list[_Entry]]:
    """The version of fio and its figures."""
    target = folder / "target.img"
    if not target.exists():
        with target.open("wb") as file:
            file.truncate(CAPACITY)
    given = folder / "fio.fio"
    given.write_text(path.read_text().replace("[global]\n", f"[global]\nfilename={target}\n", 1))
    done = subprocess.run(
        [*shlex.split(fio), "--output-format=json", str(given)],
        cwd=folder, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr + done.stdout[:2000])
    document: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    version = re.match(r"fio-(\d+)\.(\d+)", document["fio version"])
    assert version is not None
    return (int(version[1]), int(version[2])), _figures(document)


def _figures(document: dict[str, Any]) -> list[_Entry]:
    """Yield the name of each entry with its figures of reads, writes, and both."""
    found = []
    for entry in document["jobs"]:
        of: dict[str, dict[str, float]] = {}
        for name in _OPERATIONS:
            given = entry[name]
            # Without latencies, its I/Os are those of a job that ended in its ramp.
            ios = given["total_ios"] if given.get("lat_ns", {}).get("N", 1) else 0
            of[name] = {"ios": ios, "bytes": given["io_bytes"] if ios else 0,
                        "runtime_ms": given["runtime"] if ios else 0,
                        "iops": given["iops"] if ios else 0}  # fmt: skip
        both = {key: of["read"][key] + of["write"][key] for key in ("ios", "bytes")}
        longest = max(one["runtime_ms"] for one in of.values())
        of["both"] = both | {"runtime_ms": longest,
                             "iops": 1000 * both["ios"] / longest if longest else 0.0}  # fmt: skip
        found.append((entry["jobname"], of))
    return found


def _left_out(section: Section, version: tuple[int, int]) -> str | None:
    """Why a job is not compared: this fio does something else than its manual says."""
    ramped = section.option("ramp_time") is not None
    if ramped and section.option("thinktime") is not None and version < _PAUSES_AFTER_RAMP:
        return "fio makes no pauses after a ramp, for as many I/Os as the ramp had"
    by_direction = section.option("bs") == "4k,16k" and section.option("rw") == "randrw"
    if by_direction and "norandommap" not in section.lines:
        # With size=256k, passes of 20 seeds had 45,056 to 274,432 bytes.
        return "fio looks blocks up in its map by numbers of another size, and ends a pass early"
    return None


class _Allowance:
    """Allowed differences between the figures of a job in fio and here, beside the tolerance."""

    def __init__(self, members: Sequence[Section], version: tuple[int, int]) -> None:
        self._members = members
        # Where a job ends by time, what is due at the end may be issued or not: an I/O of each
        # thread, or those between two pauses.
        by_time = [one for one in members if one.option("runtime") is not None]
        self.by_time_alone = all("time_based" in one.lines for one in members)
        self.edge = sum(one.threads * max(1, one.number("thinktime_blocks")) for one in by_time)
        # The I/O that ends a ramp, and those outstanding then, belong to the ramp or not.
        ramped = [one for one in members if one.option("ramp_time") is not None]
        self.edge += sum(one.threads * one.number("iodepth") for one in ramped)
        pauses = [one.number("thinktime") for one in by_time]
        self.runtime_ms = RUNTIME_MS
        if version < _PAUSE_IS_CUT:
            self.runtime_ms += max(pauses, default=0)

    def deviation(self, operation: str, ios: float, size: float) -> float:
        """The largest deviation of a count or a volume that is drawn, as a share of it."""
        square = 0.0
        for one in self._members:
            share = one.read_share
            if share is not None and operation == "write":
                share = 1 - share
            mix = 0.0 if share is None or operation == "both" else (1 - share)
            # fio repeats the draws of a pass over the size in the next one.
            passes = max(1.0, size / one.threads / one.number("size"))
            square = max(square, (mix + one.size_variation**2) * passes)
        deviation: float = DEVIATIONS * (square / max(ios, 1.0)) ** 0.5
        return deviation

    def of(
        self, operation: str, mine: Mapping[str, float], theirs: Mapping[str, float]
    ) -> dict[str, float]:
        """The allowance of each figure; `theirs` are fio's."""
        ios, size = (max(mine[figure], theirs[figure]) for figure in ("ios", "bytes"))
        deviation = self.deviation(operation, ios, size)
        late = self.runtime_ms / max(theirs["runtime_ms"], 1.0)
        edge = self.edge / max(ios, 1.0)
        # Where bytes or I/Os end a job, or none of an operation are drawn, time depends on the draw.
        runtimes_ms = mine["runtime_ms"], theirs["runtime_ms"]
        is_drawn = not self.by_time_alone or not all(runtimes_ms)
        runtime_ms = max(runtimes_ms) * deviation * is_drawn + self.runtime_ms
        return {
            "ios": ios * deviation + self.edge,
            "bytes": size * (deviation + edge),
            "runtime_ms": runtime_ms,
            "iops": max(mine["iops"], theirs["iops"]) * (deviation + edge + late),
        }


def _differences(
    file: JobFile, ours: Sequence[_Entry], fios: tuple[tuple[int, int], Sequence[_Entry]]
) -> Iterator[Difference]:
    version, their_entries = fios
    if [name for name, _ in ours] != [name for name, _ in their_entries]:
        yield Difference("file", "entries", len(ours), len(their_entries))
        return
    entries = zip(file.entries(), ours, their_entries, strict=True)
    for number, (members, (name, mine), (_, theirs)) in enumerate(entries):
        if any(_left_out(one, version) for one in members):
            continue
        allowance = _Allowance(members, version)
        figures = _FIGURES if all(one.paced for one in members) else _FIGURES[:2]
        for operation in (*_OPERATIONS, "both"):
            allowed = allowance.of(operation, mine[operation], theirs[operation])
            for figure in figures:
                one, other = mine[operation][figure], theirs[operation][figure]
                if abs(one - other) > TOLERANCE * other + allowed[figure]:
                    yield Difference(f"{name} ({number}) {operation}", figure, one, other)


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
    wrong = again = 0
    with tempfile.TemporaryDirectory(prefix="fio-figures-") as folder:
        for seed in range(options.seed, options.seed + options.count):
            file = job_file(seed)
            found: Sequence[object]
            try:
                compared = compare(file, Path(folder), options.fio)
                found = compared.differences
                again += not found and compared.attempts > 1
                for reason in compared.left_out:
                    report(f"--- seed {seed}: left out: {reason}")
            except Exception as error:
                found = [repr(error)]
            wrong += bool(found)
            if found:
                report(f"--- seed {seed}\n{file.text}" + "\n".join(map(str, found)))
                sys.stdout.flush()
    agree = options.count - wrong
    report(f"{agree} of {options.count} job files agree with fio, {again} after another attempt")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
