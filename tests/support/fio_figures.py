"""Random fio job files: I/Os, bytes, run time and rates on a simulated drive and in fio.

`python -m tests.support.fio_figures --count 60 --seed 1` prints each figure that differs. fio runs
on a sparse file, whose I/Os take almost no time, so run times and rates are compared only for jobs
paced by a rate or think time. Figures may differ by `TOLERANCE`, plus the allowance that
`_Allowance` derives from the options of their jobs.
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
# Only a repeated difference counts, because fio sleeps longer than it should on a busy machine.
ATTEMPTS = 3
# Two samples of a binomial variable or of a sum of sizes exceed this difference once in 16,000
# cases.
DEVIATIONS = 4 * 2**0.5
# fio counts run time in whole milliseconds, and takes up to one additional millisecond to start a
# thread.
RUNTIME_MS = 2.0
_FIGURES = ("ios", "bytes", "runtime_ms", "iops")
_OPERATIONS = ("read", "write")
_DEVICE = "nvme-ms-480"
_PAUSE_IS_CUT = (3, 34)  # First version in which fio shortens a pause at the end of `runtime`.
_PAUSES_AFTER_RAMP = (3, 36)  # Earlier versions omit pauses for as many I/Os as the ramp had.


_Entry = tuple[str, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class Section:
    """A job of a job file, with the derived parameters on which its figures depend."""

    name: str
    lines: tuple[str, ...]
    paced: bool
    read_share: float | None  # Fraction of reads in a random mix; `None` if there is no mix.
    size_variation: float  # Standard deviation of the random sizes, relative to their mean.
    begins_group: bool

    def option(self, name: str) -> str | None:
        """Return the value of an option, or `None` if it is not given."""
        values = [line.partition("=")[2] for line in self.lines if line.partition("=")[0] == name]
        return values[0] if values else None

    def number(self, name: str) -> int:
        """Return the numeric value of an option without its unit, or 0 if it is not given."""
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
        """Return the jobs for each entry of fio's results."""
        if not self.reports_groups:
            return [(section,) for section in self.sections for _ in range(section.threads)]
        groups: list[list[Section]] = []
        for section in self.sections:
            if section.begins_group or not groups:
                groups.append([])
            groups[-1].append(section)
        return [tuple(group) for group in groups]


@dataclass(frozen=True)
class Difference:
    """A figure of a job that differs from fio's figure."""

    job: str
    figure: str
    ours: float
    fios: float

    def __str__(self) -> str:
        return f"{self.job}: {self.figure} {self.ours:g}, fio {self.fios:g}"


def job_file(seed: int) -> JobFile:
    """Return a random job file with one to three jobs that take fio a few seconds at most."""
    draw = random.Random(seed)
    reports_groups = draw.random() < 1 / 3
    text = "[global]\nthread\ninvalidate=0\n" + "group_reporting\n" * reports_groups
    sections: list[Section] = []
    for number in range(draw.choice((1, 1, 2, 3))):
        late = "stonewall" in text  # startdelay counts from fio's own start.
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
    # Read and write rates determine the mix, unless think time keeps both below their rates.
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
    """Return block sizes, their mean, and their standard deviation relative to the mean."""
    kind = draw.choice(("plain", "plain", "plain", "range", "split", "directions"))
    if kind == "range":  # The four sizes are equally frequent.
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
    """Return rates and think time with the approximate IOPS that they allow; `None`: unpaced."""
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
    """Return limits that keep a job from running much longer than two seconds."""
    kinds = ["time", "time", "count", "io_size"] if per_s else ["size", "loops", "io_size", "count"]
    kind = draw.choice(kinds)
    most = per_s * 1.5 if per_s else 2000.0  # Maximum number of I/Os.
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
    """Figures that differ in every attempt, the attempts, and skipped jobs with reasons."""

    differences: tuple[Difference, ...]
    attempts: int
    left_out: tuple[str, ...]


def compare(file: JobFile, folder: Path, fio: str) -> Comparison:
    """Compare the jobs' figures with fio's, up to `ATTEMPTS` times."""
    path = folder / "case.fio"
    path.write_text(file.text)
    ours = _figures(_simulated(path))
    repeated: dict[tuple[str, str], Difference] | None = None
    left_out: tuple[str, ...] = ()
    for attempt in range(1, ATTEMPTS + 1):
        fios = _run(path, folder, fio)
        reasons = ((section.name, _left_out(section, fios[0])) for section in file.sections)
        left_out = tuple(f"{name}: {reason}" for name, reason in reasons if reason)
        differences = {
            (difference.job, difference.figure): difference
            for difference in _differences(file, ours, fios)
        }
        repeated = (
            differences
            if repeated is None
            else {k: differences[k] for k in repeated if k in differences}
        )
        if not repeated:
            return Comparison((), attempt, left_out)
    return Comparison(tuple((repeated or {}).values()), ATTEMPTS, left_out)


def _simulated(path: Path) -> dict[str, Any]:
    loaded = load_fio_job(path, device_capacity_bytes=CAPACITY)
    engine = SimEngine(_DEVICE)
    results = [engine.run(step.workload) for step in loaded.steps]
    return fio_json(loaded, results, version="0")


