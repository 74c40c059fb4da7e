"""Write a reference page of all keys of device files or of workload files.

    .venv/bin/python -m docs._ext.keys_page device > docs/reference/device-keys.md
    .venv/bin/python -m docs._ext.keys_page workload > docs/reference/workload-keys.md

What a key takes, and whether it is required, the program says (`probe.py`); what it means
is the last column of the tables of keys in the guides. A key without a meaning there, a meaning
whose key the program does not know, and a section that no sample below has, are errors.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from docs._ext.probe import Key, Path, Reader, keys
from writecliff import _native
from writecliff.devices import read_device_file

ROOT = pathlib.Path(__file__).parents[2]

# Files that are right and have each table once: what is read of a table that is not there cannot be
# asked. Some sections exclude each other.
SSD = read_device_file("sata-tlc-120")[0]
WATCHED = """
[housekeeping]
media_interval = "1 s"
media_time = "1 ms"
hiccup_probability = 0.001
hiccup_time = "1 ms"
journal_interval = "1 GB"
journal_time = "1 ms"
checkpoint_interval = "10 GB"
checkpoint_time = "1 ms"
patrol_interval = "1 s"
patrol_length = "100 ms"
patrol_step = "10 ms"
patrol_time = "10 us"
[ecc]
rber = 0.0001
rber_at_rated = 0.001
codeword = "1 KiB"
correctable = 40
retry_time = "100 us"
retries_max = 5
[cell_care]
refresh_rber = 0.001
refresh_interval = "10 s"
[integrity]
guard = true
[power]
idle = "1 W"
[thermal]
ambient = "35 C"
resistance = "8 C/W"
capacity = "20 J/C"
throttle_at = "70 C"
recover_at = "65 C"
throttle_factor = 2
[endurance]
life = "5 years"
[recovery]
start_time = "1 s"
"""
# Keys that are required with others that are not.
PARTS = (
    '[housekeeping]\nmedia_interval = "1 s"\nmedia_time = "1 ms"\n',
    '[housekeeping]\njournal_interval = "1 GB"\njournal_time = "1 ms"\n',
    WATCHED.replace("refresh", "# refresh").replace("throttle_", "# ").replace("recover_at", "# "),
    "[reduction]\ncompression = false\nduplicates = true\n",
)
PLACED = '[data_placement]\ninterface = "%s"\n'
SSDS = (
    SSD + WATCHED,
    *(SSD + part for part in PARTS),
    SSD.replace('gc = "greedy"', 'gc = "windowed-greedy"\ngc_window = 8'),
    SSD.replace('gc = "greedy"', 'gc = "greedy"\ngc_pacing = "quanta"\ngc_quantum = "1 MiB"'),
    SSD.replace('"per-stream"', '"per-handle"\nisolated_streams = [1]'),
    *(SSD + PLACED % name for name in ("nvme-streams", "scsi-streams", "nvme-fdp")),
    SSD + '[bad_blocks]\nfailed_at_rated = "1 %"\nshape = 3\n',
    SSD.replace('"120 GB"', '"100 GB"') + "[die_parity]\nstripe = 8\n",
    SSD + '[reduction]\ncompression = true\nmin_stored_size = "1 KiB"\nduplicates = false\n',
    SSD + '[slc_cache]\nsize = "3 GB"\nprogram = "0.25 ms"\nread = "30 us"\n',
    SSD
    + '[mapping_cache]\nsize = "1 MiB"\nread = "30 us"\nprogram = "0.25 ms"\n'
    + 'host_memory_buffer = "64 MiB"\nhost_memory_latency = "2 us"\n',
    SSD + '[mapping_cache]\nsize = "1 MiB"\nread = "30 us"\nprogram = "0.25 ms"\n',
)
SCMS = (read_device_file("p5800x-1600")[0],)
DISKS = (read_device_file("hdd-sshd-7200-500")[0], read_device_file("hdd-15k-80")[0])

JOB = """
[[job]]
duration = "1 s"
"""
WORKLOADS = (
    'name = "one step"\nprecondition = "none"\n' + JOB,
    'name = "steps"\n[[step]]\nname = "load"\n[[step.job]]\nduration = "1 s"\n',
    'name = "rests"\n[[step]]\nname = "rest"\nrest = "1 s"\n',
    *(
        f'name = "{line.split()[0]}"\n{JOB}{line}\n'
        for line in (
            'addresses = { kind = "hot_cold", zones = [{ access = "80 %", size = "20 %" }] }',
            'mix = { random_read = "100 %" }',
            'segments = { count = 4, amount = "1 GB" }',
            'writes = { block_sizes = [{ size = "4 KiB" }] }',
            'trims = { block_sizes = [{ size = "4 KiB" }] }',
            'block_sizes = [{ size = "4 KiB", weight = 1 }]',
            'host_zones = { size = "256 MiB" }',
        )
    ),
)


@dataclass(frozen=True)
class Part:
    """A part of a page: files that are right, and the guides that say what their keys mean."""

    title: str
    samples: Sequence[str]
    guides: Sequence[tuple[str, str]]
    """File and, if only one of its chapters is meant, the heading of that."""


@dataclass(frozen=True)
class Page:
    """A reference page."""

    name: str
    title: str
    about: str
    reader: Reader
    parts: Sequence[Part]
    headings: Mapping[str, Sequence[str]]
    """Words of the headings of guides for a table; of others its name in brackets."""


def refused(read: Callable[[], object]) -> str | None:
    """Why a file is refused, with the hint; None if it is not."""
    try:
        read()
    except _native.NativeConfigError as error:
        return "\n".join(str(part) for part in error.args if part)
    return None


PAGES = {
    "device": Page(
        "device-keys",
        "Keys of device files",
        "A [device file](../guides/devices.md) describes a simulated drive.",
        lambda text: refused(lambda: _native.Device(text, "drive.toml").describe()),
        (
            Part(
                "SSDs",
                SSDS,
                (("devices.md", "Keys"), ("device-failures.md", ""), ("mapping-cache.md", "")),
            ),
            Part("Hard disks", DISKS, (("devices.md", "Hard disks"), ("devices.md", "Keys"))),
            Part(
                "Storage-class memory",
                SCMS,
                (("storage-class-memory.md", ""), ("devices.md", "Keys")),
            ),
        ),
        {"": ["Keys"]},
    ),
    "workload": Page(
        "workload-keys",
        "Keys of workload files",
        "A [workload file](../guides/workloads.md) describes what hosts do.",
        lambda text: refused(lambda: _native.parse_workload_toml(text, "load.toml", 120 * 10**9)),
        (Part("", WORKLOADS, (("workloads.md", ""),)),),
        {
            "": ["The file", "[step]"],  # a file of one step has what a step has
            "job.writes.block_sizes": ["[job.block_sizes]"],
            "job.trims.block_sizes": ["[job.block_sizes]"],
        },
    ),
}


@dataclass(frozen=True)
class Row:
    """What a guide says of a key."""

    heading: str
    key: str
    text: str
    default: str


def meanings(guide: str, chapter: str) -> Iterator[Row]:
    """All rows of tables of keys in a guide, or a chapter of it."""
    text = (ROOT / "docs" / "guides" / guide).read_text(encoding="utf-8")
    if chapter:
        text = f"## {chapter}\n" + text.split(f"\n## {chapter}\n", 1)[1].split("\n## ", 1)[0]
    # Links of a page of the guides, seen from the reference.
    text = re.sub(r"\]\(#", f"](../guides/{guide}#", text)
    text = re.sub(r"\]\(([\w-]+\.md)", r"](../guides/\1", text).replace("](../reference/", "](")
    for section in re.split(r"(?m)^##+ ", text)[1:]:
        heading = section.partition("\n")[0]
        for table in re.findall(r"(?m)^\| key \|.*\n(?:\|.*\n)+", section):
            head, _, *rows = (cells(line) for line in table.splitlines())
            for row in rows:
                said = dict(zip(head, row, strict=True))
                meaning, default = said[head[-1]], said.get("default", "")
                if "default" not in said:
                    meaning, default = split_default(meaning, said["unit"])
                for key in re.findall(r"`(?:\[\[)?(?:\w+\.)?(\w+)(?:\]\])?`", said["key"]):
                    yield Row(heading, key, meaning, default)


def split_default(meaning: str, unit: str) -> tuple[str, str]:
    """A meaning, and the default that guides without a column of defaults put before it, or beside
    one of the words that a key takes."""
    if word := re.search(r"(`[^`]+`) \(default\)", unit):
        return meaning, word[1]
    if meaning.startswith("optional: "):
        return meaning.removeprefix("optional: "), "optional"
    for pattern in (r"default ([^:]+): (.*)", r"default ([^;,]+)[;,] (.*)"):
        if found := re.match(pattern, meaning):
            return found[2], found[1]
    return meaning, ""


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def page(which: Page) -> Iterator[str]:
    """The lines of a page. Raises SystemExit for a key without a meaning, and the other way."""
    yield from (f"# {which.title}", "")
    kind = which.name.partition("-")[0]
    command = f"python -m docs._ext.keys_page {kind} > docs/reference/{which.name}.md"
    yield f"Made by `{command}`: what a key takes, and whether"
    yield "it is required, is what the program answered; what it means is from the guides. Do not"
    yield from ("edit it.", "", which.about)
    rows = [
        [row for guide, chapter in part.guides for row in meanings(guide, chapter)]
        for part in which.parts
    ]
    used: list[Row] = []
    for part, said in zip(which.parts, rows, strict=True):
        if part.title:
            yield from ("", f"## {part.title}")
        yield from _part(which, part, said, used)
    headings = {row.heading for row in used}
    unknown = dict.fromkeys(
        row.key for said in rows for row in said if row.heading in headings and row not in used
    )
    if unknown:
        sys.exit(f"{which.name}: the program does not know {', '.join(unknown)} of the guides")


def _part(which: Page, part: Part, said: Sequence[Row], used: list[Row]) -> Iterator[str]:
    """The tables of a part; adds the rows of `said` that they take to `used`."""
    found = {key.path: key for key in keys(part.samples, which.reader)}
    tables: dict[Path, list[Key]] = {}
    for path, key in found.items():
        if path[:3] != ("step", "job", path[-1]) or len(path) == 2:  # jobs are shown as [[job]]
            tables.setdefault(path[:-1], []).append(key)
    tables = {path: own for path, own in tables.items() if path[:2] != ("step", "job")}
    for path, own in tables.items():
        name = ".".join(path)
        name = f"`[[{name}]]`" if path and found[path].value == "tables" else f"`[{name}]`"
        yield from ("", f"{'###' if part.title else '##'} {name if path else 'At the top'}", "")
        yield from ("| key | takes | default | meaning |", "|---|---|---|---|")
        for key in own:
            row = lookup(said, which.headings, path, key.path[-1])
            if row is not None:
                used.append(row)
            elif key.path in tables:
                row = Row("", "", "see below", "")
            else:
                sys.exit(f"{which.name}: no guide says what {'.'.join(key.path)} means")
            default = "required" if key.required else row.default or "optional"
            yield f"| `{key.path[-1]}` | {key.value} | {default} | {row.text} |"


def lookup(
    said: Sequence[Row], headings: Mapping[str, Sequence[str]], path: Path, key: str
) -> Row | None:
    """What the guides say of a key of a table, below a heading that names the table."""
    names = headings.get(".".join(path)) or [f"[{'.'.join(path)}]", f"[{path[-1]}]"]
    for name in names:
        for row in said:
            if row.key == key and name in row.heading:
                return row
    return None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", choices=PAGES)
    print("\n".join(page(PAGES[parser.parse_args(arguments).page])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
