"""Traces in published formats and in writecliff's own, and the events of a capture."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz import mutate
from tests.fuzz.kinds import Kind
from tests.fuzz.kinds.stored import _changed
from tests.fuzz.kinds.texts import small_drive

_IOS = [(100 * n, "RW"[n % 3 == 0], 4096 * (n * 37 % 500), 4096 * (1 + n % 4)) for n in range(60)]
_WORDS = {"R": "Read", "W": "Write"}
TEXTS = {
    "msr.csv": "".join(
        f"{128166372003061629 + t},srv,0,{_WORDS[o]},{a},{n},{t % 9 + 1}\n" for t, o, a, n in _IOS
    ),
    "spc.spc": "".join(f"0,{a // 512},{n},{o},{t / 1e6:.6f}\n" for t, o, a, n in _IOS),
    "alibaba.csv": "".join(f"1,{o},{a},{n},{1577808000000000 + t}\n" for t, o, a, n in _IOS),
    "blkparse.txt": "".join(
        f"  8,0    1 {k:8d}     {t / 1e6:.9f}  4{k % 9:03d}  {e}  {o} {a // 512} + {n // 512} [fio]\n"
        for k, (t, o, a, n) in enumerate(_IOS) for e in "QDC"
    ),
    "iolog.log": "fio version 3 iolog\n0 /dev/sda add\n1 /dev/sda open\n"
    + "".join(f"{t} /dev/sda {_WORDS[o].lower()} {a} {n}\n" for t, o, a, n in _IOS),
    "disksim.txt": "".join(f"{t / 1e3:.3f} 0 {a // 512} {n // 512} {int(o == 'R')}\n" for t, o, a, n in _IOS),
}  # fmt: skip


def _prepare(corpus: Path) -> None:
    from writecliff.capture.trace import write_trace
    from writecliff.replay.synthetic import synthetic_table

    small_drive(corpus)
    if not (corpus / "store.parquet").exists():
        table = synthetic_table(table_bytes=64 << 10, chunk_bytes=16 << 10, logged_bytes=24 << 20)
        write_trace(corpus / "store.parquet", table, {"command": ["store"], "program": "store 1.0"})


def _reading(corpus: Path, path: str, draw: Random) -> list[str]:
    drive = f"sim:{corpus}/small.toml"
    return draw.choice(
        (["characterise", path, "--output", "w.html"], ["trace", "convert", path, "out.parquet"],
         ["trace", "convert", path, "out.log"], ["replay", path, "--on", drive, "--fills", "1", "--json"],
         ["advise-streams", path, "--on", drive, "--output", "a.html", "--no-timed", "--counts", "2", "--fills", "1"])
    )  # fmt: skip


def _trace(corpus: Path, folder: Path, draw: Random) -> list[str]:
    if draw.random() < 0.6:
        name = draw.choice(sorted(TEXTS))
        (folder / name).write_bytes(
            mutate.text(TEXTS[name], draw, ["Read", "R", "W", "D", "+", "read", "trim"])
        )
        if draw.random() < 0.15 and name == "iolog.log":
            (folder / "j.fio").write_text(f"[j]\nread_iolog={name}\n")
            return ["run", "j.fio", "--on", f"sim:{corpus}/small.toml", "--dry-run"]
        return _reading(corpus, name, draw)
    import pyarrow.parquet as pq

    table = pq.read_table(corpus / "store.parquet")
    metadata = dict(table.schema.metadata)
    if draw.random() < 0.2:
        body = mutate.document(json.loads(metadata[b"writecliff"]), draw)
        metadata[b"writecliff"] = json.dumps(body).encode("utf-8", "surrogatepass")
    else:
        for _ in range(draw.choice((1, 1, 2))):
            table = _changed(table, draw)
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    data = sink.getvalue()
    (folder / "t.parquet").write_bytes(mutate.raw(data, draw) if draw.random() < 0.15 else data)
    return _reading(corpus, "t.parquet", draw)


def _slots() -> list[list[Any]]:
    """Return the event slots of two processes with one file each.

    Each event has op, flags, errno, pid, time, inode, device, links, a, b and thread. A text
    occupies a separate slot.
    """
    slots: list[list[Any]] = []
    time_ns = 10**12
    for pid in (100, 101):
        slots += [[1, 0, 0, pid, time_ns, 0, 0, 0, 0, 0, b"prog"], b"prog", [2, 0, 0, pid, time_ns, 0, 0, 0, 0, 0, b"prog"], b"title"]  # fmt: skip
        slots += [[3, 1, 0, pid, time_ns + 1, 7 + pid, 8, 1, 3, 0, b"main"], b"/tmp/x/data"]
        for n in range(8):
            slots.append([5, 0, 0, pid, time_ns + 10 * n, 7 + pid, 8, 1, 4096 * n, 4096, b"main"])
        slots.append([7, 0, 0, pid, time_ns + 90, 7 + pid, 8, 1, 0, 0, b"main"])
        slots.append([8, 0, 0, pid, time_ns + 95, 7 + pid, 8, 1, 4096, 0, b"main"])
        slots += [[10, 0, 0, pid, time_ns + 96, 7 + pid, 8, 1, 0, 0, b"main"], b"/tmp/x/other"]
        slots += [[9, 0, 0, pid, time_ns + 99, 7 + pid, 8, 0, 0, 0, b"main"], b"/tmp/x/other"]
        time_ns += 1000
    return slots


def _events(corpus: Path, folder: Path, draw: Random) -> list[str]:
    from writecliff.capture.events import CAPACITY_SLOTS, CONTINUED, MAGIC, SLOTS_AT

    slots = _slots()
    body = b""
    big = (0, 1, 255, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
    for _ in range(draw.choice((0, 1, 2, 5))):
        at = draw.randrange(len(slots))
        slot = slots[at]
        if isinstance(slot, bytes):
            slots[at] = draw.choice((b"", b"\xff\xfe", b"\x1b[2J", b"a" * 62, b"../../x", b"/"))
            continue
        match draw.randrange(4):
            case 0:
                del slots[at]
            case 1:
                slots.insert(at, [*slot])
            case 2:
                slot[0] = draw.randrange(256)
            case _:
                field = draw.randrange(1, 10)
                slot[field] = draw.choice(big)
    for slot in slots:
        if isinstance(slot, bytes):
            body += struct.pack("=BB62s", CONTINUED, len(slot), slot)
        else:
            limits = (8, 8, 16, 32, 64, 64, 32, 32, 64, 64)
            numbers = [value % 2**bits for value, bits in zip(slot, limits, strict=False)]
            body += struct.pack("=BBHIQQIIQQ16s", *numbers, slot[10])
    count = draw.choice((len(slots),) * 6 + big)
    start = draw.choice((10**12, 10**12, 10**12, 0, 2**64 - 1, 10**12 + 5000))
    head = struct.pack("=8sQQQQQI", MAGIC, CAPACITY_SLOTS, count, count, 0, start, 1)
    data = head.ljust(SLOTS_AT, b"\0") + body
    if draw.random() < 0.3:
        data = (
            data[:SLOTS_AT] + mutate.raw(body, draw)
            if draw.random() < 0.7
            else mutate.raw(data, draw)
        )
    (folder / "x.events").write_bytes(data)
    return [
        "capture",
        "--recover",
        "x.events",
        "--output",
        "t.parquet",
        *draw.choice(([], ["--json"])),
    ]


KINDS = (
    Kind("trace", _prepare, _trace),
    Kind("events", small_drive, _events),
)