def _run(path: Path, folder: Path, fio: str) -> tuple[tuple[int, int], list[_Entry]]:
    """Run fio and return its version and figures."""
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
    """Return each entry's name with its figures for reads, writes, and both."""
    entries = []
    for entry in document["jobs"]:
        of: dict[str, dict[str, float]] = {}
        for name in _OPERATIONS:
            given = entry[name]
            # A job that has no latencies ended during its ramp, so its I/Os do not count.
            ios = given["total_ios"] if given.get("lat_ns", {}).get("N", 1) else 0
            of[name] = {"ios": ios, "bytes": given["io_bytes"] if ios else 0,
                        "runtime_ms": given["runtime"] if ios else 0,
                        "iops": given["iops"] if ios else 0}  # fmt: skip
        both = {key: of["read"][key] + of["write"][key] for key in ("ios", "bytes")}
        longest = max(figures["runtime_ms"] for figures in of.values())
        of["both"] = both | {"runtime_ms": longest,
                             "iops": 1000 * both["ios"] / longest if longest else 0.0}  # fmt: skip
        entries.append((entry["jobname"], of))
    return entries


def _left_out(section: Section, version: tuple[int, int]) -> str | None:
    """Return why a job is not compared if this fio deviates from its manual. None: compared."""
    ramped = section.option("ramp_time") is not None
    if ramped and section.option("thinktime") is not None and version < _PAUSES_AFTER_RAMP:
        return "fio does not pause after a ramp until as many I/Os are done as in the ramp"
    by_direction = section.option("bs") == "4k,16k" and section.option("rw") == "randrw"
    if by_direction and "norandommap" not in section.lines:
        # With size=256k, passes with 20 seeds had 45,056 to 274,432 bytes.
        return "fio indexes its map of blocks by another block size and ends a pass early"
    return None


class _Allowance:
    """Allowed differences between fio's and writecliff's figures, in addition to the tolerance."""

    def __init__(self, members: Sequence[Section], version: tuple[int, int]) -> None:
        self._members = members
        # If a job ends by time, I/Os due at the end may or may not be issued: one I/O per thread,
        # or the I/Os between two pauses.
        by_time = [member for member in members if member.option("runtime") is not None]
        self.by_time_alone = all("time_based" in member.lines for member in members)
        self.edge = sum(
            member.threads * max(1, member.number("thinktime_blocks")) for member in by_time
        )
        # The I/O that ends a ramp, and the I/Os that are outstanding at that time, may or may not
        # count as ramp I/Os.
        ramped = [member for member in members if member.option("ramp_time") is not None]
        self.edge += sum(member.threads * member.number("iodepth") for member in ramped)
        pauses = [member.number("thinktime") for member in by_time]
        self.runtime_ms = RUNTIME_MS
        if version < _PAUSE_IS_CUT:
            self.runtime_ms += max(pauses, default=0)

    def deviation(self, operation: str, ios: float, size: float) -> float:
        """Return the largest deviation of a random count or volume, relative to it."""
        square = 0.0
        for member in self._members:
            share = member.read_share
            if share is not None and operation == "write":
                share = 1 - share
            mix = 0.0 if share is None or operation == "both" else (1 - share)
            # fio repeats the random sequence of one pass over the size in the next pass.
            passes = max(1.0, size / member.threads / member.number("size"))
            square = max(square, (mix + member.size_variation**2) * passes)
        deviation: float = DEVIATIONS * (square / max(ios, 1.0)) ** 0.5
        return deviation

    def of(
        self, operation: str, mine: Mapping[str, float], theirs: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the allowance of each figure; `theirs` are fio's."""
        ios, size = (max(mine[figure], theirs[figure]) for figure in ("ios", "bytes"))
        deviation = self.deviation(operation, ios, size)
        late = self.runtime_ms / max(theirs["runtime_ms"], 1.0)
        edge = self.edge / max(ios, 1.0)
        # If a job ends by bytes or I/Os, or issues no I/O of an operation, its time is random.
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
        if any(_left_out(value, version) for value in members):
            continue
        allowance = _Allowance(members, version)
        figures = _FIGURES if all(member.paced for member in members) else _FIGURES[:2]
        for operation in (*_OPERATIONS, "both"):
            allowed = allowance.of(operation, mine[operation], theirs[operation])
            for figure in figures:
                value, other = mine[operation][figure], theirs[operation][figure]
                if abs(value - other) > TOLERANCE * other + allowed[figure]:
                    yield Difference(f"{name} ({number}) {operation}", figure, value, other)


def main(report: Callable[[str], None] = print) -> int:
    """Compare job files of consecutive seeds; return exit code 1 if a figure differs."""
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
            differences: Sequence[object]
            try:
                compared = compare(file, Path(folder), options.fio)
                differences = compared.differences
                again += not differences and compared.attempts > 1
                for reason in compared.left_out:
                    report(f"--- seed {seed}: left out: {reason}")
            except Exception as error:
                differences = [repr(error)]
            wrong += bool(differences)
            if differences:
                report(f"--- seed {seed}\n{file.text}" + "\n".join(map(str, differences)))
                sys.stdout.flush()
    agree = options.count - wrong
    report(f"{agree} of {options.count} job files agree with fio, {again} after another attempt")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
