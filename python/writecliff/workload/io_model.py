"""Model of the I/Os of a trace, from which a job generates I/Os.

Mirrors `crates/synthesis/src/lib.rs`, which describes how a job uses it. Columns of a table
have the same length. `writecliff.synthesis` fits models to traces.
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
        """Rebuild a table from its `asdict`; lists become tuples."""
        return cls(**{key: _plain(value) for key, value in given.items()})


_T = TypeVar("_T", bound=_Table)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class ModelStreams(_Table):
    """I/O streams: operation and length."""

    operations: str  # a letter each: r read, w write, t trim, f flush
    lengths: Column  # in bytes; 0 for flushes
    several: Column  # 1: of several sizes, of which the length is the mean


@dataclass(frozen=True)
class ModelGaps(_Table):
    """Times since the previous I/O, in classes."""

    values_ns: Column  # eight for each class: the means of its eighths
    idle_ns: int  # gaps from this on are stretched, so that each period has its length


@dataclass(frozen=True)
class ModelStates(_Table):
    """States of the chain of arrivals."""

    stream: Column  # of the I/O
    continues: Column  # 1: it continues a run; 0: it begins one
    back: Column  # bytes before the end of the run that it continues at which it begins
    gap: Column  # class of the gap before it


@dataclass(frozen=True)
class ModelTransitions(_Table):
    """Numbers of transitions between states."""

    phase: Column  # phase of the trace
    before: Column  # the state before
    after: Column  # the state after
    count: Column  # how often


@dataclass(frozen=True)
class ModelPeriods(_Table):
    """Demand over time."""

    phase: Column  # whose transitions there are
    ios: Column  # I/Os, flushes included
    length_ns: Column  # from the last I/O of the period before to the last one of this
    longest_ns: Column  # the longest time between two I/Os


@dataclass(frozen=True)
class ModelPlaces(_Table):
    """Groups of start addresses of runs that are used alike."""

    stream: Column  # of the I/Os that begin there
    begin: Column  # when places are used first: in 2^-24 of the stream's I/Os that begin runs
    within: Column  # over what time first uses are spread
    life: Column  # from the first use of a place to its last
    # Shape of the Weibull distribution of times between uses of a place, in hundredths: 100 random,
    # more: evenly spread, fewer: in clusters.
    shape: Column
    count: Column  # of places
    uses: Column  # of all of them
    run_bytes: Column  # of the run that begins with a use
    offset: Column  # address of the first place
    stride: Column  # from one place to the next


@dataclass(frozen=True)
class ModelSweeps(_Table):
    """Sequences of I/Os with ascending addresses, a row each."""

    begin: Column  # number of the first I/O within the pass
    end: Column  # and of the last
    offset: Column  # least address
    ios: Column
    mix: Column  # number of the mix of sizes
    span: Column  # bytes from the least address to the end of the last I/O
    # Columns for the last rows only; sequences of the other rows have no gaps.
    steps: Column  # I/Os before which something is left out
    left_out: Column  # bytes that are left out
    # Weights by which those draw the pages that they use; each page has one of them. Or none.
    read_weights: Column = ()
    write_weights: Column = ()


@dataclass(frozen=True)
class ModelMixes(_Table):
    """Mixes of I/O streams, which similar sweeps share."""

    sizes: Column  # rows of the other columns, those of the mixes one after another
    stream: Column  # I/O stream
    back: Column  # bytes before the end of the I/O before at which it begins
    count: Column  # I/Os of that kind in all sweeps of the mix
    begins: Column  # how many of them are the first one of a sweep
    # For kinds with other I/Os: number of the first of them among all I/Os of the mix.
    first: Column
    # For kinds with several other I/Os:
    last: Column  # number of the last
    groups: Column  # in how many groups of I/Os that follow each other; groups are evenly spaced


@dataclass(frozen=True)
class ModelDemand(_Table):
    """Demand over time, in intervals."""

    ios: Column  # flushes included
    length_ns: Column  # from the last I/O of the interval before to the last one of this
    shape: Column  # of the Weibull distribution of times between I/Os, in hundredths


_NO_CHAIN: dict[str, Any] = {
    "gaps": ModelGaps((), 0), "states": ModelStates((), (), (), ()),
    "transitions": ModelTransitions((), (), (), ()), "periods": ModelPeriods((), (), (), ()),
    "places": ModelPlaces((), (), (), (), (), (), (), (), (), ()),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class IoModel:
    """Model of the I/Os of a trace; a pass is generated from it and its seed, and repeated."""

    seed: int = 1  # of the pass
    range_bytes: int  # addresses are below this, relative to the job's offset
    streams: ModelStreams  # operations and lengths
    gaps: ModelGaps = _NO_CHAIN["gaps"]  # times between I/Os
    states: ModelStates = _NO_CHAIN["states"]  # of the chain of arrivals
    transitions: ModelTransitions = _NO_CHAIN["transitions"]  # of the chain
    periods: ModelPeriods = _NO_CHAIN["periods"]  # demand over time
    places: ModelPlaces = _NO_CHAIN["places"]  # where runs begin
    read_ranks: Column = ()  # how often the run is continued that was used last, before that, ...
    write_ranks: Column = ()  # the same for writes
    # These three together are in place of all tables from `gaps` on.
    sweeps: ModelSweeps | None = None
    mixes: ModelMixes | None = None
    demand: ModelDemand | None = None

    @property
    def ios(self) -> int:
        """I/Os of a pass, flushes included."""
        return sum((self.sweeps or self.periods).ios)

    @property
    def of_streams(self) -> Iterator[tuple[int, int]]:
        """(Stream, number of I/Os) of a pass; a stream may occur several times."""
        if self.mixes is not None:
            return zip(self.mixes.stream, self.mixes.count, strict=True)
        moves = zip(self.transitions.after, self.transitions.count, strict=True)
        return ((self.states.stream[state], count) for state, count in moves)

    @property
    def flushes(self) -> int:
        """Number of flushes of a pass."""
        letters = self.streams.operations
        return sum(count for stream, count in self.of_streams if letters[stream] == "f")

    @property
    def bytes(self) -> int:
        """Bytes that a pass transfers."""
        return sum(count * self.streams.lengths[stream] for stream, count in self.of_streams)

    @property
    def duration_ns(self) -> int:
        """Length of a pass."""
        return sum((self.demand or self.periods).length_ns)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables in use."""
        if self.sweeps is not None:
            return ("streams", "sweeps", "mixes", "demand")
        return ("streams", "gaps", "states", "transitions", "periods", "places")

    @property
    def numbers(self) -> int:
        """Number of values in the model, a measure of its size."""
        tables = [getattr(self, name) for name in self.tables]
        columns = [getattr(table, column.name) for table in tables for column in fields(table)]
        counted = sum(len(column) for column in columns if not isinstance(column, int))
        return counted + len(self.read_ranks) + len(self.write_ranks)


def io_model_from_mapping(given: Mapping[str, Any]) -> IoModel:
    """Rebuild a model from its `asdict`."""
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
