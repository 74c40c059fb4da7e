"""Model of a trace's I/Os, which a job uses to generate I/Os.

The classes mirror `crates/synthesis/src/lib.rs`, which describes how a job uses the model. The
columns in a table have equal lengths. `writecliff.synthesis` fits models to traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

Column = tuple[int, ...]


@dataclass(frozen=True)
class _Table:
    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Self:
        """Recreate a table from its `asdict`, converting lists to tuples."""
        return cls(**{key: _plain(value) for key, value in given.items()})


_T = TypeVar("_T", bound=_Table)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class ModelStreams(_Table):
    """I/O streams, defined by operation and length."""

    operations: str  # Operations, one letter each: r read, w write, t trim, f flush.
    lengths: Column  # Length in bytes; 0 for flushes.
    several: Column  # 1 for I/Os of several sizes, whose mean is the length.


@dataclass(frozen=True)
class ModelGaps(_Table):
    """Times since the previous I/O, grouped into classes."""

    values_ns: Column  # Eight values per class, which are the means of its eighths.
    idle_ns: int  # Gap in ns above which gaps are stretched to fit the period length.


@dataclass(frozen=True)
class ModelStates(_Table):
    """States of the Markov chain of arrivals."""

    stream: Column  # Stream of the I/O.
    continues: Column  # 1 if the I/O continues a run, 0 if it starts a run.
    # Distance in bytes from the I/O start to the end of the run that the I/O continues.
    back: Column
    gap: Column  # Class of the gap before the I/O.


@dataclass(frozen=True)
class ModelTransitions(_Table):
    """Transition counts between states."""

    phase: Column  # Phase of the trace.
    before: Column  # State before the transition.
    after: Column  # State after the transition.
    count: Column  # Number of transitions.


@dataclass(frozen=True)
class ModelPeriods(_Table):
    """Demand over the course of a pass."""

    phase: Column  # Phase whose transitions apply.
    ios: Column  # Number of I/Os, including flushes.
    # Time from the last I/O of the previous period to the last I/O of this period.
    length_ns: Column
    longest_ns: Column  # Longest time between two I/Os.


@dataclass(frozen=True)
class ModelPlaces(_Table):
    """Groups of similarly used start addresses of runs."""

    stream: Column  # Stream of the I/Os that start at these addresses.
    begin: Column  # Time of first use, in 2^-24 of the stream's I/Os that start runs.
    within: Column  # Time over which first uses are spread.
    life: Column  # Time from the first to the last use of a place.
    # Shape of the Weibull distribution of times between uses of a place, in hundredths. A shape of
    # 100 is random, larger values are evenly spread, and smaller values are clustered.
    shape: Column
    count: Column  # Number of places.
    uses: Column  # Number of uses of all places together.
    run_bytes: Column  # Length of the run that starts with a use.
    offset: Column  # Address of the first place.
    stride: Column  # Distance from one place to the next.


@dataclass(frozen=True)
class ModelSweeps(_Table):
    """Sequences of I/Os with ascending addresses, one sequence per row."""

    begin: Column  # Index of the first I/O within the pass.
    end: Column  # Index of the last I/O within the pass.
    offset: Column  # Lowest address.
    ios: Column
    mix: Column  # Index of the size mix.
    span: Column  # Bytes from the lowest address to the end of the last I/O.
    # Columns for the last rows only. The sequences in all other rows have no gaps.
    steps: Column  # I/Os that follow a gap.
    left_out: Column  # Gap size in bytes.
    # Weights that sweeps use to choose pages. Each page has one weight.
    read_weights: Column = ()
    write_weights: Column = ()


@dataclass(frozen=True)
class ModelMixes(_Table):
    """Mixes of I/O streams that are shared by similar sweeps."""

    sizes: Column  # Number of rows in the other columns, which list the mixes consecutively.
    stream: Column  # Stream of the I/O.
    back: Column  # Distance in bytes from the start of the I/O to the end of the previous I/O.
    count: Column  # Number of I/Os of this kind in all sweeps with the mix.
    begins: Column  # Number of these I/Os that come first in a sweep.
    # For kinds with other I/Os: index of the first other I/O among all I/Os in the mix.
    first: Column
    # For kinds with several other I/Os:
    last: Column  # Index of the last other I/O.
    groups: Column  # Number of evenly spaced groups of consecutive I/Os.


@dataclass(frozen=True)
class ModelDemand(_Table):
    """Demand over the course of a pass, in intervals."""

    ios: Column  # Number of I/Os, including flushes.
    # Time from the last I/O of the previous interval to the last I/O of this interval.
    length_ns: Column
    shape: Column  # Shape of the Weibull distribution of times between I/Os, in hundredths.


_NO_CHAIN: dict[str, Any] = {
    "gaps": ModelGaps((), 0), "states": ModelStates((), (), (), ()),
    "transitions": ModelTransitions((), (), (), ()), "periods": ModelPeriods((), (), (), ()),
    "places": ModelPlaces((), (), (), (), (), (), (), (), (), ()),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class IoModel:
    """Model of a trace's I/Os; a pass is generated from the model and its seed, and repeated."""

    seed: int = 1  # Seed for the pass.
    range_bytes: int  # Upper bound of the addresses, relative to the job's offset.
    streams: ModelStreams  # Operations and lengths of the streams.
    gaps: ModelGaps = _NO_CHAIN["gaps"]  # Times between I/Os.
    states: ModelStates = _NO_CHAIN["states"]  # States of the Markov chain of arrivals.
    # Transitions of the Markov chain of arrivals.
    transitions: ModelTransitions = _NO_CHAIN["transitions"]
    periods: ModelPeriods = _NO_CHAIN["periods"]  # Demand over the course of a pass.
    places: ModelPlaces = _NO_CHAIN["places"]  # Start addresses of runs.
    read_ranks: Column = ()  # Number of continuations by recency rank of the run, for reads.
    write_ranks: Column = ()  # Number of continuations by recency rank of the run, for writes.
    # These three tables jointly replace all tables from `gaps` on.
    sweeps: ModelSweeps | None = None
    mixes: ModelMixes | None = None
    demand: ModelDemand | None = None

    @property
    def ios(self) -> int:
        """Number of I/Os in a pass, including flushes."""
        return sum((self.sweeps or self.periods).ios)

    @property
    def of_streams(self) -> Iterator[tuple[int, int]]:
        """Pairs of (stream, I/O count) in a pass; a stream may occur several times."""
        if self.mixes is not None:
            return zip(self.mixes.stream, self.mixes.count, strict=True)
        moves = zip(self.transitions.after, self.transitions.count, strict=True)
        return ((self.states.stream[state], count) for state, count in moves)

    @property
    def flushes(self) -> int:
        """Number of flushes in a pass."""
        letters = self.streams.operations
        return sum(count for stream, count in self.of_streams if letters[stream] == "f")

    @property
    def bytes(self) -> int:
        """Number of bytes transferred in a pass."""
        return sum(count * self.streams.lengths[stream] for stream, count in self.of_streams)

    @property
    def duration_ns(self) -> int:
        """Duration of a pass."""
        return sum((self.demand or self.periods).length_ns)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that the model uses."""
        if self.sweeps is not None:
            return ("streams", "sweeps", "mixes", "demand")
        return ("streams", "gaps", "states", "transitions", "periods", "places")

    @property
    def numbers(self) -> int:
        """Number of values in the model, as a measure of its size."""
        tables = [getattr(self, name) for name in self.tables]
        columns = [getattr(table, column.name) for table in tables for column in fields(table)]
        counted = sum(len(column) for column in columns if not isinstance(column, int))
        return counted + len(self.read_ranks) + len(self.write_ranks)


def io_model_from_mapping(given: Mapping[str, Any]) -> IoModel:
    """Recreate a model from its `asdict`."""
    return IoModel(
        seed=given["seed"],
        range_bytes=given["range_bytes"],
        streams=ModelStreams.from_mapping(given["streams"]),
        gaps=ModelGaps.from_mapping(given["gaps"]),
        states=ModelStates.from_mapping(given["states"]),
        transitions=ModelTransitions.from_mapping(given["transitions"]),
        periods=ModelPeriods.from_mapping(given["periods"]),
        places=ModelPlaces.from_mapping(given["places"]),
        read_ranks=tuple(given["read_ranks"]),
        write_ranks=tuple(given["write_ranks"]),
        sweeps=_given(ModelSweeps, given.get("sweeps")),
        mixes=_given(ModelMixes, given.get("mixes")),
        demand=_given(ModelDemand, given.get("demand")),
    )


def _given(table: type[_T], given: Mapping[str, Any] | None) -> _T | None:
    return None if given is None else table.from_mapping(given)
