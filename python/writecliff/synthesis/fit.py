"""Fits an `IoModel` to a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from writecliff import _native
from writecliff.native_errors import as_user_errors
from writecliff.synthesis.arrivals import arrivals_of
from writecliff.synthesis.laid_out import FLUSH
from writecliff.synthesis.places import places_of
from writecliff.synthesis.streams import streams_of
from writecliff.synthesis.sweeps import swept_model
from writecliff.workload.io_model import IoModel

if TYPE_CHECKING:
    from writecliff.synthesis.laid_out import LaidOut


def fit(trace: LaidOut, *, seed: int = 1) -> IoModel:
    """The model of a trace: sweeps if few are enough, else a chain. Deterministic."""
    swept = swept_model(trace, seed=seed)
    return swept if swept is not None else _chained(trace, seed=seed)


def _chained(trace: LaidOut, *, seed: int) -> IoModel:
    streams = streams_of(trace)
    with as_user_errors():
        runs = _native.trace_runs(trace.columns())
    run = runs["run"]
    continues = (run != np.arange(len(run))) & (trace.operation != FLUSH)
    gaps, states, transitions, periods = arrivals_of(trace, streams.of, continues, runs["back"])
    places, range_bytes = places_of(trace, streams, run, runs["back"])
    return IoModel(
        seed=seed,
        range_bytes=max(range_bytes, *streams.model.lengths),
        streams=streams.model,
        gaps=gaps,
        states=states,
        transitions=transitions,
        periods=periods,
        places=places,
        read_ranks=tuple(runs["read_ranks"]),
        write_ranks=tuple(runs["write_ranks"]),
    )
