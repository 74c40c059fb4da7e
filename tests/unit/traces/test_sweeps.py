"""Sweep models: their size, the traces that they fit, and the properties that they preserve."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.support.made_traces import COLUMNS, write_trace
from writecliff.api import synthesise_trace
from writecliff.synthesis.laid_out import FLUSH, WRITE, LaidOut, lay_out
from writecliff.synthesis.sweeps import KindsOf, mixes_of, pieces_of, swept_model, written_again
from writecliff.traces.examples import trace_path
from writecliff.traces.source import open_trace

PAGE = 4096


def trace_of(rows: list[tuple[int, int, int]]) -> LaidOut:
    """Return a trace of (operation, first page, pages), with one I/O per microsecond."""
    operation, first, pages = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return LaidOut(
        time_ns=np.arange(len(rows), dtype=np.int64) * 1000,
        operation=operation.astype(np.uint8),
        offset=first * PAGE,
        length=pages * PAGE,
        range_bytes=int((first + pages).max()) * PAGE,
        span_bytes=int((first + pages).max()) * PAGE,
        volumes=1,
        notes=(),
    )


def test_models_have_a_number_for_two_ios_or_are_short() -> None:
    for name in ("sqlite", "postgres", "cassandra", "rocksdb"):
        trace = lay_out(open_trace(trace_path(f"example:{name}")))
        model = swept_model(trace, seed=1)
        assert model is not None, name
        assert model.ios == len(trace)
        assert model.numbers <= max(len(trace) / 2, min(3000, 1.5 * len(trace))), name
        assert model.bytes == pytest.approx(int(trace.length.sum()), rel=0.01), name
        assert model.flushes == int((trace.operation == FLUSH).sum())
        assert model.duration_ns == int(trace.time_ns[-1])


def test_random_traces_get_no_sweeps(tmp_path: Path) -> None:
    made = write_trace(tmp_path / "mail.csv", "mail", 3000)
    assert swept_model(lay_out(open_trace(made, columns=COLUMNS)), seed=1) is None
    assert synthesise_trace(made, columns=COLUMNS).model.sweeps is None


def test_the_same_seed_makes_the_same_pass() -> None:
    first, again = (synthesise_trace("example:cassandra") for _ in range(2))
    assert first.workload_text() == again.workload_text()
    assert first.synthetic == again.synthetic
    assert synthesise_trace("example:cassandra", seed=2).synthetic != first.synthetic


def sweeps_of(trace: LaidOut, chains: list[np.ndarray], numbers: int) -> list[list[int]]:
    pieces = pieces_of(trace, chains, numbers)
    assert pieces is not None
    return sorted(piece.ios.tolist() for piece in pieces)


def test_two_files_written_side_by_side_are_two_sweeps() -> None:
    rows = [(WRITE, n // 2 + 1000 * (n % 2), 1) for n in range(400)]
    chains = [np.arange(0, 400, 2), np.arange(1, 400, 2)]
    assert sweeps_of(trace_of(rows), chains, 40) == [chain.tolist() for chain in chains]
    assert pieces_of(trace_of(rows), chains, 11) is None
    model = swept_model(trace_of(rows), seed=1)
    assert model is not None and model.sweeps is not None
    assert sorted(model.sweeps.offset) == [0, 1000 * PAGE]
    assert (model.sweeps.ios, model.sweeps.steps) == ((200, 200), ())


def test_a_pause_divides_a_sweep() -> None:
    """Check that the second half of a file follows after a long time."""
    rows = [(WRITE, n, 1) for n in range(100)]
    rows += [(WRITE, 5000 + n % 50, 1) for n in range(600)]
    rows += [(WRITE, n, 1) for n in range(100, 200)]
    # The file is written again, so the time of its writes matters.
    rows += [(WRITE, n, 1) for n in range(200)]
    file = np.concatenate((np.arange(100), np.arange(700, 800)))
    chains = [file, np.arange(100, 700), np.arange(800, 1000)]
    ranges = {(sweep[0], sweep[-1]) for sweep in sweeps_of(trace_of(rows), chains, 30)}
    assert {(0, 99), (700, 799)} <= ranges


def test_a_log_that_rewrites_its_last_block_has_a_distance() -> None:
    """Check a trace that writes each 8 KiB block four times in a row."""
    rows = [(WRITE, 2 * (n // 4), 2) for n in range(400)]
    model = swept_model(trace_of(rows), seed=1)
    assert model is not None and model.mixes is not None and model.sweeps is not None
    assert set(model.mixes.back) == {0, 2 * PAGE}
    again = zip(model.mixes.back, model.mixes.count, strict=True)
    assert sum(count for back, count in again if back) == 300
    assert model.sweeps.steps == ()


def test_data_that_are_written_once_are_distinguished() -> None:
    trace = trace_of([(WRITE, 0, 4), (WRITE, 2, 4), (WRITE, 10, 1), (FLUSH, 0, 0)])
    assert written_again(trace).tolist() == [0.5, 0.5, 0.0, 0.0]


def test_like_sizes_share_a_mix_and_keep_their_bytes() -> None:
    """Check small commits and large blocks in four sweeps: two mixes, unless there is more room."""
    small, large = [1, 1, 1, 2] * 25, [64, 64, 64, 32] * 5
    pages = [*small, *small[:60], *large, *large[:12]]
    sizes, of = np.unique(np.array(pages, np.int64) * PAGE, return_inverse=True)
    number = np.arange(len(sizes))
    kinds = KindsOf(of.reshape(-1), number, 0 * number, sizes, "w" * len(sizes))
    bounds = np.cumsum([0, 100, 60, 20, 12])
    sweeps = [np.arange(a, b) for a, b in pairwise(bounds.tolist())]
    table, mix = mixes_of(sweeps, kinds, 30)
    assert mix == [0, 0, 1, 1]
    assert sum(table.count) == len(pages)
    assert table.sizes == (2, 2)
    # The first mix has sizes of 1 and 2 pages, and its fourth I/O is the first I/O of 2 pages.
    assert (table.first[:2], table.last[:2]) == ((0, 2), (156, 157))
    assert mixes_of(sweeps, kinds, 100)[1] == [0, 1, 2, 3]
