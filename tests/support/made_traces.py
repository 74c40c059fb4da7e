"""Synthetic traces of five servers, as references for `writecliff trace synthesise`.

The traces differ in hot data, sizes, sequential runs and arrivals. The traces are identical on
every machine.
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
    """Return the times of Poisson arrivals whose rate is piecewise constant."""
    rate = np.array(rates)[np.arange(count) * len(rates) // count]
    times = np.cumsum(draw.exponential(1.0, count) / rate)
    scaled: Floats = times / times[-1] * seconds
    return scaled


def _zipf(draw: np.random.Generator, theta: float, pages: int, count: int) -> NDArray[np.int64]:
    """Return pages with Zipf-distributed popularity, scattered over a range."""
    ranks = np.minimum(draw.zipf(theta, count) - 1, pages - 1).astype(np.int64)
    scattered: NDArray[np.int64] = ranks * 2_654_435_761 % pages
    return scattered


def _log(at: NDArray[np.int64], length: NDArray[np.int64], of: NDArray[np.bool_],
         begin: int, size: int) -> None:  # fmt: skip
    """Place the I/Os selected by `of` sequentially in a circular log."""
    grows = np.where(of, length, 0)
    at[of] = begin + ((np.cumsum(grows) - grows) % size)[of]


def database(draw: np.random.Generator, count: int) -> Made:
    """Return the I/Os of transactions: 8 KiB pages, some much hotter than others, and a log."""
    write = draw.random(count) < 0.35
    at = _zipf(draw, 1.15, 1 << 18, count) * 8 * KIB
    length = np.full(count, 8 * KIB)
    log = write & (draw.random(count) < 0.4)
    length[log] = draw.choice([4 * KIB, 8 * KIB, 16 * KIB], count, p=[0.6, 0.3, 0.1])[log]
    _log(at, length, log, 2 * GIB, 64 << 20)
    return _modulated(draw, count, count / 100, [1, 3, 1, 1, 3, 1]), write, at, length


def key_value(draw: np.random.Generator, count: int) -> Made:
    """Return uniformly distributed accesses to records, a third of which are writes."""
    write = draw.random(count) < 0.33
    at = draw.integers(0, 1 << 16, count) * 4 * KIB
    return _modulated(draw, count, count / 400, [1]), write, at, np.full(count, 4 * KIB)


def web(draw: np.random.Generator, count: int) -> Made:
    """Return accesses to files of different sizes, mostly reads; a fifth are uploads."""
    write = draw.random(count) < 0.2
    file = np.where(write, draw.integers(0, 1 << 13, count), _zipf(draw, 1.3, 1 << 13, count))
    length = np.array([4, 4, 8, 32, 64])[file * 40_503 % 5] * KIB
    return _modulated(draw, count, count / 150, [1, 2, 3, 2, 1]), write, file * 64 * KIB, length


def mail(draw: np.random.Generator, count: int) -> Made:
    """Return accesses to messages of different sizes, written once or twice and then read."""
    write = draw.random(count) < 0.6
    part = np.where(draw.random(count) < 0.7, draw.random(count) / 10, draw.random(count))
    place = (part * (1 << 14)).astype(np.int64)
    length = np.array([4, 4, 4, 8, 16])[place * 2_654_435_761 % 5] * KIB
    return _modulated(draw, count, count / 200, [1, 1, 2, 2]), write, place * 16 * KIB, length


def machines(draw: np.random.Generator, count: int) -> Made:
    """Return the I/Os of a database and a key-value store in separate ranges of one drive."""
    first, second = database(draw, count // 2), key_value(draw, count - count // 2)
    moved = second[0] * first[0][-1] / second[0][-1], second[1], second[2] + 4 * GIB, second[3]
    time, write, at, length = (np.concatenate(both) for both in zip(first, moved, strict=True))
    order = np.argsort(time, kind="stable")
    return time[order], write[order], at[order], length[order]


KINDS: dict[str, Callable[[np.random.Generator, int], Made]] = {
    "database": database, "key-value": key_value, "web": web, "mail": mail, "machines": machines,
}  # fmt: skip


def write_trace(path: Path, kind: str, count: int = 30_000) -> Path:
    """Write a trace of `count` I/Os as a table with the columns in `COLUMNS`."""
    time_s, write, at, length = KINDS[kind](np.random.default_rng(1), count)
    rows = zip((time_s * 1e9).astype(np.int64).tolist(), np.where(write, "W", "R").tolist(),
               at.tolist(), length.tolist(), strict=True)  # fmt: skip
    path.write_text("t,op,at,n\n" + "".join(f"{t},{op},{o},{n}\n" for t, op, o, n in rows))
    return path
