"""Page weights: sweeps that use the same pages repeatedly, or random pages."""

from __future__ import annotations

import numpy as np
import pytest

from writecliff import _native
from writecliff.synthesis.laid_out import WRITE, LaidOut
from writecliff.synthesis.sweeps import WEIGHTS, swept_model, weights_of
from writecliff.workload.model import Job, Workload

PAGE = 4096
PAGES, USED, SWEEPS = 1000, 100, 40


def checkpoints(popular: int) -> tuple[LaidOut, list[np.ndarray]]:
    """Return sweeps over a file that write 100 of its 1000 pages: `popular` are fixed."""
    draw = np.random.default_rng(1)
    order = draw.permutation(PAGES)
    pages = np.concatenate([
        np.sort(np.concatenate((
            order[:popular], draw.choice(order[popular:], USED - popular, replace=False)
        )))
        for _ in range(SWEEPS)
    ])  # fmt: skip
    ios = len(pages)
    trace = LaidOut(
        time_ns=np.arange(ios, dtype=np.int64) * 1000,
        operation=np.full(ios, WRITE, np.uint8),
        offset=pages.astype(np.int64) * PAGE,
        length=np.full(ios, PAGE, np.int64),
        range_bytes=PAGES * PAGE,
        span_bytes=PAGES * PAGE,
        volumes=1,
        notes=(),
    )
    return trace, np.split(np.arange(ios), SWEEPS)


def test_pages_that_are_written_each_time_have_large_weights() -> None:
    trace, sweeps = checkpoints(60)
    weights = weights_of(trace, sweeps)
    assert len(weights) == WEIGHTS
    assert list(weights) == sorted(weights)
    # A weight represents a sixteenth of the pages. 60 of 1000 pages are always written.
    assert weights[-1] > 100 * weights[-3]


def test_pages_at_random_have_no_weights() -> None:
    trace, sweeps = checkpoints(0)
    assert weights_of(trace, sweeps) == ()
    assert weights_of(trace, sweeps[:1]) == (), "a single sweep shows no popularity"
    assert weights_of(trace, []) == ()


@pytest.mark.parametrize("popular", [0, 60])
def test_a_model_writes_the_same_pages_as_often(popular: int) -> None:
    """Count the pages that most sweeps write, in the trace and in the model."""
    trace, _ = checkpoints(popular)
    model = swept_model(trace, seed=1)
    assert model is not None
    workload = Workload("made", (Job(model=model, ios=1),))
    drawn = _native.model_ios(workload.to_json())
    often = [
        int((np.bincount(np.asarray(at) // PAGE, minlength=PAGES) > SWEEPS / 2).sum())
        for at in (trace.offset, drawn["offset_bytes"])
    ]
    assert often[0] == popular
    assert often[1] == pytest.approx(popular, abs=12)
