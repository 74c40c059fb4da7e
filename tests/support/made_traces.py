"""Traces of five servers, made up: tables that `writecliff trace synthesise` can be held against.

Each is a different kind: what is hot, which sizes, which runs, how arrivals come. They are the same
on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

COLUMNS = "time=t:ns,operation=op,offset=at,length=n"
GIB, KIB = 1 << 30, 1024
Floats = NDArray[np.float64]
Made = tuple[Floats, NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]


def _modulated(draw: np.random.Generator, count: int, seconds: float, rates: list[float]) -> Floats:
    """Poisson arrivals whose rate changes from part to part."""
    rate = np.array(rates)[np.arange(count) * len(rates) // count]
    times = np.cumsum(draw.exponential(1.0, count) / rate)
    found: Floats = times / times[-1] * seconds
    return found


def _zipf(draw: np.random.Generator, theta: float, pages: int, count: int) -> NDArray[np.int64]:
    """Pages, scattered over a range."""
    ranks = np.minimum(draw.zipf(theta, count) - 1, pages - 1).astype(np.int64)
    found: NDArray[np.int64] = ranks * 2_654_435_761 % pages
    return found


def _log(at: NDArray[np.int64], length: NDArray[np.int64], of: NDArray[np.bool_],
         begin: int, size: int) -> None:  # fmt: skip
    """Lay the I/Os `of` a log one behind the other, round and round."""
    grows = np.where(of, length, 0)
    at[of] = begin + ((np.cumsum(grows) - grows) % size)[of]


def database(draw: np.random.Generator, count: int) -> Made:
    """Transactions: pages of 8 KiB, some much hotter than others, and a log."""
    write = draw.random(count) < 0.35
    at = _zipf(draw, 1.15, 1 << 18, count) * 8 * KIB
    length = np.full(count, 8 * KIB)
    log = write & (draw.random(count) < 0.4)
    length[log] = draw.choice([4 * KIB, 8 * KIB, 16 * KIB], count, p=[0.6, 0.3, 0.1])[log]
    _log(at, length, log, 2 * GIB, 64 << 20)
    return _modulated(draw, count, count / 100, [1, 3, 1, 1, 3, 1]), write, at, length


def key_value(draw: np.random.Generator, count: int) -> Made:
    """Records anywhere alike, a third of them written."""
    write = draw.random(count) < 0.33
    at = draw.integers(0, 1 << 16, count) * 4 * KIB
    return _modulated(draw, count, count / 400, [1]), write, at, np.full(count, 4 * KIB)


def web(draw: np.random.Generator, count: int) -> Made:
    """Files, each of its own size, most of them read often; a fifth of the accesses puts one."""
    write = draw.random(count) < 0.2
    file = np.where(write, draw.integers(0, 1 << 13, count), _zipf(draw, 1.3, 1 << 13, count))
    length = np.array([4, 4, 8, 32, 64])[file * 40_503 % 5] * KIB
    return _modulated(draw, count, count / 150, [1, 2, 3, 2, 1]), write, file * 64 * KIB, length


def mail(draw: np.random.Generator, count: int) -> Made:
    """Messages that are written once or twice and read, each of its own size."""
    write = draw.random(count) < 0.6
    part = np.where(draw.random(count) < 0.7, draw.random(count) / 10, draw.random(count))
    place = (part * (1 << 14)).astype(np.int64)
    length = np.array([4, 4, 4, 8, 16])[place * 2_654_435_761 % 5] * KIB
    return _modulated(draw, count, count / 200, [1, 1, 2, 2]), write, place * 16 * KIB, length


def machines(draw: np.random.Generator, count: int) -> Made:
    """Two machines on one drive: a database and a store of records, in ranges of their own."""
    first, second = database(draw, count // 2), key_value(draw, count - count // 2)
    moved = second[0] * first[0][-1] / second[0][-1], second[1], second[2] + 4 * GIB, second[3]
    time, write, at, length = (np.concatenate(both) for both in zip(first, moved, strict=True))
    order = np.argsort(time, kind="stable")
    return time[order], write[order], at[order], length[order]


KINDS: dict[str, Callable[[np.random.Generator, int], Made]] = {
    "database": database, "key-value": key_value, "web": web, "mail": mail, "machines": machines,
}  # fmt: skip


def write_trace(path: Path, kind: str, count: int = 30_000) -> Path:
    """Write a trace of `count` I/Os as a table with the columns of `COLUMNS`."""
    time_s, write, at, length = KINDS[kind](np.random.default_rng(1), count)
    rows = zip((time_s * 1e9).astype(np.int64).tolist(), np.where(write, "W", "R").tolist(),
               at.tolist(), length.tolist(), strict=True)  # fmt: skip
    path.write_text("t,op,at,n\n" + "".join(f"{t},{op},{o},{n}\n" for t, op, o, n in rows))
    return path
