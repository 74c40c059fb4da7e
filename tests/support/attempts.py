"""Attempts to write to protected targets, by the way the target is named and by command.

Each attempt carries every consent that a user could give by mistake. Each attempt must be rejected
with a one-line error and exit code 2, and every byte within its reach must remain unchanged.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.dangers import Bench

ROOM_BYTES = 8 << 20  # Size of the small disk.
_BESIDE = ("hint: ", "note: ")


@dataclass(frozen=True)
class Situation:
    """A device or file that must not be written.

    `serial` is the confirmation that the device requires; `None`: its path as given. `first` is the
    number of leading bytes that must not change; `None`: all bytes.
    """

    device: str
    guarded: Sequence[str | Path]
    wipe: bool = True
    serial: str | None = None
    first: int | None = None


@dataclass
class Seen:
    """Attempts of one test: their number, and those not rejected correctly."""

    tried: int = 0
    wrong: list[str] = field(default_factory=list)


def digest(paths: Sequence[str | Path], first: int | None = None) -> str:
    """Return a hash of the contents of devices and files, after writing back the page cache."""
    os.sync()
    hashed = hashlib.blake2b()
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            left = first if first is not None else os.lseek(file.fileno(), 0, os.SEEK_END)
            file.seek(0)
            while left > 0 and (data := file.read(min(left, 1 << 20))):
                hashed.update(data)
                left -= len(data)
    return hashed.hexdigest()


def names_of(bench: Bench, device: str) -> Mapping[str, str]:
    """Return spellings of a device's path that a shell, a user or a script may produce."""
    name = Path(device).name
    folder = Path(f"/dev/writecliff-by-test-{name}")
    folder.mkdir()
    bench.callback(folder.rmdir)
    by_id = bench.link(f"{folder.name}/by-id", device)
    relative = bench.link(f"{folder.name}/relative", f"../{Path(device).relative_to('/dev')}")
    chained = bench.link(f"{folder.name}/chained", by_id)
    through = f"/dev/fd/../../../dev/{Path(device).relative_to('/dev')}"
    return {
        "its node": device,
        "a doubled slash": device.replace("/dev/", "/dev//"),
        "a dot": device.replace("/dev/", "/dev/./"),
        "out and in again": device.replace("/dev/", "/dev/../dev/"),
        "a link of udev": by_id,
        "a relative link": relative,
        "a link to a link": chained,
        "another way round": through,
        "file:": f"file:{device}",
        "file: and a link": f"file:{by_id}",
        "file: and a way out of the folder": f"file:{os.path.relpath(device)}",
        "file: through proc": f"file:/proc/self/root{device}",
        "no scheme": name,
    }


def commands_of(target: str, confirm: str, folder: Path) -> Mapping[str, list[str]]:
    """Return the command lines that write to a drive, by command."""
    consent = ["--destroy", confirm, "--wipe-signatures"] if target.startswith("/dev/") else []
    on, out = ["--on", target, *consent], ["--output", str(folder / "out")]
    load = str(folder / "load.toml")
    trace = str(folder / "trace.csv")
    return {
        "run": ["run", load, *on, *out],
        "run --dry-run": ["run", load, *on, "--dry-run"],
        "test wsat": ["test", "wsat", "--quick", *on, *out],
        "test iops": ["test", "iops", "--quick", *on, *out],
        "test tp": ["test", "tp", "--quick", *on, *out],
        "test endurance": ["test", "endurance", "--quick", *on, *out],
        "test twin": ["twin", *on, *out],
        "suite": ["suite", "pts-e", "--quick", *on, *out],
        "sweep": ["sweep", "wsat", "--vary", "queue_depth=1,2", "--quick", *on, *out],
        "act": ["lab", "act", "run", str(folder / "act.conf"), *on, *out],
        "replay": ["replay", trace, *on, *out],
        "fio": ["fio", "--on", target, "--name=x", "--rw=write", "--size=1m"],
        "serve": ["serve", target, "--nbd", f"unix:{folder / 'socket'}"],
        "torture": ["lab", "torture", target, "--app", "sqlite", "--cuts", "1"],
        "demo": ["demo", "--on", target, *out],
        "choose": ["choose", "--workload", load, "--candidates", target, *out],
        "experiment": ["lab", "experiment", "fms-cassandra", "--on", target, *out],
    }  # fmt: skip


def outputs(path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the command lines that create an output file or folder at `path`, by option."""
    drive = ["--on", "sim:sata-tlc-120"]
    for words in (
        ["report", "run", "--output"], ["report", "run", "--csv"], ["compare", "a", "b", "--output"],
        ["compare", "a", "b", "--csv"], ["run", "w.toml", *drive, "--output"],
        ["run", "w.toml", *drive, "--junit"], ["test", "wsat", *drive, "--output"],
        ["test", "wsat", *drive, "--junit"], ["suite", "pts-e", *drive, "--output"],
        ["suite", "pts-e", *drive, "--junit"],
        ["sweep", "wsat", "--vary", "threads=1", *drive, "--output"],
        ["replay", "t.csv", *drive, "--output"], ["replay", "t.csv", *drive, "--junit"],
        ["lab", "act", "run", "a.conf", *drive, "--output"], ["choose", "--output"],
        ["characterise", "t.csv", "--output"], ["characterise", "t.csv", "--csv"],
        ["trace", "synthesise", "t.csv", "--output"], ["trace", "synthesise", "t.csv", "--csv"],
        ["advise-streams", "t.csv", *drive, "--output"], ["trace", "convert", "t.csv"],
        ["capture", "--output"], ["capture", "--device", "/dev/loop0", "--output"],
        ["device", "export", "sata-tlc-120", "--output"],
        ["device", "show", "sata-tlc-120", "--sheet", "--page"],
        ["device", "new", "--like", "pm863-960", "--output"], ["lab", "fit", "x", "--predictions"],
        ["lab", "fit", "x", "--output"], ["lab", "reproduce", "--output"], ["lab", "reliability", "wear-out", "--output"],
        ["lab", "reliability", "wear-out", "--csv"], ["lab", "experiment", "fms-cassandra", "--output"],
        ["twin", *drive, "--output"], ["demo", "--output"], ["runs", "export", "x", "--output"],
        ["serve", "sim:sata-tlc-120", "--nbd", "unix:s", "--state"],
        ["serve", "sim:sata-tlc-120", "--nbd", "unix:s", "--contents"],
        ["serve", "sim:sata-tlc-120", "--nbd", "unix:s", "--output"],
    ):  # fmt: skip
        yield f"{' '.join(words[:2])} {words[-1]}", [*words, path]
    yield (
        "fio --output",
        ["fio", *drive, "--name=x", "--rw=write", "--size=64k", f"--output={path}"],
    )


def refused(run: Callable[[], tuple[int, str]], seen: Seen, what: str) -> None:
    """Record an attempt that is not rejected correctly; `run` returns exit code and output."""
    seen.tried += 1
    code, output = run()
    lines = [line for line in output.splitlines() if not line.startswith(_BESIDE)]
    if code != 2:
        seen.wrong.append(f"{what}: exit code {code}: {output.strip()[-300:]}")
    elif what.endswith("--dry-run") and lines[-1].startswith("the run would be rejected: "):
        return  # The line follows the plan.
    elif len(lines) != 1 or not lines[0].startswith("error: "):
        seen.wrong.append(f"{what}: {len(lines)} lines instead of one: {output.strip()[:300]}")
